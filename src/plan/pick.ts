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

import { attempt, Refusal } from "../base/refusal.ts";
import type { CountExpr, Expr, OrderKey } from "../lang/ast.ts";
import { type OrderedIndex, WHOLE_RANGE } from "../store/ordered_index.ts";
import type { Table } from "../store/table.ts";
import { kindWords, type Row, type Value } from "../value/value.ts";
import {
  type Access,
  accessWords,
  type Group,
  leastOf,
  oneKey,
  oneRow,
  type Stretch,
  stretchWords,
  Ways,
} from "./access.ts";
import type { Env } from "./env.ts";
import type { ExpressionCompiler, Test } from "./expression.ts";
import { Filter, keyNow } from "./filter.ts";
import { INSERTED_ITEMS } from "./firsts.ts";
import { NO_KEY } from "./key.ts";
import { Order } from "./order.ts";

/** Rows a walk may always test before it is compared with another way. */
const LEAST_BUDGET = 256;
const EMPTY_ROW: Row = [];

export interface Picked {
  readonly rows: readonly Row[];
  /** How they were found, for `explain`. */
  readonly how: () => string;
}

const NO_LIMIT: Picked = { rows: [], how: () => "no row: limit 0" };
const NO_MATCH: Picked = { rows: [], how: () => "no row can match" };

