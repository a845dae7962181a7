/**
 * Held claims. A request that would write nothing is kept and run again at the first moment it could write.
 *
 * Writers only note what they wrote; one drain at the end of their turn serves the lines it concerns, so a put and the
 * claim it serves share a group commit. A drain looks at the rows just written or just come due and nothing else: every
 * line asleep has no row it would take among the others, because it looked when they were written.
 *
 * | a request is | what it is | what leads out |
 * | ------------ | ---------- | -------------- |
 * | run          | its first run, before anything is held | it wrote, or failed: answered; it wrote nothing: held |
 * | held         | in a line | its turn comes and its run writes or fails; its wait ends; its client is gone; the server stops |
 * | answered     | exactly once | |
 */

import { Refusal } from "../base/refusal.ts";
import { TimerWheel } from "../clock/wheel.ts";
import type { BatchOutcome, BatchRequest, Outcome, RequestContext } from "../engine/contract.ts";
import type { Engine, Prepared } from "../engine/engine.ts";
import type { Statement } from "../lang/ast.ts";
import { boundText } from "../plan/bound_text.ts";
import type { Change } from "../store/change.ts";
import type { Table } from "../store/table.ts";
import type { Point, Row } from "../value/value.ts";
import { Board } from "./board.ts";
import { type Bid, bidOf, heldOrder, nearScale, winnerOf } from "./contest.ts";
import { Line, Watch } from "./line.ts";
import { type TurnGroup, Turns } from "./turns.ts";
import { type Answer, type HeldRequest, type Run, Waiter } from "./waiter.ts";

/** Rows that came due at once and are shown to lines one by one; past this the lines look for themselves. */
const DUE_ROWS = 1_024;

/** A row just written or just due, and the nearest waiting line found for it so far. */
interface Fresh {
  readonly board: Board;
  readonly id: number;
}

export class HeldClaims {
  /** Looks of lines, and runs after the first, since the start. */
  looks = 0;
  runs = 0;
  /** Told of each claim served: milliseconds from when it could be to when it was. */
  served: (delayMs: number) => void = () => {};

  readonly #engine: Engine;
  readonly #wheel: TimerWheel;
  readonly #turns: Turns;
  readonly #boards = new Map<number, Board>();
  readonly #lines = new Map<string, Line>();
  readonly #waiters = new Set<Waiter>();
  /** Requests held under an idempotency key, by its name: an answer kept under it is theirs at once. */
  readonly #keyed = new Map<string, Set<Waiter>>();
  readonly #kept = new Set<string>();
  /** Lines that read a collection in an inner get. */
  readonly #inner = new Map<number, Set<Watch>>();
  #order = 0;
  #stopping = false;

  #fresh: Fresh[] = [];
  /** Lines to look over all rows. */
  readonly #awake = new Set<Watch>();
  /** Collections created, dropped or altered: what reads them is run anew. */
  readonly #stirred = new Set<number>();
  #draining = false;
  #scheduled = false;
  #causeMs = 0;

  constructor(engine: Engine) {
    this.#engine = engine;
    this.#wheel = new TimerWheel(engine.clock);
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
    return this.#hold([request], run, context, waitMs, gone) as Outcome | Promise<Outcome>;
  }

  batch(
    requests: readonly BatchRequest[],
    context: RequestContext,
    waitMs: number,
    gone: AbortSignal,
  ): BatchOutcome | Promise<BatchOutcome> {
    const run = (): BatchOutcome => this.#engine.batch(requests, context);
    return this.#hold(requests, run, context, waitMs, gone) as BatchOutcome | Promise<BatchOutcome>;
  }

