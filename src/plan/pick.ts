/**
 * Which rows a statement is about: the one way through the code for reads, claims, deletes and dry runs.
 *
 * A pick chooses between the ways the filter's indexes and the order's index offer, by exact counts out of the counted
 * trees. A walk in order that may pass many rows by is given a budget, what the other way would read; when it runs out
 * before the page is full, the other way is taken. No choice changes the answer, only what is read for it.
 *
 * Where a token's rules hide rows, no choice may change a refusal either, as it was made by counts of all rows: a row that
 * the filter is refused over counts as one that matches, and its refusal comes if it is in the page.
 */

import { Refusal } from "../base/refusal.ts";
import type { CountExpr, Expr, OrderKey } from "../lang/ast.ts";
import { type Key, type KeyRange, type OrderedIndex, WHOLE_RANGE } from "../store/ordered_index.ts";
import type { Table } from "../store/table.ts";
import { compareCells } from "../value/types.ts";
import { kindWords, type Row, type Value } from "../value/value.ts";
import type { Env } from "./env.ts";
import type { ExpressionCompiler, Test } from "./expression.ts";
import { attempt, type Conjunct, Filter, type GeoCondition, keyNow } from "./filter.ts";
import { NO_KEY } from "./key.ts";
import { Order } from "./order.ts";

/** Rows a walk may always test before it is compared with another way. */
const LEAST_BUDGET = 256;
const EMPTY_ROW: Row = [];
/** Bounds of ids: null, the one below every id, comes first. */
const compareIds = compareCells({ kind: "int" }) as (a: Key, b: Key) => number;

/** One way to a superset of the rows, with the conditions it answers by itself. */
type Access =
  | { readonly kind: "none" }
  | { readonly kind: "ids"; readonly ids: readonly number[]; readonly covers: ReadonlySet<Conjunct> }
  | {
      readonly kind: "range";
      readonly index: OrderedIndex;
      readonly range: KeyRange;
      readonly count: number;
      readonly covers: ReadonlySet<Conjunct>;
    }
  | {
      readonly kind: "keys";
      readonly index: OrderedIndex;
      readonly keys: readonly Key[];
      readonly count: number;
      readonly covers: ReadonlySet<Conjunct>;
    }
  | {
      readonly kind: "geo";
      readonly condition: GeoCondition;
      readonly count: number;
      readonly covers: ReadonlySet<Conjunct>;
    }
  | { readonly kind: "scan"; readonly range: KeyRange; readonly count: number; readonly covers: ReadonlySet<Conjunct> };

export interface Picked {
  readonly rows: Row[];
  /** How they were found, for `explain`. */
  readonly how: string;
}

const NO_CONJUNCTS: ReadonlySet<Conjunct> = new Set();

export class Pick {
  readonly table: Table;
  readonly filter: Filter;
  readonly order: Order;
  readonly #limit: ((env: Env) => number) | null;
  readonly #offset: ((env: Env) => number) | null;

  constructor(
    table: Table,
    clauses: {
      readonly where: Expr | null;
      readonly order: readonly OrderKey[];
      readonly limit: CountExpr | null;
      readonly offset: CountExpr | null;
      /** What a token may reach: of each list one filter must hold. Asked first. Null: no rules bind. */
      readonly rules?: readonly (readonly Expr[])[] | null;
      /** Asked of each row the filter lets through, last. */
      readonly also?: Test | null;
    },
    compiler: ExpressionCompiler,
  ) {
    this.table = table;
    this.filter = new Filter(table, clauses.rules ?? null, clauses.where, compiler, clauses.also ?? null);
    this.order = new Order(table, clauses.order, compiler);
    this.#limit = clauses.limit === null ? null : countOf(clauses.limit, "limit", compiler);
    this.#offset = clauses.offset === null ? null : countOf(clauses.offset, "offset", compiler);
  }

  /** The rows of the page, in order. The store must not change until the caller has done with them. */
  run(env: Env): Picked {
    const limit = this.#limit === null ? Number.POSITIVE_INFINITY : this.#limit(env);
    const offset = this.#offset === null ? 0 : this.#offset(env);
    if (limit === 0) return { rows: [], how: "no row: limit 0" };
    const most = limit + offset;
    const picked = this.#page(most, env);
    return offset === 0 ? picked : { rows: picked.rows.slice(offset), how: picked.how };
  }

