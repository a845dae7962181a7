/**
 * A filter taken apart: its conditions joined by `and` at the top, each with its row test and, where an index could
 * answer it, the range of keys it means. Anything under `or` or `not` is a test on rows.
 */

import { attempt, Refusal } from "../base/refusal.ts";
import type { BinaryExpr, Expr } from "../lang/ast.ts";
import { conditionsOf, someNode } from "../lang/walk.ts";
import type { OrderedIndex } from "../store/ordered_index.ts";
import type { Table } from "../store/table.ts";
import type { Point, Row } from "../value/value.ts";
import type { Env } from "./env.ts";
import { type Compiled, type ExpressionCompiler, isExpired, MIRRORED, type Test } from "./expression.ts";
import { boxOf, pointOf } from "./functions.ts";
import { type KeyMaker, keyMaker, NO_KEY, PATH_KEYS } from "./key.ts";
import type { ValueSet } from "./value_set.ts";

export type RangeOp = "=" | "<" | "<=" | ">" | ">=" | "notNull";

/** A condition an ordered index (or the rows by id: `index` null) can answer. */
export interface KeyCondition {
  readonly index: OrderedIndex | null;
  readonly op: RangeOp;
  readonly key: (row: Row, env: Env) => unknown;
}

/** `f in [...]`, `f in (get ...)`. */
export interface SetCondition {
  readonly index: OrderedIndex | null;
  readonly maker: KeyMaker;
  readonly set: (row: Row, env: Env) => ValueSet;
}

/** `distance(f, p) <= r` or `within(f, box)` over a geo index. */
export interface GeoCondition {
  readonly field: string;
  readonly slot: number;
  readonly point: ((env: Env) => Point | null) | null;
  readonly metres: ((env: Env) => number | null) | null;
  readonly box: ((env: Env) => readonly [number, number, number, number] | null) | null;
}

export interface Conjunct {
  readonly test: Test;
  readonly key: KeyCondition | null;
  readonly set: SetCondition | null;
  readonly geo: GeoCondition | null;
}

/** A longer list of values tells no claims apart. */
export const PIN_KEYS = 64;

/**
 * A plain field that a condition at the top pins to a constant, or to one of some, index or none: what a held claim is
 * found by.
 */
export interface Pin {
  readonly slot: number;
  /** NO_KEY among them: cells do not tell. */
  readonly keys: (env: Env) => readonly unknown[];
}

export class Filter {
  readonly conjuncts: readonly Conjunct[];
  /** Who asks is held to rules, and may not know of every row. */
  readonly isBound: boolean;
  /** What keeps rows past their time out of every read; undefined without `@ttl`, or where expired() is asked. */
  readonly alive: Test | undefined;
  /** Slots of the plain fields that a condition at the top keeps from null. */
  readonly notNull: ReadonlySet<number>;
  readonly pins: readonly Pin[];

  /**
   * @param rules of each list one filter must hold; they are asked before `where`, and hold for no row they fail over.
   *   Null: no token is held to any
   * @param also asked of each row all the rest lets through
   */
  constructor(
    table: Table,
    rules: readonly (readonly Expr[])[] | null,
    where: Expr | null,
    compiler: ExpressionCompiler,
    also: Test | null,
  ) {
    this.isBound = rules !== null;
    const parts: Expr[] = [];
    const conjuncts: Conjunct[] = [];
    for (const filters of rules ?? []) {
      const [only] = filters;
      if (filters.length > 1 || only === undefined) conjuncts.push(bare(ruleTest(filters, compiler)));
      else {
        for (const part of conditionsOf(only)) {
          parts.push(part);
          const asked = conjunct(table, part, compiler);
          conjuncts.push({ ...asked, test: guarded(asked.test) });
        }
      }
    }
    for (const part of conditionsOf(where)) {
      parts.push(part);
      conjuncts.push(conjunct(table, part, compiler));
    }
    if (also !== null) conjuncts.push(bare(also));
    this.conjuncts = conjuncts;
    const notNull = new Set<number>();
    for (const part of parts) {
      if (part.kind !== "isNull" || !part.not) continue;
      const field = compiler.compile(part.of).field;
      if (field !== null && field.keys.length === 0) notNull.add(field.slot);
    }
    this.notNull = notNull;
    this.pins = parts.flatMap((part) => pinOf(part, compiler));
    const ttl = table.ttl;
    if (ttl !== undefined && !(where !== null && mentionsExpired(where))) {
      const { slot, ttlMs } = ttl;
      this.alive = (row, env) => !isExpired(row[slot] as never, ttlMs, env.now);
    }
  }

