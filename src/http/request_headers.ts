/** The headers a request is run by. */

import { WAIT_MS } from "../base/limits.ts";
import { Refusal } from "../base/refusal.ts";
import type { RequestContext } from "../engine/contract.ts";
import type { Identity } from "./seams.ts";

/** Milliseconds `Fenec-After` waits when no `Fenec-Wait` says otherwise. */
const AFTER_MS = 5_000;
/** Of a hash as base64: 144 bits. */
const HASH_LENGTH = 24;
/** Bytes of an `Idempotency-Key`. */
const KEY_BYTES = 255;

const UNKEYED: RequestContext = { scope: null, idempotencyKey: null, requestHash: "" };

/**
 * Who asks, and under which key. `target` is the path with its query string; with method and body it is what a key sent
 * again is compared by.
 */
export function contextOf(request: Request, identity: Identity, body: string): RequestContext {
  const key = request.headers.get("idempotency-key");
  if (key === null) {
    if (identity.scope === null) return UNKEYED;
    return { scope: identity.scope, idempotencyKey: null, requestHash: "" };
  }
  // A character of a header is a byte of it.
  if (key === "" || key.length > KEY_BYTES) {
    throw new Refusal("bad_key", `an Idempotency-Key has from 1 to ${KEY_BYTES} bytes`);
  }
  // In one call: half of what it takes piece by piece.
  const hash = Bun.CryptoHasher.hash("sha256", `${request.method} ${targetOf(request.url)}\n${body}`, "base64");
  return { scope: identity.scope, idempotencyKey: key, requestHash: hash.slice(0, HASH_LENGTH) };
}

/** Path and query string of an absolute url. */
export function targetOf(url: string): string {
  const path = url.indexOf("/", url.indexOf("//") + 2);
  return path === -1 ? "/" : url.slice(path);
}

/** `Fenec-Wait` in milliseconds, cut to `WAIT_MS`; undefined when it is not sent. */
export function waitOf(request: Request): number | undefined {
  const sent = request.headers.get("fenec-wait");
  if (sent === null) return undefined;
  if (!/^\d+$/.test(sent)) throw unsigned("Fenec-Wait", "milliseconds", sent);
  return Math.min(Number(sent), WAIT_MS);
}

/** `Fenec-After`: the change to wait for, and for how long; undefined when it is not sent. */
export function afterOf(request: Request, waitMs: number | undefined): { seq: number; patienceMs: number } | undefined {
  const sent = request.headers.get("fenec-after");
  if (sent === null) return undefined;
  if (!/^\d+$/.test(sent)) throw unsigned("Fenec-After", "a change number", sent);
  return { seq: Number(sent), patienceMs: waitMs ?? AFTER_MS };
}

function unsigned(header: string, what: string, sent: string): Refusal {
  return new Refusal("bad_header", `${header} is ${what}, a whole number from 0; ${JSON.stringify(sent)} is not`);
}

/** Whether one of the tags of an `If-None-Match` is this one. */
export function namesTag(ifNoneMatch: string, tag: string): boolean {
  for (const sent of ifNoneMatch.split(",")) {
    const bare = sent.trim().replace(/^W\//, "");
    if (bare === tag) return true;
  }
  return false;
}
