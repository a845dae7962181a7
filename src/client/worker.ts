/**
 * A worker: claims jobs of a queue, runs a handler over each, and writes what became of it.
 *
 *     waiting ──► running ──► settling ──► done | failed | dead | released
 *        │           │            │
 *        └───────────┴────────────┴──────► lost: the lease ended, the job is another's
 *
 * A job is `waiting` between its claim and a free slot (never, without `prefetch`), `running` while its handler is, and
 * `settling` until the server has written the outcome. Leases of waiting and running jobs are extended; a running job
 * whose lease is lost has its signal fired, and what its handler then does changes nothing any more.
 *
 * Each claim has a token of its own, `name:1`, `name:2`, ..., written as the jobs' `owner` and sent as the request's
 * idempotency key: a claim whose answer was lost is sent again and answered the jobs it took the first time.
 */

import { type Backoff, exponential } from "./backoff.ts";
import { realClock, type WorkerClock } from "./clock.ts";
import { FenecError, refuse } from "./error.ts";
import { type Expr, expr, inc, raw } from "./expression.ts";
import { JobError } from "./job_error.ts";
import { type Lease, Leases, rowOf } from "./leases.ts";
import { type JobOptions, type PayloadOf, toEnqueue } from "./producer.ts";
import { type Answer, type Batchable, from, type Query, type Statement } from "./query.ts";
import { isPassing, pause, pauseMs, Retry, within } from "./retry.ts";
import type { LooseFields, Row } from "./schema.ts";
import { type Outcome, Settler } from "./settler.ts";

export interface WorkerOptions {
  /** Handlers running at once; 10. */
  readonly concurrency?: number | undefined;
  /** Jobs one claim takes at most; as many as `concurrency`. */
  readonly batch?: number | undefined;
  /** Jobs claimed ahead of a free slot, their leases extended meanwhile; 0. Worth it for jobs of milliseconds. */
  readonly prefetch?: number | undefined;
  /** How long a job is the worker's before it must be extended, in milliseconds; 30 000. */
  readonly leaseMs?: number | undefined;
  /** How long a claim that finds nothing is held at the server, in milliseconds; 30 000. With 0 the worker polls. */
  readonly waitMs?: number | undefined;
  /** A job that failed this many times is dead: it gets no time to run any more; 5. */
  readonly attempts?: number | undefined;
  /** How long a failed job rests; `exponential()`. */
  readonly backoff?: Backoff | undefined;
  /** Keeps a job that is done, without a time to run, in place of deleting it. */
  readonly keep?: boolean | undefined;
  /** The beginning of the claims' tokens; a random one is added. */
  readonly name?: string | undefined;
  /** One owner for all claims, for a token whose rules demand it (`new.owner = $jwt.sub`). */
  readonly owner?: string | undefined;
  /** Whether requests have idempotency keys; true. A token without `sub` may send none. */
  readonly idempotencyKeys?: boolean | undefined;
  /** For tests. */
  readonly clock?: WorkerClock | undefined;
}

/** What a handler knows of its job besides the row. */
export interface JobContext {
  /** Fired when the job's lease is lost, or when the worker stops and its grace is over. */
  readonly signal: AbortSignal;
  /** From 1. */
  readonly attempt: number;
  /** The token of the claim. */
  readonly owner: string;
  /** Statements that land with the job's ack, or not at all. */
  also(...statements: readonly Batchable[]): void;
  /** Enqueues a follow-up that lands with the job's ack, or not at all. */
  enqueue<G, R>(queue: Query<G, R>, payload: PayloadOf<G>, options?: JobOptions): void;
  /** In place of deleting the job: it runs again, in so many milliseconds or at the time an `expr` gives, as a new job. */
  again(when: number | Expr, patch?: Readonly<Record<string, unknown>>): void;
}

export type Handler<F> = (job: Row<F>, context: JobContext) => unknown;

