import { expect, test } from "bun:test";
import { orderOfKeys, orderOfNumbers } from "../../src/store/key_order.ts";
import { Float } from "../../src/value/value.ts";
import { plainOrder as plainKeyOrder } from "./model.ts";
import { withRandom } from "./random.ts";

function plainOrder(keys: readonly number[]): number[] {
  return keys.map((_, i) => i).sort((a, b) => (keys[a] as number) - (keys[b] as number) || a - b);
}

test("numbers of every kind are ordered, equal ones by position", () => {
  const keys = [3, -1, 0, -0, 2 ** 53, -(2 ** 53), 0.5, -0.5, 1e308, -1e308, 5e-324, -5e-324, 3, -1, 0];
  expect([...orderOfNumbers(Float64Array.from(keys))]).toEqual(plainOrder(keys));
  const withNulls = [...keys, -Infinity, -Infinity];
  expect([...orderOfNumbers(Float64Array.from(withNulls))].slice(0, 2)).toEqual([15, 16]);
});

test("nothing and one are ordered", () => {
  expect([...orderOfNumbers(new Float64Array(0))]).toEqual([]);
  expect([...orderOfNumbers(Float64Array.of(4))]).toEqual([0]);
  expect([...orderOfKeys([], () => 0)]).toEqual([]);
});

test("random numbers come in a plain sort's order", () => {
  withRandom((random) => {
    for (let round = 0; round < 60; round++) {
      const spread = [3, 100, 1e6, 1.8e12, 1e300][round % 5] as number;
      const whole = round % 2 === 0;
      const keys = Array.from({ length: random.below(400) }, () => {
        const n = (random.next() - 0.3) * spread;
        return whole ? Math.round(n) + 0 : n;
      });
      const expected = plainOrder(keys);
      expect([...orderOfNumbers(Float64Array.from(keys))]).toEqual(expected);
      expect([...orderOfKeys(keys, (a, b) => a - b)]).toEqual(expected);
    }
  });
});

test("random texts and numbers of all kinds come in a plain sort's order", () => {
  const units = ["a", "b", "z", "\u0000", "\u00fe", "\u00ff", "\u0100", "\ud7ff", "\ue000", "\uffff", "😀", "𝒜"];
  withRandom((random) => {
    for (let round = 0; round < 200; round++) {
      const prefix = random.pick(["", "", "user:", "é:", "😀:", "\uffff"]);
      const distinct = 1 + random.below(12);
      const text = () => prefix + Array.from({ length: random.below(9) }, () => units[random.below(distinct)]).join("");
      const number = () => random.pick([random.below(9) - 4, 0.5, -0, 2n ** 53n, 2n ** 53n + 1n, -(2n ** 60n)]);
      const json = () => {
        const n = number();
        return typeof n === "number" && !Number.isInteger(n) ? new Float(n) : n;
      };
      const kinds = [text, json, () => (random.chance(0.5) ? text() : json()), () => random.chance(0.5)];
      const kind = kinds[round % kinds.length] as () => ReturnType<typeof text | typeof json> | boolean;
      const keys = Array.from({ length: random.below(200) }, () => (random.chance(0.1) ? null : kind()));
      const expected = keys.map((_, i) => i).sort((a, b) => plainKeyOrder(keys[a] ?? null, keys[b] ?? null) || a - b);
      expect([...orderOfKeys(keys, plainKeyOrder)]).toEqual(expected);
    }
  });
});
