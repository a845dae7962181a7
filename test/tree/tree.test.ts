import { describe, expect, test } from "bun:test";
import { AssertionFailure } from "../../src/base/assert.ts";
import { toEnd } from "../../src/base/steps.ts";
import { Pages } from "../../src/tree/pages.ts";
import { type CompareKeys, FANOUT, Tree } from "../../src/tree/tree.ts";
import { type Random, withRandom } from "../store/random.ts";
import { type Entry, SortedList } from "./sorted_list.ts";

type RowOf = readonly [id: number];

const nullFirst: CompareKeys<number | null> = (a, b) => {
  if (a === null || b === null) return a === b ? 0 : a === null ? -1 : 1;
  return a < b ? -1 : a > b ? 1 : 0;
};
const byText: CompareKeys<string> = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

/** Ways keys can lie: few or many, in order or not, with the odd ones among them. */
const NUMBERS: Readonly<Record<string, (random: Random, step: number) => number | null>> = {
  "many keys": (random) => random.below(1_000_000) - 500_000,
  "few keys and nulls": (random) => (random.chance(0.2) ? null : random.below(6) - 3),
  "one key": () => 7,
  "rising keys": (_, step) => step,
  "falling keys": (_, step) => -step,
  "two fronts": (random, step) => (random.chance(0.5) ? step : 1_000_000 + step),
  "odd numbers": (random) =>
    random.pick([null, 0, -0, 0.1, -0.1, 5e-324, 1e308, -1e308, 2 ** 53, 2 ** 53 - 1, -(2 ** 53), random.next()]),
};

/** Ways ids can come; no two alike. */
const IDS: Readonly<Record<string, (step: number) => number>> = {
  "rising ids": (step) => step,
  "falling ids": (step) => 1_000_000 - step,
  "scattered ids": (step) => (step * 7_919) % 1_000_000,
};

function collect(limit: number, walk: (visit: (row: RowOf) => boolean) => void): number[] {
  const ids: number[] = [];
  if (limit > 0) {
    walk((row) => {
      ids.push(row[0]);
      return ids.length < limit;
    });
  }
  return ids;
}

function pagesOf(rows: readonly RowOf[], size = 4): Pages<RowOf> {
  const pages = new Pages<RowOf>(size);
  for (const row of rows) pages.push(row);
  return pages;
}

function compareWhole<K>(tree: Tree<K, RowOf>, list: SortedList<K>): void {
  tree.check();
  const { size } = tree;
  expect(size).toBe(list.entries.length);
  expect(collect(Infinity, (visit) => tree.ascendRange(0, size, visit))).toEqual(list.ids(0, size));
  expect(collect(Infinity, (visit) => tree.descendRange(0, size, visit))).toEqual(list.idsDescending(0, size));
}

/** One question of each kind, about an entry that is there or one that is not. */
function compareAnswers<K>(random: Random, tree: Tree<K, RowOf>, list: SortedList<K>, ask: Entry<K>): void {
  const { key, row } = ask;
  const id = random.pick([row[0], row[0] + 1, -Infinity, Infinity]);
  const size = list.entries.length;
  expect(tree.get(key, row[0])).toBe(list.get(key, row[0]));
  const rank = list.rank(key, id);
  expect(tree.rank(key, id)).toBe(rank);
  const position = random.below(size + 3) - 1;
  expect(tree.at(position)).toBe(list.entries[position]?.row);
  const held = list.entries[position];
  expect(tree.keyAt(position)).toBe(held?.key);
  expect(tree.first()).toBe(list.entries[0]?.row);
  expect(tree.last()).toBe(list.entries.at(-1)?.row);
  const limit = random.pick([1, 3, 40, Infinity]);
  const cut = (ids: number[]): number[] => ids.slice(0, limit);
  expect(collect(limit, (visit) => tree.ascend(key, id, visit))).toEqual(cut(list.ids(rank, size)));
  expect(collect(limit, (visit) => tree.descend(key, id, visit))).toEqual(cut(list.idsDescending(0, rank)));
  const from = random.below(size + 4) - 2;
  const to = random.chance(0.2) ? size + 9 : from + random.below(size + 2) - 1;
  expect(collect(limit, (visit) => tree.ascendRange(from, to, visit))).toEqual(cut(list.ids(from, to)));
  expect(collect(limit, (visit) => tree.descendRange(from, to, visit))).toEqual(cut(list.idsDescending(from, to)));
}

