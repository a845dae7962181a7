/**
 * Rows on their way into trees, with their ids, in lists of one size that are all full but the last. Those of a tree by
 * id become its leaves' own: a million rows are in no list beside it, and what fills the other trees finds the ids without
 * going to the rows, which the processor's caches do not hold. Together that is a fifth of a start's time.
 */

import type { Keyed } from "./tree.ts";

export class Pages<R extends Keyed> {
  readonly size: number;
  readonly lists: (R | undefined)[][] = [];
  readonly ids: Float64Array[] = [];
  #length = 0;

  /** @param size rows of a list: the fan-out of the tree that takes them */
  constructor(size: number) {
    this.size = size;
  }

  get length(): number {
    return this.#length;
  }

  push(row: R): void {
    const place = this.#length % this.size;
    if (place === 0) {
      this.lists.push(new Array(this.size).fill(undefined));
      this.ids.push(new Float64Array(this.size));
    }
    const last = this.lists.length - 1;
    (this.lists[last] as (R | undefined)[])[place] = row;
    (this.ids[last] as Float64Array)[place] = row[0] as number;
    this.#length++;
  }

  /** The row at a position, 0 being the first; undefined outside. */
  at(position: number): R | undefined {
    return this.lists[Math.floor(position / this.size)]?.[position % this.size];
  }

  /** The id of a row there is. */
  idAt(position: number): number {
    return (this.ids[Math.floor(position / this.size)] as Float64Array)[position % this.size] as number;
  }
}
