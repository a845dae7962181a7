/** Every bound of the server in one place. Source: the language reference and the interface docs (docs/). */

/** Nesting of an expression: parentheses, operators, and the length of an `and`/`or` chain all count. */
export const EXPRESSION_DEPTH = 512;
/** Nesting of a json value: objects and lists. */
export const JSON_DEPTH = 64;
/** Nesting of a request body: around a json field stand its document, a list of documents, the parameters, the body. */
export const BODY_DEPTH = JSON_DEPTH + 4;
/** Keys of a path after its field. */
export const PATH_KEYS = 64;
/** Distinct values an inner `get` may hand to `in (get ...)`. */
export const INNER_GET_VALUES = 100_000;
/** `in (get ...)` inside `in (get ...)`. */
export const INNER_GET_LEVELS = 4;
/** `limit + offset` of a `near`. */
export const NEAR_ROWS = 10_000;
/** Distinct values of one `count(distinct ...)` statement. */
export const DISTINCT_VALUES = 1_000_000;
/** Code points of a collection's or field's name. */
export const NAME_LENGTH = 255;
/** Fields of one collection. */
export const FIELDS = 1_000;
/** Lists within lists in a field's type: `[[int]]` is 2. */
export const LIST_LEVELS = 8;
/** Bytes of a request body; `--max-body` lowers or raises it. */
export const BODY_BYTES = 64 * 1024 * 1024;
/** Bytes of a request's header block. */
export const HEADER_BYTES = 64 * 1024;
/** Milliseconds a claim may be held; more is cut to this. */
export const WAIT_MS = 30_000;
/** Milliseconds between two passes of the sweeper of expired rows. */
export const SWEEP_MS = 30_000;
/** Milliseconds an expired row is left for `expired()` to find before the sweeper deletes it. */
export const SWEEP_GRACE_MS = 60_000;
/** Plans kept by statement text, and the longest text kept. */
export const CACHED_PLANS = 2_000;
export const CACHED_TEXT_LENGTH = 8_192;
/** Connections answered at once (`--max-connections`); a held claim is one of them. */
export const CONNECTIONS = 10_000;
/** Timestamps lie between the first and the last millisecond of the years 0000 and 9999. */
export const TIME_MIN_MS = -62_167_219_200_000;
export const TIME_MAX_MS = 253_402_300_799_999;
/** Ids: whole numbers a double holds exactly, so that an id is one everywhere. */
export const ID_MAX = Number.MAX_SAFE_INTEGER;
export const INT_MIN = -(2n ** 63n);
export const INT_MAX = 2n ** 63n - 1n;
/** Bytes of one change in the redo log. */
export const LOG_FRAME_BYTES = 512 * 1024 * 1024;
/** A segment of the redo log is done once it has grown past this (`--segment-bytes`). */
export const LOG_SEGMENT_BYTES = 64 * 1024 * 1024;
/** Space a segment takes in advance, at most. */
export const LOG_PREALLOCATED_BYTES = 256 * 1024;
/** Space kept back for the claims and acks of a full disk (`--reserve-bytes`). */
export const LOG_RESERVE_BYTES = 1024 * 1024;
/** A `set` whose change is no larger may use the reserve as deletes do: a page of claims, not a rewriting of payloads. */
export const RESERVED_SET_BYTES = 64 * 1024;
/** A snapshot is due once this much was logged (`--snapshot-bytes`); half a segment keeps a small directory small. */
export const CHECKPOINT_LOG_BYTES = LOG_SEGMENT_BYTES / 2;
/** And once this time has gone by, if anything was written (`--snapshot-seconds`). */
export const CHECKPOINT_MS = 15 * 60_000;
/** Bytes of an answer kept under an idempotency key; a larger one is kept as a note. */
export const KEPT_ANSWER_BYTES = 64 * 1024;
/** Bytes of all answers kept under idempotency keys, beside their time; the oldest go first. */
export const IDEMPOTENCY_BYTES = 256 * 1024 * 1024;
/** Tokens remembered as verified. */
export const VERIFIED_TOKENS = 4_096;
/** Values of a list claim. */
export const CLAIM_VALUES = 1_000;
/** Addresses whose refused tokens are counted. */
export const REFUSED_ADDRESSES = 10_000;
/** Milliseconds a refused token waits for its answer at the most. */
export const REFUSAL_DELAY_MS = 5_000;
/** Writes remembered so that a change stream that was cut off goes on without a seed. */
export const RECENT_WRITES = 4_096;
/** Milliseconds a change stream whose reader takes nothing is kept. */
export const STREAM_STALL_MS = 30_000;
/** Bytes of a change stream sent ahead of its reader; past it changes are gathered by row instead. */
export const STREAM_BUFFER_BYTES = 64 * 1024;
/** Rows a change stream looks up in one statement. */
export const STREAM_LOOK_ROWS = 256;
/** Refused tokens that wait at once; past them the next are answered without a delay. */
export const REFUSALS_WAITING = 1_000;
/** Kinds of tokens whose rules are kept put together. */
export const RULE_SETS = 1_000;
/** Lines a second of the audit log; what is past them is counted. */
export const AUDIT_LINES = 1_000;
/** Rows a dry run of a claim looks at to say why none is taken, and moments it looks ahead for the next. */
export const EXPLAINED_ROWS = 100_000;
export const EXPLAINED_MOMENTS = 100;
/** Ids of the rows it would take that it names. */
export const EXPLAINED_IDS = 100;