/** Grows and shrinks by turns, so that every split, join and collapse happens, and ends empty. */
function history<K>(
  random: Random,
  tree: Tree<K, RowOf>,
  list: SortedList<K>,
  keyOf: (random: Random, step: number) => K,
  steps: number,
  idOf: (key: K, step: number) => number = (_, step) => step,
): void {
  const most = 600;
  let growing = true;
  for (let step = 0; step < steps; step++) {
    if (list.entries.length === 0) growing = true;
    else if (list.entries.length > most) growing = false;
    else if (random.chance(0.002)) growing = !growing;
    if (random.chance(growing ? 0.75 : 0.25) || list.entries.length === 0) {
      const key = keyOf(random, step);
      const row: RowOf = [idOf(key, step)];
      tree.insert(key, row);
      list.insert(key, row);
    } else {
      const end = random.below(4);
      const size = list.entries.length;
      const at = end === 0 ? 0 : end === 1 ? size - 1 : random.below(size);
      const { key, row } = list.entries[at] as Entry<K>;
      expect(tree.remove(key, row[0])).toBe(true);
      expect(tree.remove(key, row[0])).toBe(false);
      list.remove(key, row[0]);
    }
    if (random.chance(0.02)) {
      const absent: Entry<K> = { key: keyOf(random, step), row: [random.below(steps)] };
      const ask = list.entries.length > 0 && random.chance(0.7) ? random.pick(list.entries) : absent;
      compareAnswers(random, tree, list, ask);
    }
    if (random.chance(0.004)) compareWhole(tree, list);
  }
  compareWhole(tree, list);
  while (list.entries.length > 0) {
    const { key, row } = random.pick(list.entries);
    tree.remove(key, row[0]);
    list.remove(key, row[0]);
  }
  compareWhole(tree, list);
  expect(tree.nodes).toBe(1);
}

const { FENEC_LONG } = process.env;
const LONG = FENEC_LONG === undefined ? 1 : 50;

describe("random histories against a sorted list", () => {
  for (const [name, keyOf] of Object.entries(NUMBERS)) {
    for (const fanout of [4, 9, 24, FANOUT]) {
      test(
        `${name}, ${fanout} to a node`,
        () => {
          withRandom((random) => {
            history(
              random,
              new Tree<number | null, RowOf>("number", fanout),
              new SortedList(nullFirst),
              keyOf,
              6_000 * LONG,
            );
            history(
              random,
              new Tree<number | null, RowOf>(nullFirst, fanout),
              new SortedList(nullFirst),
              keyOf,
              3_000 * LONG,
            );
          });
        },
        LONG * 20_000,
      );
    }
  }

  for (const [name, idAt] of Object.entries(IDS)) {
    test(
      `${name}, each the key of its row`,
      () => {
        withRandom((random) => {
          for (const fanout of [4, 9, FANOUT]) {
            const list = new SortedList<number>((a, b) => a - b);
            const tree = new Tree<number, RowOf>("id", fanout);
            history(
              random,
              tree,
              list,
              (_, step) => idAt(step),
              3_000 * LONG,
              (id) => id,
            );
          }
        });
      },
      LONG * 20_000,
    );
  }

  test("a tree loaded with pages lives on like one that grew", () => {
    withRandom((random) => {
      for (const fanout of [4, 7, FANOUT]) {
        for (const total of [0, 1, fanout - 1, fanout, fanout + 1, 2 * fanout, fanout * fanout, fanout * fanout + 1]) {
          const list = new SortedList<number>((a, b) => a - b);
          const pages = new Pages<RowOf>(fanout);
          for (let i = 0; i < total; i++) {
            const row: RowOf = [1_000_000 + 2 * i];
            list.insert(row[0], row);
            pages.push(row);
            expect(pages.at(i)).toBe(row);
          }
          expect([pages.length, pages.at(total), pages.at(-1)]).toEqual([total, undefined, undefined]);
          const tree = new Tree<number, RowOf>("id", fanout);
          toEnd(tree.loadPages(pages));
          compareWhole(tree, list);
          history(
            random,
            tree,
            list,
            (_, step) => 1_000_001 + 2 * step,
            400,
            (id) => id,
          );
        }
      }
    });
  });

  test(
    "text keys",
    () => {
      withRandom((random) => {
        const keyOf = (r: Random): string => `${"k".repeat(r.below(3))}${r.below(50)}`;
        for (const fanout of [5, 32]) {
          history(random, new Tree<string, RowOf>(byText, fanout), new SortedList(byText), keyOf, 5_000 * LONG);
        }
      });
    },
    LONG * 20_000,
  );

  test("a loaded tree lives on like one that grew", () => {
    withRandom((random) => {
      for (const total of [0, 1, 3, 4, 5, 16, 17, 64, 65, 333, 600]) {
        for (const fanout of [4, 7, FANOUT]) {
          for (const keys of ["number", nullFirst] as const) {
            const list = new SortedList(nullFirst);
            for (let i = 0; i < total; i++) {
              list.insert(random.chance(0.1) ? null : random.below(40), [1_000_000 + i]);
            }
            const tree = new Tree<number | null, RowOf>(keys, fanout);
            tree.load(
              list.entries.map((entry) => entry.key),
              pagesOf(list.entries.map((entry) => entry.row)),
            );
            compareWhole(tree, list);
            history(random, tree, list, (r) => r.below(40), 400);
          }
        }
      }
    });
  });
});

