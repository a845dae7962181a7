import { expect, test } from "bun:test";
import { IdSet } from "../../src/obs/id_set.ts";

test("a set of ids holds what was put into it", () => {
  const ids = new IdSet();
  const judge = new Set<number>();
  const next = random(77);
  const pool = [0, 1, 31, 32, 1023, 1024, -1, -1024, -1025, 2 ** 31, 2 ** 32 + 5, 2 ** 53 - 1, -(2 ** 53 - 1)];
  for (let step = 0; step < 5_000; step++) {
    const id = pool[next(pool.length)]! + (next(2) === 0 ? 0 : -next(3));
    if (!Number.isSafeInteger(id)) continue;
    if (next(2) === 0) {
      expect(ids.add(id)).toBe(!judge.has(id));
      judge.add(id);
    } else expect(ids.delete(id)).toBe(judge.delete(id));
    expect(ids.has(id)).toBe(judge.has(id));
  }
});

function random(seed: number): (below: number) => number {
  let state = seed | 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}
