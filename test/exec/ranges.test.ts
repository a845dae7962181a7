/** Bounds of one field that stand together, and those of ids beside the row whose id is 0. */

import { describe, expect, test } from "bun:test";
import { Asked } from "./asked.ts";

function idsOf(answer: string | number): number[] {
  return JSON.parse(String(answer)).map((row: { readonly id: number }) => row.id);
}

describe("ids from 0", () => {
  for (const [filter, ids] of [
    ["id <= 0 and id > 0", []],
    ["id > 0 and id <= 0", []],
    ["id < 5 and id > 0", [1, 2]],
    ["id <= 1", [0, 1]],
    ["id >= 0 and id < 1", [0]],
    ["id != 0 and id >= 0", [1, 2]],
    ["id > -1", [0, 1, 2]],
    ["id > null", []],
    ["id = null", []],
    ["id is not null", [0, 1, 2]],
    ["id <= 9223372036854775807 and id > 0", [1, 2]],
  ] as const) {
    test(filter, () => {
      const asked = new Asked("create collection t (n int)", "put t [{id: 0, n: 1}, {n: 2}, {n: 3}]");
      expect(idsOf(asked.ask(`get t where ${filter}`))).toEqual([...ids]);
    });
  }
});

describe("an ordered index", () => {
  for (const [filter, ids] of [
    ["n <= 5 and n < 5", [1]],
    ["n < 5 and n <= 5", [1]],
    ["n >= 5 and n > 5", [4]],
    ["n > 5 and n >= 5", [4]],
    ["n <= 5 and n >= 5", [2, 3]],
    ["n < 5 and n > 5", []],
    ["n = 5 and n < 5", []],
    ["n = 5 and n <= 5", [2, 3]],
    ["n < 9 and n is not null and n > -9", [1, 2, 3, 4]],
    ["n is null and n < 9", []],
    ["n = null", [5]],
  ] as const) {
    test(filter, () => {
      const asked = new Asked(
        "create collection t (n int @sorted)",
        "put t [{n: -5}, {n: 5}, {n: 5}, {n: 7}, {n: null}]",
      );
      expect(idsOf(asked.ask(`get t where ${filter}`))).toEqual([...ids]);
    });
  }
});
