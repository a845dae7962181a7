/**
 * How a queue stands: how many jobs are ready, delayed, leased and dead, and how long the oldest ready one has waited.
 * A queue is a collection with `run_at timestamp @sorted`; if it has a field `owner`, that says who holds a job.
 *
 * | gauge   | rows |
 * | ------- | ---- |
 * | ready   | `run_at` not past now, whoever owned it: a lapsed lease is ready again |
 * | leased  | `run_at` ahead and an `owner` |
 * | delayed | `run_at` ahead and no `owner` |
 * | dead    | `run_at` null |
 *
 * Exact, and in logarithmic time whatever the queue holds: ranks of the index on `run_at` give all but the split of
 * what is ahead into leased and delayed. For that the rows with an owner are kept in a tree of their own, by `run_at`,
 * which follows the changes. It is built when a queue is first asked about (one pass over the rows), so a server that
 * nobody scrapes pays nothing.
 *
 * The age of a job counts from its `run_at`, the moment it became ready: for a job whose lease lapsed from the lapse.
 * A row past its `@ttl` that the sweeper has not taken yet is no row.
 */

import type { Change } from "../store/change.ts";
import type { Store } from "../store/store.ts";
import type { Table } from "../store/table.ts";
import { Tree } from "../tree/tree.ts";
import type { Row } from "../value/value.ts";

export interface QueueState {
  readonly collection: string;
  readonly ready: number;
  readonly delayed: number;
  readonly leased: number;
  readonly dead: number;
  /** 0 when none is ready. */
  readonly oldestReadySeconds: number;
}

export class QueueGauges {
  readonly #store: Store;
  /** By cid. */
  readonly #owned = new Map<number, OwnedRows>();

  constructor(store: Store) {
    this.#store = store;
  }

  /** To be told of every change, after it was applied. */
  changed(change: Change): void {
    if (this.#owned.size === 0) return;
    for (const op of change) {
      switch (op.op) {
        case "put":
          this.#owned.get(op.cid)?.put(op.row);
          break;
        case "del":
          this.#owned.get(op.cid)?.del(op.id);
          break;
        case "drop":
          this.#owned.delete(op.cid);
          break;
        case "alter":
          // Its fields may have moved or gone: built again when next asked about.
          this.#owned.delete(op.schema.cid);
          break;
        case "create":
          break;
      }
    }
  }

  /** Every queue, in the order of the store's tables. */
  read(nowMs: number): QueueState[] {
    const states: QueueState[] = [];
    for (const table of this.#store.tables()) {
      const state = this.#state(table, nowMs);
      if (state !== undefined) states.push(state);
    }
    return states;
  }

  #state(table: Table, nowMs: number): QueueState | undefined {
    const index = table.index("run_at", []);
    const slot = table.slotOf("run_at");
    if (index === undefined || slot === undefined) return undefined;
    if (index.def.kind !== "sorted" || table.types[slot - 1]?.kind !== "timestamp") return undefined;
    const ownerSlot = table.slotOf("owner");
    const counts = {
      ready: index.count({ lo: null, loOpen: true, hi: nowMs, hiOpen: false }),
      ahead: index.count({ lo: nowMs, loOpen: true, hi: undefined, hiOpen: false }),
      leased: ownerSlot === undefined ? 0 : this.#ownedBy(table, slot, ownerSlot).after(nowMs),
      dead: index.count({ lo: null, loOpen: false, hi: null, hiOpen: false }),
    };
    const ttl = table.ttl;
    const expired = (row: Row): boolean => {
      if (ttl === undefined) return false;
      const time = row[ttl.slot] as number | null;
      return time !== null && time <= nowMs - ttl.ttlMs;
    };
    ttl?.index.walk({ lo: null, loOpen: true, hi: nowMs - ttl.ttlMs, hiOpen: false }, false, (row) => {
      const runAt = row[slot] as number | null;
      if (runAt === null) counts.dead--;
      else if (runAt <= nowMs) counts.ready--;
      else {
        counts.ahead--;
        if (ownerSlot !== undefined && row[ownerSlot] !== null) counts.leased--;
      }
      return true;
    });
    let oldestMs = nowMs;
    if (counts.ready > 0) {
      index.walk({ lo: null, loOpen: true, hi: nowMs, hiOpen: false }, false, (row) => {
        if (expired(row)) return true;
        oldestMs = row[slot] as number;
        return false;
      });
    }
    return {
      collection: table.schema.name,
      ready: counts.ready,
      delayed: counts.ahead - counts.leased,
      leased: counts.leased,
      dead: counts.dead,
      oldestReadySeconds: (nowMs - oldestMs) / 1_000,
    };
  }

  #ownedBy(table: Table, slot: number, ownerSlot: number): OwnedRows {
    let owned = this.#owned.get(table.cid);
    if (owned === undefined) {
      owned = new OwnedRows(table, slot, ownerSlot);
      this.#owned.set(table.cid, owned);
    }
    return owned;
  }
}

/** The rows of one queue that have an owner and a `run_at`, counted by `run_at`. */
class OwnedRows {
  readonly #slot: number;
  readonly #ownerSlot: number;
  /** The `run_at` under which the tree holds an id: its row has another one by the time a change is told. */
  readonly #runAt = new Map<number, number>();
  readonly #tree = new Tree<number, readonly [id: number]>("number");

  constructor(table: Table, slot: number, ownerSlot: number) {
    this.#slot = slot;
    this.#ownerSlot = ownerSlot;
    table.scan(-Infinity, (row) => {
      this.put(row);
      return true;
    });
  }

  put(row: Row): void {
    const id = row[0] as number;
    const runAt = row[this.#slot] as number | null;
    if (runAt === null || row[this.#ownerSlot] === null) {
      this.del(id);
      return;
    }
    const before = this.#runAt.get(id);
    if (before === runAt) return;
    if (before !== undefined) this.#tree.remove(before, id);
    this.#tree.insert(runAt, [id]);
    this.#runAt.set(id, runAt);
  }

  del(id: number): void {
    const before = this.#runAt.get(id);
    if (before === undefined) return;
    this.#tree.remove(before, id);
    this.#runAt.delete(id);
  }

  after(nowMs: number): number {
    return this.#tree.size - this.#tree.rank(nowMs, Infinity);
  }
}