  /** The row that comes first of all that match, whatever the limit says. */
  first(env: Env): Row | undefined {
    return this.#page(1, env).rows[0];
  }

  /** How many rows match, whatever order and limit say; out of the tree's counts where one range is the whole filter. */
  count(env: Env): { count: number; how: string } {
    const access = this.#best(this.#accesses(env));
    if (access.kind === "none") return { count: 0, how: "no row can match" };
    if (this.filter.alive === undefined && this.#residual(access).length === 0) {
      if (access.kind === "scan" && access.range === WHOLE_RANGE)
        return { count: this.table.count, how: "the row count" };
      if (access.kind === "range" || access.kind === "keys") {
        return { count: access.count, how: `${describe(access, this.table)}, counted by the tree` };
      }
    }
    let count = 0;
    const refused = new Refused();
    this.#visit(access, env, refused, () => {
      count++;
      return true;
    });
    refused.throwFirst();
    return { count, how: describe(access, this.table) };
  }

  #page(most: number, env: Env): Picked {
    const { walk } = this.order;
    const accesses = this.#accesses(env);
    const best = this.#best(accesses);
    if (best.kind === "none") return { rows: [], how: "no row can match" };
    const bestCount = countIn(best);
    if (walk === null) return this.#gather(best, most, env);
    if (walk.kind === "near") return this.#nearest(walk, best, bestCount, most, env);
    // The order's own range of the filter, if it has one, narrows the walk.
    const way = this.#orderedWay(walk, accesses);
    const pure = this.filter.alive === undefined && this.#residual(way).length === 0;
    const walkRows = pure ? Math.min(most, countIn(way)) : countIn(way);
    if (way === best || (pure && walkRows <= bestCount * 2))
      return this.#walked(way, walk, most, env, Number.POSITIVE_INFINITY) as Picked;
    if (most < Number.POSITIVE_INFINITY && bestCount > Math.max(most, LEAST_BUDGET)) {
      const found = this.#walked(
        way,
        walk,
        most,
        env,
        Math.max(LEAST_BUDGET, Math.min(bestCount, this.table.count >> 3)),
      );
      if (found !== undefined) return found;
    }
    return this.#gather(best, most, env);
  }

  /** Rows in walking order until the page is full; undefined when the budget of tested rows ran out first. */
  #walked(way: Access, walk: { readonly desc: boolean }, most: number, env: Env, budget: number): Picked | undefined {
    const rows: Row[] = [];
    let left = budget;
    let spent = false;
    const residual = this.#residual(way);
    const alive = this.filter.alive;
    const visit = (row: Row): boolean => {
      env.tested++;
      if ((alive === undefined || alive(row, env)) && this.filter.passes(residual, row, env)) {
        rows.push(row);
        if (rows.length >= most) return false;
      }
      if (--left > 0) return true;
      spent = true;
      return false;
    };
    if (way.kind === "range") way.index.walk(way.range, walk.desc, visit);
    else if (way.kind === "scan") this.table.ids.walk(way.range, walk.desc, visit);
    if (spent) return undefined;
    return { rows, how: `${describe(way, this.table)}, walked in order${walk.desc ? " (descending)" : ""}` };
  }

  #gather(access: Access, most: number, env: Env): Picked {
    const rows: Row[] = [];
    const refused = new Refused();
    this.#visit(access, env, refused, (row) => {
      rows.push(row);
      return true;
    });
    const how = describe(access, this.table);
    const page = this.#sorted(rows, refused, most, env);
    return { rows: page, how: rows.length > 1 ? `${how}, put in order` : how };
  }

  #sorted(rows: Row[], refused: Refused, most: number, env: Env): Row[] {
    if (!this.filter.isBound) return this.order.sorted(rows, most, env);
    for (const row of refused.rows) rows.push(row);
    let page: Row[];
    try {
      page = this.order.sorted(rows, most, env);
    } catch (error) {
      if (error instanceof Refusal) this.#throwFirst(rows, env);
      throw error;
    }
    for (const row of page) refused.throwAt(row);
    return page;
  }

  /** The refusal of the order's keys that comes first by id, whatever way the rows were found in. */
  #throwFirst(rows: readonly Row[], env: Env): void {
    const byId = rows.slice().sort((a, b) => (a[0] as number) - (b[0] as number));
    for (const row of byId) this.order.keysOf(row, env);
  }

  #nearest(
    walk: {
      readonly field: string;
      readonly slot: number;
      readonly point: (env: Env) => { lon: number; lat: number } | null;
    },
    best: Access,
    bestCount: number,
    most: number,
    env: Env,
  ): Picked {
    const places = this.table.geo(walk.field);
    const point = attempt(() => walk.point(env));
    // Rows without a point have a null key and come first: only without them is the nearest row the first one.
    const everyRowPlaced = places !== undefined && places.size === this.table.count;
    if (places === undefined || point === undefined || point === null || most === Number.POSITIVE_INFINITY) {
      return this.#gather(best, most, env);
    }
    if (!everyRowPlaced && !this.#excludesUnplaced(walk.slot)) return this.#gather(best, most, env);
    if (bestCount <= LEAST_BUDGET) return this.#gather(best, most, env);
    const rows: Row[] = [];
    let left = Math.max(LEAST_BUDGET * 4, Math.min(bestCount, this.table.count >> 1));
    let spent = false;
    const visit = (row: Row): boolean => {
      env.tested++;
      if (this.filter.matches(row, env)) {
        rows.push(row);
        if (rows.length >= most) return false;
      }
      if (--left > 0) return true;
      spent = true;
      return false;
    };
    places.nearest(point.lon, point.lat, visit);
    if (spent) return this.#gather(best, most, env);
    return { rows, how: `nearest first by the @geo index of ${walk.field}` };
  }

  /** A condition at the top that no row without a point meets: a radius, a box, `is not null`. */
  #excludesUnplaced(slot: number): boolean {
    return this.filter.conjuncts.some((part) => part.geo?.slot === slot) || this.filter.notNull.has(slot);
  }

  #visit(access: Access, env: Env, refused: Refused, visit: (row: Row) => boolean): void {
    const residual = this.#residual(access);
    const { filter } = this;
    const { alive, isBound } = filter;
    const tested = (row: Row): boolean => {
      env.tested++;
      if (alive !== undefined && !alive(row, env)) return true;
      try {
        return filter.passes(residual, row, env) ? visit(row) : true;
      } catch (error) {
        if (!isBound || !(error instanceof Refusal)) throw error;
        refused.add(row, error);
        return true;
      }
    };
    switch (access.kind) {
      case "none":
        return;
      case "ids":
        for (const id of access.ids) {
          const row = this.table.get(id);
          if (row !== undefined && !tested(row)) return;
        }
        return;
      case "range":
        access.index.walk(access.range, false, tested);
        return;
      case "keys":
        for (const key of access.keys) {
          access.index.walk({ lo: key, loOpen: false, hi: key, hiOpen: false }, false, tested);
        }
        return;
      case "geo": {
        const { condition } = access;
        const places = this.table.geo(condition.field);
        const point = condition.point?.(env);
        const metres = condition.metres?.(env);
        const box = condition.box?.(env);
        if (places === undefined) return;
        if (box !== undefined && box !== null) places.within(box, tested);
        else if (point !== undefined && point !== null && metres !== undefined && metres !== null) {
          places.radius(point.lon, point.lat, metres, tested);
        }
        return;
      }
      case "scan":
        this.table.ids.walk(access.range, false, tested);
        return;
    }
  }

  #residual(access: Access): readonly Conjunct[] {
    if (access.kind === "none" || access.covers.size === 0) return this.filter.conjuncts;
    if (access.covers.size === this.filter.conjuncts.length) return NO_RESIDUAL;
    return this.filter.conjuncts.filter((part) => !access.covers.has(part));
  }

  /** Every way the filter offers in this run, the plain scan last. */
  #accesses(env: Env): Access[] {
    const found: Access[] = [];
    const ranges = new Map<OrderedIndex | null, RangeBuilder>();
    for (const part of this.filter.conjuncts) {
      if (part.key !== null) {
        const key = keyNow(part.key, env);
        if (key === NO_KEY) continue;
        if (key === null && part.key.op !== "=" && part.key.op !== "notNull") return [{ kind: "none" }];
        let range = ranges.get(part.key.index);
        if (range === undefined) {
          range = new RangeBuilder(part.key.index?.compare ?? compareIds);
          ranges.set(part.key.index, range);
        }
        range.add(part.key.op, key as Key, part);
      } else if (part.set !== null) {
        const access = setAccess(part, env);
        if (access !== undefined) found.push(access);
      } else if (part.geo !== null) {
        const access = this.#geoAccess(part.geo, env);
        if (access !== undefined) found.push(access);
      }
    }
    let scan: Access = { kind: "scan", range: WHOLE_RANGE, count: this.table.count, covers: NO_CONJUNCTS };
    for (const [index, builder] of ranges) {
      const { range, covers } = builder;
      if (index !== null) {
        if (equalityOnly(index) && !isOneKey(range)) continue;
        found.push({ kind: "range", index, range, count: index.count(range), covers });
      } else if (isOneKey(range)) {
        found.push({ kind: "ids", ids: Number.isSafeInteger(range.lo) ? [range.lo as number] : [], covers });
      } else if (typeof range.lo !== "bigint" && typeof range.hi !== "bigint") {
        scan = { kind: "scan", range, count: this.table.ids.count(range), covers };
      }
    }
    found.push(scan);
    return found;
  }

  #geoAccess(condition: GeoCondition, env: Env): Access | undefined {
    const places = this.table.geo(condition.field);
    const works = attempt(() => {
      if (condition.box !== null) return condition.box(env) ?? undefined;
      const metres = condition.metres?.(env);
      return (condition.point?.(env) ?? undefined) ? (metres ?? undefined) : undefined;
    });
    if (places === undefined || works === undefined) return undefined;
    // What a radius or box holds is not known before it is read; a sixteenth is a guess that only costs time.
    return { kind: "geo", condition, count: places.size >> 4, covers: NO_CONJUNCTS };
  }

  #best(accesses: readonly Access[]): Access {
    let best = accesses[0] as Access;
    for (const access of accesses) if (countIn(access) < countIn(best)) best = access;
    return best;
  }

  /** The way that follows an order: its index's range if the filter has one, else all of the index; or the rows by id. */
  #orderedWay(
    walk: { readonly kind: "id" } | { readonly kind: "index"; readonly index: OrderedIndex },
    accesses: readonly Access[],
  ): Access {
    for (const access of accesses) {
      if (walk.kind === "index" && access.kind === "range" && access.index === walk.index) return access;
      if (walk.kind === "id" && access.kind === "scan") return access;
    }
    if (walk.kind === "id") return { kind: "scan", range: WHOLE_RANGE, count: this.table.count, covers: NO_CONJUNCTS };
    return { kind: "range", index: walk.index, range: WHOLE_RANGE, count: walk.index.size, covers: NO_CONJUNCTS };
  }
}

