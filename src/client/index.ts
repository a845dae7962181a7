/** The client of a Fenec server: chains, batches, workers, producers. Runs in Bun, Node 20 and later, and browsers. */

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
export {
  type BatchAnswer,
  type Batchable,
  type BatchResult,
  type ConnectOptions,
  connect,
  FenecHttp,
  type Fetch,
} from "./http.ts";
export type { Ints } from "./json.ts";
export {
  type Answer,
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