  /** Answers all that is held with what it last found; nothing is held from then on. */
  release(): void {
    this.#stopping = true;
    for (const waiter of [...this.#waiters]) this.#finish(waiter, waiter.last);
  }

  #hold(
    requests: readonly BatchRequest[],
    run: () => Answer,
    context: RequestContext,
    waitMs: number,
    gone: AbortSignal,
  ): Answer | Promise<Answer> {
    const prepare = (): Prepared[] => requests.map((each) => this.#engine.prepare(each, context));
    const request: HeldRequest = { run, context, prepare };
    const kinds = tried(() => requests.map((each) => this.#engine.statementOf(each.text).kind));
    if (kinds === undefined || !writesWhenItCan(kinds)) return request.run();
    const prepared = tried(prepare);
    if (prepared === undefined) return request.run();
    for (const each of prepared) refuseUntold(each);
    const sinceMs = this.#engine.clock.now();
    const first = attempt(request);
    if ("answer" in first ? wrote(first.answer) : first.refusal.code !== "unmet") return settled(first);
    if (this.#stopping || gone.aborted) return settled(first);
    return new Promise<Answer>((resolve, reject) => {
      const settle = (run: Run): void => ("answer" in run ? resolve(run.answer) : reject(run.refusal));
      const waiter = new Waiter(request, ++this.#order, needOf(prepared), first, settle);
      this.#waiters.add(waiter);
      if (waiter.key !== null) {
        const tries = this.#keyed.get(waiter.key) ?? new Set();
        tries.add(waiter);
        this.#keyed.set(waiter.key, tries);
      }
      const endMs = sinceMs + waitMs;
      waiter.end = this.#wheel.add(endMs, () => this.#ended(waiter));
      gone.addEventListener("abort", () => this.#finish(waiter, waiter.last), { once: true });
      this.#join(waiter, prepared, sinceMs);
    });
  }

  /** Puts a waiter at the end of its line, making the line if there is none. */
  #join(waiter: Waiter, prepared: readonly Prepared[], sinceMs: number): void {
    const keys = new Map<string, Prepared>();
    for (const each of prepared) if (each.plan.line !== null) keys.set(each.plan.line(each.env()), each);
    const key = [...keys.keys()].join("\u0002");
    let line = this.#lines.get(key);
    if (line === undefined) {
      line = new Line(key);
      this.#lines.set(key, line);
      for (const each of keys.values()) this.#watch(line, each, sinceMs);
    }
    waiter.line = line;
    line.waiters.push(waiter);
  }

  #watch(line: Line, { plan, env }: Prepared, sinceMs: number): void {
    if (plan.table === null || plan.pick === null || plan.time === null) return;
    const inner = [...plan.inner];
    const watch = new Watch(line, plan.table, plan.pick, inner, env);
    line.watches.push(watch);
    this.#boardOf(plan.table).add(watch, sinceMs);
    this.#turns.add(watch, plan.time.turns, sinceMs);
    for (const table of inner) {
      const readers = this.#inner.get(table.cid) ?? new Set();
      readers.add(watch);
      this.#inner.set(table.cid, readers);
    }
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
    for (const watch of line.watches) {
      this.#awake.delete(watch);
      this.#turns.remove(watch);
      for (const table of watch.inner) {
        const readers = this.#inner.get(table.cid);
        readers?.delete(watch);
        if (readers?.size === 0) this.#inner.delete(table.cid);
      }
      const board = this.#boards.get(watch.table.cid);
      board?.remove(watch);
      if (board?.empty === true) this.#boards.delete(watch.table.cid);
    }
  }

  /** Takes a waiter out of its line and answers it; the next in line, if it was the first, looks for itself. */
  #finish(waiter: Waiter, run: Run): void {
    if (waiter.answered) return;
    this.#waiters.delete(waiter);
    if (waiter.key !== null) {
      const tries = this.#keyed.get(waiter.key);
      tries?.delete(waiter);
      if (tries?.size === 0) this.#keyed.delete(waiter.key);
    }
    if (waiter.end !== null) this.#wheel.cancel(waiter.end);
    const { line } = waiter;
    if (line !== null) {
      line.leave(waiter);
      if (line.waiters.length === 0) this.#removeLine(line);
    }
    waiter.settle(run);
  }

  /** The end of a wait. A job that comes due in the same millisecond wins. */
  #ended(waiter: Waiter): void {
    this.#turns.catchUp(this.#wheel.now);
    this.#drain();
    if (waiter.answered) return;
    // Under a key another try of the same request may have had the job meanwhile: its answer is this one's too.
    this.#finish(waiter, waiter.request.context.idempotencyKey === null ? waiter.last : attempt(waiter.request));
  }

  /** A change stands. Nothing is looked at yet. */
  #noted(change: Change): void {
    if (this.#waiters.size === 0) return;
    for (const op of change) {
      if (op.op === "put") {
        const board = this.#boards.get(op.cid);
        if (board !== undefined) this.#fresh.push({ board, id: op.row[0] as number });
        this.#turns.wrote(op.cid, op.row);
      } else if (op.op !== "del") this.#stirred.add("cid" in op ? op.cid : op.schema.cid);
      const cid = "cid" in op ? op.cid : op.schema.cid;
      const readers = this.#inner.get(cid);
      if (readers !== undefined) for (const watch of readers) this.#awake.add(watch);
    }
    this.#schedule(performance.now());
  }

  #cameDue(group: TurnGroup, fromMs: number, momentMs: number): void {
    const { turn, k } = group;
    const now = this.#wheel.now;
    const index = turn.table.index(turn.field, []);
    const board = this.#boards.get(turn.table.cid);
    const lo = fromMs + k - turn.later;
    const range = { lo, loOpen: true, hi: now + k - turn.later, hiOpen: false };
    const few = index !== undefined && index.count(range) <= DUE_ROWS;
    if (few && board !== undefined) {
      index.walk(range, false, (row) => {
        this.#fresh.push({ board, id: row[0] as number });
        return true;
      });
    }
    for (const watch of group.watches.keys()) if (!few || watch.table !== turn.table) this.#awake.add(watch);
    this.#schedule(performance.now() - Math.max(0, now - momentMs));
  }

  #schedule(causeMs: number): void {
    if (this.#draining || this.#scheduled) return;
    this.#scheduled = true;
    this.#causeMs = causeMs;
    queueMicrotask(() => this.#drain());
  }

  /** Serves every line that has something to take, one run at a time. */
  #drain(): void {
    if (this.#draining) return;
    this.#scheduled = false;
    this.#draining = true;
    try {
      if (this.#stirred.size > 0) this.#restir();
      const drain = new Drain();
      for (;;) {
        if (this.#kept.size > 0) this.#answerKept();
        this.#gather(drain);
        const winner = this.#winner(drain);
        if (winner === undefined) break;
        this.#run(winner, drain);
        if (this.#stirred.size > 0) this.#restir();
      }
      for (const line of drain.unmet) line.unmet.clear();
    } finally {
      this.#draining = false;
      this.#fresh = [];
      this.#awake.clear();
    }
  }

  /** Other tries of a request that has its answer now are answered the same. */
  #answerKept(): void {
    for (const name of this.#kept) {
      for (const waiter of [...(this.#keyed.get(name) ?? [])]) this.#finish(waiter, attempt(waiter.request));
    }
    this.#kept.clear();
  }

  /** Looks: rows just written by the lines they may concern, all rows by the lines that are awake. */
  #gather(drain: Drain): void {
    const now = this.#wheel.now;
    for (const [watch, bid] of drain.bids) {
      if (watch.line.turn === undefined) drain.bids.delete(watch);
      else if (!this.#stands(bid, now)) {
        drain.bids.delete(watch);
        this.#awake.add(watch);
      }
    }
    const fresh = this.#fresh;
    this.#fresh = [];
    for (const { board, id } of fresh) {
      const row = board.table.get(id);
      if (row === undefined) continue;
      for (const group of board.groupsOf(row)) {
        for (const watch of group.plain) this.#show(watch, row, now, drain);
        for (const [slot, places] of group.places) {
          if (row[slot] === null) for (const watch of watchesIn(places)) this.#show(watch, row, now, drain);
          else drain.placed.set(row, board);
        }
      }
    }
    for (const watch of this.#awake) {
      if (watch.line.turn === undefined || drain.spent.has(watch.line)) continue;
      this.looks++;
      const row = tried(() => watch.pick.first(watch.env(now)));
      if (row !== undefined) drain.bids.set(watch, bidOf(watch, row, watch.env(now)));
    }
    this.#awake.clear();
  }

  /** One line's look at one row. */
  #show(watch: Watch, row: Row, now: number, drain: Drain): void {
    const { line } = watch;
    if (line.turn === undefined || drain.spent.has(line)) return;
    if (!drain.looked.has(watch)) {
      drain.looked.add(watch);
      this.looks++;
    }
    const env = watch.env(now);
    if (!wants(watch, row, now)) return;
    const best = drain.bids.get(watch);
    // Rows whose order is refused are shown to the run, which says so.
    if (best === undefined || (tried(() => watch.pick.order.compareRows(row, best.row, env)) ?? -1) < 0) {
      drain.bids.set(watch, bidOf(watch, row, env));
    }
  }

  #stands(bid: Bid, now: number): boolean {
    const { watch, row } = bid;
    return watch.table.get(row[0] as number) === row && wants(watch, row, now);
  }

  /** Whose claim runs now: each row's best bid, and of those the one held longest. */
  #winner(drain: Drain): Bid | undefined {
    const byRow = new Map<Row, Bid[]>();
    for (const bid of drain.bids.values()) {
      const bids = byRow.get(bid.row);
      if (bids === undefined) byRow.set(bid.row, [bid]);
      else bids.push(bid);
    }
    const nearest = this.#nearestPair(drain);
    if (nearest !== undefined) {
      const bids = byRow.get(nearest.row);
      if (bids === undefined) byRow.set(nearest.row, [nearest]);
      else bids.push(nearest);
    }
    let winner: Bid | undefined;
    for (const bids of byRow.values()) {
      const best = winnerOf(bids);
      if (best !== undefined && (winner === undefined || heldOrder(best) < heldOrder(winner))) winner = best;
    }
    return winner;
  }

  /** Of the rows just written that lines want by distance, the row and line closest to each other. */
  #nearestPair(drain: Drain): Bid | undefined {
    const now = this.#wheel.now;
    let best: Bid | undefined;
    for (const [row, board] of drain.placed) {
      let bid = drain.nearest.get(row);
      const known = drain.nearest.has(row);
      if (!known || (bid !== undefined && (bid.watch.line.turn === undefined || !this.#stands(bid, now)))) {
        bid = this.#nearestFor(row, board, now, drain);
        drain.nearest.set(row, bid);
      }
      if (bid === undefined) drain.placed.delete(row);
      else if (
        best === undefined ||
        bid.metres < best.metres ||
        (bid.metres === best.metres && heldOrder(bid) < heldOrder(best))
      ) {
        best = bid;
      }
    }
    return best;
  }

  /** The waiting line nearest a row, of those whose filter it meets; as near, the one held longest. */
  #nearestFor(row: Row, board: Board, now: number, drain: Drain): Bid | undefined {
    if (board.table.get(row[0] as number) !== row) return undefined;
    let best: Bid | undefined;
    for (const group of board.groupsOf(row)) {
      for (const [slot, places] of group.places) {
        const at = row[slot] as Point | null;
        if (at === null) continue;
        places.nearest(at.lon, at.lat, ([, watch], metres) => {
          if (best !== undefined && metres > best.metres) return false;
          if (watch.line.turn === undefined || drain.spent.has(watch.line)) return true;
          this.looks++;
          if (!wants(watch, row, now)) return true;
          const bid: Bid = { watch, row, scale: nearScale(slot), metres, keys: [] };
          if (best === undefined || metres < best.metres || heldOrder(bid) < heldOrder(best)) best = bid;
          return true;
        });
      }
    }
    return best;
  }

  #run(bid: Bid, drain: Drain): void {
    const { line } = bid.watch;
    const waiter = line.turn;
    if (waiter === undefined) return;
    this.runs++;
    const run = attempt(waiter.request);
    if ("answer" in run && !wrote(run.answer)) {
      // What it bid for it does not take: it sleeps on.
      waiter.last = run;
      drain.spent.add(line);
      this.#forget(line, drain);
      return;
    }
    if ("refusal" in run && run.refusal.code === "unmet") {
      // It keeps its place but not the turn.
      waiter.last = run;
      line.unmet.add(waiter.need);
      drain.unmet.add(line);
      if (line.turn === undefined) this.#forget(line, drain);
      return;
    }
    this.#finish(waiter, run);
    this.served(performance.now() - this.#causeMs);
    this.#forget(line, drain);
    // More may be ready: the turn goes on, and the next in line looks at once.
    line.unmet.clear();
    if (line.waiters.length > 0) for (const watch of line.watches) this.#awake.add(watch);
  }

  #forget(line: Line, drain: Drain): void {
    for (const watch of line.watches) drain.bids.delete(watch);
  }

  /** Collections that changed under their waiters: each is run anew, answered with what that says, or held again. */
  #restir(): void {
    const cids = new Set(this.#stirred);
    this.#stirred.clear();
    const lines = new Set<Line>();
    for (const line of this.#lines.values()) {
      const concerned = line.watches.some(
        (watch) => cids.has(watch.table.cid) || watch.inner.some((table) => cids.has(table.cid)),
      );
      if (concerned) lines.add(line);
    }
    const waiters = [...lines].flatMap((line) => line.waiters.slice());
    waiters.sort((a, b) => a.order - b.order);
    for (const line of lines) {
      this.#removeLine(line);
      line.waiters.length = 0;
    }
    for (const waiter of waiters) {
      waiter.line = null;
      this.runs++;
      const sinceMs = this.#wheel.now;
      const run = attempt(waiter.request);
      const again = "answer" in run ? !wrote(run.answer) : run.refusal.code === "unmet";
      if (!again) this.#finish(waiter, run);
      else {
        waiter.last = run;
        this.#join(waiter, waiter.request.prepare(), sinceMs);
      }
    }
  }
}

/** What one drain has found out. */
class Drain {
  readonly bids = new Map<Watch, Bid>();
  readonly looked = new Set<Watch>();
  /** Lines whose run took nothing of what it saw. */
  readonly spent = new Set<Line>();
  readonly unmet = new Set<Line>();
  /** Rows that lines want by distance, and the nearest line to each found so far. */
  readonly placed = new Map<Row, Board>();
  readonly nearest = new Map<Row, Bid | undefined>();
}

function* watchesIn(places: {
  nearest: (lon: number, lat: number, visit: (post: readonly [number, Watch]) => boolean) => void;
}): Iterable<Watch> {
  const found: Watch[] = [];
  places.nearest(0, 0, ([, watch]) => {
    found.push(watch);
    return true;
  });
  yield* found;
}

/** Whether a line would take a row. Where the question itself is refused, the run is to say so. */
function wants(watch: Watch, row: Row, now: number): boolean {
  return tried(() => watch.pick.wants(row, watch.env(now))) ?? true;
}

/** What cannot be read or planned is run all the same: the run says so, with its place in a batch. */
function tried<T>(ask: () => T): T | undefined {
  try {
    return ask();
  } catch (error) {
    if (error instanceof Refusal) return undefined;
    throw error;
  }
}

/**
 * Whether a request has anything to wait for: false where all of it reads, so that it is answered at once.
 *
 * @throws Refusal `not_holdable` where something in it writes every time
 */
function writesWhenItCan(kinds: readonly Statement["kind"][]): boolean {
  for (const kind of kinds) {
    if (HOLDABLE.has(kind)) continue;
    const said = kind === "createIndex" ? "create index" : kind;
    throw new Refusal("not_holdable", `a request with a ${said} in it is not held: it would write every time`);
  }
  return kinds.some((kind) => kind === "set" || kind === "del");
}

const HOLDABLE: ReadonlySet<Statement["kind"]> = new Set(["get", "explain", "collections", "describe", "set", "del"]);

/** @throws Refusal `not_holdable` where nobody can tell when time changes the filter's answer */
function refuseUntold({ plan: { verb, time }, env }: Prepared): void {
  if ((verb !== "set" && verb !== "del") || time === null || time.problem === null) return;
  throw new Refusal(
    "not_holdable",
    `a held claim reads the time only by a field compared with now() give or take a number, and this one asks ${boundText(time.problem, env())}`,
  );
}

/** The limits and requires of a request: waiters that differ in them alone share a line, but not an unmet need. */
function needOf(prepared: readonly Prepared[]): string {
  return prepared
    .map((each) => {
      const { statement } = each;
      if (statement.kind !== "set" && statement.kind !== "del") return "";
      return `${statement.limit === null ? "" : boundText(statement.limit, each.env())}/${statement.require ?? ""}`;
    })
    .join(";");
}

function attempt(request: HeldRequest): Run {
  try {
    return { answer: request.run() };
  } catch (error) {
    if (error instanceof Refusal) return { refusal: error };
    throw error;
  }
}

function wrote(answer: Answer): boolean {
  return answer.wrote > 0 || answer.replayed === true;
}

function settled(run: Run): Answer {
  if ("answer" in run) return run.answer;
  throw run.refusal;
}