const NO_RESIDUAL: readonly Conjunct[] = [];

/** Rows that a filter was refused over. */
class Refused {
  #byRow: Map<Row, Refusal> | null = null;

  get rows(): Iterable<Row> {
    return this.#byRow?.keys() ?? [];
  }

  add(row: Row, refusal: Refusal): void {
    this.#byRow ??= new Map();
    this.#byRow.set(row, refusal);
  }

  throwAt(row: Row): void {
    const refusal = this.#byRow?.get(row);
    if (refusal !== undefined) throw refusal;
  }

  throwFirst(): void {
    let first: Row | undefined;
    for (const row of this.rows) {
      if (first === undefined || (row[0] as number) < (first[0] as number)) first = row;
    }
    if (first !== undefined) this.throwAt(first);
  }
}

function countIn(access: Access): number {
  return access.kind === "none" ? 0 : access.kind === "ids" ? access.ids.length : access.count;
}

/** Hash and unique indexes are asked for equality alone. */
function equalityOnly(index: OrderedIndex): boolean {
  return index.def.kind === "hash" || index.def.kind === "unique";
}

function isOneKey(range: KeyRange): boolean {
  return range.lo !== undefined && range.lo === range.hi && !range.loOpen && !range.hiOpen;
}

class RangeBuilder {
  readonly covers = new Set<Conjunct>();
  readonly #compare: (a: Key, b: Key) => number;
  #range: KeyRange = WHOLE_RANGE;

