/**
 * The single writer. A statement runs to its end without an await: parsed, planned, run against the store as it is,
 * its change appended to the log and only then applied. A failed statement leaves no trace.
 */

import { ByteWriter } from "../base/bytes.ts";
import { RESERVED_SET_BYTES } from "../base/limits.ts";
import { Refusal } from "../base/refusal.ts";
import type { Clock } from "../clock/clock.ts";
import { type Parsed, StatementCache } from "../exec/cache.ts";
import type { Plan, Result } from "../exec/plan.ts";
import { mayKnow, readable } from "../exec/rules.ts";
import type { Statement } from "../lang/ast.ts";
import type { LogCounters } from "../log/log.ts";
import { Env } from "../plan/env.ts";
import { readsNow } from "../plan/moment.ts";
import type { CollectionSchema } from "../schema/schema.ts";
import type { Change } from "../store/change.ts";
import type { Store } from "../store/store.ts";
import { Undo } from "../store/undo.ts";
import type { Value } from "../value/value.ts";
import type {
  BatchOutcome,
  BatchRequest,
  ChangeObserver,
  EngineContract,
  Health,
  Outcome,
  RequestContext,
} from "./contract.ts";
import {
  encodeRecord,
  type KeptAnswer,
  type KeptAnswers,
  type KeptOutcome,
  keptOf,
  keyName,
  requestMark,
} from "./idempotency.ts";
import type { Journal } from "./journal.ts";
import { StatementOutcome } from "./outcome.ts";
import { beginRecord, writeChange } from "./payload.ts";

export interface EngineParts {
  readonly store: Store;
  readonly journal: Journal;
  readonly clock: Clock;
  /** The change counter the store stands at. */
  readonly seq: number;
  readonly readOnly: boolean;
  /** Bytes past which puts and sets are refused; Infinity: no ceiling. */
  readonly maxMemoryBytes: number;
  /** Answers kept under idempotency keys. */
  readonly answers: KeptAnswers;
  /** What `compact` sets off. A promise: the answer waits for it. */
  readonly compact: () => unknown;
}

export interface Prepared {
  readonly statement: Statement;
  readonly plan: Plan;
  /** What a run of it would read now. */
  readonly env: () => Env;
}

const NO_PARAMS: readonly Value[] = [];
const NOTHING = (): void => {};

export class Engine implements EngineContract {
  readonly store: Store;
  readonly clock: Clock;
  readonly readOnly: boolean;
  readonly answers: KeptAnswers;
  readonly #journal: Journal;
  readonly #maxMemoryBytes: number;
  readonly #compact: () => unknown;
  /** What the next `durable` waits for besides. */
  #compacting: Promise<unknown> | null = null;
  readonly #cache = new StatementCache();
  readonly #payload = new ByteWriter();
  readonly #observers: ChangeObserver[] = [];
  /** The change number at which each collection was last written in this run. */
  readonly #lastWrites = new Map<number, number>();
  readonly #firstSeq: number;
  #seq: number;

  constructor(parts: EngineParts) {
    this.store = parts.store;
    this.clock = parts.clock;
    this.readOnly = parts.readOnly;
    this.answers = parts.answers;
    this.#journal = parts.journal;
    this.#maxMemoryBytes = parts.maxMemoryBytes;
    this.#compact = parts.compact;
    this.#seq = parts.seq;
    this.#firstSeq = parts.seq;
  }

  get seq(): number {
    return this.#seq;
  }