/**
 * What a worker tells, after the server has written it. Each job that was `claimed` ends as one of `done`, `failed`,
 * `dead`, `lost` and `released`.
 */
export interface WorkerEvents<F> {
  claimed: (jobs: readonly Row<F>[]) => void;
  done: (job: Row<F>) => void;
  /** It will run again, in so many milliseconds. */
  failed: (job: Row<F>, error: unknown, restMs: number) => void;
  dead: (job: Row<F>, error: unknown) => void;
  /** Its outcome was not written, most often because its lease ended first: it runs again, here or elsewhere. */
  lost: (job: Row<F>) => void;
  /** Given back without an attempt spent, because the worker stops. */
  released: (job: Row<F>) => void;
  /** A request that was not answered, or refused; the worker goes on. */
  error: (error: unknown) => void;
}

type Checked = {
  readonly [K in Exclude<keyof WorkerOptions, "owner">]-?: NonNullable<WorkerOptions[K]>;
} & { readonly owner: string | undefined };

interface Held<F> extends Lease {
  readonly job: Row<F>;
  readonly attempt: number;
  readonly abort: AbortController;
}

interface Claim {
  readonly owner: string;
  readonly key: string | undefined;
  readonly statement: Statement;
}

/** Beyond the wait itself, the time an answer may take before the claim is sent again. */
const ANSWER_MS = 10_000;
/** The last word on a claim given up: whether it took something. */
const RECOVER_MS = 2_000;
/** How long outcomes may take once a worker's grace is over. */
const SETTLE_MS = 5_000;
/** The longest pause between claims that are answered with nothing at once. */
const POLL_MS = 1_000;
const ERROR_LENGTH = 1_000;
const LEASE_MAX_MS = 7 * 86_400_000;
/** No job rests longer: about a thousand years. */
const LONGEST_MS = 1_000 * 366 * 86_400_000;

/**
 * Starts a worker.
 * @param queue a chain over the queue's collection: a `where` narrows it, an `order` (a priority, a distance) replaces
 * the order by `run_at`. A function is asked before every claim, for a chain that moves.
 * @param handler resolves: the job is done. Rejects: it failed, and rests, or is dead after the last attempt.
 */
export function worker<F, R>(
  queue: Query<F, R> | (() => Query<F, R>),
  handler: Handler<F>,
  options: WorkerOptions = {},
): Worker<F> {
  return new Worker<F>(queue as Query<F, unknown> | (() => Query<F, unknown>), handler, options);
}

export class Worker<F = LooseFields> {
  /** Resolves when the worker has stopped; rejects if its first claim was refused, since then nothing will ever run. */
  readonly done: Promise<void>;
  readonly name: string;
  readonly #query: () => Query<F, unknown>;
  readonly #handler: Handler<F>;
  readonly #options: Checked;
  /** The bare collection, bound. */
  readonly #rows: Query<LooseFields>;
  readonly #leases: Leases<Held<F>>;
  readonly #settler: Settler;
  readonly #retry: Retry;
  readonly #listeners = new Map<keyof WorkerEvents<F>, Set<(...args: never[]) => void>>();
  readonly #stop = new AbortController();
  #claims = 0;
  #claimed = false;
  #waiting: Held<F>[] = [];
  readonly #running = new Set<Held<F>>();
  /** Handlers that have not returned, those of lost jobs too. */
  #busy = 0;
  /** When the grace is over, once the worker was told to stop. */
  #graceEnd = Number.POSITIVE_INFINITY;
  #changed: () => void = () => undefined;

  constructor(queue: Query<F, unknown> | (() => Query<F, unknown>), handler: Handler<F>, options: WorkerOptions) {
    this.#query = typeof queue === "function" ? queue : () => queue;
    this.#handler = handler;
    this.#options = checked(options);
    const { clock, leaseMs, idempotencyKeys } = this.#options;
    this.name = this.#options.name;

    const query = this.#query();
    this.#rows = from(query.collection).bind(query.database);
    const onError = (error: unknown): void => this.#emit("error", error);
    this.#retry = new Retry(clock, onError);
    this.#settler = new Settler(query.database, idempotencyKeys ? this.name : undefined, clock, onError);
    this.#leases = new Leases(this.#rows, leaseMs, clock, (held) => this.#lose(held), onError);
    this.done = this.#live();
  }

