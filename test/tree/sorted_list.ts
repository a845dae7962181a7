/** What a tree is held to: the same entries in a sorted array, every question answered by looking at all of them. */

import type { CompareKeys } from "../../src/tree/tree.ts";

export type Entry<K> = { readonly key: K; readonly row: readonly [id: number] };

export class SortedList<K> {
  readonly entries: Entry<K>[] = [];
  readonly #compare: CompareKeys<K>;

  constructor(compare: CompareKeys<K>) {
    this.#compare = compare;
  }

  insert(key: K, row: readonly [number]): void {
    this.entries.splice(this.rank(key, row[0]), 0, { key, row });
  }

  remove(key: K, id: number): boolean {
    const at = this.entries.findIndex((entry) => entry.row[0] === id && this.#compare(entry.key, key) === 0);
    if (at >= 0) this.entries.splice(at, 1);
    return at >= 0;
  }

  get(key: K, id: number): readonly [number] | undefined {
    return this.entries.find((entry) => entry.row[0] === id && this.#compare(entry.key, key) === 0)?.row;
  }

  rank(key: K, id: number): number {
    let before = 0;
    for (const entry of this.entries) {
      const order = this.#compare(entry.key, key);
      if (order < 0 || (order === 0 && entry.row[0] < id)) before++;
    }
    return before;
  }

  ids(from: number, to: number): number[] {
    return this.entries.slice(Math.max(0, from), Math.max(0, to)).map((entry) => entry.row[0]);
  }

  /** Descending keys, ascending ids within one key. */
  idsDescending(from: number, to: number): number[] {
    return this.entries
      .slice(Math.max(0, from), Math.max(0, to))
      .sort((a, b) => this.#compare(b.key, a.key) || a.row[0] - b.row[0])
      .map((entry) => entry.row[0]);
  }
}