  query(text: string, params: readonly Value[], context: RequestContext): Outcome {
    const parsed = this.#parse(text);
    checkTime(context, this.clock.now());
    const key = isKeyed(parsed, context) ? keyOf(context) : null;
    if (key !== null) {
      const kept = this.#kept(key, context);
      if (kept !== undefined) return new StatementOutcome(kept.outcomes[0] as KeptOutcome, this.#seq, true);
    }
    const { plan, env } = this.#prepare(parsed, params, context);
    const result = plan.run(env);
    if (result.change.length === 0) {
      if (plan.verb === "compact") this.#setOffCompact();
      return StatementOutcome.of(result, plan.isWrite, this.#seq);
    }
    this.#payload.reset();
    writeChange(this.#payload, this.store, result.change);
    this.#admit(plan, this.#payload.length, context);
    const outcome = StatementOutcome.of(result, true, this.#seq + result.change.length);
    const recordAt = key === null ? 0 : this.#record(key, context, [outcome], false);
    this.#append(result.change.length, isEssential(plan, this.#payload.length));
    this.store.apply(result.change);
    if (key !== null) this.answers.keepWritten(key, this.#payload, recordAt, this.clock.now());
    this.#wrote(result.change, this.#seq);
    return outcome;
  }

  batch(requests: readonly BatchRequest[], context: RequestContext): BatchOutcome {
    const parsed = this.#parseAll(requests);
    checkTime(context, this.clock.now());
    const key = parsed.some((each) => isKeyed(each, context)) ? keyOf(context) : null;
    // What a compact does cannot be put back, so beside one each statement stands alone.
    if (parsed.some(({ shape }) => shape.statement.kind === "compact")) {
      if (key !== null) {
        throw new Refusal("bad_key", "a batch with a compact and writes takes no Idempotency-Key: it is no one write");
      }
      return this.#piecemeal(requests, { ...context, idempotencyKey: null });
    }
    if (key !== null) {
      const kept = this.#kept(key, context);
      if (kept !== undefined) return this.#replayed(kept);
    }
    const undo = new Undo();
    const payload = this.#payload;
    payload.reset();
    // One block, one moment.
    const nowMs = this.clock.now();
    const ran: { readonly result: Result; readonly plan: Plan }[] = [];
    let outcomes: StatementOutcome[];
    let recordAt = 0;
    let documents = 0;
    let essential = true;
    let isRead = true;
    try {
      for (const statement of parsed) {
        const params = requests[ran.length]?.params ?? NO_PARAMS;
        const { plan, env } = this.#prepare(statement, params, context, nowMs);
        const result = plan.run(env);
        if (result.change.length > 0) {
          writeChange(payload, this.store, result.change);
          this.#admit(plan, payload.length, context);
          this.store.apply(result.change, undo);
          documents += result.change.length;
          if (!isEssential(plan, payload.length)) essential = false;
        }
        if (plan.isWrite) isRead = false;
        ran.push({ result, plan });
      }
      const seq = this.#seq + documents;
      outcomes = ran.map(({ result, plan }) => StatementOutcome.of(result, plan.isWrite, seq));
      if (documents > 0) {
        if (key !== null) recordAt = this.#record(key, context, outcomes, true);
        this.#append(documents, essential);
      }
    } catch (error) {
      this.store.rollback(undo);
      throw ran.length < parsed.length ? located(error, ran.length, 0) : error;
    }
    if (key !== null && documents > 0) this.answers.keepWritten(key, payload, recordAt, nowMs);
    let seq = this.#seq - documents;
    for (const { result } of ran) {
      if (result.change.length === 0) continue;
      seq += result.change.length;
      this.#wrote(result.change, seq);
    }
    return { outcomes, seq: this.#seq, wrote: documents, isRead };
  }

  /** The statements of a batch, before anything is run. */
  #parseAll(requests: readonly BatchRequest[]): Parsed[] {
    const parsed: Parsed[] = [];
    try {
      for (const { text } of requests) parsed.push(this.#parse(text));
    } catch (error) {
      throw located(error, parsed.length, 0);
    }
    return parsed;
  }

  /** A text as a statement, before anything is looked up. Throws Refusal. */
  statementOf(text: string): Statement {
    return this.#parse(text).shape.statement;
  }

  /** A statement parsed and planned but not run: what a held claim is told by. Throws Refusal. */
  prepare(request: BatchRequest, context: RequestContext): Prepared {
    const parsed = this.#parse(request.text);
    const { plan } = this.#prepare(parsed, request.params, context);
    return {
      statement: parsed.shape.statement,
      plan,
      env: () => this.#prepare(parsed, request.params, context).env,
    };
  }

  durable(isRead = false): Promise<void> | undefined {
    if (isRead && this.#journal.failure !== null) return undefined;
    const written = this.#journal.whenDurable(this.#journal.appended);
    const compacting = this.#compacting;
    if (compacting === null) return written;
    this.#compacting = null;
    return Promise.all([compacting, written]).then(() => {});
  }

  /** More is about to be written: no sync begins until the function it answers is called. */
  gather(): () => void {
    return this.#journal.gather?.() ?? NOTHING;
  }

  collections(context: RequestContext): string {
    return this.query("collections", NO_PARAMS, { ...context, idempotencyKey: null }).body;
  }

  names({ scope }: RequestContext): readonly string[] {
    return readable(this.store, scope?.rules ?? null).map((table) => table.schema.name);
  }

  schemaOf(name: string, { scope }: RequestContext): CollectionSchema | undefined {
    const table = this.store.table(name);
    return table !== undefined && mayKnow(scope?.rules ?? null, table) ? table.schema : undefined;
  }

  get logged(): LogCounters | null {
    return this.#journal.counters;
  }

  health(): Health {
    const why = this.#journal.trouble;
    if (why === null) return { ok: true };
    return { ok: false, code: this.#journal.failure === null ? "disk_full" : "disk_failed", why };
  }

  watch(observer: ChangeObserver): () => void {
    this.#observers.push(observer);
    return () => {
      const at = this.#observers.indexOf(observer);
      if (at >= 0) this.#observers.splice(at, 1);
    };
  }

  readTag(text: string, { scope }: RequestContext): number | undefined {
    const { shape } = this.#parse(text);
    const { statement } = shape;
    if (statement.kind !== "get" || readsTime(statement)) return undefined;
    const plan = shape.plan(this.store, scope?.rules ?? null);
    const [table, inner] = plan.tables;
    if (table === undefined || inner !== undefined || table.ttl !== undefined) return undefined;
    return this.#lastWrites.get(table.cid) ?? this.#firstSeq;
  }

  close(): Promise<void> {
    return this.#journal.close();
  }

  /** Applies a change made by the server itself: rows that expired, swept away. */
  sweep(change: Change): void {
    // A full disk has its reserve for those who wait for an answer.
    if (change.length === 0 || this.#journal.trouble !== null) return;
    this.#payload.reset();
    writeChange(this.#payload, this.store, change);
    try {
      this.#append(change.length, true);
    } catch (error) {
      // Refused by the disk just now: the rows stay, and the next sweep finds them.
      if (error instanceof Refusal) return;
      throw error;
    }
    this.store.apply(change);
    this.#wrote(change, this.#seq);
  }

  #setOffCompact(): void {
    const done = this.#compact();
    if (!(done instanceof Promise)) return;
    this.#compacting = done;
    // Whoever asked may be gone by the time it fails.
    done.catch(() => {});
  }

  #parse(text: string): Parsed {
    const parsed = this.#cache.parse(text);
    if (this.readOnly && isWrite(parsed.shape.statement)) {
      throw new Refusal("read_only", "this server is read-only: it takes no writes");
    }
    return parsed;
  }

  #prepare(
    parsed: Parsed,
    params: readonly Value[],
    context: RequestContext,
    nowMs = this.clock.now(),
  ): { plan: Plan; env: Env } {
    const { scope } = context;
    const plan = parsed.shape.plan(this.store, scope === null ? null : scope.rules);
    if (params.length < plan.params) {
      throw new Refusal(
        "bad_parameter",
        `the statement reads $${plan.params}, and ${params.length} parameters were sent`,
      );
    }
    return { plan, env: new Env(nowMs, params, parsed.literals, scope === null ? null : scope.claims) };
  }

  #kept(name: string, { scope, requestHash }: RequestContext): KeptAnswer | undefined {
    return this.answers.find(name, requestMark(requestHash, scope?.rights ?? ""), this.clock.now());
  }

  /** Writes an answer's record into the frame being made, behind all else in it; answers where it begins. */
  #record(
    name: string,
    { scope, requestHash }: RequestContext,
    outcomes: readonly StatementOutcome[],
    batch: boolean,
  ): number {
    const at = beginRecord(this.#payload);
    const request = requestMark(requestHash, scope?.rights ?? "");
    encodeRecord(this.#payload, name, request, this.clock.now(), batch, keptOf(outcomes));
    return at;
  }

  #replayed(kept: KeptAnswer): BatchOutcome {
    const outcomes = kept.outcomes.map((outcome) => new StatementOutcome(outcome, this.#seq, true));
    return { outcomes, seq: this.#seq, wrote: 0, isRead: false, replayed: true };
  }

  /** Past the memory ceiling what makes rows is refused; deletes go on. */
  #admit(plan: Plan, bytes: number, { scope }: RequestContext): void {
    if (plan.verb === "del" || plan.verb === "drop") return;
    const held = this.store.memoryBytes;
    if (held + bytes <= this.#maxMemoryBytes) return;
    // How much there is of what a token may not read is not told to it.
    const how = scope === null ? ` holds ${held} bytes, and --max-memory is ${this.#maxMemoryBytes}` : " is full";
    throw new Refusal("memory_full", `the server's memory${how}: delete first`);
  }

  #append(documents: number, essential: boolean): void {
    this.#journal.append(this.#payload.view(), this.#seq + documents, this.clock.now(), essential);
    this.#seq += documents;
  }

  #wrote(change: Change, seq: number): void {
    for (const op of change) this.#lastWrites.set("cid" in op ? op.cid : op.schema.cid, seq);
    for (const observer of this.#observers) observer(change, seq);
  }

  #piecemeal(requests: readonly BatchRequest[], context: RequestContext): BatchOutcome {
    const outcomes: Outcome[] = [];
    let wrote = 0;
    for (const [at, request] of requests.entries()) {
      try {
        const outcome = this.query(request.text, request.params, context);
        outcomes.push(outcome);
        wrote += outcome.wrote;
      } catch (error) {
        throw located(error, at, at);
      }
    }
    return { outcomes, seq: this.#seq, wrote, isRead: false };
  }
}

/** A refusal in a batch says at which line, and how many before it stand. */
function located(error: unknown, at: number, completed: number): unknown {
  return error instanceof Refusal ? error.with({ completed, at }) : error;
}

/** Asked again of a claim that was held. */
function checkTime({ scope }: RequestContext, now: number): void {
  if (scope !== null && scope.expiresAtMs <= now) throw new Refusal("unauthorized", "the token has expired");
}

/** The name of its key; null without one. A key is its subject's, so a token of nobody's takes none. */
function keyOf({ scope, idempotencyKey }: RequestContext): string | null {
  if (idempotencyKey === null) return null;
  if (scope === null) return keyName("", idempotencyKey);
  if (scope.subject !== "") return keyName(scope.subject, idempotencyKey);
  throw new Refusal("bad_key", "an Idempotency-Key belongs to the subject of its token, and this token has no sub");
}

/** A key is kept for writes; reads pass it over, and so does a compact. */
function isKeyed(parsed: Parsed, context: RequestContext): boolean {
  return (
    context.idempotencyKey !== null && parsed.shape.statement.kind !== "compact" && isWrite(parsed.shape.statement)
  );
}

/** May be logged in what is kept back of a full disk: what gives room, and claims, without which no work would end. */
function isEssential(plan: Plan, bytes: number): boolean {
  if (plan.verb === "set") return bytes <= RESERVED_SET_BYTES;
  return plan.verb === "del" || plan.verb === "drop";
}

function isWrite(statement: Statement): boolean {
  switch (statement.kind) {
    case "get":
    case "explain":
    case "collections":
    case "describe":
      return false;
    default:
      return true;
  }
}

function readsTime(statement: Statement & { kind: "get" }): boolean {
  const exprs = statement.select.flatMap((item) => (item.kind === "item" ? [item.expr] : []));
  for (const key of statement.order) exprs.push(key.expr);
  for (const key of statement.group) exprs.push(key);
  if (statement.where !== null) exprs.push(statement.where);
  if (statement.having !== null) exprs.push(statement.having);
  return exprs.some(readsNow);
}
