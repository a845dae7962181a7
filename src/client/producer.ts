/**
 * Putting jobs into a queue: a document with its payload, the time it may first run, and no attempt made yet. Times are
 * sent as durations and worked out by the server, so that no producer's clock decides when a job runs.
 */

import { refuse } from "./error.ts";
import { type Expr, expr } from "./expression.ts";
import { type Batchable, from, type Query, type SendOptions, type Statement } from "./query.ts";
import type { LooseFields, WriteValue } from "./schema.ts";

export interface JobOptions {
  /** Milliseconds until the job may run. */
  readonly delayMs?: number | undefined;
  /** The instant it may run, in place of `delayMs`: a Date, epoch milliseconds, ISO text, or an `expr`. */
  readonly at?: Date | number | string | Expr | undefined;
  /** For a queue with a `priority` field: the higher, the sooner. */
  readonly priority?: number | undefined;
  /** A field marked `@unique` with its value, `{ key: "invoice-7" }`: while a row holds it, the job is passed over. */
  readonly unique?: Readonly<Record<string, unknown>> | undefined;
  /** Further fields of the job. */
  readonly fields?: Readonly<Record<string, unknown>> | undefined;
}

/** What a queue's payload takes. */
export type PayloadOf<F> = F extends LooseFields
  ? unknown
  : F extends { readonly payload: infer W }
    ? WriteValue<W>
    : never;

/** Documents in one `put`: short enough a text for the server to keep its plan, so that a long list is parsed once. */
const DOCUMENTS = 50;

/** The statement that enqueues one job, for a batch. */
export function toEnqueue<F, R>(queue: Query<F, R>, payload: PayloadOf<F>, options: JobOptions = {}): Statement {
  return from(queue.collection).toInsert(document(payload, options), { ifAbsent: options.unique !== undefined });
}

/** Enqueues one job. False: a row held its unique value, and nothing was written. */
export async function enqueue<F, R>(
  queue: Query<F, R>,
  payload: PayloadOf<F>,
  options: JobOptions & SendOptions = {},
): Promise<boolean> {
  const [text, params] = toEnqueue(queue, payload, options);
  const answer = await queue.database.run(text, params, options);
  return "count" in answer && Number(answer.count) > 0;
}

/** Enqueues many jobs, all or none; gives how many were written, those whose unique value was held not counted. */
export async function enqueueMany<F, R>(
  queue: Query<F, R>,
  jobs: readonly (JobOptions & { readonly payload: PayloadOf<F> })[],
  options: SendOptions = {},
): Promise<number> {
  const statements: Batchable[] = [];
  const bare = from(queue.collection);
  for (let start = 0; start < jobs.length; ) {
    const ifAbsent = jobs[start]?.unique !== undefined;
    let end = start + 1;
    while (end < jobs.length && end - start < DOCUMENTS && (jobs[end]?.unique !== undefined) === ifAbsent) end++;
    const documents = jobs.slice(start, end).map((job) => document(job.payload, job));
    statements.push(bare.toInsert(documents, { ifAbsent }));
    start = end;
  }
  if (statements.length === 0) return 0;
  const { results } = await queue.database.batch(statements, options);
  return results.reduce((written, { affected = 0 }) => written + affected, 0);
}

function document(payload: unknown, options: JobOptions): Readonly<Record<string, unknown>> {
  const { priority, unique, fields } = options;
  return {
    ...fields,
    ...unique,
    payload,
    run_at: runAt(options),
    attempts: 0,
    ...(priority === undefined ? {} : { priority }),
  };
}

function runAt({ delayMs, at }: JobOptions): unknown {
  if (at !== undefined) {
    if (delayMs !== undefined) refuse("bad-time", "a job has delayMs or at, not both");
    return at;
  }
  if (delayMs === undefined || delayMs === 0) return expr("now()");
  if (!Number.isFinite(delayMs) || delayMs < 0)
    refuse("bad-time", `delayMs is milliseconds from 0, not ${String(delayMs)}`);
  return expr("now() + ?", Math.round(delayMs));
}
