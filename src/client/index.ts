/** The client of a Fenec server: chains, batches, workers, producers. Runs in Bun, Node 20 and later, and browsers. */

export { type Backoff, type ExponentialOptions, exponential } from "./backoff.ts";
export type { WorkerClock } from "./clock.ts";
export { and, Condition, not, or } from "./condition.ts";
export { type ErrorDetails, type ErrorKind, FenecError } from "./error.ts";
export {
  Aliased,
  bucket,
  countDistinct,
  distance,
  Expr,
  expr,
  first,
  Inc,
  inc,
  last,
  Raw,
  raw,
} from "./expression.ts";
export { type ConnectOptions, connect, FenecHttp, type Fetch } from "./http.ts";
export { JobError, type JobErrorOptions } from "./job_error.ts";
export type { Ints } from "./json.ts";
export { enqueue, enqueueMany, type JobOptions, type PayloadOf, toEnqueue } from "./producer.ts";
export {
  type Answer,
  type BatchAnswer,
  type Batchable,
  type BatchResult,
  type Database,
  from,
  type InsertOptions,
  type Operators,
  Query,
  type SendOptions,
  type Statement,
  type WriteOptions,
} from "./query.ts";
export type { Document, Json, LooseRow, LooseSchema, Patch, Row } from "./schema.ts";
export { type Handler, type JobContext, Worker, type WorkerEvents, type WorkerOptions, worker } from "./worker.ts";
