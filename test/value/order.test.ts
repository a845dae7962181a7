import { describe, expect, test } from "bun:test";
import { readJson } from "../../src/value/json.ts";
import {
  comparable,
  comparableInJson,
  compareNumbers,
  compareText,
  compareValues,
  identity,
  valuesEqual,
} from "../../src/value/order.ts";
import { Float, intOf, Json, Point, Time, type Value } from "../../src/value/value.ts";
import { withRandom } from "../store/random.ts";
import { randomJson, randomText } from "./chance_json.ts";
import { sameTree, treeOf } from "./reference.ts";
import { shown } from "./shown.ts";

/** Code points, half a surrogate pair counting as its own number. */
function codePoints(text: string): number[] {
  return [...text].map((character) => character.codePointAt(0)!);
}

/** UTF-8 of any string: half a pair is written as any other number of its size would be. */
function utf8Bytes(text: string): number[] {
  return codePoints(text).flatMap((code) => {
    if (code < 0x80) return [code];
    if (code < 0x800) return [0xc0 | (code >> 6), 0x80 | (code & 63)];
    if (code < 0x10000) return [0xe0 | (code >> 12), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63)];
    return [0xf0 | (code >> 18), 0x80 | ((code >> 12) & 63), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63)];
  });
}

/** A number as a whole count of 2^-1074, the smallest step of a double. */
function exact(n: number | bigint): bigint {
  if (typeof n === "bigint") return n << 1074n;
  const bits = new DataView(new ArrayBuffer(8));
  bits.setFloat64(0, n);
  const raw = bits.getBigUint64(0);
  const exponent = (raw >> 52n) & 0x7ffn;
  const fraction = raw & 0xfffffffffffffn;
  const magnitude = exponent === 0n ? fraction : (fraction | 0x10000000000000n) << (exponent - 1n);
  return raw >> 63n === 1n ? -magnitude : magnitude;
}

const sign = (n: number): number => (n > 0 ? 1 : n < 0 ? -1 : 0);

describe("text", () => {
  test("known pairs, by UTF-8 bytes and not by UTF-16 units", () => {
    const ascending = [
      "",
      "\0",
      "A",
      "Vera",
      "Zoe",
      "a",
      "ab",
      "b",
      "\u007f",
      "Ö",
      "Ü",
      "ı",
      "\ud7ff",
      "\ud800",
      "\udfff",
      "\ue000",
      "\uffff",
      "😀",
      "😁",
      "\u{10ffff}",
    ];
    for (let i = 0; i < ascending.length; i++) {
      for (let j = 0; j < ascending.length; j++) {
        expect(sign(compareText(ascending[i]!, ascending[j]!))).toBe(sign(i - j));
      }
    }
  });

  test("any two texts, as their bytes", () => {
    const units = [
      "a",
      "b",
      "é",
      "\ud7ff",
      "\ud800",
      "\ud83d",
      "\udbff",
      "\udc00",
      "\ude00",
      "\udfff",
      "\ue000",
      "\uffff",
    ];
    withRandom((random) => {
      const text = (): string => Array.from({ length: random.below(5) }, () => random.pick(units)).join("");
      for (let i = 0; i < 20_000; i++) {
        const [a, b] = [text(), text()];
        expect(sign(compareText(a, b))).toBe(
          sign(Buffer.compare(Buffer.from(utf8Bytes(a)), Buffer.from(utf8Bytes(b)))),
        );
      }
    });
  });
});

describe("numbers", () => {
  const numbers: readonly (number | bigint)[] = [
    -1.7976931348623157e308,
    -(2 ** 63) - 2048,
    -(2n ** 63n),
    -9007199254740993n,
    -9007199254740992,
    -9007199254740991,
    -1.5,
    -1,
    -5e-324,
    0,
    5e-324,
    0.1,
    0.30000000000000004,
    1,
    1.0000000000000002,
    9007199254740991,
    9007199254740992,
    9007199254740993n,
    9007199254740994,
    2n ** 63n - 1025n,
    2n ** 63n - 1n,
    2 ** 63,
    1e29,
    1.7976931348623157e308,
  ];
  test("compare exactly over every mix", () => {
    for (const [i, a] of numbers.entries()) {
      for (const [j, b] of numbers.entries()) {
        expect(sign(compareNumbers(a, b))).toBe(sign(i - j));
        const difference = exact(a) - exact(b);
        expect(sign(compareNumbers(a, b))).toBe(difference > 0n ? 1 : difference < 0n ? -1 : 0);
      }
    }
  });
});