  /** The whole filter on one row. */
  matches(row: Row, env: Env): boolean {
    if (this.alive !== undefined && !this.alive(row, env)) return false;
    return this.passes(this.conjuncts, row, env);
  }

  /**
   * Whether the conditions an index has not answered hold. Where rules bind, one that does not hold goes before one that is
   * refused: which index answers what depends on all rows, and a refusal that came or not would tell of them.
   */
  passes(residual: readonly Conjunct[], row: Row, env: Env): boolean {
    if (this.isBound) return passesUntold(residual, row, env);
    for (const part of residual) if (!part.test(row, env)) return false;
    return true;
  }
}

function passesUntold(residual: readonly Conjunct[], row: Row, env: Env): boolean {
  for (let at = 0; at < residual.length; at++) {
    try {
      if (!(residual[at] as Conjunct).test(row, env)) return false;
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal;
      for (const part of residual.slice(at + 1)) if (attempt(() => part.test(row, env)) === false) return false;
      throw refusal;
    }
  }
  return true;
}

function bare(test: Test): Conjunct {
  return { test, key: null, set: null, geo: null };
}

/** Whether one of a token's filters holds. One that is refused over a row does not, so that no row is told of by it. */
export function ruleTest(filters: readonly Expr[], compiler: ExpressionCompiler): Test {
  const tests = filters.map((filter) => guarded(compiler.test(filter).test));
  const [only] = tests;
  if (tests.length === 1 && only !== undefined) return only;
  return (row, env) => tests.some((test) => test(row, env));
}

function guarded(test: Test): Test {
  return (row, env) => {
    try {
      return test(row, env);
    } catch (error) {
      if (error instanceof Refusal) return false;
      throw error;
    }
  };
}

function conjunct(table: Table, expr: Expr, compiler: ExpressionCompiler): Conjunct {
  const { test, compiled } = compiler.test(expr);
  const base = { test, key: null, set: null, geo: null };
  if (compiled.constant) return base;
  switch (expr.kind) {
    case "binary":
      return { ...base, ...binaryAccess(table, expr, compiler) };
    case "isNull": {
      const target = targetOf(table, expr.of, compiler);
      if (target === undefined) return base;
      return { ...base, key: { index: target.index, op: expr.not ? "notNull" : "=", key: () => null } };
    }
    case "in": {
      const target = targetOf(table, expr.left, compiler);
      if (target === undefined) return base;
      const items = expr.list.map((item) => compiler.compile(item));
      if (!items.every((item) => item.constant)) return base;
      return { ...base, set: { ...target, set: compiler.constantSet(items, expr.list) } };
    }
    case "inGet": {
      const target = targetOf(table, expr.left, compiler);
      if (target === undefined) return base;
      const set = compiler.innerSet(expr.get);
      return { ...base, set: { ...target, set: (_row, env) => set(env) } };
    }
    case "call":
      return expr.name === "within" ? { ...base, geo: boxAccess(table, expr.args, compiler) } : base;
    default:
      return base;
  }
}

function binaryAccess(table: Table, expr: BinaryExpr, compiler: ExpressionCompiler): Partial<Conjunct> {
  const op = expr.op;
  if (op !== "=" && op !== "<" && op !== "<=" && op !== ">" && op !== ">=") return {};
  const ways: readonly (readonly [Expr, Expr, RangeOp])[] = [
    [expr.left, expr.right, op],
    [expr.right, expr.left, MIRRORED[op]],
  ];
  for (const [side, other, meant] of ways) {
    const radius = meant === "<" || meant === "<=" ? radiusAccess(table, side, other, compiler) : undefined;
    if (radius !== undefined) return { geo: radius };
    const target = targetOf(table, side, compiler);
    if (target === undefined) continue;
    const constant = compiler.compile(other);
    if (!constant.constant) continue;
    return { key: { index: target.index, op: meant, key: compiler.key(target.maker, constant) } };
  }
  return {};
}

function pinOf(expr: Expr, compiler: ExpressionCompiler): Pin[] {
  if (expr.kind === "isNull" && !expr.not) {
    const field = compiler.compile(expr.of).field;
    return field === null || field.keys.length > 0 ? [] : [{ slot: field.slot, keys: () => [null] }];
  }
  if (expr.kind === "in") {
    const pinned = pinnable(expr.left, compiler);
    if (pinned === undefined || expr.list.length > PIN_KEYS) return [];
    const items = expr.list.map((item) => compiler.compile(item));
    if (!items.every((item) => item.constant)) return [];
    const set = compiler.constantSet(items, expr.list);
    return [{ slot: pinned.slot, keys: (env) => set(EMPTY_ROW, env).values.map((value) => pinned.maker.key(value)) }];
  }
  if (expr.kind !== "binary" || expr.op !== "=") return [];
  for (const [side, other] of [
    [expr.left, expr.right],
    [expr.right, expr.left],
  ] as const) {
    const pinned = pinnable(side, compiler);
    if (pinned === undefined) continue;
    const constant = compiler.compile(other);
    if (!constant.constant) continue;
    const key = compiler.key(pinned.maker, constant);
    return [{ slot: pinned.slot, keys: (env) => [key(EMPTY_ROW, env)] }];
  }
  return [];
}

