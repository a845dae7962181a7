/**
 * What a claim can hope for: the rows it would take now; or, where there is none, when the next could come and what keeps
 * the others. The time a job becomes ready at is the field that the claim's own filter asks to be past, `run_at <= now()`.
 *
 * | a row it does not take is | because |
 * | ------------------------- | ------- |
 * | leased  | its time is ahead, and it has an `owner` |
 * | delayed | its time is ahead, and nobody holds it |
 * | dead    | it has no time |
 * | shut out | the rest of the filter leaves it out, whatever its time |
 * | expired | it is past its `@ttl` |
 *
 * A token held to rules is told of the rows that it may read and that the statement may reach, and of no others.
 */

import { EXPLAINED_IDS, EXPLAINED_MOMENTS, EXPLAINED_ROWS } from "../base/limits.ts";
import { attempt } from "../base/refusal.ts";
import type { DelStatement, SetStatement } from "../lang/ast.ts";
import { allOf, conditionsOf } from "../lang/walk.ts";
import { Env } from "../plan/env.ts";
import { Filter } from "../plan/filter.ts";
import { nextTurn, reachable, readsNow, type TimeGate, timeGateOf } from "../plan/moment.ts";
import type { Pick } from "../plan/pick.ts";
import type { Table } from "../store/table.ts";
import { formatTime } from "../value/time.ts";
import type { Cell, Row } from "../value/value.ts";
import { compilerOf, type Planning } from "./get.ts";
import type { Plan } from "./plan.ts";
import { deleteBound, mayRead, readBound, updateBound } from "./rules.ts";

interface Ahead {
  count: number;
  /** When the first of them is ready, and who holds it. */
  firstMs: number;
  owner: Cell;
}

interface Kept {
  readonly leased: Ahead;
  readonly delayed: Ahead;
  dead: number;
  shutOut: number;
  expired: number;
  /** Not all rows were looked at. */
  cut: boolean;
}

export class Prospect {
  readonly #table: Table;
  readonly #plan: Plan;
  readonly #pick: Pick;
  /** Rows that may be told of. Null: none may. */
  readonly #seen: Filter | null;
  readonly #isBound: boolean;
  /** What makes a row ready in time; undefined where the filter has no such condition. */
  readonly #ready: TimeGate | undefined;
  /** The filter without it, and whether that alone can change by time. */
  readonly #rest: Filter;
  readonly #restTurns: boolean;
  readonly #require: number | null;

  constructor(
    planning: Planning,
    statement: SetStatement | DelStatement,
    plan: Plan & { readonly pick: Pick; readonly table: Table },
  ) {
    const { table, pick } = plan;
    const compiler = compilerOf(planning, table, "row");
    this.#table = table;
    this.#plan = plan;
    this.#pick = pick;
    this.#require = statement.require;
    this.#isBound = planning.rules !== null;
    this.#seen = mayRead(planning.rules, table) ? seenBy(planning, table, statement) : null;
    const parts = conditionsOf(statement.where);
    const ready = parts.find((part) => isPast(timeGateOf(part, compiler)));
    this.#ready = ready === undefined ? undefined : timeGateOf(ready, compiler);
    const rest = parts.filter((part) => part !== ready);
    this.#rest = new Filter(table, null, allOf(rest), compiler, null);
    this.#restTurns = rest.some(readsNow) || plan.inner.size > 0 || table.ttl !== undefined;
  }