/** Values in ascending order; those of one row are equal. */
const LADDER: readonly (readonly Value[])[] = [
  [null],
  [false],
  [true],
  [new Float(-1e300)],
  [-(2n ** 63n), new Float(-(2 ** 63))],
  [-1, new Float(-1), new Float(-1, "-1.0")],
  [0, new Float(0), new Float(-0, "-0"), new Float(0, "0e5")],
  [new Float(0.5)],
  [1, new Float(1, "1.0")],
  [9007199254740992n, new Float(9007199254740992)],
  [9007199254740993n],
  [9007199254740994n, new Float(9007199254740994)],
  [2n ** 62n, new Float(2 ** 62)],
  [2n ** 63n - 1n],
  [new Float(2 ** 63), new Float(2 ** 63, "9223372036854775808")],
  [new Float(1e29, "100000000000000000000000000000")],
  [""],
  ["\u0001"],
  ["\u0001[]"],
  ["\u0001t5"],
  ["0"],
  ["A"],
  ["a"],
  ["null"],
  ["\ue000"],
  ["😀"],
  [[], new Json("[]")],
  [[null], new Json("[null]")],
  [[0], new Json("[0]"), new Json("[-0.0]"), [new Float(0)]],
  [[0, 1], new Json("[0,1]"), new Json("[0,1.0]")],
  [[9007199254740993n], new Json("[9007199254740993]")],
  [[2n ** 62n], new Json("[4611686018427387904]"), [new Float(2 ** 62)], new Json("[4611686018427387904.0]")],
  [["a"], new Json('["a"]'), new Json('["\\u0061"]')],
  [["a", new Json('{"k":1}')], new Json('["a",{"k":1.0}]')],
  [[[]], new Json("[[]]"), [new Json("[]")]],
  [[new Json("{}")], new Json("[{}]")],
  [[new Time(5)]],
  [[new Uint8Array([1])]],
  [[new Point(1, 2)]],
  [new Json('{"__proto__":1}')],
  [new Json('{"a":1,"b":2}'), new Json('{"b":2.0,"a":1e0}')],
  [new Json('{"a":2}')],
  [new Json("{}")],
  [new Time(-1)],
  [new Time(5)],
  [new Uint8Array()],
  [new Uint8Array([1])],
  [new Uint8Array([1, 0])],
  [new Uint8Array([2])],
  [new Point(-1, 5)],
  [new Point(0, 0), new Point(-0, -0)],
  [new Point(0, 1)],
];

describe("the total order", () => {
  const all = LADDER.flatMap((values, step) => values.map((value) => ({ value, step })));

  test("any two values stand as the ladder says, and are equal within a step alone", () => {
    for (const a of all) {
      for (const b of all) {
        const words = `${Bun.inspect(a.value)} against ${Bun.inspect(b.value)}`;
        expect([words, sign(compareValues(a.value, b.value))]).toEqual([words, sign(a.step - b.step)]);
        expect([words, valuesEqual(a.value, b.value)]).toEqual([words, a.step === b.step]);
      }
    }
  });

  test("identity finds exactly what is equal", () => {
    const steps = new Map<ReturnType<typeof identity>, number>();
    for (const { value, step } of all) {
      const key = identity(value);
      expect(steps.get(key) ?? step).toBe(step);
      steps.set(key, step);
    }
    expect(steps.size).toBe(LADDER.length);
  });

  test("over random json: total, in step with identity and with a plainer equality", () => {
    withRandom((random) => {
      const texts = Array.from({ length: 120 }, () => randomJson(random, { levels: 2, spaces: false, twice: 0 }));
      texts.push(...texts.slice(0, 20));
      const values = texts.map((text) => readJson(text));
      const trees = texts.map(treeOf);
      const sorted = [...values].sort(compareValues);
      for (let i = 0; i < sorted.length; i++) {
        for (let j = i; j < sorted.length; j++) expect(compareValues(sorted[i]!, sorted[j]!)).toBeLessThanOrEqual(0);
      }
      for (let i = 0; i < values.length; i++) {
        for (let j = 0; j < values.length; j++) {
          const [a, b] = [values[i]!, values[j]!];
          const order = compareValues(a, b);
          expect(sign(compareValues(b, a))).toBe(-sign(order) + 0);
          expect([texts[i], texts[j], order === 0]).toEqual([texts[i], texts[j], sameTree(trees[i]!, trees[j]!)]);
          expect(new Set([identity(a), identity(b)]).size).toBe(order === 0 ? 1 : 2);
        }
      }
    });
  });

  test("texts and the marks of other kinds never meet", () => {
    withRandom((random) => {
      const seen = new Map<unknown, string>();
      for (let i = 0; i < 5_000; i++) {
        const text = (random.chance(0.5) ? "\u0001" : "") + randomText(random);
        const key = identity(text);
        expect(seen.get(key) ?? text).toBe(text);
        seen.set(key, text);
      }
      for (const value of [new Json("{}"), [1], new Time(1), new Uint8Array([7]), new Point(1, 1)]) {
        expect(seen.has(identity(value))).toBe(false);
        expect(identity(identity(value) as string)).not.toBe(identity(value));
      }
    });
  });
});

