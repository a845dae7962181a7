/** An engine over memory on a clock that stands still, with every frame it made kept, so that they can be played again. */

import type { Clock, Scheduled } from "../../src/clock/clock.ts";
import type { RequestContext } from "../../src/engine/contract.ts";
import { Engine } from "../../src/engine/engine.ts";
import { KeptAnswers } from "../../src/engine/idempotency.ts";
import type { Journal } from "../../src/engine/journal.ts";
import { readPayload } from "../../src/engine/payload.ts";
import { Sweeper } from "../../src/engine/sweeper.ts";
import { Catalog } from "../../src/store/encoding.ts";
import { Store } from "../../src/store/store.ts";

export const ANYBODY: RequestContext = { scope: null, idempotencyKey: null, requestHash: "" };

export class StillClock implements Clock {
  nowMs: number;

  constructor(nowMs: number) {
    this.nowMs = nowMs;
  }

  now(): number {
    return this.nowMs;
  }

  at(): Scheduled {
    return { cancel: () => {} };
  }

  after(): Scheduled {
    return { cancel: () => {} };
  }
}

class Recorder implements Journal {
  readonly frames: Uint8Array[] = [];
  readonly counters = null;
  readonly failure = null;
  readonly trouble = null;

  get appended(): number {
    return this.frames.length;
  }

  append(payload: Uint8Array): number {
    this.frames.push(new Uint8Array(payload));
    return this.frames.length;
  }

  whenDurable(): undefined {
    return undefined;
  }

  async close(): Promise<void> {}
}

export class RecordedEngine {
  readonly clock: StillClock;
  readonly engine: Engine;
  readonly #recorder = new Recorder();
  readonly #sweeper: Sweeper;

  constructor(nowMs: number) {
    this.clock = new StillClock(nowMs);
    this.engine = new Engine({
      store: new Store(),
      journal: this.#recorder,
      clock: this.clock,
      seq: 0,
      readOnly: false,
      maxMemoryBytes: Number.POSITIVE_INFINITY,
      answers: new KeptAnswers(86_400_000),
      compact: () => {},
    });
    this.#sweeper = new Sweeper(this.engine, this.clock);
  }

  sweep(): void {
    this.#sweeper.sweep();
  }

  /** A second store made of the frames alone. */
  replayed(): Store {
    const store = new Store();
    const catalog = new Catalog();
    for (const frame of this.#recorder.frames) readPayload(frame, catalog, (change) => store.apply(change));
    return store;
  }
}

/** All that a store holds, as one text. */
export function contentsOf(store: Store): string {
  const show = (_key: string, value: unknown): unknown =>
    typeof value === "bigint" ? `${value}n` : Object.is(value, -0) ? "-0" : value;
  const tables = store.tables().map((table) => {
    const rows: string[] = [];
    table.scan(Number.NEGATIVE_INFINITY, (row) => {
      rows.push(JSON.stringify(row, show));
      return true;
    });
    return `${JSON.stringify(table.schema)} next ${table.nextId}\n${rows.join("\n")}`;
  });
  return `next ${store.nextCid}\n${tables.join("\n")}`;
}