  constructor(compare: (a: Key, b: Key) => number) {
    this.#compare = compare;
  }

  get range(): KeyRange {
    return this.#range;
  }

  add(op: "=" | "<" | "<=" | ">" | ">=" | "notNull", key: Key, part: Conjunct): void {
    this.covers.add(part);
    if (op === "=") {
      this.#raise(key, false);
      this.#lower(key, false);
      return;
    }
    if (op === ">" || op === ">=") this.#raise(key, op === ">");
    else this.#raise(null, true);
    if (op === "<" || op === "<=") this.#lower(key, op === "<");
  }

  #raise(lo: Key, loOpen: boolean): void {
    const { lo: held, loOpen: open } = this.#range;
    const order = held === undefined ? 1 : this.#compare(lo, held);
    if (order > 0 || (order === 0 && loOpen && !open)) this.#range = { ...this.#range, lo, loOpen };
  }

  #lower(hi: Key, hiOpen: boolean): void {
    const { hi: held, hiOpen: open } = this.#range;
    const order = held === undefined ? -1 : this.#compare(hi, held);
    if (order < 0 || (order === 0 && hiOpen && !open)) this.#range = { ...this.#range, hi, hiOpen };
  }
}

function setAccess(part: Conjunct, env: Env): Access | undefined {
  const condition = part.set;
  if (condition === null) return undefined;
  const set = attempt(() => condition.set(EMPTY_ROW, env));
  if (set === undefined) return undefined;
  const covers = new Set([part]);
  const keys: Key[] = [];
  for (const value of set.values) {
    const key = condition.maker.key(value);
    if (key === NO_KEY) return undefined;
    keys.push(key as Key);
  }
  const { index } = condition;
  if (index === null) {
    const ids = [...new Set(keys)].filter((key): key is number => Number.isSafeInteger(key));
    return { kind: "ids", ids, covers };
  }
  keys.sort(index.compare);
  const distinct = keys.filter((key, at) => at === 0 || index.compare(keys[at - 1] as Key, key) !== 0);
  let count = 0;
  for (const key of distinct) count += index.count({ lo: key, loOpen: false, hi: key, hiOpen: false });
  return { kind: "keys", index, keys: distinct, count, covers };
}

