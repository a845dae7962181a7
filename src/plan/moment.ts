/**
 * When a filter's answer can change by time alone. Only comparisons whose moment can be told are placeable: a plain
 * field against `now()` give or take a constant. The moments come from the same nodes that pick rows, so the two cannot
 * drift.
 *
 * With field value v and bound now() + k: `f <= now()+k` and `f > now()+k` turn at v - k; `f < now()+k` and
 * `f >= now()+k` one millisecond later. A row of a `@ttl` collection turns at its time plus the ttl.
 */

import type { BinaryExpr, Expr, GetStatement } from "../lang/ast.ts";
import { someNode } from "../lang/walk.ts";
import { type KeyRange, NOT_NULL_RANGE } from "../store/ordered_index.ts";
import type { Table } from "../store/table.ts";
import { type Row, Time } from "../value/value.ts";
import type { Env } from "./env.ts";
import type { Compiled, ExpressionCompiler } from "./expression.ts";
import { attempt } from "./filter.ts";

/** Turns at `value - k + later`, for each value the field has. */
export interface Turn {
  readonly table: Table;
  readonly slot: number;
  readonly field: string;
  /** k in ms; undefined when its constant does not work out. */
  readonly k: (env: Env) => number | undefined;
  readonly later: 0 | 1;
}

const EMPTY_ROW: Row = [];

export class TimeSense {
  /** Every way in which time alone changes the answer. */
  readonly turns: Turn[] = [];
  /** Why a claim with this filter cannot be held: the part whose moment nobody can tell. Null: it can be. */
  problem: Expr | null = null;

  /** Takes in a filter over a table's rows; `compile` knows the statement's constants. */
  add(
    table: Table,
    where: Expr | null,
    compiler: ExpressionCompiler,
    tableOf: (name: string) => Table | undefined,
  ): void {
    const ttl = table.ttl;
    if (ttl !== undefined) {
      const { slot, ttlMs } = ttl;
      const field = ttl.index.def.field;
      this.turns.push({ table, slot, field, k: () => -ttlMs, later: 0 });
    }
    if (where !== null) this.#visit(table, where, compiler, tableOf);
  }

  /** Takes in one more filter over the same rows. */
  addFilter(
    table: Table,
    where: Expr,
    compiler: ExpressionCompiler,
    tableOf: (name: string) => Table | undefined,
  ): void {
    this.#visit(table, where, compiler, tableOf);
  }

  #visit(table: Table, root: Expr, compiler: ExpressionCompiler, tableOf: (name: string) => Table | undefined): void {
    const pending: Expr[] = [root];
    for (let expr = pending.pop(); expr !== undefined; expr = pending.pop()) {
      switch (expr.kind) {
        case "binary":
          if (isOrdering(expr) && readsNow(expr)) {
            // Two distances from one now(): it holds always or never.
            if (isNowOffset(expr.left, compiler) && isNowOffset(expr.right, compiler)) break;
            if (!this.#placed(table, expr, compiler)) this.#refuse(expr);
          } else if (readsNow(expr)) this.#refuse(expr);
          else pending.push(expr.left, expr.right);
          break;
        case "in":
          if (readsNow(expr)) this.#refuse(expr);
          break;
        case "inGet": {
          if (readsNow(expr.left)) this.#refuse(expr);
          this.#inner(expr.get, compiler, tableOf);
          break;
        }
        case "unary":
        case "isNull":
          pending.push(expr.of);
          break;
        case "and":
        case "or":
          for (const part of expr.of) pending.push(part);
          break;
        case "case":
          for (const arm of expr.whens) pending.push(arm.when, arm.then);
          if (expr.otherwise !== null) pending.push(expr.otherwise);
          break;
        case "call":
          if (readsNow(expr)) this.#refuse(expr);
          break;
        default:
          break;
      }
    }
  }

