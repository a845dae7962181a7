import { expect, test } from "bun:test";
import { orderOfKeys, orderOfNumbers } from "../../src/store/key_order.ts";
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