function describe(access: Access, table: Table): string {
  const name = table.schema.name;
  switch (access.kind) {
    case "none":
      return "no row can match";
    case "ids":
      return `${name} by id`;
    case "range":
      return `${name} by the @${access.index.def.kind} index of ${pathOf(access.index)}${access.range === WHOLE_RANGE ? "" : isOneKey(access.range) ? ", one key" : ", a range"}`;
    case "keys":
      return `${name} by the @${access.index.def.kind} index of ${pathOf(access.index)}, ${access.keys.length} keys`;
    case "geo":
      return `${name} by the @geo index of ${access.condition.field}`;
    case "scan":
      return access.range === WHOLE_RANGE ? `${name}, every row` : `${name}, a range of ids`;
  }
}

function pathOf(index: OrderedIndex): string {
  return [index.def.field, ...index.def.keys].join(".");
}

/** `limit` and `offset`: a whole number from 0. */
function countOf(expr: CountExpr, clause: string, compiler: ExpressionCompiler): (env: Env) => number {
  const compiled = compiler.compile(expr);
  return (env) => wholeNumber(compiled.eval(EMPTY_ROW, env), clause);
}

function wholeNumber(value: Value, clause: string): number {
  if (typeof value === "number" && value >= 0) return value;
  if (typeof value === "bigint" && value >= 0n) return Number.MAX_SAFE_INTEGER;
  const said = typeof value === "number" ? String(value) : kindWords(value);
  throw new Refusal("bad_value", `${clause} takes a whole number from 0, not ${said}`);
}