  #inner(get: GetStatement, compiler: ExpressionCompiler, tableOf: (name: string) => Table | undefined): void {
    const table = tableOf(get.collection);
    if (table === undefined) return;
    const inner = compiler.over(table);
    this.add(table, get.where, inner, tableOf);
    for (const item of get.select) if (item.kind === "item" && readsNow(item.expr)) this.#refuse(item.expr);
    for (const key of get.order) if (readsNow(key.expr)) this.#refuse(key.expr);
    for (const key of get.group) if (readsNow(key)) this.#refuse(key);
    if (get.having !== null && readsNow(get.having)) this.#refuse(get.having);
  }

  #refuse(expr: Expr): void {
    this.problem ??= expr;
  }

  /** A plain field against now() ± constant, either way round. */
  #placed(table: Table, expr: BinaryExpr, compiler: ExpressionCompiler): boolean {
    for (const [side, other, strictLater] of [
      [expr.left, expr.right, expr.op === "<" || expr.op === ">="],
      [expr.right, expr.left, expr.op === ">" || expr.op === "<="],
    ] as const) {
      if (side.kind !== "path" || readsNow(side) || !isNowOffset(other, compiler)) continue;
      const field = compiler.compile(side).field;
      if (field === null || field.keys.length > 0) continue;
      const kind = field.type.kind;
      if (kind !== "timestamp" && kind !== "int") continue;
      const bound: Compiled = compiler.compile(other);
      const k = (env: Env): number | undefined => {
        const value = attempt(() => bound.eval(EMPTY_ROW, env));
        return value instanceof Time ? value.ms - env.now : undefined;
      };
      this.turns.push({ table, slot: field.slot, field: field.name, k, later: strictLater ? 1 : 0 });
      return true;
    }
    return false;
  }
}

function isOrdering(expr: BinaryExpr): boolean {
  return expr.op === "<" || expr.op === "<=" || expr.op === ">" || expr.op === ">=";
}

/** `now()`, `now() + c`, `now() - c`, `c + now()`: c a literal, a parameter or a claim. */
function isNowOffset(expr: Expr, compiler: ExpressionCompiler): boolean {
  if (isNow(expr)) return true;
  if (expr.kind !== "binary" || (expr.op !== "+" && expr.op !== "-")) return false;
  const offset = (part: Expr): boolean => !readsNow(part) && compiler.compile(part).constant;
  if (isNowOffset(expr.left, compiler)) return offset(expr.right);
  return expr.op === "+" && offset(expr.left) && isNowOffset(expr.right, compiler);
}

function isNow(expr: Expr): boolean {
  return expr.kind === "call" && expr.name === "now";
}

/** Whether `now()` stands anywhere in it, but in an inner read, which is looked at by itself. */
export function readsNow(root: Expr): boolean {
  return someNode(root, isNow);
}

/**
 * The first moment after `since` at which a row turns: possibly past, if nobody asked meanwhile; undefined when only a
 * write can make one. Early is possible, late is not.
 */
export function nextTurn(turn: Turn, k: number, since: number): number | undefined {
  const value = leastAbove(turn, since + k - turn.later);
  return value === undefined ? undefined : value - k + turn.later;
}

/** The least value of the field past `above`: a step of the index, or a look at every row where there is none. */
function leastAbove(turn: Turn, above: number): number | undefined {
  let least: number | undefined;
  const index = turn.table.index(turn.field, []);
  if (index !== undefined && index.def.kind !== "hash" && index.def.kind !== "unique") {
    const range: KeyRange = { ...NOT_NULL_RANGE, lo: above, loOpen: true };
    index.walk(range, false, (row) => {
      least = Number(row[turn.slot]);
      return false;
    });
    return least;
  }
  turn.table.scan(-Infinity, (row) => {
    const cell = row[turn.slot];
    if (cell !== null && cell !== undefined) {
      const value = Number(cell);
      if (value > above && (least === undefined || value < least)) least = value;
    }
    return true;
  });
  return least;
}
