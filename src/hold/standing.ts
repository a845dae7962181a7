/**
 * The rows a loud line would take, as far as it has looked: best first. When its best row goes to another the next is at
 * hand, so that a thousand lines that want the same thousand rows do not look a million times.
 *
 * A candidate is as good as its row was when it was asked. A row written since is another: it is passed over here, and
 * offered anew if the line wants it as it is now.
 */

import { assert } from "../base/assert.ts";
import type { Order } from "../plan/order.ts";
import type { Value } from "../value/value.ts";
import type { Watch } from "./line.ts";

export interface Candidate {
  readonly id: number;
  /** How often the row had been written in this drain. */
  readonly touch: number;
  /** What ranks it: the distance, or the values of the order. */
  readonly metres: number;
  readonly keys: readonly Value[];
}

export class Standing {
  readonly watch: Watch;
  /** What ranks them; null: their distance alone. */
  readonly order: Order | null;
  /** There are no others it would take; else these are only the first. */
  readonly isWhole: boolean;
  readonly #candidates: Candidate[];
  #at = 0;

  /** @param candidates best first */
  constructor(watch: Watch, order: Order | null, candidates: Candidate[], isWhole: boolean) {
    this.watch = watch;
    this.order = order;
    this.#candidates = candidates;
    this.isWhole = isWhole;
  }

  /** The best whose row is what it was. */
  best(touchOf: (id: number) => number): Candidate | undefined {
    for (; this.#at < this.#candidates.length; this.#at++) {
      const candidate = this.#candidates[this.#at] as Candidate;
      if (touchOf(candidate.id) === candidate.touch) return candidate;
    }
    return undefined;
  }

  /** Takes in one more row the line would take. Where only the first are known, one behind them all is left for later. */
  offer(candidate: Candidate): void {
    let low = this.#at;
    let high = this.#candidates.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#comesFirst(candidate, this.#candidates[middle] as Candidate)) high = middle;
      else low = middle + 1;
    }
    if (low === this.#candidates.length && !this.isWhole) return;
    this.#candidates.splice(low, 0, candidate);
  }

  #comesFirst(a: Candidate, b: Candidate): boolean {
    const order = a.metres - b.metres || (this.order?.compareKeys(a.keys, b.keys) ?? 0) || a.id - b.id;
    assert(order !== 0 || a.touch !== b.touch, "a row is offered once as it is");
    return order < 0;
  }
}