  /** Handlers running now. */
  get running(): number {
    return this.#busy;
  }

  /** Calls a listener at every such event; the answer takes it back. */
  on<E extends keyof WorkerEvents<F>>(event: E, listener: WorkerEvents<F>[E]): () => void {
    const listeners = this.#listeners.get(event) ?? new Set();
    this.#listeners.set(event, listeners.add(listener));
    return () => void listeners.delete(listener);
  }

  /**
   * Claims no more, gives back what has not started, and waits for what runs. Once the grace is over, what still runs has
   * its signal fired and is given back too, its attempt not counted. A server that does not answer is waited for through
   * the grace and 5 s more.
   * @param graceMs 20 000; Infinity waits for ever.
   */
  stop({ graceMs = 20_000 }: { readonly graceMs?: number } = {}): Promise<void> {
    if (!this.#stop.signal.aborted) {
      this.#graceEnd = this.#options.clock.now() + graceMs;
      this.#stop.abort(new FenecError("stopping", "the worker is stopping"));
      this.#changed();
    }
    return this.done;
  }

  async #live(): Promise<void> {
    // A listener added right after the worker was made hears of the first claim too.
    await Promise.resolve();
    try {
      await this.#claimUntilStopped();
      for (const held of this.#waiting.splice(0)) void this.#giveBack(held);
      await this.#quiet();
      for (const held of [...this.#running]) void this.#giveBack(held);
      const cancel = this.#afterGrace(SETTLE_MS, () => this.#settler.abandon());
      await this.#settler.idle();
      cancel();
    } finally {
      this.#leases.end();
    }
  }

  /** Until no handler runs, or the grace is over. */
  async #quiet(): Promise<void> {
    let over = this.#options.clock.now() >= this.#graceEnd;
    const cancel = this.#afterGrace(0, () => {
      over = true;
      this.#changed();
    });
    while (this.#busy > 0 && !over) await this.#change();
    cancel();
  }

