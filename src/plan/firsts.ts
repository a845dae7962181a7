/** The first items of an order, kept by insertion while others come and go: a page out of a million costs a page's memory. */

/** A page larger than this is cheaper sorted whole. */
export const INSERTED_ITEMS = 256;

export class Firsts<T> {
  readonly items: T[] = [];
  readonly #most: number;
  readonly #compare: (a: T, b: T) => number;

  /** @param most how many are kept, from 1; of equal items the earlier come first */
  constructor(most: number, compare: (a: T, b: T) => number) {
    this.#most = most;
    this.#compare = compare;
  }

  add(item: T): void {
    const { items } = this;
    if (items.length === this.#most && this.#compare(item, items[items.length - 1] as T) >= 0) return;
    let low = 0;
    let high = items.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#compare(items[middle] as T, item) <= 0) low = middle + 1;
      else high = middle;
    }
    items.splice(low, 0, item);
    if (items.length > this.#most) items.pop();
  }
}
