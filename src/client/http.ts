/**
 * The client over HTTP: one statement is a `POST /query`, several are a `POST /batch` that lands whole or not at all. It
 * sends nothing a second time and has no timeout of its own: `signal` gives a request up, and a retry is the caller's to
 * make, safely under an idempotency key.
 */

import { FenecError, refuse, wrongAnswer } from "./error.ts";
import { type Ints, readJson, writeJson } from "./json.ts";
import {
  type Answer,
  type BatchAnswer,
  type Batchable,
  type BatchResult,
  type Database,
  from,
  type Query,
  type SendOptions,
  type Statement,
} from "./query.ts";
import type { LooseSchema, SchemaOf } from "./schema.ts";

/** The part of `fetch` the client uses. */
export type Fetch = (
  url: string,
  init: { method: string; headers: Record<string, string>; body: string; signal?: AbortSignal },
) => Promise<Response>;

export interface ConnectOptions {
  /** Sent as `Authorization: Bearer`. A function is asked before every request, so a token can be renewed. */
  readonly token?: string | (() => string | Promise<string>) | undefined;
  readonly fetch?: Fetch | undefined;
  /** How ints past 2^53 are read: `exact` (the default) as bigint, `number` rounded. Smaller ones are always numbers. */
  readonly ints?: Ints | undefined;
}

/** A client of the server at `url`. Sends nothing yet. */
export function connect<S extends SchemaOf<S> = LooseSchema>(url: string, options: ConnectOptions = {}): FenecHttp<S> {
  return new FenecHttp<S>(url.replace(/\/+$/, ""), options, { seq: null }, undefined);
}

/** What a client and its copies have in common. */
interface Shared {
  seq: number | null;
}

export class FenecHttp<S = LooseSchema> implements Database {
  readonly url: string;
  readonly #options: ConnectOptions;
  readonly #shared: Shared;
  readonly #key: string | undefined;

  constructor(url: string, options: ConnectOptions, shared: Shared, key: string | undefined) {
    this.url = url;
    this.#options = options;
    this.#shared = shared;
    this.#key = key;
  }

  /** The change counter after the last write this client (or a copy of it) was answered; null before any. */
  get seq(): number | null {
    return this.#shared.seq;
  }

  /** A chain over a collection, run here. */
  from<C extends keyof S & string>(collection: C): Query<S[C]> {
    return from<S[C]>(collection).bind(this);
  }

  /** A copy whose every write is sent under this key. */
  withIdempotencyKey(key: string): FenecHttp<S> {
    return new FenecHttp<S>(this.url, this.#options, this.#shared, checkedKey(key));
  }

  /**
   * Runs one statement.
   * @returns `{rows}` for a read; `{rows, seq, replayed}` for a write with `returning`; `{kind: "affected", count, seq,
   * replayed}` for any other write; else the object as the server sent it.
   * @throws FenecError
   */
  async run(text: string, params: readonly unknown[] = [], options: SendOptions = {}): Promise<Answer> {
    const { body, seq, replayed } = await this.#post("/query", writeJson({ query: text, params }), options, [text]);
    if (Array.isArray(body)) {
      const rows = body as readonly Readonly<Record<string, unknown>>[];
      return seq === null ? { rows } : { rows, seq, replayed };
    }
    if (typeof body !== "object" || body === null) throw badAnswer(200, String(body), text);
    const members = body as Readonly<Record<string, unknown>>;
    if (typeof members["affected"] === "number") {
      return { kind: "affected", count: members["affected"], seq, replayed };
    }
    return members;
  }

  /** The rows of one statement; a statement that answers none is a `bad-answer`. */
  async rows<R = Readonly<Record<string, unknown>>>(
    text: string,
    params: readonly unknown[] = [],
    options: SendOptions = {},
  ): Promise<R[]> {
    const answer = await this.run(text, params, options);
    if (!("rows" in answer)) wrongAnswer(text, "rows");
    return answer.rows as R[];
  }

  /**
   * Runs several statements as one: all of them land, or none. An error has `at`, the index of the statement refused.
   * @throws FenecError
   */
  async batch(statements: readonly Batchable[], options: SendOptions = {}): Promise<BatchAnswer> {
    if (statements.length === 0) refuse("empty-batch", "a batch needs a statement");
    const texts: string[] = [];
    const lines: string[] = [];
    for (const statement of statements) {
      const [text, params] = statementOf(statement);
      texts.push(text);
      lines.push(writeJson({ query: text, params }));
    }
    const { body, seq, replayed } = await this.#post("/batch", lines.join("\n"), options, texts);
    const results = (body as { results?: unknown } | null)?.results;
    if (!Array.isArray(results)) throw badAnswer(200, String(body), texts[0]);
    return { results: results as readonly BatchResult[], seq, replayed };
  }

  async #post(
    path: string,
    body: string,
    options: SendOptions,
    texts: readonly string[],
  ): Promise<{ body: unknown; seq: number | null; replayed: boolean }> {
    const headers = await this.#headers(path, options);
    const { signal } = options;
    const send = this.#options.fetch ?? (globalThis.fetch as Fetch);
    let response: Response;
    let text: string;
    try {
      response = await send(this.url + path, { method: "POST", headers, body, ...(signal ? { signal } : {}) });
      text = await response.text();
    } catch (cause) {
      if (signal?.aborted === true) throw signal.reason;
      throw new FenecError("unreachable", `no answer from ${this.url}: ${reasonOf(cause)}`, {
        status: 0,
        query: texts[0],
        cause,
      });
    }
    const answer = this.#parse(response, text, texts[0]);
    if (!response.ok) throw refusalOf(response, answer, text, texts);
    const seq = response.headers.get("Fenec-Seq");
    if (seq !== null) this.#shared.seq = Number(seq);
    return {
      body: answer,
      seq: seq === null ? null : Number(seq),
      replayed: response.headers.get("Idempotent-Replayed") === "true",
    };
  }