export class Pick {
  readonly table: Table;
  readonly filter: Filter;
  readonly order: Order;
  readonly #limit: ((env: Env) => number) | null;
  readonly #offset: ((env: Env) => number) | null;
  readonly #ways: Ways;
  /** The range to walk whatever the counts are: see `Ways.alone`. */
  readonly #straight: Group | null;

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
    this.#ways = new Ways(table, this.filter);
    const { walk } = this.order;
    this.#straight = walk?.kind === "index" ? this.#ways.alone(walk.index) : null;
    this.#limit = clauses.limit === null ? null : countOf(clauses.limit, "limit", compiler);
    this.#offset = clauses.offset === null ? null : countOf(clauses.offset, "offset", compiler);
  }

  /** The rows of the page, in order. The store must not change until the caller has done with them. */
  run(env: Env): Picked {
    const limit = this.#limit === null ? Number.POSITIVE_INFINITY : this.#limit(env);
    const offset = this.#offset === null ? 0 : this.#offset(env);
    if (limit === 0) return NO_LIMIT;
    const most = limit + offset;
    const picked = this.#page(most, env);
    return offset === 0 ? picked : { rows: picked.rows.slice(offset), how: picked.how };
  }

  /** The row that comes first of all that match, whatever the limit says. */
  first(env: Env): Row | undefined {
    return this.#page(1, env).rows[0];
  }

  /** The rows that come first of all that match, in order. */
  top(env: Env, most: number): readonly Row[] {
    return this.#page(most, env).rows;
  }

  /** How many rows match, whatever order and limit say; out of the tree's counts where one range is the whole filter. */
  count(env: Env): { count: number; how: () => string } {
    const access = leastOf(this.#ways.all(env));
    const how = (): string => accessWords(access, this.table);
    if (access.kind === "none") return { count: 0, how };
    if (this.filter.alive === undefined && access.residual.length === 0) {
      if (access.kind === "scan" && access.range === WHOLE_RANGE) {
        return { count: this.table.count, how: () => "the row count" };
      }
      if (access.kind === "range" || access.kind === "keys") {
        return { count: access.count, how: () => `${how()}, counted by the tree` };
      }
    }
    let count = 0;
    const refused = new Refused();
    this.#visit(access, env, refused, () => {
      count++;
      return true;
    });
    refused.throwFirst();
    return { count, how };
  }

  #page(most: number, env: Env): Picked {
    const { one } = this.#ways;
    if (one !== null) {
      const id = keyNow(one.key, env);
      if (id !== NO_KEY) return this.#gather(oneRow(id, one.rest), most, env);
    }
    const { walk } = this.order;
    const straight = this.#straight;
    if (straight !== null && walk?.kind === "index") {
      const range = this.#ways.bounds(straight, env);
      if (range.isNone) return NO_MATCH;
      const { index } = walk;
      if (!range.isWhole) return this.#walked({ index, range, residual: range.residual }, walk.desc, most, env);
    }
    const accesses = this.#ways.all(env);
    const best = leastOf(accesses);
    if (best.kind === "none") return NO_MATCH;
    if (walk === null) return this.#gather(best, most, env);
    if (walk.kind === "near") return this.#nearest(walk, best, most, env);
    // The order's own range of the filter, if it has one, narrows the walk.
    const way = this.#orderedWay(walk, accesses);
    const isPure = this.filter.alive === undefined && way.residual.length === 0;
    const walkRows = isPure ? Math.min(most, way.count) : way.count;
    if (way === best || (isPure && walkRows <= best.count * 2)) return this.#walked(way, walk.desc, most, env);
    if (most < Number.POSITIVE_INFINITY && best.count > Math.max(most, LEAST_BUDGET)) {
      const budget = Math.max(LEAST_BUDGET, Math.min(best.count, this.table.count >> 3));
      const found = this.#walkedWithin(way, walk.desc, most, env, budget);
      if (found !== undefined) return found;
    }
    return this.#gather(best, most, env);
  }

  /** Rows in walking order until the page is full. */
  #walked(way: Stretch, desc: boolean, most: number, env: Env): Picked {
    return this.#walkedWithin(way, desc, most, env, Number.POSITIVE_INFINITY) as Picked;
  }

  /** The same; undefined when as many rows were tested and the page is not full. */
  #walkedWithin(way: Stretch, desc: boolean, most: number, env: Env, budget: number): Picked | undefined {
    const rows: Row[] = [];
    let left = budget;
    let isSpent = false;
    const { filter } = this;
    const { alive } = filter;
    const { index, range, residual } = way;
    const visit = (row: Row): boolean => {
      env.tested++;
      if ((alive === undefined || alive(row, env)) && filter.passes(residual, row, env)) {
        rows.push(row);
        if (rows.length >= most) return false;
      }
      if (--left > 0) return true;
      isSpent = true;
      return false;
    };
    if (index === null) this.table.ids.walk(range, desc, visit);
    else index.walk(range, desc, visit);
    if (isSpent) return undefined;
    const how = (): string => `${stretchWords(way, this.table)}, walked in order${desc ? " (descending)" : ""}`;
    return { rows, how };
  }

  #gather(access: Access, most: number, env: Env): Picked {
    // Where rules bind, which refusal comes is told by all rows that match.
    if (most <= INSERTED_ITEMS && access.count > INSERTED_ITEMS && !this.filter.isBound) {
      return this.#gatherPage(access, most, env);
    }
    const rows: Row[] = [];
    const refused = new Refused();
    this.#visit(access, env, refused, (row) => {
      rows.push(row);
      return true;
    });
    const page = this.#sorted(rows, refused, most, env);
    const sorted = rows.length > 1 ? ", put in order" : "";
    return { rows: page, how: () => accessWords(access, this.table) + sorted };
  }

  #gatherPage(access: Access, most: number, env: Env): Picked {
    const page = this.order.page(most, env);
    let matched = 0;
    this.#visit(access, env, new Refused(), (row) => {
      matched++;
      page.add(row);
      return true;
    });
    const sorted = matched > 1 ? ", put in order" : "";
    return { rows: page.rows(), how: () => accessWords(access, this.table) + sorted };
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
    if (best.count <= LEAST_BUDGET) return this.#gather(best, most, env);
    const rows: Row[] = [];
    let left = Math.max(LEAST_BUDGET * 4, Math.min(best.count, this.table.count >> 1));
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
    return { rows, how: () => `nearest first by the @geo index of ${walk.field}` };
  }

  /** A condition at the top that no row without a point meets: a radius, a box, `is not null`. */
  #excludesUnplaced(slot: number): boolean {
    return this.filter.conjuncts.some((part) => part.geo?.slot === slot) || this.filter.notNull.has(slot);
  }

  #visit(access: Access, env: Env, refused: Refused, visit: (row: Row) => boolean): void {
    const { residual } = access;
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
          access.index.walk(oneKey(key), false, tested);
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

  /** The way that follows an order: its index's range if the filter has one, else all of the index; or the rows by id. */
  #orderedWay(
    walk: { readonly kind: "id" } | { readonly kind: "index"; readonly index: OrderedIndex },
    accesses: readonly Access[],
  ): Stretch & { readonly count: number } {
    for (const access of accesses) {
      if (walk.kind === "index" && access.kind === "range" && access.index === walk.index) return access;
      if (walk.kind === "id" && access.kind === "scan") return access;
    }
    const index = walk.kind === "index" ? walk.index : null;
    const residual = this.filter.conjuncts;
    return { index, range: WHOLE_RANGE, count: index === null ? this.table.count : index.size, residual };
  }
}

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
