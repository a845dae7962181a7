/**
 * Held claims. A request that would write nothing is kept and run again at the first moment it could write.
 *
 * Writers only note what they wrote; one drain serves the lines it concerns. It comes when the event loop has asked once
 * more for what happened on the sockets, because a client may be gone whose end nobody has heard of yet: the loop takes
 * new connections, and runs what they send, for as long as there are any before it looks at those it has. No sync begins
 * before the drain, so that a put and the claim it serves share a group commit.
 *
 * A drain looks at the rows just written or just come due and nothing else: every line asleep has no row it would take
 * among the others, because it looked when they were written.
 *
 * | a request is | what it is | what leads out |
 * | ------------ | ---------- | -------------- |
 * | run          | its first run, before anything is held | it wrote, or failed: answered; it wrote nothing: held |
 * | held         | in a line | its turn comes and its run writes or fails; its wait ends; its client is gone; another try under its key wrote; the server stops |
 * | answered     | exactly once | |
 */

import { assert } from "../base/assert.ts";
import { attempt, Refusal } from "../base/refusal.ts";
import type { RunningClock } from "../clock/clock.ts";
import { ElapsedTime } from "../clock/elapsed.ts";
import { TimerWheel } from "../clock/wheel.ts";
import type { BatchOutcome, BatchRequest, Outcome, RequestContext } from "../engine/contract.ts";
import type { Engine } from "../engine/engine.ts";
import type { DelStatement, Expr, SetStatement, Statement } from "../lang/ast.ts";
import { boundText } from "../plan/bound_text.ts";
import type { Change } from "../store/change.ts";
import type { Table } from "../store/table.ts";
import { finds } from "./bid.ts";
import { Board } from "./board.ts";
import { BOUNDS, type Bounds } from "./bounds.ts";
import { Contest } from "./contest.ts";
import { type Instant, Line, Watch } from "./line.ts";
import { type TurnGroup, Turns } from "./turns.ts";
import { type Answer, type HeldRequest, type PlaceOf, type Prepared, type Run, Waiter } from "./waiter.ts";

const NO_PLACE: PlaceOf = () => ({});
const LINE_OF_BATCH: PlaceOf = (at) => ({ at, completed: 0 });

/** What was written to a board's collection since the last round. */
class Written {
  readonly ids = new Set<number>();
  many = false;
}

export class HeldClaims {
  /** Looks of lines, and runs after the first, since the start. */
  looks = 0;
  runs = 0;
  /** Told of each claim served: milliseconds from when it could be until its answer could leave. */
  served: (delayMs: number) => void = () => {};

  readonly #engine: Engine;
  readonly #clock: RunningClock;
  readonly #bounds: Bounds;
  readonly #wheel: TimerWheel;
  /** Waits last so long, whatever the clock is set to. */
  readonly #ends: TimerWheel;
  readonly #turns: Turns;
  readonly #boards = new Map<number, Board>();
  readonly #lines = new Map<string, Line>();
  readonly #waiters = new Set<Waiter>();
  /** Requests held under an idempotency key, by its name: an answer kept under it is theirs at once. */
  readonly #keyed = new Map<string, Set<Waiter>>();
  readonly #kept = new Set<string>();
  /** Lines that read a collection in an inner get. */
  readonly #readers = new Map<number, Set<Watch>>();
  #order = 0;
  #stopping = false;

  readonly #written = new Map<Board, Written>();
  /** Lines to look over all rows. */
  readonly #awake = new Set<Line>();
  /** Collections created, dropped or altered: what reads them is run anew. */
  readonly #stirred = new Set<number>();
  readonly #ended = new Set<Waiter>();
  #draining = false;
  /** There is something to serve, and a drain will. */
  #pending = false;
  #soon = false;
  /** Lets syncs begin again. */
  #gathered: (() => void) | null = null;
  /** Claims that came meanwhile. */
  #behind: PromiseWithResolvers<void> | null = null;
  /** On the scale of `performance.now()`: when what the drain is to serve was there. */
  #causeMs = Number.POSITIVE_INFINITY;