/** A plain field whose cells are told apart by keys as they are. */
function pinnable(expr: Expr, compiler: ExpressionCompiler): { slot: number; maker: KeyMaker } | undefined {
  if (expr.kind !== "path" || expr.keys.length > 0) return undefined;
  const field = compiler.compile(expr).field;
  const maker = field === null ? undefined : keyMaker(field.type);
  return field === null || maker === undefined || !maker.native ? undefined : { slot: field.slot, maker };
}

/** The ordered index a field or path has, with how constants become its keys. */
function targetOf(
  table: Table,
  expr: Expr,
  compiler: ExpressionCompiler,
): { index: OrderedIndex | null; maker: KeyMaker } | undefined {
  if (expr.kind !== "path") return undefined;
  const field = compiler.compile(expr).field;
  if (field === null) return undefined;
  const maker = field.keys.length > 0 ? PATH_KEYS : keyMaker(field.type);
  if (maker === undefined) return undefined;
  if (field.slot === 0) return { index: null, maker };
  const index = table.index(field.name, field.keys);
  return index === undefined ? undefined : { index, maker };
}

function geoField(
  table: Table,
  expr: Expr,
  compiler: ExpressionCompiler,
  indexed = true,
): { field: string; slot: number } | undefined {
  if (expr.kind !== "path" || expr.keys.length > 0) return undefined;
  const field = compiler.compile(expr).field;
  if (field === null || field.type.kind !== "geo") return undefined;
  if (indexed && table.geo(field.name) === undefined) return undefined;
  return { field: field.name, slot: field.slot };
}

const EMPTY_ROW: Row = [];

function radiusAccess(table: Table, side: Expr, other: Expr, compiler: ExpressionCompiler): GeoCondition | undefined {
  if (side.kind !== "call" || side.name !== "distance") return undefined;
  const found = distanceFrom(table, side.args, compiler);
  if (found === undefined) return undefined;
  const metres = compiler.compile(other);
  if (!metres.constant) return undefined;
  return {
    ...found,
    metres: (env) => {
      const value = metres.eval(EMPTY_ROW, env);
      if (typeof value === "number") return value;
      return value !== null && typeof value === "object" && "n" in value ? value.n : null;
    },
    box: null,
  };
}

/**
 * `distance(f, p)` with f a geo field and p constant, either way round. Over rows it is walked only where the field has a
 * geo index; a held claim is found by its own point whether it has one or not.
 */
export function distanceFrom(
  table: Table,
  args: readonly Expr[],
  compiler: ExpressionCompiler,
  indexed = true,
): { field: string; slot: number; point: (env: Env) => Point | null } | undefined {
  const [a, b] = args;
  if (a === undefined || b === undefined) return undefined;
  for (const [field, other] of [
    [a, b],
    [b, a],
  ] as const) {
    const geo = geoField(table, field, compiler, indexed);
    if (geo === undefined) continue;
    const from: Compiled = compiler.compile(other);
    if (!from.constant) continue;
    return { ...geo, point: (env) => pointOf(from.eval(EMPTY_ROW, env), "distance") };
  }
  return undefined;
}

function boxAccess(table: Table, args: readonly Expr[], compiler: ExpressionCompiler): GeoCondition | null {
  const [point, box] = args;
  if (point === undefined || box === undefined) return null;
  const geo = geoField(table, point, compiler);
  if (geo === undefined) return null;
  const value = compiler.compile(box);
  if (!value.constant) return null;
  return {
    ...geo,
    point: null,
    metres: null,
    box: (env) => {
      const given = value.eval(EMPTY_ROW, env);
      return given === null ? null : boxOf(given);
    },
  };
}

/** The key a condition asks for in this run; NO_KEY where it has none, or does not work out. */
export function keyNow(condition: KeyCondition, env: Env): unknown {
  try {
    return condition.key(EMPTY_ROW, env);
  } catch (error) {
    if (error instanceof Refusal) return NO_KEY;
    throw error;
  }
}

/** `expired()` anywhere in the filter but in an inner read. */
export function mentionsExpired(where: Expr): boolean {
  return someNode(where, (expr) => expr.kind === "call" && expr.name === "expired");
}
