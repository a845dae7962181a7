/**
 * Deletes rows a minute past their time, as ordinary deletes, some at a time. Reads do not wait for it: they leave such
 * rows out by themselves; and who asks for `expired()` ones has that minute to find them.
 */

import { SWEEP_GRACE_MS, SWEEP_MS } from "../base/limits.ts";
import type { Clock, Scheduled } from "../clock/clock.ts";
import type { DelOp } from "../store/change.ts";
import type { Engine } from "./engine.ts";

/** Rows deleted in one change; more go in the next turn. */
const SWEPT_ROWS = 1_000;

export class Sweeper {
  readonly #engine: Engine;
  readonly #clock: Clock;
  #running = false;
  #scheduled: Scheduled | null = null;

  constructor(engine: Engine, clock: Clock) {
    this.#engine = engine;
    this.#clock = clock;
    engine.watch((change) => {
      if (this.#running && this.#scheduled === null && change.some((op) => op.op === "create" || op.op === "alter")) {
        this.#schedule();
      }
    });
  }

  /** Sweeps from now on, as long as there is a collection whose rows expire. */
  start(): void {
    this.#running = true;
    this.#schedule();
  }

  stop(): void {
    this.#running = false;
    this.#scheduled?.cancel();
    this.#scheduled = null;
  }

  #schedule(): void {
    if (!this.#engine.store.tables().some((table) => table.ttl !== undefined)) return;
    this.#scheduled = this.#clock.at(this.#clock.now() + SWEEP_MS, () => {
      this.#scheduled = null;
      this.sweep();
      this.#schedule();
    });
  }

  sweep(): void {
    for (const table of this.#engine.store.tables()) {
      const { ttl } = table;
      if (ttl === undefined) continue;
      const gone: DelOp[] = [];
      const hi = this.#clock.now() - ttl.ttlMs - SWEEP_GRACE_MS;
      ttl.index.walk({ lo: null, loOpen: true, hi, hiOpen: false }, false, (row) => {
        gone.push({ op: "del", cid: table.cid, id: row[0] as number });
        return gone.length < SWEPT_ROWS;
      });
      this.#engine.sweep(gone);
      if (gone.length === SWEPT_ROWS) {
        setImmediate(() => {
          if (this.#running) this.sweep();
        });
      }
    }
  }
}
