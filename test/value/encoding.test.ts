import { describe, expect, test } from "bun:test";
import { ByteReader, ByteWriter } from "../../src/base/bytes.ts";
import { TIME_MAX_MS, TIME_MIN_MS } from "../../src/base/limits.ts";
import { decodeRow, encodeRow } from "../../src/value/encoding.ts";
import { type Cell, type FieldType, intOf, Point, type Row } from "../../src/value/value.ts";
import { type Random, withRandom } from "../store/random.ts";
import { randomJson, randomText } from "./chance_json.ts";

const KINDS = ["bool", "int", "float", "text", "bytes", "timestamp", "json", "geo"] as const;

function roundTrip(types: readonly FieldType[], row: Row): Row {
  const w = new ByteWriter(1);
  encodeRow(w, types, row);
  const r = new ByteReader(w.view());
  const back = decodeRow(r, types);
  expect(r.remaining).toBe(0);
  return back;
}

function randomType(random: Random, levels: number): FieldType {
  return levels > 0 && random.chance(0.25)
    ? { kind: "list", of: randomType(random, levels - 1) }
    : { kind: random.pick(KINDS) };
}

function randomCell(random: Random, type: FieldType): Cell {
  if (random.chance(0.15)) return null;
  switch (type.kind) {
    case "bool":
      return random.chance(0.5);
    case "int": {
      const n = BigInt(Math.floor(random.next() * 2 ** 53)) * BigInt(random.chance(0.3) ? 1023 : 1);
      return intOf((random.chance(0.5) ? -n : n) >> BigInt(random.below(60)));
    }
    case "float":
      return random.pick([0, -0, 0.1, -1.5, 5e-324, 1.7976931348623157e308, random.next()]);
    case "timestamp":
      return random.pick([TIME_MIN_MS, -1, 0, 1, TIME_MAX_MS, Math.floor(random.next() * TIME_MAX_MS)]);
    case "text":
      return randomText(random);
    case "json":
      return randomJson(random, { levels: 2, spaces: false, twice: 0 });
    case "bytes":
      return Uint8Array.from({ length: random.below(300) }, () => random.below(256));
    case "geo":
      return new Point(random.next() * 360 - 180, random.next() * 180 - 90);
    case "list":
      return Array.from({ length: random.below(5) }, () => randomCell(random, type.of));
  }
}

describe("the bytes of a row", () => {
  const rows: readonly (readonly [FieldType["kind"], Cell, readonly number[]])[] = [
    ["text", null, [3]],
    ["json", null, [3]],
    ["int", null, [0]],
    ["bool", false, [1]],
    ["bool", true, [2]],
    ["int", 0, [1, 0]],
    ["int", -1, [2, 1]],
    ["int", 300, [1, 0xac, 2]],
    ["int", 2n ** 62n, [3, 0, 0, 0, 0, 0, 0, 0, 0x40]],
    ["float", 1, [1, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]],
    ["timestamp", -1, [2, 1]],
    ["text", "ab", [8, 97, 98]],
    ["json", "[]", [8, 91, 93]],
    ["bytes", new Uint8Array([5]), [1, 1, 5]],
  ];
  test.each(rows)("%s %p", (kind, cell, bytes) => {
    const w = new ByteWriter();
    encodeRow(w, [{ kind } as FieldType], [7, cell]);
    expect([...w.view()]).toEqual([7, ...bytes]);
  });
});

test("edges of every type come back as they were", () => {
  const ints = [
    0,
    -1,
    1,
    2 ** 31,
    -(2 ** 31),
    9007199254740991,
    -9007199254740991,
    9007199254740992n,
    2n ** 63n - 1n,
    -(2n ** 63n),
  ];
  for (const n of ints) expect(roundTrip([{ kind: "int" }], [1, n])).toEqual([1, n]);
  for (const n of [0, -0, 5e-324, -1.7976931348623157e308]) {
    expect(Object.is(roundTrip([{ kind: "float" }], [1, n])[1], n)).toBe(true);
  }
  for (const ms of [TIME_MIN_MS, -1, 0, 1, TIME_MAX_MS]) {
    expect(roundTrip([{ kind: "timestamp" }], [1, ms])).toEqual([1, ms]);
  }
  expect(roundTrip([], [Number.MAX_SAFE_INTEGER])).toEqual([Number.MAX_SAFE_INTEGER]);
});

test("random rows of random types come back as they were, one behind another", () => {
  withRandom((random) => {
    for (let round = 0; round < 150; round++) {
      const types = Array.from({ length: random.below(10) }, () => randomType(random, 2));
      const rows = Array.from(
        { length: 1 + random.below(20) },
        (): Row => [
          Math.floor(random.next() * 2 ** random.below(54)),
          ...types.map((type) => randomCell(random, type)),
        ],
      );
      const w = new ByteWriter(1);
      for (const row of rows) encodeRow(w, types, row);
      const r = new ByteReader(w.copy());
      for (const row of rows) expect(decodeRow(r, types)).toEqual(row);
      expect(r.remaining).toBe(0);
    }
  });
});

test("what is cut short is noticed", () => {
  withRandom((random) => {
    const types = Array.from({ length: 8 }, () => randomType(random, 1));
    const w = new ByteWriter();
    encodeRow(w, types, [1, ...types.map((type) => randomCell(random, type))]);
    for (let end = 0; end < w.length; end++) {
      expect(() => decodeRow(new ByteReader(w.view(), 0, end), types)).toThrow();
    }
  });
});

test("a list that claims more cells than there are bytes takes no memory", () => {
  const bytes = new Uint8Array([1, 1, 255, 255, 255, 255, 255, 255, 255, 15]);
  expect(() => decodeRow(new ByteReader(bytes), [{ kind: "list", of: { kind: "int" } }])).toThrow("no more cells");
});