function grown(count: number, keyOf: (i: number) => number, fanout = FANOUT): Tree<number | null, RowOf> {
  const tree = new Tree<number | null, RowOf>("number", fanout);
  for (let i = 0; i < count; i++) tree.insert(keyOf(i), [i]);
  return tree;
}

describe("shape", () => {
  const count = 20_000;

  test("drained from either end, or in a mess, it is an empty leaf again", () => {
    withRandom((random) => {
      const orders = {
        first: (tree: Tree<number | null, RowOf>) => tree.first() as RowOf,
        last: (tree: Tree<number | null, RowOf>) => tree.last() as RowOf,
        any: (tree: Tree<number | null, RowOf>) => tree.at(random.below(tree.size)) as RowOf,
      };
      for (const pick of Object.values(orders)) {
        const tree = grown(count, (i) => i >> 3);
        while (tree.size > 0) {
          const row = pick(tree);
          tree.remove(row[0] >> 3, row[0]);
          if (tree.size % 1_999 === 0) tree.check();
        }
        tree.check();
        expect(tree.nodes).toBe(1);
      }
    });
  });

  test("memory follows the entries down wherever they are removed", () => {
    withRandom((random) => {
      const tree = grown(count, () => random.below(1e9));
      const full = tree.nodes;
      while (tree.size > count / 20) {
        const position = random.below(tree.size);
        tree.remove(tree.keyAt(position) as number, (tree.at(position) as RowOf)[0]);
      }
      tree.check();
      expect(tree.nodes).toBeLessThan(full / 8);
    });
  });

  test(
    "runs taken out and put back anywhere",
    () => {
      withRandom((random) => {
        const universe = 8_000;
        for (const fanout of [4, 16, 24, FANOUT]) {
          const tree = new Tree<number | null, RowOf>("number", fanout);
          let held: number[] = [];
          for (let round = 0; round < 60 * LONG; round++) {
            const from = random.below(universe);
            const to = from + random.pick([1, 10, 100, 1_000, universe]);
            const putIn = held.length < universe / 2 ? random.chance(0.6) : random.chance(0.3);
            const inside = (key: number): boolean => key >= from && key < to;
            const has = new Set(held);
            const run: number[] = [];
            for (let key = from; key < Math.min(to, universe); key++) if (has.has(key) !== putIn) run.push(key);
            const order = random.below(3);
            if (order === 1) run.reverse();
            if (order === 2) run.sort(() => random.next() - 0.5);
            for (const key of run) {
              if (putIn) tree.insert(key, [key]);
              else tree.remove(key, key);
            }
            held = putIn ? [...held, ...run].sort((a, b) => a - b) : held.filter((key) => !inside(key));
            tree.check();
            expect(collect(Infinity, (visit) => tree.ascendRange(0, universe, visit))).toEqual(held);
          }
        }
      });
    },
    LONG * 20_000,
  );

  test("a queue's life leaves no more nodes than its rows need", () => {
    const tree = grown(5_000, (i) => i);
    const fresh = tree.nodes;
    for (let step = 0; step < 100_000; step++) {
      const row = tree.first() as RowOf;
      tree.remove(tree.keyAt(0) as number, row[0]);
      tree.insert(5_000 + step, row);
    }
    tree.check();
    expect(tree.nodes).toBeLessThanOrEqual(fresh + 2);
  });

  test("entries that come in order fill their nodes, at the end and at a front inside", () => {
    const atEnd = grown(count, (i) => i);
    expect(atEnd.size / atEnd.nodes).toBeGreaterThan(FANOUT * 0.97);
    const inside = grown(count, (i) => (i < 1_000 ? 1e9 + i : i));
    inside.check();
    expect(inside.size / inside.nodes).toBeGreaterThan(FANOUT * 0.8);
  });

  test("a loaded tree is full", () => {
    const tree = new Tree<number | null, RowOf>("number");
    const rows = Array.from({ length: count }, (_, i): RowOf => [i]);
    tree.load(
      rows.map((row) => row[0]),
      pagesOf(rows),
    );
    tree.check();
    expect(tree.size / tree.nodes).toBeGreaterThan(FANOUT * 0.97);
  });
});

