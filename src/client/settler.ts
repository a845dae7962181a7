/**
 * Writes what became of jobs: acks, failures, jobs given back. While one batch is on its way the next ones gather, so
 * many jobs share a request and none waits for a timer.
 *
 * A job without follow-ups is one guarded write that may meet no row: the lease was lost, and nothing else in the batch
 * minds. A job with follow-ups requires its row, so that they land with it or not at all; a batch refused for one job is
 * sent again without it. Every batch has an idempotency key, so a lost answer is asked for again, not guessed at.
 */

import type { WorkerClock } from "./clock.ts";
import { FenecError } from "./error.ts";
import type { BatchAnswer, Batchable, Database } from "./query.ts";
import { Retry } from "./retry.ts";

/** What came of a settlement: written; or the job is another's by now; or the server refused it. */
export type Outcome =
  | { readonly kind: "written" }
  | { readonly kind: "lost" }
  | { readonly kind: "refused"; readonly error: unknown };

interface Settlement {
  readonly statements: readonly Batchable[];
  readonly resolve: (outcome: Outcome) => void;
}

/** Settlements in one request. */
const BATCH = 200;
const ANSWER_MS = 30_000;

export class Settler {
  readonly #database: Database;
  readonly #keys: string | undefined;
  readonly #retry: Retry;
  readonly #stop = new AbortController();
  #pending: Settlement[] = [];
  #draining: Promise<void> | undefined;
  #batches = 0;

  /** @param keys what the idempotency keys begin with; undefined sends none. */
  constructor(database: Database, keys: string | undefined, clock: WorkerClock, onError: (error: unknown) => void) {
    this.#database = database;
    this.#keys = keys;
    this.#retry = new Retry(clock, onError);
  }

  /** The first statement writes the job's row, if it is still the worker's; the others land with it. */
  settle(statements: readonly Batchable[]): Promise<Outcome> {
    return new Promise((resolve) => {
      this.#pending.push({ statements, resolve });
      this.#draining ??= this.#drain();
    });
  }

  /** Resolves once everything handed in so far, and meanwhile, is settled. */
  async idle(): Promise<void> {
    while (this.#draining !== undefined) await this.#draining;
  }

  /** Gives up what is not settled yet. */
  abandon(): void {
    this.#stop.abort(new FenecError("abandoned", "the worker was stopped before the server answered", { status: 0 }));
  }

  async #drain(): Promise<void> {
    // Jobs that end in one turn go together.
    await Promise.resolve();
    while (this.#pending.length > 0) {
      const batch = this.#pending.slice(0, BATCH);
      this.#pending = this.#pending.slice(BATCH);
      await this.#write(batch);
    }
    this.#draining = undefined;
  }

  async #write(batch: readonly Settlement[]): Promise<void> {
    let rest = batch;
    while (rest.length > 0) {
      let answer: BatchAnswer;
      try {
        answer = await this.#send(rest);
      } catch (error) {
        const refused = refusedOne(rest, error);
        if (refused === undefined) return this.#writeEach(rest, error);
        refused.settlement.resolve(refused.outcome);
        rest = rest.filter((one) => one !== refused.settlement);
        continue;
      }
      let at = 0;
      for (const { statements, resolve } of rest) {
        const { affected } = answer.results[at] ?? {};
        resolve(affected === 0 ? { kind: "lost" } : { kind: "written" });
        at += statements.length;
      }
      return;
    }
  }

  /** A refusal of the request as a whole (too big, say): each alone, so that one does not take the others along. */
  async #writeEach(batch: readonly Settlement[], error: unknown): Promise<void> {
    if (batch.length === 1 || this.#stop.signal.aborted) {
      for (const { resolve } of batch) resolve({ kind: "refused", error });
      return;
    }
    for (const one of batch) await this.#write([one]);
  }

  #send(batch: readonly Settlement[]): Promise<BatchAnswer> {
    const statements = batch.flatMap((one) => one.statements);
    this.#batches++;
    const idempotencyKey = this.#keys === undefined ? undefined : `${this.#keys}:settle:${this.#batches}`;
    return this.#retry.untilAnswered(
      (signal) => this.#database.batch(statements, { idempotencyKey, signal }),
      ANSWER_MS,
      this.#stop.signal,
    );
  }
}

/** The settlement a batch was refused for, by the index the server gave. */
function refusedOne(
  batch: readonly Settlement[],
  error: unknown,
): { readonly settlement: Settlement; readonly outcome: Outcome } | undefined {
  if (!(error instanceof FenecError) || error.at === undefined) return undefined;
  let first = 0;
  for (const settlement of batch) {
    const next = first + settlement.statements.length;
    if (error.at < next) {
      const lost = error.status === 412 && error.at === first;
      return { settlement, outcome: lost ? { kind: "lost" } : { kind: "refused", error } };
    }
    first = next;
  }
  return undefined;
}