  /** Once so many milliseconds have gone since the grace was over; never, if it has no end. */
  #afterGrace(delayMs: number, run: () => void): () => void {
    const { clock } = this.#options;
    if (!Number.isFinite(this.#graceEnd)) return () => undefined;
    return clock.after(this.#graceEnd + delayMs - clock.now(), run);
  }

  /** Until a handler ends or the worker is told to stop. */
  #change(): Promise<void> {
    return new Promise((resolve) => {
      this.#changed = resolve;
    });
  }

  async #claimUntilStopped(): Promise<void> {
    const { clock, concurrency, prefetch, batch, waitMs } = this.#options;
    const { signal } = this.#stop;
    let failures = 0;
    let empty = 0;
    while (!signal.aborted) {
      const room = Math.min(batch, concurrency + prefetch - this.#busy - this.#waiting.length);
      if (room <= 0) {
        await this.#change();
        continue;
      }
      const sent = clock.now();
      try {
        const taken = await this.#take(this.#newClaim(room));
        failures = 0;
        if (taken > 0) {
          empty = 0;
          continue;
        }
      } catch (error) {
        // A first claim refused is a mistake in the program or its token; a later one, most often a deploy's moment.
        if (!this.#claimed) throw error;
        this.#emit("error", error);
        await pause(clock, pauseMs(failures++, error), signal);
        continue;
      }
      // A claim is answered with nothing at once by a server that stops, or where there is no wait: no loop without rest.
      empty = clock.now() - sent < waitMs / 2 || waitMs === 0 ? empty + 1 : 0;
      if (empty > 0) await pause(clock, Math.min(POLL_MS, 25 * 2 ** Math.min(empty, 10)), signal);
    }
  }

  #newClaim(limit: number): Claim {
    const { leaseMs, idempotencyKeys } = this.#options;
    const token = `${this.name}:${++this.#claims}`;
    const owner = this.#options.owner ?? token;
    // Restricted, so that no filter of the user's can reach a job that is leased.
    const due = this.#query().restrict(raw("run_at <= now()"));
    const ordered = (due.ordered ? due : due.order(raw("run_at"))).limit(limit) as unknown as Query<LooseFields>;
    const patch = { owner, run_at: expr("now() + ?", leaseMs), attempts: inc(1) };
    return {
      owner,
      key: idempotencyKeys ? token : undefined,
      statement: ordered.toUpdate(patch, { returning: true }),
    };
  }

  /** Sends a claim until it is answered, and starts what it took; gives how many jobs that were. */
  async #take(claim: Claim): Promise<number> {
    const { waitMs } = this.#options;
    const { signal } = this.#stop;
    let answer: Answer;
    try {
      answer = await this.#retry.untilAnswered((gone) => this.#send(claim, waitMs, gone), waitMs + ANSWER_MS, signal);
    } catch (error) {
      if (!signal.aborted) throw error;
      for (const held of await this.#recover(claim)) void this.#giveBack(held);
      return 0;
    }
    this.#claimed = true;
    let taken = this.#heldOf(claim, answer);
    // Answered by an earlier run, its leases are older than they look, and some may be over.
    if (answer["replayed"] === true) taken = await this.#confirmed(taken);
    else for (const held of taken) this.#leases.hold(held);
    if (taken.length === 0) return 0;
    const jobs = taken.map((held) => held.job);
    this.#emit("claimed", jobs);
    for (const held of taken) this.#waiting.push(held);
    this.#startWaiting();
    return taken.length;
  }

  #send(claim: Claim, wait: number, signal: AbortSignal): Promise<Answer> {
    const [text, params] = claim.statement;
    return this.#rows.database.run(text, params, { wait, idempotencyKey: claim.key, signal });
  }

  /**
   * A claim given up by `stop` may have taken jobs in that very moment. Sent once more under its key it is answered those;
   * or, if it took none, runs now, and what it takes is given back just the same.
   */
  async #recover(claim: Claim): Promise<readonly Held<F>[]> {
    if (claim.key === undefined) return [];
    try {
      const never = new AbortController().signal;
      const answer: Answer = await within(this.#options.clock, RECOVER_MS, never, (gone) => this.#send(claim, 0, gone));
      return this.#heldOf(claim, answer);
    } catch {
      // Not to be had: a lease that lapses gives the jobs back.
      return [];
    }
  }