describe("equal keys", () => {
  const group = 50_000;
  let compared = 0;
  const counting: CompareKeys<number> = (a, b) => {
    compared++;
    return a - b;
  };
  const tree = new Tree<number, RowOf>(counting);
  // Three huge groups, the ids of each spread over all.
  for (let id = 0; id < 3 * group; id++) tree.insert(id % 3, [id]);

  test("a descending walk starts at the lowest id of the highest key and costs what it visits", () => {
    compared = 0;
    expect(collect(3, (visit) => tree.descendRange(0, tree.size, visit))).toEqual([2, 5, 8]);
    expect(compared).toBeLessThan(FANOUT + 60);
  });

  test("it goes on with the key before", () => {
    const ids = collect(group + 3, (visit) => tree.descend(1, Infinity, visit));
    expect(ids.slice(0, 3)).toEqual([1, 4, 7]);
    expect(ids.slice(-3)).toEqual([0, 3, 6]);
  });

  test("a bound inside a group leaves the higher ids out", () => {
    expect(collect(4, (visit) => tree.descend(0, 7, visit))).toEqual([0, 3, 6]);
    expect(collect(2, (visit) => tree.descendRange(group - 2, 2 * group, visit))).toEqual([1, 4]);
    const wrapped = collect(Infinity, (visit) => tree.descendRange(group - 2, group + 2, visit));
    expect(wrapped).toEqual([1, 4, 3 * group - 6, 3 * group - 3]);
  });

  test("counting a group compares no entry of it", () => {
    compared = 0;
    expect(tree.rank(1, Infinity) - tree.rank(1, -Infinity)).toBe(group);
    expect(compared).toBeLessThan(80);
  });
});

describe("keys of a number tree", () => {
  test("null comes first and is given back as null", () => {
    const tree = new Tree<number | null, RowOf>("number");
    tree.insert(-Number.MAX_VALUE, [1]);
    tree.insert(null, [2]);
    tree.insert(null, [1]);
    expect(collect(9, (visit) => tree.ascendRange(0, 9, visit))).toEqual([1, 2, 1]);
    expect([tree.keyAt(0), tree.keyAt(2), tree.keyAt(3)]).toEqual([null, -Number.MAX_VALUE, undefined]);
    expect(tree.rank(null, Infinity)).toBe(2);
    expect(tree.remove(null, 2)).toBe(true);
    expect(tree.get(null, 2)).toBeUndefined();
  });

  test("-0 and 0 are one key", () => {
    const tree = new Tree<number | null, RowOf>("number");
    tree.insert(0, [1]);
    tree.insert(-0, [2]);
    tree.insert(0, [3]);
    expect(collect(9, (visit) => tree.descend(0, Infinity, visit))).toEqual([1, 2, 3]);
    expect(tree.get(-0, 1)).toEqual([1]);
    expect(tree.remove(0, 2)).toBe(true);
    tree.check();
  });

  test("what is no number stops the server and leaves the tree whole", () => {
    const tree = new Tree<unknown, RowOf>("number", 4);
    for (let id = 0; id < 50; id++) tree.insert(id, [id]);
    for (const key of [Number.NaN, undefined, "1", 1n, true]) {
      expect(() => tree.insert(key, [99])).toThrow(AssertionFailure);
    }
    tree.check();
    expect(tree.size).toBe(50);
  });
});

