/**
 * When a filter's answer can change by time alone. Only comparisons whose moment can be told are placeable: a plain
 * field against `now()` give or take a constant. The moments come from the same nodes that pick rows, so the two cannot
 * drift.
 *
 * With field value v and bound now() + k: `f <= now()+k` and `f > now()+k` turn at v - k; `f < now()+k` and
 * `f >= now()+k` one millisecond later. A row of a `@ttl` collection turns at its time plus the ttl.
 */

import { TIME_MAX_MS } from "../base/limits.ts";
import { attempt } from "../base/refusal.ts";
import type { BinaryExpr, Expr, GetStatement } from "../lang/ast.ts";
import { conditionsOf, everyNode, partsOf, someNode } from "../lang/walk.ts";
import { type KeyRange, NOT_NULL_RANGE } from "../store/ordered_index.ts";
import type { Table } from "../store/table.ts";
import { type Row, Time } from "../value/value.ts";
import type { Env } from "./env.ts";
import { type Compiled, type ExpressionCompiler, MIRRORED } from "./expression.ts";

type Ordering = "<" | "<=" | ">" | ">=";

/** Turns at `value - k + later`, for each value the field has. */
export interface Turn {
  readonly table: Table;
  readonly slot: number;
  readonly field: string;
  /** k in ms; undefined when its constant does not work out. */
  readonly k: (env: Env) => number | undefined;
  readonly later: 0 | 1;
  /** It is the row itself whose answer changes; else it is one that an inner read reads, and any row's may. */
  readonly own: boolean;
}

/** A condition on time that every row the filter lets through meets: the field against `now() + k`. */
export interface TimeGate {
  readonly slot: number;
  readonly op: Ordering;
  readonly k: (env: Env) => number | undefined;
}

const EMPTY_ROW: Row = [];

export class TimeSense {
  /** Every way in which time alone changes the answer. */
  readonly turns: Turn[] = [];
  /** Those of the statement's own conditions, joined by `and`, that are about time. */
  readonly gates: TimeGate[] = [];
  /** Why a claim with this filter cannot be held: the part whose moment nobody can tell. Null: it can be. */
  problem: Expr | null = null;

  /** Takes in a filter over a table's rows; `compile` knows the statement's constants. */
  add(
    table: Table,
    where: Expr | null,
    compiler: ExpressionCompiler,
    tableOf: (name: string) => Table | undefined,
  ): void {
    this.#expiry(table, true);
    if (where === null) return;
    this.#visit(table, where, compiler, tableOf, true);
    for (const part of conditionsOf(where)) {
      const placed = timeGateOf(part, compiler);
      if (placed !== undefined) this.gates.push(placed);
    }
  }

  /** Takes in one more filter over the same rows. */
  addFilter(
    table: Table,
    where: Expr,
    compiler: ExpressionCompiler,
    tableOf: (name: string) => Table | undefined,
  ): void {
    this.#visit(table, where, compiler, tableOf, true);
  }

  #expiry(table: Table, own: boolean): void {
    const { ttl } = table;
    if (ttl === undefined) return;
    const { slot, ttlMs } = ttl;
    this.turns.push({ table, slot, field: ttl.index.def.field, k: () => -ttlMs, later: 0, own });
  }

  #visit(
    table: Table,
    root: Expr,
    compiler: ExpressionCompiler,
    tableOf: (name: string) => Table | undefined,
    own: boolean,
  ): void {
    const pending: Expr[] = [root];
    for (let expr = pending.pop(); expr !== undefined; expr = pending.pop()) {
      if (readsNow(expr)) {
        if (expr.kind === "binary") {
          // Two distances from one now(): it holds always or never.
          if (isOrdering(expr) && isNowOffset(expr.left, compiler) && isNowOffset(expr.right, compiler)) continue;
          const placed = timeGateOf(expr, compiler);
          if (placed === undefined) this.#refuse(expr);
          else {
            const { field, slot, k, op } = placed;
            this.turns.push({ table, slot, field, k, later: op === "<" || op === ">=" ? 1 : 0, own });
          }
          continue;
        }
        if (!JOINING.has(expr.kind)) {
          this.#refuse(expr);
          continue;
        }
      }
      if (expr.kind === "inGet") this.#inner(expr.get, compiler, tableOf);
      for (const part of partsOf(expr)) pending.push(part);
    }
  }

  #inner(get: GetStatement, compiler: ExpressionCompiler, tableOf: (name: string) => Table | undefined): void {
    const table = tableOf(get.collection);
    if (table === undefined) return;
    this.#expiry(table, false);
    if (get.where !== null) this.#visit(table, get.where, compiler.over(table), tableOf, false);
    const others = get.select.flatMap((item) => (item.kind === "item" ? [item.expr] : []));
    for (const key of get.order) others.push(key.expr);
    for (const key of get.group) others.push(key);
    if (get.having !== null) others.push(get.having);
    for (const other of others) {
      if (readsNow(other)) this.#refuse(other);
      for (const expr of everyNode(other)) if (expr.kind === "inGet") this.#inner(expr.get, compiler, tableOf);
    }
  }

  #refuse(expr: Expr): void {
    this.problem ??= expr;
  }
}

/** Nodes that join conditions: each part of one is looked at by itself. */
const JOINING: ReadonlySet<Expr["kind"]> = new Set(["and", "or", "unary", "isNull", "case"]);

/** A plain field against now() give or take a constant, read with the field on the left. */
export function timeGateOf(
  expr: Expr,
  compiler: ExpressionCompiler,
): (TimeGate & { readonly field: string }) | undefined {
  if (expr.kind !== "binary" || !isOrdering(expr)) return undefined;
  for (const [side, other, op] of [
    [expr.left, expr.right, expr.op],
    [expr.right, expr.left, MIRRORED[expr.op]],
  ] as const) {
    if (side.kind !== "path" || !isNowOffset(other, compiler)) continue;
    const field = compiler.compile(side).field;
    if (field === null || field.keys.length > 0) continue;
    const kind = field.type.kind;
    if (kind !== "timestamp" && kind !== "int") continue;
    const bound: Compiled = compiler.compile(other);
    const k = (env: Env): number | undefined => {
      const value = attempt(() => bound.eval(EMPTY_ROW, env));
      return value instanceof Time ? value.ms - env.now : undefined;
    };
    return { slot: field.slot, field: field.name, op, k };
  }
  return undefined;
}

function isOrdering(expr: BinaryExpr): expr is BinaryExpr & { readonly op: Ordering } {
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
  return value === undefined ? undefined : reachable(value - k + turn.later);
}

/** The clock ends with the years a timestamp can name; an int field may hold more. */
export function reachable(momentMs: number): number | undefined {
  return momentMs > TIME_MAX_MS ? undefined : momentMs;
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