  async #headers(path: string, options: SendOptions): Promise<Record<string, string>> {
    const headers: Record<string, string> = {
      "Content-Type": path === "/batch" ? "application/x-ndjson" : "application/json",
    };
    const { token } = this.#options;
    const bearer = typeof token === "function" ? await token() : token;
    if (bearer !== undefined && bearer !== "") headers["Authorization"] = `Bearer ${bearer}`;
    const key = options.idempotencyKey === undefined ? this.#key : checkedKey(options.idempotencyKey);
    if (key !== undefined) headers["Idempotency-Key"] = key;
    const wait = waitMs(options.wait);
    if (wait > 0) headers["Fenec-Wait"] = String(wait);
    return headers;
  }

  #parse(response: Response, text: string, query: string | undefined): unknown {
    try {
      return readJson(text, this.#options.ints ?? "exact");
    } catch {
      throw badAnswer(response.status, text, query);
    }
  }
}

function statementOf(statement: Batchable): Statement {
  if (typeof statement === "string") return [statement, []];
  return "toFenecQL" in statement ? statement.toFenecQL() : statement;
}

const KEY = /^[\x20-\x7e]{1,255}$/;

function checkedKey(key: string): string {
  if (!KEY.test(key)) refuse("bad-key", "an idempotency key is 1 to 255 printable ASCII characters");
  return key;
}

function waitMs(wait: number | undefined): number {
  if (wait === undefined) return 0;
  if (typeof wait !== "number" || !Number.isFinite(wait) || wait < 0) {
    refuse("bad-wait", `wait is a number of milliseconds from 0, not ${String(wait)}`);
  }
  return Math.floor(wait);
}

/** Node says "fetch failed", and why in the cause. */
function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  return cause.cause instanceof Error ? cause.cause.message || cause.message : cause.message;
}

/** Something answered that is no Fenec: a proxy's error page, most often. */
function badAnswer(status: number, text: string, query: string | undefined): FenecError {
  const start = text.length > 200 ? `${text.slice(0, 200)}...` : text;
  return new FenecError("bad-answer", `answered ${status} with what is no answer of a Fenec server: ${start}`, {
    status,
    query,
  });
}

function refusalOf(response: Response, answer: unknown, text: string, texts: readonly string[]): FenecError {
  const { status } = response;
  const body = (typeof answer === "object" && answer !== null ? answer : {}) as Readonly<Record<string, unknown>>;
  if (typeof body["error"] !== "string") return badAnswer(status, text, texts[0]);
  const at = numberOf(body["at"]);
  const retryAfter = Number(response.headers.get("Retry-After") ?? Number.NaN);
  return new FenecError(typeof body["code"] === "string" ? body["code"] : "refused", body["error"], {
    status,
    query: texts[at ?? 0],
    at,
    completed: numberOf(body["completed"]),
    line: numberOf(body["line"]),
    column: numberOf(body["column"]),
    expected: Array.isArray(body["expected"]) ? (body["expected"] as string[]) : undefined,
    retryAfterMs: Number.isFinite(retryAfter) ? retryAfter * 1000 : undefined,
  });
}

function numberOf(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}