describe("broken assumptions", () => {
  test("an entry twice", () => {
    const tree = grown(100, (i) => i, 4);
    expect(() => tree.insert(42, [42])).toThrow(AssertionFailure);
    tree.check();
  });

  test("a change under a walk", () => {
    for (const change of [
      (tree: Tree<number | null, RowOf>) => tree.remove(0, 0),
      (tree: Tree<number | null, RowOf>) => tree.insert(-1, [-1]),
    ]) {
      const tree = grown(300, (i) => i, 8);
      const meddle = (row: RowOf): boolean => {
        if (row[0] === 150) change(tree);
        return true;
      };
      expect(() => tree.ascendRange(0, 300, meddle)).toThrow(AssertionFailure);
    }
    const tree = grown(300, (i) => i, 8);
    expect(() => tree.descendRange(0, 300, (row) => row[0] !== 150 || tree.remove(0, 0))).toThrow(AssertionFailure);
  });

  test("a walk within a walk", () => {
    const tree = grown(60, (i) => i >> 2, 4);
    const pairs: number[] = [];
    tree.descendRange(0, 60, (outer) => {
      pairs.push(collect(Infinity, (visit) => tree.descend(outer[0] >> 2, -Infinity, visit)).length);
      return true;
    });
    expect(pairs).toEqual(Array.from({ length: 60 }, (_, i) => 56 - (i >> 2) * 4));
  });

  test("a load out of order, of an entry twice, or over entries", () => {
    const load = (keys: number[], ids: number[]): void => {
      new Tree<number | null, RowOf>("number", 4).load(keys, pagesOf(ids.map((id): RowOf => [id])));
    };
    load([1, 1, 2], [1, 2, 0]);
    expect(() => load([1, 3, 2], [1, 2, 3])).toThrow(AssertionFailure);
    expect(() => load([1, 1, 2], [2, 1, 3])).toThrow(AssertionFailure);
    expect(() => load([1, 1, 2], [1, 1, 3])).toThrow(AssertionFailure);
    expect(() => load([1, 2], [1])).toThrow(AssertionFailure);
    expect(() => grown(1, () => 1).load([2], pagesOf([[2]]))).toThrow(AssertionFailure);
    const paged = (ids: number[], tree = new Tree<number, RowOf>("id", 4)): void => {
      toEnd(tree.loadPages(pagesOf(ids.map((id): RowOf => [id]))));
    };
    const full = new Tree<number, RowOf>("id", 4);
    paged([1, 2, 3, 4, 5], full);
    expect(() => paged([6], full)).toThrow(AssertionFailure);
    expect(() => paged([1, 3, 2])).toThrow(AssertionFailure);
    expect(() => paged([1, 2, 3, 4, 4])).toThrow(AssertionFailure);
    expect(() => paged([1], new Tree<number, RowOf>("id", 5))).toThrow(AssertionFailure);
    expect(() => paged([1], new Tree<number, RowOf>("number", 4))).toThrow(AssertionFailure);
  });

  test("the check sees an id or an order that changed under the tree", () => {
    const row = [7] as [number];
    const tree = grown(300, (i) => i, 8);
    tree.insert(3, row);
    tree.check();
    row[0] = 8;
    expect(() => tree.check()).toThrow(AssertionFailure);

    const key = { n: 1 };
    const byMember = new Tree<{ n: number }, RowOf>((a, b) => a.n - b.n, 4);
    for (let id = 0; id < 50; id++) byMember.insert(id === 20 ? key : { n: id }, [id]);
    byMember.check();
    key.n = 30;
    expect(() => byMember.check()).toThrow(AssertionFailure);
  });
});
