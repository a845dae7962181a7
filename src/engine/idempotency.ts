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

import { type ByteReader, ByteWriter } from "../base/bytes.ts";
import { IDEMPOTENCY_BYTES, KEPT_ANSWER_BYTES } from "../base/limits.ts";
import { Refusal } from "../base/refusal.ts";
import type { ResultKind } from "../exec/plan.ts";
import { AnswerTable } from "./answer_table.ts";

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
/** Records kept between two looks for those past their time. */
const LOOK_EVERY = 1_024;
/** Records written to a snapshot in one turn. */
const TURN_RECORDS = 1_000;

export class KeptAnswers {
  /** Told of each answer kept, by the name of its key. */
  kept: (name: string) => void = () => {};
  readonly #ttlMs: number;
  readonly #table = new AnswerTable();
  readonly #scratch = new ByteWriter();
  #sinceLook = 0;

  constructor(ttlMs: number) {
    this.#ttlMs = ttlMs;
  }

  get size(): number {
    return this.#table.size;
  }

  get bytes(): number {
    return this.#table.bytes;
  }

  /**
   * The answer kept under a key; undefined when it is new.
   *
   * @throws Refusal `key_reused` when the key came with another request
   */
  find(name: string, request: string, now: number): KeptAnswer | undefined {
    const reader = this.#table.find(name);
    if (reader === undefined) return undefined;
    const record = decodeBehindName(name, reader);
    if (record.atMs + this.#ttlMs <= now) return undefined;
    if (record.request === request) return record;
    if (hashIn(record.request) !== hashIn(request)) {
      throw new Refusal("key_reused", "this Idempotency-Key came with another request: a new request takes a new key");
    }
    return { ...record, outcomes: noted(record.outcomes, () => OTHER_RIGHTS) };
  }

  /** Keeps a record that is the last of what was written to `w`, from `from` on. */
  keepWritten(name: string, w: ByteWriter, from: number, atMs: number): void {
    this.#table.add(name, w, from, atMs);
    if (++this.#sinceLook >= LOOK_EVERY || this.#table.bytes > IDEMPOTENCY_BYTES) {
      this.#sinceLook = 0;
      this.#table.forget(atMs - this.#ttlMs, IDEMPOTENCY_BYTES);
    }
    this.kept(name);
  }

  keep(record: KeptAnswer): void {
    const { name, request, atMs, batch, outcomes } = record;
    this.#scratch.reset();
    encodeRecord(this.#scratch, name, request, atMs, batch, outcomes);
    this.keepWritten(record.name, this.#scratch, 0, record.atMs);
  }

  /** Writes every record, some at a time: answers false when there was nothing more. For snapshots. */
  begin(): (w: ByteWriter) => boolean {
    const walk = this.#table.walk();
    return (w) => walk((record) => w.raw(record), TURN_RECORDS);
  }

  /** Takes in what `begin` wrote. */
  restore(r: ByteReader): void {
    while (r.remaining > 0) this.keep(decodeRecord(r));
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

const OTHER_RIGHTS = "done; the rules of its token are others now, so what it answered is not told again";

/** Answers whose rows became words. */
function noted(outcomes: readonly KeptOutcome[], words: (outcome: KeptOutcome) => string): KeptOutcome[] {
  return outcomes.map((outcome) => {
    if (outcome.kind === "affected" || outcome.kind === "message") return outcome;
    const { count, wrote, isWrite } = outcome;
    return { kind: "message", text: words(outcome), count, wrote, isWrite };
  });
}

/** What is kept of answers just made; those that are too large are kept as a note. */
export function keptOf(outcomes: readonly KeptOutcome[]): readonly KeptOutcome[] {
  let bytes = 0;
  for (const outcome of outcomes) bytes += outcome.text.length;
  if (bytes <= KEPT_ANSWER_BYTES) return outcomes;
  return noted(outcomes, ({ text }) => `done; its answer of ${text.length} bytes was too large to keep`);
}

/** In pieces, not as a `KeptAnswer`: a write makes nothing for it that it would leave behind. */
export function encodeRecord(
  w: ByteWriter,
  name: string,
  request: string,
  atMs: number,
  batch: boolean,
  outcomes: readonly KeptOutcome[],
): void {
  w.string(name);
  w.string(request);
  w.f64(atMs);
  w.varint(outcomes.length);
  for (let at = 0; at < outcomes.length; at++) {
    const outcome = outcomes[at] as KeptOutcome;
    const { text } = outcome;
    w.u8(KINDS.indexOf(outcome.kind) + (text === "" ? 0 : HAS_TEXT));
    w.varint(outcome.count);
    w.varint(outcome.wrote);
    w.u8((outcome.isWrite ? 1 : 0) + (batch ? 2 : 0));
    if (text !== "") w.string(text);
  }
}

export function decodeRecord(r: ByteReader): KeptAnswer {
  return decodeBehindName(r.string(), r);
}

function decodeBehindName(name: string, r: ByteReader): KeptAnswer {
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
