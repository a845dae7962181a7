/**
 * Answers kept under `Idempotency-Key`s. A record is part of the frame of the write it answers, so no crash parts the
 * two; a request sent again is answered from here and runs nothing.
 *
 * Kept for `--idempotency-ttl`, and at most IDEMPOTENCY_BYTES in all, the oldest going first. Answers past
 * KEPT_ANSWER_BYTES are kept as a note that it was done. A key belongs to its subject; rows are told again only under the
 * rights they were first told under, so that a token whose rules are others now is not told what it may not read.
 *
 *     record: subject text, rights text, key text, request hash text, at f64 (epoch ms), outcomes varint, then for each
 *             kind u8, count varint, wrote varint, flags u8 (1: a write; 2: of a batch), text
 */

import type { ByteReader, ByteWriter } from "../base/bytes.ts";
import { IDEMPOTENCY_BYTES, KEPT_ANSWER_BYTES } from "../base/limits.ts";
import { Refusal } from "../base/refusal.ts";
import type { ResultKind } from "../exec/plan.ts";

/** One statement's answer, as it was given. */
export interface KeptOutcome {
  readonly kind: ResultKind;
  readonly text: string;
  readonly count: number;
  readonly wrote: number;
  readonly isWrite: boolean;
}

/** A request under a key. */
export interface KeyedRequest {
  readonly subject: string;
  /** Digest of what its sender may do; empty: everything. */
  readonly rights: string;
  readonly key: string;
  /** Digest of method, path and body. */
  readonly requestHash: string;
}

export interface KeptAnswer extends KeyedRequest {
  readonly atMs: number;
  readonly batch: boolean;
  readonly outcomes: readonly KeptOutcome[];
}

/** Tag of the blocks of a snapshot that hold them. */
export const ANSWERS_PART = 16;

const KINDS: readonly ResultKind[] = ["rows", "affected", "message", "schemas"];
/** Written at once into a snapshot. */
const PIECE_BYTES = 256 * 1024;
/** What a record weighs beside its texts. */
const RECORD_BYTES = 400;

export class KeptAnswers {
  /** Told of each answer kept, by the name of its key. */
  kept: (name: string) => void = () => {};
  readonly #ttlMs: number;
  /** In the order they were kept, so the first is the oldest. */
  readonly #records = new Map<string, KeptAnswer>();
  #bytes = 0;

  constructor(ttlMs: number) {
    this.#ttlMs = ttlMs;
  }

  get size(): number {
    return this.#records.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /**
   * The answer kept under a key; undefined when it is new.
   *
   * @throws Refusal `key_reused` when the key came with another request
   */
  find(request: KeyedRequest, now: number): KeptAnswer | undefined {
    const record = this.#records.get(keyName(request.subject, request.key));
    if (record === undefined || record.atMs + this.#ttlMs <= now) return undefined;
    if (record.requestHash !== request.requestHash) {
      throw new Refusal("key_reused", "this Idempotency-Key came with another request: a new request takes a new key");
    }
    return record.rights === request.rights ? record : noted(record, () => OTHER_RIGHTS);
  }

  keep(record: KeptAnswer): void {
    const name = keyName(record.subject, record.key);
    const before = this.#records.get(name);
    if (before !== undefined) this.#drop(name, before);
    this.#records.set(name, record);
    this.#bytes += weightOf(record);
    for (const [oldest, kept] of this.#records) {
      if (kept.atMs + this.#ttlMs > record.atMs && this.#bytes <= IDEMPOTENCY_BYTES) break;
      if (kept === record) break;
      this.#drop(oldest, kept);
    }
    this.kept(name);
  }

  /** Writes every record, some at a time: answers false when there was nothing more. For snapshots. */
  begin(): (w: ByteWriter) => boolean {
    const records = [...this.#records.values()];
    let at = 0;
    return (w) => {
      const from = at;
      // A block is written in one turn, and an answer may be large.
      for (; at < records.length && w.length < PIECE_BYTES; at++) encodeRecord(w, records[at] as KeptAnswer);
      return at > from;
    };
  }

  /** Takes in what `begin` wrote. */
  restore(r: ByteReader): void {
    while (r.remaining > 0) this.keep(decodeRecord(r));
  }

  #drop(name: string, record: KeptAnswer): void {
    this.#records.delete(name);
    this.#bytes -= weightOf(record);
  }
}

/** One text a key and its subject: no two pairs share one. */
export function keyName(subject: string, key: string): string {
  return `${subject.length}:${subject}${key}`;
}

function weightOf(record: KeptAnswer): number {
  let bytes = RECORD_BYTES + record.subject.length + 2 * record.key.length;
  for (const outcome of record.outcomes) bytes += outcome.text.length + 64;
  return bytes;
}

const OTHER_RIGHTS = "done; the rules of its token are others now, so what it answered is not told again";

/** An answer whose rows became words. */
function noted(record: KeptAnswer, words: (outcome: KeptOutcome) => string): KeptAnswer {
  const outcomes = record.outcomes.map((outcome): KeptOutcome => {
    if (outcome.kind === "affected" || outcome.kind === "message") return outcome;
    return { ...outcome, kind: "message", text: words(outcome) };
  });
  return { ...record, outcomes };
}

/** The record of an answer just made; one that is too large is kept as a note. */
export function recordOf(answer: KeptAnswer): KeptAnswer {
  let bytes = 0;
  for (const outcome of answer.outcomes) bytes += outcome.text.length;
  if (bytes <= KEPT_ANSWER_BYTES) return answer;
  return noted(answer, ({ text }) => `done; its answer of ${text.length} bytes was too large to keep`);
}

export function encodeRecord(w: ByteWriter, record: KeptAnswer): void {
  w.string(record.subject);
  w.string(record.rights);
  w.string(record.key);
  w.string(record.requestHash);
  w.f64(record.atMs);
  w.varint(record.outcomes.length);
  for (const outcome of record.outcomes) {
    w.u8(KINDS.indexOf(outcome.kind));
    w.varint(outcome.count);
    w.varint(outcome.wrote);
    w.u8((outcome.isWrite ? 1 : 0) + (record.batch ? 2 : 0));
    w.string(outcome.text);
  }
}

export function decodeRecord(r: ByteReader): KeptAnswer {
  const subject = r.string();
  const rights = r.string();
  const key = r.string();
  const requestHash = r.string();
  const atMs = r.f64();
  const count = r.varint();
  const outcomes: KeptOutcome[] = [];
  let batch = false;
  for (let at = 0; at < count; at++) {
    const kind = KINDS[r.u8()] ?? "message";
    const rows = r.varint();
    const wrote = r.varint();
    const flags = r.u8();
    batch = batch || (flags & 2) !== 0;
    outcomes.push({ kind, count: rows, wrote, isWrite: (flags & 1) !== 0, text: r.string() });
  }
  return { subject, rights, key, requestHash, atMs, batch, outcomes };
}
