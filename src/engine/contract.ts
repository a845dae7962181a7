/**
 * What the rooms above the engine know of it: they run statements through this interface and see nothing of logs,
 * plans or rows. The engine runs one statement to its end without an await; only `durable` waits.
 */

import type { Rules } from "../exec/rules.ts";
import type { LogCounters } from "../log/log.ts";
import type { Claims } from "../plan/env.ts";
import type { CollectionSchema } from "../schema/schema.ts";
import type { Change } from "../store/change.ts";
import type { Store } from "../store/store.ts";
import type { Value } from "../value/value.ts";

/** A token held to rules; made by the auth room, read by the engine. */
export interface Scope {
  readonly rules: Rules;
  /** The token's claims, for `$jwt.name`. */
  readonly claims: Claims;
  /** Epoch ms past which the token is good for nothing; Infinity: never. */
  readonly expiresAtMs: number;
  /** Whose token it is (`sub`): an idempotency key belongs to its subject. Empty: nobody's, and it takes no key. */
  readonly subject: string;
  /** Digest of its rules and the claims they read: a kept answer's rows are told again under the same alone. */
  readonly rights: string;
}

export interface RequestContext {
  /** Null: full access. */
  readonly scope: Scope | null;
  /** The `Idempotency-Key` of the request, 1 to 255 bytes. */
  readonly idempotencyKey: string | null;
  /** Digest of method, path and body: what a key sent again is compared by. Empty without a key. */
  readonly requestHash: string;
}

export interface Outcome {
  /** `rows`: a json array text; `affected`, `message`: a count or words; `schemas`: a json array of schemas. */
  readonly kind: "rows" | "affected" | "message" | "schemas";
  /** What `/query` answers: `[...]`, `{"affected":n}`, `{"message":"..."}`. */
  readonly body: string;
  /** What `/batch` has for it: `{"rows":[...]}`, `{"affected":n}`, ... */
  readonly batchBody: string;
  /** Rows answered or written. */
  readonly count: number;
  /** Documents written (0: nothing). */
  readonly wrote: number;
  readonly isWrite: boolean;
  readonly isRead: boolean;
  /** The change counter after it. */
  readonly seq: number;
  /** True: nothing was run, this is the answer kept under the request's idempotency key. */
  readonly replayed?: boolean;
}

export interface BatchRequest {
  readonly text: string;
  readonly params: readonly Value[];
}

export interface BatchOutcome {
  readonly outcomes: readonly Outcome[];
  readonly seq: number;
  readonly wrote: number;
  /** No statement of it is a write. */
  readonly isRead: boolean;
  readonly replayed?: boolean;
}

/**
 * Told of every change once it stands: applied to memory, never to be put back, in order, in the turn that made it.
 * `seq` is the change counter after it. An observer must not run statements that write.
 */
export type ChangeObserver = (change: Change, seq: number) => void;

export type Health =
  | { readonly ok: true }
  | { readonly ok: false; readonly code: "disk_full" | "disk_failed"; readonly why: string };

export interface EngineContract {
  /** Runs one statement. Throws `Refusal`. */
  query(text: string, params: readonly Value[], context: RequestContext): Outcome;
  /** Runs them as one change: all or none. Throws `Refusal` with `at` and `completed`. */
  batch(requests: readonly BatchRequest[], context: RequestContext): BatchOutcome;
  /**
   * Undefined when everything an answer made now could have seen is on disk. Rejects when the disk failed; but once it
   * has, `isRead` says that the answer confirms nothing, and it need not wait for what will never be: reads go on.
   */
  durable(isRead?: boolean): Promise<void> | undefined;
  /** The change counter: one step a document written, one a schema edit. */
  readonly seq: number;

  /** The json of `GET /collections`: an array of schemas, those the scope may read. */
  collections(context: RequestContext): string;
  /** Names of the collections the scope may read, in the order `collections` has them. */
  names(context: RequestContext): readonly string[];
  /** Undefined when there is none, or none that the scope may know of: nothing in it is granted. */
  schemaOf(name: string, context: RequestContext): CollectionSchema | undefined;
  /** What the redo log has written since the start; null: there is none. */
  readonly logged: LogCounters | null;
  /** Whether writes are taken and confirmed. `disk_full` passes by itself, `disk_failed` with a restart. */
  health(): Health;
  /** The store, to be read only: the gauges' source. */
  readonly store: Store;
  /** Returns what takes the observer off again. */
  watch(observer: ChangeObserver): () => void;
  /**
   * The change number at which a collection this read reads was last written, for its `ETag`; undefined when the
   * answer may change without a write (`now()`, a `@ttl` collection), when it has an inner `get`, or is no read.
   */
  readTag(text: string, context: RequestContext): number | undefined;
  /** Every write from now on is refused (`read_only`), whatever it names. */
  readonly readOnly: boolean;
  /** Syncs what was written and lets go of the data directory. Nothing may be run afterwards. */
  close(): Promise<void>;
}
