/** Answers: status, headers and text. The headers of the usual ones are made once. */

import type { Refusal } from "../base/refusal.ts";

type Headers = Readonly<Record<string, string>>;

const JSON_TYPE = "application/json";

/** What a page on another origin may read of an answer. */
const EXPOSED = "Fenec-Seq, Fenec-Next, Idempotent-Replayed, ETag, Retry-After, WWW-Authenticate";
const ALLOWED_METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";
const ALLOWED_HEADERS = "Authorization, Content-Type, Fenec-After, Fenec-Wait, Idempotency-Key, If-None-Match";
/** Seconds a browser may remember what a preflight said. */
const PREFLIGHT_SECONDS = "86400";

/** Codes that say nothing of the request, so that it may be sent again. */
const RETRY_SECONDS = new Map<string, string>([
  ["overloaded", "1"],
  ["loading", "1"],
  ["stopping", "1"],
]);

export class Answers {
  readonly #cors: Headers;
  readonly #json: Headers;
  readonly #ok: ResponseInit;

  /** `cors`: the origin that may read answers, `*` for any, null for no header of this kind at all. */
  constructor(cors: string | null) {
    this.#cors =
      cors === null
        ? {}
        : {
            "access-control-allow-origin": cors,
            "access-control-expose-headers": EXPOSED,
            ...(cors === "*" ? {} : { vary: "Origin" }),
          };
    this.#json = { "content-type": JSON_TYPE, ...this.#cors };
    this.#ok = { status: 200, headers: this.#json };
  }

  /** 200 with a json text. */
  ok(body: string): Response {
    return new Response(body, this.#ok);
  }

  /** 200 of a write, or of a batch of reads: `Fenec-Seq` says where the change counter stood. */
  at(seq: number, body: string): Response {
    return new Response(body, { status: 200, headers: { ...this.#json, "fenec-seq": String(seq) } });
  }

  json(status: number, body: string, more: Headers): Response {
    return new Response(body, { status, headers: { ...this.#json, ...more } });
  }

  /** An answer of another type, or without a body. */
  other(status: number, body: string | ReadableStream<Uint8Array> | null, headers: Headers): Response {
    return new Response(body, { status, headers: { ...this.#cors, ...headers } });
  }

  /** `{"error": words, "code": code, ...data}`. */
  refusal(refusal: Refusal): Response {
    const body = JSON.stringify({ error: refusal.message, code: refusal.code, ...refusal.data });
    const more: Record<string, string> = {};
    if (refusal.status === 401) more["www-authenticate"] = "Bearer";
    const retry = RETRY_SECONDS.get(refusal.code);
    if (retry !== undefined) more["retry-after"] = retry;
    return this.json(refusal.status, body, more);
  }

  /** What a browser asks before it sends a request from another origin. */
  preflight(): Response {
    return this.other(204, null, {
      "access-control-allow-methods": ALLOWED_METHODS,
      "access-control-allow-headers": ALLOWED_HEADERS,
      "access-control-max-age": PREFLIGHT_SECONDS,
    });
  }
}
