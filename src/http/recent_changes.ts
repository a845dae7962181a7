/**
 * Which rows were written lately, so that a stream that was cut off goes on where it was. The last `RECENT_WRITES` writes
 * of all collections, in a ring; of a collection not written since, how long that is ago does not matter.
 */

import { RECENT_WRITES } from "../base/limits.ts";
import type { ChangeObserver } from "../engine/contract.ts";

/** What an observer of the engine is told. */
export type Change = Parameters<ChangeObserver>[0];

export class RecentChanges {
  readonly #seqs = new Float64Array(RECENT_WRITES);
  readonly #cids = new Float64Array(RECENT_WRITES);
  readonly #ids = new Float64Array(RECENT_WRITES);
  #next = 0;
  /** Where the counter stood at first: what was before is not known. */
  readonly #start: number;
  /** Every write behind this change is in the ring. */
  #floor: number;
  /** The changes that last wrote to a collection, and last made it what it is. */
  readonly #lastWrites = new Map<number, number>();
  readonly #lastSchemas = new Map<number, number>();

  constructor(seq: number) {
    this.#start = seq;
    this.#floor = seq;
  }

  take(change: Change, seq: number): void {
    for (const op of change) {
      switch (op.op) {
        case "put":
          this.#push(seq, op.cid, op.row[0] as number);
          break;
        case "del":
          this.#push(seq, op.cid, op.id);
          break;
        case "create":
        case "alter":
          this.#lastWrites.set(op.schema.cid, seq);
          this.#lastSchemas.set(op.schema.cid, seq);
          break;
        case "drop":
          this.#lastWrites.delete(op.cid);
          this.#lastSchemas.delete(op.cid);
          break;
      }
    }
  }

  /**
   * Rows of a collection written behind change `since`. Undefined when that is not known, or cannot be: `nowSeq` is where
   * the counter stands, and a collection that became another one has no rows of before.
   */
  since(since: number, cid: number, nowSeq: number): Set<number> | undefined {
    if (since > nowSeq || since < (this.#lastSchemas.get(cid) ?? 0)) return undefined;
    const ids = new Set<number>();
    if ((this.#lastWrites.get(cid) ?? this.#start) <= since) return ids;
    if (since < this.#floor) return undefined;
    for (let at = 0; at < RECENT_WRITES; at++) {
      if (this.#cids[at] === cid && this.#seqs[at]! > since) ids.add(this.#ids[at]!);
    }
    return ids;
  }

  #push(seq: number, cid: number, id: number): void {
    const at = this.#next;
    this.#floor = Math.max(this.#floor, this.#seqs[at]!);
    this.#seqs[at] = seq;
    this.#cids[at] = cid;
    this.#ids[at] = id;
    this.#next = at + 1 === RECENT_WRITES ? 0 : at + 1;
    this.#lastWrites.set(cid, seq);
  }
}
