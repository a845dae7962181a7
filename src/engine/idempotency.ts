/**
 * Answers kept under `Idempotency-Key`s. A record is part of the frame of the write it answers, so no crash parts the
 * two; a request sent again is answered from here and runs nothing.
 *
 * Kept for `--idempotency-ttl`, and at most IDEMPOTENCY_BYTES in all, the oldest going first. Answers past
 * KEPT_ANSWER_BYTES are kept as a note that it was done. A key belongs to its subject; rows are told again only under the
 * rights they were first told under, so that a token whose rules are others now is not told what it may not read.
 *
 *     record: name text, request text (its hash and the sender's rights), at f64 (epoch ms), outcomes varint, then for each
 *             kind u8 (16 more: its text follows), count varint, wrote varint, flags u8 (1: a write; 2: of a batch), text
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

export interface KeptAnswer {
  /** The key with its subject: see `keyName`. */
  readonly name: string;
  /** What it answered, and to whom: see `requestMark`. */
  readonly request: string;
  readonly atMs: number;
  readonly batch: boolean;
  readonly outcomes: readonly KeptOutcome[];
}

/** Tag of the blocks of a snapshot that hold them. */
export const ANSWERS_PART = 16;

const KINDS: readonly ResultKind[] = ["rows", "affected", "message", "schemas"];
const HAS_TEXT = 16;
/** What a record weighs beside its texts. */
const RECORD_BYTES = 400;
/** Records kept between two looks for those past their time. */
const LOOK_EVERY = 256;

export class KeptAnswers {
  /** Told of each answer kept, by the name of its key. */
  kept: (name: string) => void = () => {};
  readonly #ttlMs: number;
  /** In the order they were kept, so the first is the oldest. */
  readonly #records = new Map<string, KeptAnswer>();
  #bytes = 0;
  #sinceLook = 0;

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
  find(name: string, request: string, now: number): KeptAnswer | undefined {
    const record = this.#records.get(name);
    if (record === undefined || record.atMs + this.#ttlMs <= now) return undefined;
    if (record.request === request) return record;
    if (hashIn(record.request) !== hashIn(request)) {
      throw new Refusal("key_reused", "this Idempotency-Key came with another request: a new request takes a new key");
    }
    return noted(record, () => OTHER_RIGHTS);
  }

  keep(record: KeptAnswer): void {
    const { name } = record;
    const before = this.#records.get(name);
    if (before !== undefined) this.#drop(before);
    this.#records.set(name, record);
    this.#bytes += weightOf(record);
    if (++this.#sinceLook >= LOOK_EVERY || this.#bytes > IDEMPOTENCY_BYTES) this.#forget(record);
    this.kept(name);
  }

  /** Writes every record, some at a time: answers false when there was nothing more. For snapshots. */
  begin(): (w: ByteWriter) => boolean {
    const records = [...this.#records.values()];
    let at = 0;
    return (w) => {
      const from = at;
      for (; at < records.length && at < from + 1_000; at++) encodeRecord(w, records[at] as KeptAnswer);
      return at > from;
    };
  }

  /** Takes in what `begin` wrote. */
  restore(r: ByteReader): void {
    while (r.remaining > 0) this.keep(decodeRecord(r));
  }

  /** Lets the oldest go, up to the newest: those past their time, and those there is no room for. */
  #forget(newest: KeptAnswer): void {
    this.#sinceLook = 0;
    for (const oldest of this.#records.values()) {
      if (oldest === newest) return;
      if (oldest.atMs + this.#ttlMs > newest.atMs && this.#bytes <= IDEMPOTENCY_BYTES) return;
      this.#drop(oldest);
    }
  }

  #drop(record: KeptAnswer): void {
    this.#records.delete(record.name);
    this.#bytes -= weightOf(record);
  }
}

/** One text a key and its subject: no two pairs share one. */
export function keyName(subject: string, key: string): string {
  return `${subject.length}:${subject}${key}`;
}

/**
 * What a request is compared by when its key comes again: its hash, and behind it what its sender may do.
 *
 * @param hash digest of method, path and body
 * @param rights digest of the sender's rules; empty: it may do everything
 */
export function requestMark(hash: string, rights: string): string {
  return rights === "" ? hash : `${hash} ${rights}`;
}

function hashIn(request: string): string {
  const end = request.indexOf(" ");
  return end === -1 ? request : request.slice(0, end);
}

function weightOf(record: KeptAnswer): number {
  let bytes = RECORD_BYTES + 2 * record.name.length;
  for (const outcome of record.outcomes) bytes += outcome.text.length;
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
  w.string(record.name);
  w.string(record.request);
  w.f64(record.atMs);
  w.varint(record.outcomes.length);
  for (const { kind, text, count, wrote, isWrite } of record.outcomes) {
    w.u8(KINDS.indexOf(kind) + (text === "" ? 0 : HAS_TEXT));
    w.varint(count);
    w.varint(wrote);
    w.u8((isWrite ? 1 : 0) + (record.batch ? 2 : 0));
    if (text !== "") w.string(text);
  }
}

export function decodeRecord(r: ByteReader): KeptAnswer {
  const name = r.string();
  const request = r.string();
  const atMs = r.f64();
  const length = r.varint();
  const outcomes: KeptOutcome[] = [];
  let batch = false;
  for (let at = 0; at < length; at++) {
    const kind = r.u8();
    const count = r.varint();
    const wrote = r.varint();
    const flags = r.u8();
    batch = batch || (flags & 2) !== 0;
    const text = kind >= HAS_TEXT ? r.string() : "";
    outcomes.push({ kind: KINDS[kind % HAS_TEXT] ?? "message", count, wrote, isWrite: (flags & 1) !== 0, text });
  }
  return { name, request, atMs, batch, outcomes };
}
