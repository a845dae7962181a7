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
 * Exact, and cheap whatever the queue holds. Ranks of the index on `run_at` give all but the split of what is ahead into
 * leased and delayed. For that the leased rows are marked, a bit each, as of the last time somebody asked: a write marks
 * or unmarks its row, and the next question first unmarks the leases that have lapsed since, a walk over the rows that
 * came due meanwhile. The marks are made when a queue is first asked about, in slices between statements, so a server
 * that nobody scrapes pays nothing. Over a million rows: 0.02 µs a row written, 10 µs a question.
 *
 * The age of a job counts from its `run_at`, the moment it became ready: for a job whose lease lapsed from the lapse.
 * A row past its `@ttl` that the sweeper has not taken yet is no row.
 */

import type { Change } from "../store/change.ts";
import type { OrderedIndex } from "../store/ordered_index.ts";
import type { Store } from "../store/store.ts";
import type { Table } from "../store/table.ts";
import type { Row } from "../value/value.ts";
import { IdSet } from "./id_set.ts";

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
  readonly #leases = new Map<number, Leases>();

  constructor(store: Store) {
    this.#store = store;
  }

  /** To be told of every change, after it was applied. */
  changed(change: Change): void {
    if (this.#leases.size === 0) return;
    for (const op of change) {
      switch (op.op) {
        case "put":
          this.#leases.get(op.cid)?.put(op.row);
          break;
        case "del":
          this.#leases.get(op.cid)?.del(op.id);
          break;
        case "drop":
          this.#leases.delete(op.cid);
          break;
        case "alter":
          // Its fields may have moved or gone: built again when next asked about.
          this.#leases.delete(op.schema.cid);
          break;
        case "create":
          break;
      }
    }
  }

  /** Every queue, in the order of the store's tables, as of the moment `now` says when all of them can be told. */
  async read(now: () => number): Promise<QueueState[]> {
    while (!(await this.#follow(now()))) {
      // A queue was made or altered meanwhile, and is not followed yet.
    }
    const nowMs = now();
    const states: QueueState[] = [];
    for (const table of this.#store.tables()) {
      const state = this.#state(table, nowMs);
      if (state !== undefined) states.push(state);
    }
    return states;
  }

  /** Makes the marks that are missing; answers whether none was. */
  async #follow(nowMs: number): Promise<boolean> {
    let none = true;
    for (const table of this.#store.tables()) {
      const index = queueIndexOf(table);
      const ownerSlot = table.slotOf("owner");
      if (index === undefined || ownerSlot === undefined) continue;
      let leases = this.#leases.get(table.cid);
      if (leases === undefined) {
        leases = new Leases(table, index, ownerSlot, nowMs);
        this.#leases.set(table.cid, leases);
      }
      if (leases.filled === null) continue;
      none = false;
      await leases.filled;
    }
    return none;
  }

  #state(table: Table, nowMs: number): QueueState | undefined {
    const index = queueIndexOf(table);
    if (index === undefined) return undefined;
    const { slot } = index;
    const counts = {
      ready: index.count({ lo: null, loOpen: true, hi: nowMs, hiOpen: false }),
      ahead: index.count({ lo: nowMs, loOpen: true, hi: undefined, hiOpen: false }),
      leased: this.#leases.get(table.cid)?.count(nowMs) ?? 0,
      dead: index.count({ lo: null, loOpen: false, hi: null, hiOpen: false }),
    };
    const ttl = table.ttl;
    const ownerSlot = table.slotOf("owner");
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
}

/** The index that makes a collection a queue. */
function queueIndexOf(table: Table): OrderedIndex | undefined {
  const index = table.index("run_at", []);
  if (index === undefined || index.def.kind !== "sorted") return undefined;
  return table.types[index.slot - 1]?.kind === "timestamp" ? index : undefined;
}

/** Rows looked at between two turns of the event loop: about a millisecond. */
const SLICE_ROWS = 5_000;

/** The leased rows of one queue as of a moment. */
class Leases {
  /** Null once every row was looked at. */
  filled: Promise<void> | null;
  readonly #index: OrderedIndex;
  readonly #slot: number;
  readonly #ownerSlot: number;
  readonly #marked = new IdSet();
  #count = 0;
  /** A row is marked if it has an owner and a `run_at` past this. */
  #asOfMs: number;

  constructor(table: Table, index: OrderedIndex, ownerSlot: number, nowMs: number) {
    this.#index = index;
    this.#slot = index.slot;
    this.#ownerSlot = ownerSlot;
    this.#asOfMs = nowMs;
    this.filled = this.#fill(table).then(() => {
      this.filled = null;
    });
  }

  /** Looks at every row once; what is written meanwhile is told by itself, before its row is met or after. */
  async #fill(table: Table): Promise<void> {
    let from = -Infinity;
    for (;;) {
      let left = SLICE_ROWS;
      table.scan(from, (row) => {
        this.put(row);
        from = (row[0] as number) + 1;
        return --left > 0;
      });
      if (left > 0) break;
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
  }

  put(row: Row): void {
    const id = row[0] as number;
    const runAt = row[this.#slot] as number | null;
    if (runAt !== null && runAt > this.#asOfMs && row[this.#ownerSlot] !== null) this.#mark(id);
    else this.del(id);
  }

  del(id: number): void {
    if (this.#marked.delete(id)) this.#count--;
  }

  count(nowMs: number): number {
    if (nowMs < this.#asOfMs) this.#ahead(nowMs, this.#asOfMs, (id) => this.#mark(id));
    else this.#ahead(this.#asOfMs, nowMs, (id) => this.del(id));
    this.#asOfMs = nowMs;
    return this.#count;
  }

  #mark(id: number): void {
    if (this.#marked.add(id)) this.#count++;
  }

  /** Rows with an owner whose `run_at` is past the one moment and not past the other. */
  #ahead(afterMs: number, upToMs: number, visit: (id: number) => void): void {
    this.#index.walk({ lo: afterMs, loOpen: true, hi: upToMs, hiOpen: false }, false, (row) => {
      if (row[this.#ownerSlot] !== null) visit(row[0] as number);
      return true;
    });
  }
}