  /** @param rows what it would take now */
  lines(rows: readonly Row[], env: Env): string[] {
    if (this.#seen === null) return [];
    const lines = rows.length > 0 ? [this.#taken(rows, env)] : this.#waiting(env);
    if (this.#require !== null && rows.length !== this.#require) lines.push(`require ${this.#require} is not met`);
    return lines;
  }

  #taken(rows: readonly Row[], env: Env): string {
    const ids: string[] = [];
    for (const row of rows) {
      if (ids.length === EXPLAINED_IDS) break;
      if (this.#isSeen(row, env)) ids.push(String(row[0]));
    }
    const more = rows.length - ids.length;
    return `takes: ${ids.join(", ")}${more === 0 ? "" : ` and ${more} more`}`;
  }

  #waiting(env: Env): string[] {
    const kept = this.#kept(env);
    const { leased, delayed } = kept;
    const lines = ["takes: none", this.#next(kept, env)];
    if (leased.count > 0) lines.push(`leased: ${aheadText(leased)} by ${String(leased.owner)}`);
    if (delayed.count > 0) lines.push(`delayed: ${aheadText(delayed)}`);
    if (kept.dead > 0) lines.push(`dead: ${kept.dead}`);
    if (kept.shutOut > 0) {
      const by = this.#ready === undefined ? "the filter" : "the rest of the filter";
      lines.push(`shut out by ${by}: ${kept.shutOut}`);
    }
    if (kept.expired > 0) lines.push(`expired: ${kept.expired}`);
    if (kept.cut) lines.push(`of the first ${EXPLAINED_ROWS} rows`);
    return lines;
  }

  /** Why each row that may be told of is not taken. */
  #kept(env: Env): Kept {
    const ahead = (): Ahead => ({ count: 0, firstMs: Number.POSITIVE_INFINITY, owner: null });
    const kept: Kept = { leased: ahead(), delayed: ahead(), dead: 0, shutOut: 0, expired: 0, cut: false };
    const { alive } = this.#pick.filter;
    const ownerSlot = this.#table.slotOf("owner");
    const k = this.#ready?.k(env);
    let left = EXPLAINED_ROWS;
    this.#table.scan(-Infinity, (row) => {
      // Rows past their time are another grant's.
      if (this.#isBound && (!this.#isSeen(row, env) || alive?.(row, env) === false)) return true;
      if (--left < 0) {
        kept.cut = true;
        return false;
      }
      if (alive !== undefined && !alive(row, env)) kept.expired++;
      else if (this.#ready === undefined || k === undefined || !this.#passesRest(row, env)) kept.shutOut++;
      else {
        const cell = row[this.#ready.slot] as number | null;
        const readyMs = cell === null ? undefined : reachable(Number(cell) - k + (this.#ready.op === "<" ? 1 : 0));
        if (readyMs === undefined) kept.dead++;
        else {
          const owner = ownerSlot === undefined ? null : (row[ownerSlot] as Cell);
          if (readyMs <= env.now) kept.shutOut++;
          else note(owner === null ? kept.delayed : kept.leased, readyMs, owner);
        }
      }
      return true;
    });
    return kept;
  }

  /** When the next row could be taken, if time alone brings one. */
  #next({ leased, delayed, cut }: Kept, env: Env): string {
    if (this.#plan.time !== null && this.#plan.time.problem !== null)
      return "next: nobody can tell, so it cannot be held";
    const firstMs = Math.min(leased.firstMs, delayed.firstMs);
    if (!cut && !this.#restTurns && firstMs !== Number.POSITIVE_INFINITY) return nextText(firstMs, env);
    // The moments of all rows would tell of those a token may not know of.
    if (this.#isBound) return "next: none that this token may know of";
    let atMs = env.now;
    let tested = 0;
    for (let moment = 0; moment < EXPLAINED_MOMENTS && tested < EXPLAINED_ROWS; moment++) {
      const turnMs = this.#turnAfter(atMs, env);
      if (turnMs === undefined) return "next: when a write brings one";
      atMs = turnMs;
      const then = new Env(atMs, env.params, env.literals, env.claims);
      if (attempt(() => this.#pick.first(then)) !== undefined) return nextText(atMs, env);
      tested += then.tested;
    }
    return `next: none before ${formatTime(atMs)}`;
  }

  #turnAfter(atMs: number, env: Env): number | undefined {
    let least: number | undefined;
    for (const turn of this.#plan.time?.turns ?? []) {
      const k = turn.k(env);
      const next = k === undefined ? undefined : nextTurn(turn, k, atMs);
      if (next !== undefined && (least === undefined || next < least)) least = next;
    }
    return least;
  }

  #isSeen(row: Row, env: Env): boolean {
    const seen = this.#seen;
    return seen !== null && attempt(() => seen.passes(seen.conjuncts, row, env)) === true;
  }

  /** A condition that is refused over a row lets it through no more than one that does not hold. */
  #passesRest(row: Row, env: Env): boolean {
    return attempt(() => this.#rest.passes(this.#rest.conjuncts, row, env)) === true;
  }
}

/** The rows that both the read rules and those for the write let be known. */
function seenBy(planning: Planning, table: Table, { kind, where }: SetStatement | DelStatement): Filter {
  const reached = kind === "set" ? updateBound(planning, table, where) : deleteBound(planning, table, where, false);
  const read = readBound(planning, table, null);
  const rules = reached.rules === null ? null : [...reached.rules, ...(read.rules ?? [])];
  return new Filter(table, rules, null, compilerOf(planning, table, "row"), null);
}

function isPast(gate: TimeGate | undefined): boolean {
  return gate !== undefined && (gate.op === "<=" || gate.op === "<");
}

function note(ahead: Ahead, readyMs: number, owner: Cell): void {
  ahead.count++;
  if (readyMs >= ahead.firstMs) return;
  ahead.firstMs = readyMs;
  ahead.owner = owner;
}

function aheadText({ count, firstMs }: Ahead): string {
  return `${count}, ${count === 1 ? "" : "the first "}until ${formatTime(firstMs)}`;
}

function nextText(atMs: number, env: Env): string {
  return `next: ${formatTime(atMs)}, in ${atMs - env.now} ms`;
}
