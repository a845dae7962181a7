/**
 * The one error of the client. Three things can go wrong, told apart by `status`:
 *
 * - `undefined`: the builder refused the chain; nothing was sent. `code` is a word such as `bad-name`.
 * - `0`: no answer came (`code` is `unreachable`); whether a write was made is not known. `cause` has the reason.
 * - any other number: the server's answer, `code` its stable word (`unmet`, `unknown_field`, ...).
 *
 * A request given up by its own `signal` is none of these: it rejects with the signal's reason, as `fetch` does.
 */

export type ErrorKind = "builder" | "query" | "denied" | "missing" | "duplicate" | "unmet" | "io";

export interface ErrorDetails {
  readonly status?: number | undefined;
  /** The statement that was refused; in a batch the one `at` points to. */
  readonly query?: string | undefined;
  /** Index of the refused statement in a batch, from 0. */
  readonly at?: number | undefined;
  /** How many statements of a failed batch stay written. */
  readonly completed?: number | undefined;
  /** Where a text does not parse, both from 1. */
  readonly line?: number | undefined;
  readonly column?: number | undefined;
  readonly expected?: readonly string[] | undefined;
  /** Milliseconds the server asked to be left alone for (`Retry-After`). */
  readonly retryAfterMs?: number | undefined;
  readonly cause?: unknown;
}

export class FenecError extends Error {
  readonly code: string;
  readonly status: number | undefined;
  readonly query: string | undefined;
  readonly at: number | undefined;
  readonly completed: number | undefined;
  readonly line: number | undefined;
  readonly column: number | undefined;
  readonly expected: readonly string[] | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(code: string, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = "FenecError";
    this.code = code;
    this.status = details.status;
    this.query = details.query;
    this.at = details.at;
    this.completed = details.completed;
    this.line = details.line;
    this.column = details.column;
    this.expected = details.expected;
    this.retryAfterMs = details.retryAfterMs;
  }

  get kind(): ErrorKind {
    switch (this.status) {
      case undefined:
        return "builder";
      case 400:
        return "query";
      case 401:
      case 403:
        return "denied";
      case 404:
        return "missing";
      case 409:
        return "duplicate";
      case 412:
        return "unmet";
      default:
        return "io";
    }
  }

  /** Whether the same request may well be answered a moment later: no answer, too busy, stopping, loading, a full disk. */
  get passing(): boolean {
    return this.status === 0 || this.status === 408 || this.status === 429 || (this.status ?? 0) >= 500;
  }
}

/** A statement that was run, and answered otherwise than its caller asked: no rows, or no count. */
export function wrongAnswer(query: string, missing: "rows" | "count"): never {
  throw new FenecError("bad-answer", `\`${query}\` was answered no ${missing}`, { status: 200, query });
}

/** A refusal by the builder: made before anything is sent. */
export function refuse(code: string, message: string): never {
  throw new FenecError(code, message);
}