  /** Those of a claim's jobs that are the worker's still. None is run before the server has said so. */
  async #confirmed(taken: readonly Held<F>[]): Promise<readonly Held<F>[]> {
    const { signal } = this.#stop;
    try {
      return await this.#retry.untilAnswered((gone) => this.#leases.confirm(taken, gone), ANSWER_MS, signal);
    } catch (error) {
      if (signal.aborted) for (const held of taken) void this.#giveBack(held);
      else this.#emit("error", error);
      return [];
    }
  }

  #heldOf(claim: Claim, answer: Answer): readonly Held<F>[] {
    const rows = ("rows" in answer ? answer.rows : []) as readonly Row<F>[];
    return rows.map((job) => {
      const { id, attempts } = job as { readonly id: unknown; readonly attempts?: unknown };
      return { id, owner: claim.owner, job, attempt: Number(attempts), abort: new AbortController() };
    });
  }

  #startWaiting(): void {
    while (this.#busy < this.#options.concurrency && this.#waiting.length > 0 && !this.#stop.signal.aborted) {
      const held = this.#waiting.shift();
      if (held !== undefined) void this.#run(held);
    }
  }

  async #run(held: Held<F>): Promise<void> {
    const { attempts } = this.#options;
    if (held.attempt > attempts) {
      // The attempts before ended without a word: whatever this job does to workers, it does it no more.
      this.#leases.release(held);
      return this.#bury(held, new JobError(`gave up after ${attempts} attempts: the last one never ended`));
    }
    const success: Success = { also: [], again: undefined };
    let failure: { readonly error: unknown } | undefined;
    this.#running.add(held);
    this.#busy++;
    try {
      await this.#handler(held.job, contextOf(held, success));
    } catch (error) {
      failure = { error };
    }
    this.#busy--;
    const mine = this.#running.delete(held) && this.#leases.release(held);
    this.#startWaiting();
    this.#changed();
    if (!mine) return;
    if (failure === undefined) await this.#finish(held, success);
    else await this.#fail(held, failure.error);
  }

  async #finish(held: Held<F>, success: Success): Promise<void> {
    const row = rowOf(this.#rows, held);
    const options = success.also.length > 0 ? { require: 1 } : {};
    let ack: Statement;
    try {
      if (success.again !== undefined) ack = row.toUpdate({ ...clearError(held), ...success.again }, options);
      else if (this.#options.keep) ack = row.toUpdate({ run_at: null, owner: null, ...clearError(held) }, options);
      else ack = row.toDelete(options);
    } catch (error) {
      return this.#fail(held, error);
    }
    const outcome = await this.#settler.settle([ack, ...success.also]);
    if (outcome.kind === "refused" && !isPassing(outcome.error)) return this.#fail(held, outcome.error);
    this.#told(held, outcome, () => this.#emit("done", held.job));
  }

  async #fail(held: Held<F>, error: unknown): Promise<void> {
    const dead = error instanceof JobError && error.dead;
    if (dead || held.attempt >= this.#options.attempts) return this.#bury(held, error);
    const restMs = this.#restMs(held.attempt, error);
    const patch = { owner: null, run_at: expr("now() + ?", restMs), ...errorField(held, error) };
    const outcome = await this.#settler.settle([rowOf(this.#rows, held).toUpdate(patch)]);
    this.#told(held, outcome, () => this.#emit("failed", held.job, error, restMs));
  }

  async #bury(held: Held<F>, error: unknown): Promise<void> {
    const patch = { owner: null, run_at: null, ...errorField(held, error) };
    const outcome = await this.#settler.settle([rowOf(this.#rows, held).toUpdate(patch)]);
    this.#told(held, outcome, () => this.#emit("dead", held.job, error));
  }

  /** Ready again at once, and the attempt not counted: nothing was wrong with the job. */
  async #giveBack(held: Held<F>): Promise<void> {
    this.#running.delete(held);
    this.#leases.release(held);
    held.abort.abort(this.#stop.signal.reason);
    const patch = { owner: null, run_at: expr("now()"), attempts: expr("attempts - 1") };
    const outcome = await this.#settler.settle([rowOf(this.#rows, held).toUpdate(patch)]);
    this.#told(held, outcome, () => this.#emit("released", held.job));
  }

  #lose(held: Held<F>): void {
    this.#running.delete(held);
    this.#waiting = this.#waiting.filter((other) => other !== held);
    held.abort.abort(new FenecError("lease-lost", `the lease on job ${String(held.id)} has ended`));
    this.#emit("lost", held.job);
    this.#changed();
  }

  #told(held: Held<F>, outcome: Outcome, written: () => void): void {
    if (outcome.kind === "refused") this.#emit("error", outcome.error);
    if (outcome.kind === "written") written();
    else this.#emit("lost", held.job);
  }

  /** A rest that is no time is a mistake in the program, not a reason to leave the job until its lease ends. */
  #restMs(attempt: number, error: unknown): number {
    try {
      const own = error instanceof JobError ? error.restMs : undefined;
      return milliseconds(own ?? this.#options.backoff(attempt, error));
    } catch (wrong) {
      this.#emit("error", wrong);
      return exponential()(attempt, error);
    }
  }

  #emit<E extends keyof WorkerEvents<F>>(event: E, ...args: Parameters<WorkerEvents<F>[E]>): void {
    const listeners = this.#listeners.get(event);
    // An error nobody listens for is not swallowed.
    if (event === "error" && (listeners?.size ?? 0) === 0) console.error(`worker ${this.name}:`, ...args);
    for (const listener of [...(listeners ?? [])]) {
      try {
        (listener as (...args: unknown[]) => void)(...args);
      } catch (error) {
        // The listener's own fault: it surfaces as uncaught, and the worker goes on.
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
}

/** What a handler asked for beside its job's ack. */
interface Success {
  readonly also: Batchable[];
  again: Readonly<Record<string, unknown>> | undefined;
}

function contextOf<F>(held: Held<F>, success: Success): JobContext {
  return {
    signal: held.abort.signal,
    attempt: held.attempt,
    owner: held.owner,
    also: (...statements) => {
      for (const statement of statements) success.also.push(statement);
    },
    enqueue: (queue, payload, options) => {
      success.also.push(toEnqueue(queue, payload, options));
    },
    again: (when, patch = {}) => {
      const runAt = typeof when === "number" ? expr("now() + ?", milliseconds(when)) : when;
      success.again = { ...patch, run_at: runAt, owner: null, attempts: 0 };
    },
  };
}

/** The failure's words, where the queue has a field for them. */
function errorField<F>(held: Held<F>, error: unknown): { readonly error?: string } {
  return hasError(held) ? { error: wordsOf(error) } : {};
}

function clearError<F>(held: Held<F>): { readonly error?: null } {
  return hasError(held) ? { error: null } : {};
}

function hasError<F>(held: Held<F>): boolean {
  return Object.hasOwn(held.job as object, "error");
}

function wordsOf(error: unknown): string {
  let words: string;
  try {
    words = String(error instanceof Error ? error.message || error.name : error);
  } catch {
    words = "an error without words";
  }
  return words.slice(0, ERROR_LENGTH);
}

function milliseconds(value: number): number {
  return value <= LONGEST_MS
    ? Math.max(0, Math.round(value))
    : refuse("bad-time", `${String(value)} is no time in milliseconds`);
}

function randomName(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(6)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function checked(options: WorkerOptions): Checked {
  const { concurrency = 10, name = "w" } = options;
  const all: Checked = {
    concurrency,
    batch: options.batch ?? concurrency,
    prefetch: options.prefetch ?? 0,
    leaseMs: options.leaseMs ?? 30_000,
    waitMs: options.waitMs ?? 30_000,
    attempts: options.attempts ?? 5,
    backoff: options.backoff ?? exponential(),
    keep: options.keep ?? false,
    name: `${name}-${randomName()}`,
    owner: options.owner,
    idempotencyKeys: options.idempotencyKeys ?? true,
    clock: options.clock ?? realClock,
  };
  const bounds = [
    ["concurrency", all.concurrency, 1, 10_000],
    ["batch", all.batch, 1, 10_000],
    ["prefetch", all.prefetch, 0, 10_000],
    ["leaseMs", all.leaseMs, 100, LEASE_MAX_MS],
    ["waitMs", all.waitMs, 0, 30_000],
    ["attempts", all.attempts, 1, 1_000_000],
  ] as const;
  for (const [word, value, least, most] of bounds) {
    if (!Number.isInteger(value) || value < least || value > most) {
      refuse("bad-option", `${word} is a whole number from ${least} to ${most}, not ${String(value)}`);
    }
  }
  if (!/^[\x21-\x7e]{1,100}$/.test(name))
    refuse("bad-option", "name is 1 to 100 printable ASCII characters without blanks");
  return all;
}