describe("what the operators compare", () => {
  const day = Date.UTC(2026, 0, 1);
  /** Left, right, outside json, inside json; undefined where the kinds do not compare. */
  const rows: readonly (readonly [Value, Value, number | undefined, number | undefined])[] = [
    [null, null, 0, 0],
    [null, 1, undefined, undefined],
    [null, "", undefined, undefined],
    [null, new Time(0), undefined, undefined],
    [null, [], undefined, undefined],
    [3, new Float(3, "3.0"), 0, 0],
    [12, new Float(12.5), -1, -1],
    [9007199254740993n, new Float(9007199254740992), 1, 1],
    ["a", "b", -1, -1],
    [false, true, -1, -1],
    [true, true, 0, 0],
    [5, "abc", undefined, -1],
    [5, "5", undefined, -1],
    [true, 5, undefined, -1],
    [true, "a", undefined, -1],
    ["a", [], undefined, -1],
    [[1], new Json("{}"), undefined, -1],
    [[1, 2], new Json("[1,2.0]"), 0, 0],
    [[1, 2], [1, 3], -1, -1],
    [new Json('{"a":1,"b":2}'), new Json('{"b":2,"a":1}'), 0, 0],
    [new Time(day), "2026-01-01", 0, 0],
    [new Time(day), "2026-01-01T03:00:00+03:00", 0, 0],
    [new Time(day), "2026-01-02", -1, -1],
    [new Time(day), "yesterday", undefined, undefined],
    [new Time(day), day, 0, 0],
    [new Time(day), day + 1, -1, -1],
    [new Time(day), 2n ** 60n, -1, -1],
    [new Time(day), new Float(day + 0.5), -1, -1],
    [new Time(day), new Time(day - 1), 1, 1],
    [new Time(day), true, undefined, undefined],
    [new Time(day), [day], undefined, undefined],
    [new Time(day), new Json("{}"), undefined, undefined],
    [new Time(day), new Uint8Array([1]), undefined, undefined],
    [new Uint8Array([0xc3, 0xa9]), "é", 0, 0],
    [new Uint8Array([0x61]), "b", -1, -1],
    [new Uint8Array([0x61]), 0x61, undefined, undefined],
    [new Uint8Array([1]), new Uint8Array([1]), 0, 0],
    [new Point(1, 2), new Point(1, 2), 0, 0],
    [new Point(1, 2), [1, 2], 0, 0],
  ];
  test.each(rows.map((row) => [shown(row[0]), shown(row[1]), ...row] as const))("%s against %s", (...row) => {
    const [, , a, b, outside, inside] = row;
    const signOf = (order: number | undefined): number | undefined =>
      order === undefined ? undefined : sign(order) + 0;
    const turned = (order: number | undefined): number | undefined => (order === undefined ? undefined : -order + 0);
    expect(signOf(comparable(a, b))).toBe(outside as number);
    expect(signOf(comparable(b, a))).toBe(turned(outside) as number);
    expect(signOf(comparableInJson(a, b))).toBe(inside as number);
    expect(signOf(comparableInJson(b, a))).toBe(turned(inside) as number);
  });
});

test("an int has one form", () => {
  expect(intOf(9007199254740991n)).toBe(9007199254740991);
  expect(intOf(9007199254740992n)).toBe(9007199254740992n);
  expect(intOf(-9007199254740991n)).toBe(-9007199254740991);
  expect(intOf(-9007199254740992n)).toBe(-9007199254740992n);
});