  constructor(engine: Engine, clock: RunningClock, bounds = BOUNDS) {
    this.#bounds = bounds;
    this.#engine = engine;
    this.#clock = clock;
    this.#wheel = new TimerWheel(clock);
    this.#ends = new TimerWheel(new ElapsedTime(clock));
    this.#turns = new Turns(this.#wheel, (group, fromMs, momentMs) => this.#cameDue(group, fromMs, momentMs));
    engine.watch((change) => this.#noted(change));
    engine.answers.kept = (name) => {
      if (this.#keyed.has(name)) this.#kept.add(name);
    };
  }

  /** Requests held now. */
  get held(): number {
    return this.#waiters.size;
  }

  query(request: BatchRequest, context: RequestContext, waitMs: number, gone: AbortSignal): Outcome | Promise<Outcome> {
    const run = (): Outcome => this.#engine.query(request.text, request.params, context);
    return this.#hold([request], { run, placeOf: NO_PLACE, context }, waitMs, gone) as Outcome | Promise<Outcome>;
  }

  batch(
    requests: readonly BatchRequest[],
    context: RequestContext,
    waitMs: number,
    gone: AbortSignal,
  ): BatchOutcome | Promise<BatchOutcome> {
    const run = (): BatchOutcome => this.#engine.batch(requests, context);
    return this.#hold(requests, { run, placeOf: LINE_OF_BATCH, context }, waitMs, gone) as
      | BatchOutcome
      | Promise<BatchOutcome>;
  }

  /**
   * Undefined when nobody held has anything to take by now; else resolves once they have been served. A claim that is sent
   * meanwhile waits for that, so as not to overtake those who wait.
   */
  ahead(): Promise<void> | undefined {
    if (!this.#pending) return undefined;
    this.#behind ??= Promise.withResolvers<void>();
    return this.#behind.promise;
  }

  /** Answers all that is held with what it last found; nothing is held from then on. */
  release(): void {
    this.#drain();
    this.#stopping = true;
    for (const waiter of [...this.#waiters]) this.#finish(waiter, waiter.last);
  }

  #hold(
    requests: readonly BatchRequest[],
    asked: Omit<HeldRequest, "prepare">,
    waitMs: number,
    gone: AbortSignal,
  ): Answer | Promise<Answer> {
    const { context, placeOf } = asked;
    const prepare = (): Prepared[] =>
      requests.map((each) => ({ ...this.#engine.prepare(each, context), request: each }));
    const request: HeldRequest = { ...asked, prepare };
    const kinds = attempt(() => requests.map((each) => this.#engine.statementOf(each.text).kind));
    if (kinds === undefined || !writesWhenItCan(kinds, placeOf)) return request.run();
    const prepared = attempt(prepare);
    if (prepared === undefined) return request.run();
    refuseUntold(prepared, placeOf);
    // Whoever came before and has something to take by now takes it first.
    this.#drain();
    const since: Instant = { now: this.#wheel.now };
    const endMs = Math.ceil(this.#clock.elapsed()) + waitMs;
    const first = runOf(request);
    if (!tookNothing(first)) return settled(first);
    if (this.#stopping || gone.aborted) return settled(first);
    return new Promise<Answer>((resolve, reject) => {
      const settle = (found: Run): void => ("answer" in found ? resolve(found.answer) : reject(found.refusal));
      const waiter = new Waiter(request, ++this.#order, needOf(prepared), first, settle);
      this.#waiters.add(waiter);
      if (waiter.key !== null) {
        const tries = this.#keyed.get(waiter.key) ?? new Set();
        tries.add(waiter);
        this.#keyed.set(waiter.key, tries);
      }
      waiter.end = this.#ends.add(endMs, () => {
        this.#ended.add(waiter);
        this.#serveSoon(performance.now());
      });
      gone.addEventListener("abort", () => this.#finish(waiter, waiter.last), { once: true });
      this.#join(waiter, prepared, since);
    });
  }

  /** Puts a waiter at the end of its line, making the line if there is none. */
  #join(waiter: Waiter, prepared: readonly Prepared[], since: Instant): void {
    const parts = new Map<string, Prepared>();
    for (const each of prepared) {
      const key = partOf(each);
      if (key !== null) parts.set(key, each);
    }
    const key = [...parts.keys()].join("\u0002");
    let line = this.#lines.get(key);
    if (line === undefined) {
      line = this.#lineOf(key, [...parts.values()], since);
      this.#lines.set(key, line);
    }
    line.join(waiter);
    if (!("refusal" in waiter.last)) return;
    // Where there are rows, and not so many as it requires, it waits for some to come or for some to go.
    this.looks++;
    if (finds(line, since)) this.#unsettle(line);
  }

  #lineOf(key: string, prepared: readonly Prepared[], since: Instant): Line {
    const line = new Line(key);
    const claims = prepared.filter(({ statement }) => writes(statement));
    const reads = prepared.filter(({ statement }) => !writes(statement));
    for (const { plan, env } of claims) {
      const { table, pick, time } = plan;
      if (table === null || pick === null || time === null) continue;
      const inner = new Set(plan.inner);
      for (const read of reads) for (const each of read.plan.tables) inner.add(each);
      line.watches.push(new Watch(line, table, pick, time, inner, env));
    }
    for (const watch of line.watches) {
      this.#boardOf(watch.table).add(watch, since);
      this.#turns.add(watch, watch.time.turns, watch.env(since), true, since.now);
      for (const { plan, env } of reads) this.#turns.add(watch, plan.time?.turns ?? [], env(), false, since.now);
      for (const table of watch.inner) {
        const readers = this.#readers.get(table.cid) ?? new Set();
        readers.add(watch);
        this.#readers.set(table.cid, readers);
      }
    }
    return line;
  }

  #boardOf(table: Table): Board {
    let board = this.#boards.get(table.cid);
    if (board === undefined) {
      board = new Board(table);
      this.#boards.set(table.cid, board);
    }
    return board;
  }

  #removeLine(line: Line): void {
    this.#lines.delete(line.key);
    this.#awake.delete(line);
    for (const watch of line.watches) {
      this.#turns.remove(watch);
      for (const table of watch.inner) {
        const readers = this.#readers.get(table.cid);
        readers?.delete(watch);
        if (readers?.size === 0) this.#readers.delete(table.cid);
      }
      const board = this.#boards.get(watch.table.cid);
      board?.remove(watch);
      if (board?.empty === true) this.#boards.delete(watch.table.cid);
    }
  }

  /** Takes a waiter out of its line and answers it. */
  #finish(waiter: Waiter, run: Run): void {
    if (waiter.answered) return;
    this.#waiters.delete(waiter);
    this.#ended.delete(waiter);
    if (waiter.key !== null) {
      const tries = this.#keyed.get(waiter.key);
      tries?.delete(waiter);
      if (tries?.size === 0) this.#keyed.delete(waiter.key);
    }
    if (waiter.end !== null) this.#ends.cancel(waiter.end);
    const { line } = waiter;
    if (line !== null) {
      line.leave(waiter);
      if (line.empty) this.#removeLine(line);
    }
    waiter.settle(run);
  }

  /** A change stands. Nothing is looked at yet, and what concerns nobody here costs two look-ups. */
  #noted(change: Change): void {
    if (this.#waiters.size === 0) return;
    let concerns = this.#kept.size > 0;
    let seen: number | undefined;
    for (const op of change) {
      const cid = "cid" in op ? op.cid : op.schema.cid;
      if (cid !== seen) {
        seen = cid;
        const readers = this.#readers.get(cid);
        for (const { line } of readers ?? []) this.#awake.add(line);
        concerns ||= readers !== undefined || this.#boards.has(cid);
      }
      if (op.op === "put") {
        this.#touch(cid, op.row[0] as number);
        this.#turns.wrote(cid, op.row);
      } else if (op.op === "del") this.#touch(cid, op.id);
      else this.#stirred.add(cid);
    }
    if (concerns) this.#serveWritten();
  }

  #touch(cid: number, id: number): void {
    const board = this.#boards.get(cid);
    if (board === undefined) return;
    const written = this.#writtenTo(board);
    if (written.many) return;
    written.ids.add(id);
    if (written.ids.size > this.#bounds.writtenRows) {
      written.many = true;
      written.ids.clear();
    }
  }

  #writtenTo(board: Board): Written {
    let written = this.#written.get(board);
    if (written === undefined) {
      written = new Written();
      this.#written.set(board, written);
    }
    return written;
  }

  #cameDue(group: TurnGroup, fromMs: number, momentMs: number): void {
    const { turn, k } = group;
    const now = this.#wheel.now;
    const index = turn.table.index(turn.field, []);
    const board = this.#boards.get(turn.table.cid);
    const range = { lo: fromMs + k - turn.later, loOpen: true, hi: now + k - turn.later, hiOpen: false };
    const count = index === undefined ? Number.POSITIVE_INFINITY : index.count(range);
    if (count === 0) return;
    if (board !== undefined && group.watches.size > 0) {
      const written = this.#writtenTo(board);
      if (count <= this.#bounds.dueRows) {
        index?.walk(range, false, (row) => {
          written.ids.add(row[0] as number);
          return true;
        });
      } else for (const { line } of group.watches) this.#awake.add(line);
    }
    for (const { line } of group.readers) this.#awake.add(line);
    this.#serveSoon(performance.now() - Math.max(0, now - momentMs));
  }

  /** Written: a drain comes when the loop has looked at its sockets. */
  #serveWritten(): void {
    this.#causeMs = Math.min(this.#causeMs, performance.now());
    if (this.#draining || this.#pending) return;
    this.#pending = true;
    this.#gathered = this.#engine.gather();
    setImmediate(() => setImmediate(() => this.#drain()));
  }

  /** Come due, or over: a drain comes at once. */
  #serveSoon(causeMs: number): void {
    this.#causeMs = Math.min(this.#causeMs, causeMs);
    this.#pending = true;
    if (this.#draining || this.#soon) return;
    this.#soon = true;
    queueMicrotask(() => {
      this.#soon = false;
      this.#drain();
    });
  }

  /** Serves every line that has something to take, one run at a time. */
  #drain(): void {
    if (this.#draining || !this.#pending) return;
    this.#draining = true;
    // A job that comes due in the millisecond in which a wait ends wins.
    if (this.#ended.size > 0) this.#wheel.turn();
    const contest = new Contest({ now: this.#wheel.now }, this.#bounds);
    for (;;) {
      if (this.#stirred.size > 0) this.#restir(contest);
      if (this.#kept.size > 0) this.#answerKept(contest);
      this.#begin(contest);
      const winner = contest.next();
      if (winner === undefined) break;
      this.#run(winner.line, contest);
    }
    this.looks += contest.looks;
    for (const waiter of [...this.#ended]) this.#finish(waiter, waiter.last);
    this.#draining = false;
    this.#pending = false;
    this.#causeMs = Number.POSITIVE_INFINITY;
    this.#gathered?.();
    this.#gathered = null;
    this.#behind?.resolve();
    this.#behind = null;
  }

  /** Hands the contest what was written and came due since the last round. */
  #begin(contest: Contest): void {
    if (this.#written.size === 0 && this.#awake.size === 0) return;
    contest.begin({ now: this.#wheel.now });
    for (const [board, { ids, many }] of this.#written) {
      for (const line of board.restless) this.#awake.add(line);
      board.restless.clear();
      if (many) for (const { line } of board.watches()) this.#awake.add(line);
      for (const id of ids) contest.show(board, id);
    }
    this.#written.clear();
    for (const line of this.#awake) {
      line.retry();
      contest.wake(line, this.#boards.get(line.watches[0]?.table.cid ?? 0));
    }
    this.#awake.clear();
  }

  #run(line: Line, contest: Contest): void {
    const waiter = line.turn;
    assert(waiter !== undefined, "who wins has its turn");
    this.runs++;
    const run = runOf(waiter.request);
    if (tookNothing(run)) {
      // What is there is not what it needs. It keeps its place but not the turn.
      waiter.last = run;
      line.miss(waiter.need);
      this.#unsettle(line);
    } else {
      this.#finish(waiter, run);
      this.#tellServed();
      // More may be ready: the turn goes on, and the next in line looks at once.
      if (!line.empty) this.#awake.add(line);
    }
    contest.turned(line);
  }

  /** Any change of the rows may be the one that some of this line wait for. */
  #unsettle(line: Line): void {
    for (const { table } of line.watches) this.#boards.get(table.cid)?.restless.add(line);
  }

  #tellServed(): void {
    const causeMs = this.#causeMs;
    const tell = (): void => this.served(performance.now() - causeMs);
    const durable = this.#engine.durable();
    if (durable === undefined) tell();
    else durable.then(tell, () => {});
  }

  /** Other tries of a request that has its answer now are answered the same. */
  #answerKept(contest: Contest): void {
    for (const name of this.#kept) {
      for (const waiter of [...(this.#keyed.get(name) ?? [])]) {
        const { line } = waiter;
        const run = runOf(waiter.request);
        if (!tookNothing(run)) this.#finish(waiter, run);
        if (line !== null) contest.turned(line);
      }
    }
    this.#kept.clear();
  }

  /** Collections that changed under their waiters: each is run anew, answered with what that says, or held again. */
  #restir(contest: Contest): void {
    const cids = new Set(this.#stirred);
    this.#stirred.clear();
    const waiters: Waiter[] = [];
    for (const line of [...this.#lines.values()]) {
      const concerned = line.watches.some(({ table, inner }) => {
        if (cids.has(table.cid)) return true;
        for (const { cid } of inner) if (cids.has(cid)) return true;
        return false;
      });
      if (!concerned) continue;
      const here = [...line.waiters()];
      for (const waiter of here) {
        line.leave(waiter);
        waiters.push(waiter);
      }
      this.#removeLine(line);
      contest.turned(line);
    }
    waiters.sort((a, b) => a.order - b.order);
    for (const waiter of waiters) {
      if (waiter.answered) continue;
      this.runs++;
      const since: Instant = { now: this.#wheel.now };
      const run = runOf(waiter.request);
      if (!tookNothing(run)) {
        this.#finish(waiter, run);
        continue;
      }
      waiter.last = run;
      const prepared = waiter.request.prepare();
      // Over the schema as it is now, nobody may be able to tell when its answer changes.
      const untold = refusalOf(() => refuseUntold(prepared, waiter.request.placeOf));
      if (untold === undefined) this.#join(waiter, prepared, since);
      else this.#finish(waiter, { refusal: untold });
    }
  }
}

/**
 * Whether a request has anything to wait for: false where all of it reads, so that it is answered at once.
 *
 * @throws Refusal `not_holdable` where something in it writes every time
 */
function writesWhenItCan(kinds: readonly Statement["kind"][], placeOf: PlaceOf): boolean {
  for (const [at, kind] of kinds.entries()) {
    if (HOLDABLE.has(kind)) continue;
    const said = kind === "createIndex" ? "create index" : kind;
    const words = `a request with a ${said} in it is not held: it would write every time`;
    throw new Refusal("not_holdable", words, placeOf(at));
  }
  return kinds.includes("set") || kinds.includes("del");
}

const HOLDABLE: ReadonlySet<Statement["kind"]> = new Set(["get", "explain", "collections", "describe", "set", "del"]);

function writes(statement: Statement): statement is SetStatement | DelStatement {
  return statement.kind === "set" || statement.kind === "del";
}

/** A read that can keep its batch from writing. */
function requires(statement: Statement): boolean {
  return statement.kind === "get" && statement.require !== null;
}

/** What of a line a statement is: null for one that plays no part in whether its request would write. */
function partOf({ statement, request, plan, env }: Prepared): string | null {
  if (writes(statement)) return plan.line?.(env()) ?? null;
  if (!requires(statement)) return null;
  const items = request.params.map((value): Expr => ({ kind: "const", value }));
  return `${request.text}\u0001${boundText({ kind: "list", items }, env())}`;
}

/** @throws Refusal `not_holdable` where nobody can tell when time changes the filter's answer */
function refuseUntold(prepared: readonly Prepared[], placeOf: PlaceOf): void {
  for (const [at, { statement, plan, env }] of prepared.entries()) {
    const problem = plan.time?.problem ?? null;
    if (!(writes(statement) || requires(statement)) || problem === null) continue;
    const words = `a held claim reads the time only by a field compared with now() give or take a number, and this one asks ${boundText(problem, env())}`;
    throw new Refusal("not_holdable", words, placeOf(at));
  }
}

/** The limits and requires of a request: waiters that differ in them alone share a line, but not an unmet need. */
function needOf(prepared: readonly Prepared[]): string {
  return prepared
    .map((each) => {
      const { statement } = each;
      if (!writes(statement)) return "";
      return `${statement.limit === null ? "" : boundText(statement.limit, each.env())}/${statement.require ?? ""}`;
    })
    .join(";");
}

function runOf(request: HeldRequest): Run {
  try {
    return { answer: request.run() };
  } catch (error) {
    if (error instanceof Refusal) return { refusal: error };
    throw error;
  }
}

function refusalOf(work: () => void): Refusal | undefined {
  try {
    work();
    return undefined;
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
}

/** It wrote no row, or a `require` was not met: there is something to wait for. */
function tookNothing(run: Run): boolean {
  if ("refusal" in run) return run.refusal.code === "unmet";
  return run.answer.wrote === 0 && run.answer.replayed !== true;
}

function settled(run: Run): Answer {
  if ("answer" in run) return run.answer;
  throw run.refusal;
}
