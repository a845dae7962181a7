/** `get`: rows, a count, groups, or the nearest rows. */

import { INNER_GET_LEVELS, INNER_GET_VALUES, NEAR_ROWS } from "../base/limits.ts";
import { Refusal } from "../base/refusal.ts";
import { distance } from "../geo/distance.ts";
import type { CountExpr, GetStatement } from "../lang/ast.ts";
import type { Env } from "../plan/env.ts";
import { type Counters, ExpressionCompiler, fieldRef, type InnerGet } from "../plan/expression.ts";
import { pointOf } from "../plan/functions.ts";
import type { TimeSense } from "../plan/moment.ts";
import { Pick } from "../plan/pick.ts";
import type { Store } from "../store/store.ts";
import type { Table } from "../store/table.ts";
import { doubleJson } from "../value/json.ts";
import { identity } from "../value/order.ts";
import type { Point, Row, Value } from "../value/value.ts";
import { Grouping, hasAggregate } from "./group.ts";
import { NO_CHANGE, type Plan, type Result, unmet } from "./plan.ts";
import { type Column, columnsOf, RowWriter } from "./render.ts";
import { type Bound, type Rules, readBound } from "./rules.ts";
import { tableOf } from "./table_of.ts";

/** What the parts of one statement share while it is planned. */
export interface Planning {
  readonly store: Store;
  readonly counters: Counters;
  /** Every collection the statement reads or writes. */
  readonly tables: Set<Table>;
  /** Those that are read by inner reads. */
  readonly inner: Set<Table>;
  readonly time: TimeSense;
  /** What the token may do; null: everything. */
  readonly rules: Rules | null;
  /** How deep inside `in (get ...)` we are. */
  readonly level: number;
}

export function compilerOf(planning: Planning, table: Table, place: "row" | "none" | "incoming"): ExpressionCompiler {
  return new ExpressionCompiler(
    { table, row: place !== "none", incoming: place === "incoming", aggregates: false, columns: null },
    planning.counters,
    (get) => planInner(planning, get),
  );
}

export function planGet(planning: Planning, asked: GetStatement): Plan & { readonly how: (env: Env) => string[] } {
  const table = tableOf(planning, asked.collection);
  const bound = readBound(planning, table, asked.where);
  const read = new Read(planning, table, asked, bound);
  planning.time.add(table, bound.whole, compilerOf(planning, table, "row"), (name) => planning.store.table(name));
  return {
    verb: "get",
    isWrite: false,
    params: planning.counters.params,
    table,
    tables: planning.tables,
    inner: planning.inner,
    pick: read.pick,
    time: planning.time,
    line: null,
    run: (env) => read.run(env),
    how: (env) => read.explain(env),
  };
}

/** An inner read: exactly one column, its nulls dropped, its values counted. */
function planInner(planning: Planning, asked: GetStatement): InnerGet {
  const level = planning.level + 1;
  if (level > INNER_GET_LEVELS) {
    throw new Refusal("limit_passed", `\`in (get ...)\` goes ${INNER_GET_LEVELS} levels deep at most`);
  }
  if (asked.count) throw new Refusal("bad_clause", "an inner get answers a column, not count: select one");
  if (asked.require !== null) throw new Refusal("bad_clause", "an inner get takes no require");
  const [item] = asked.select;
  if (asked.select.length !== 1 || item === undefined || item.kind === "star") {
    throw new Refusal("bad_clause", "an inner get selects exactly one column");
  }
  // Nobody is shown the column, so it needs no name.
  const get: GetStatement = { ...asked, select: [{ ...item, as: item.text }] };
  const table = tableOf(planning, get.collection);
  planning.inner.add(table);
  const read = new Read({ ...planning, level }, table, get, readBound(planning, table, get.where));
  return (env) => read.values(env);
}

class Read {
  readonly pick: Pick;
  readonly #get: GetStatement;
  readonly #table: Table;
  readonly #isBound: boolean;
  readonly #writer: RowWriter | null;
  readonly #grouping: Grouping | null;
  readonly #near: ((env: Env) => { rows: Row[]; metres: number[] }) | null;
  readonly #limit: ((env: Env) => number) | null;
  readonly #offset: ((env: Env) => number) | null;

  constructor(planning: Planning, table: Table, get: GetStatement, bound: Bound) {
    this.#get = get;
    this.#table = table;
    this.#isBound = planning.rules !== null;
    const compiler = compilerOf(planning, table, "row");
    const grouped = get.group.length > 0;
    const asked = get.select.some((item) => item.kind === "item" && hasAggregate(item.expr));
    const aggregating = grouped || asked;
    if (grouped && !asked && !get.count) {
      throw new Refusal("bad_clause", "group goes with an aggregate in the select list, or with count");
    }
    checkClauses(get, grouped, aggregating);
    const pages = grouped || get.near !== null;
    this.pick = new Pick(
      table,
      {
        where: bound.where,
        rules: bound.rules,
        order: aggregating ? [] : get.order,
        limit: pages ? null : get.limit,
        offset: pages ? null : get.offset,
      },
      compiler,
    );
    const inner = (innerGet: GetStatement): InnerGet => planInner(planning, innerGet);
    this.#grouping = aggregating ? new Grouping(table, get, planning.counters, inner) : null;
    const columns: Column[] = aggregating || get.count ? [] : columnsOf(table, get.select, compiler);
    this.#writer = new RowWriter(columns);
    this.#limit = pages && get.limit !== null ? pageCount(get.limit, "limit", compiler) : null;
    this.#offset = pages && get.offset !== null ? pageCount(get.offset, "offset", compiler) : null;
    this.#near = get.near === null ? null : this.#nearest(get.near, compiler);
  }

  run(env: Env): Result {
    const get = this.#get;
    if (this.#grouping !== null) {
      const groups = this.#groups(env);
      if (get.count) return rows(`[{"count":${groups.length}}]`, 1);
      return this.#answer(this.#grouping.json(groups, env), groups.length);
    }
    if (get.count) return rows(`[{"count":${this.pick.count(env).count}}]`, 1);
    const writer = this.#writer as RowWriter;
    if (this.#near !== null) {
      const page = this.#near(env);
      const texts = page.rows.map((row, at) => {
        const text = writer.row(row, env).slice(0, -1);
        return `${text},"_score":${doubleJson(Math.fround(page.metres[at] as number))}}`;
      });
      return this.#answer(`[${texts.join(",")}]`, texts.length);
    }
    const picked = this.pick.run(env).rows;
    return this.#answer(writer.rows(picked, env), picked.length);
  }

  /** The values of the one column, distinct, without nulls. */
  values(env: Env): Value[] {
    let all: readonly Value[];
    if (this.#grouping !== null) all = this.#grouping.values(this.#groups(env), env);
    else {
      const column = this.#writer?.columns[0] as Column;
      const found = this.#near === null ? this.pick.run(env).rows : this.#near(env).rows;
      all = found.map((row) => column.value(row, env));
    }
    const seen = new Set<ReturnType<typeof identity>>();
    const values: Value[] = [];
    for (const value of all) {
      if (value === null) continue;
      const key = identity(value);
      if (seen.has(key)) continue;
      seen.add(key);
      values.push(value);
      if (values.length > INNER_GET_VALUES) {
        throw new Refusal("limit_passed", `\`in (get ...)\` holds ${INNER_GET_VALUES} distinct values at most`);
      }
    }
    return values;
  }

  explain(env: Env): string[] {
    const lines = this.#lines(env);
    return this.#isBound ? boundLines(this.#table, lines) : lines;
  }

  #lines(env: Env): string[] {
    const get = this.#get;
    const lines: string[] = [];
    if (get.count && this.#grouping === null) {
      const { count, how } = this.pick.count(env);
      return [how(), `rows tested: ${env.tested}`, `count: ${count}`];
    }
    if (this.#grouping !== null) {
      lines.push(this.pick.run(env).how());
      env.tested = 0;
      const groups = this.#groups(env);
      lines.push(get.group.length > 0 ? "grouped" : "aggregated", `rows tested: ${env.tested}`);
      lines.push(get.count ? `count: ${groups.length}` : `rows: ${groups.length}`);
      return lines;
    }
    if (this.#near !== null) {
      const page = this.#near(env);
      return [`nearest first by ${get.near?.field}`, `rows tested: ${env.tested}`, `rows: ${page.rows.length}`];
    }
    const picked = this.pick.run(env);
    return [picked.how(), `rows tested: ${env.tested}`, `rows: ${picked.rows.length}`];
  }

  #groups(env: Env): ReturnType<Grouping["groups"]> {
    const grouping = this.#grouping as Grouping;
    const groups = grouping.groups(this.pick, this.#get.group.length === 0, env);
    const offset = this.#offset?.(env) ?? 0;
    const limit = this.#limit?.(env) ?? Number.POSITIVE_INFINITY;
    return groups.slice(offset, offset + limit);
  }

  /** A `require` that is not met is the last refusal there can be. */
  #answer(text: string, count: number): Result {
    const wanted = this.#get.require;
    if (wanted !== null && count !== wanted) throw unmet("get", this.#get.collection, count, wanted);
    return rows(text, count);
  }

  #nearest(
    near: NonNullable<GetStatement["near"]>,
    compiler: ExpressionCompiler,
  ): (env: Env) => { rows: Row[]; metres: number[] } {
    const ref = fieldRef(this.#table, near.field, []);
    if (ref.type.kind !== "geo") {
      throw new Refusal("bad_value", `near takes a geo field, and \`${near.field}\` is none`);
    }
    const from = compiler.compile(near.point);
    if (!from.constant) throw new Refusal("bad_value", "near takes a point written out or sent: [longitude, latitude]");
    const slot = ref.slot;
    return (env) => {
      const point = pointOf(from.eval([], env), "near");
      if (point === null) throw new Refusal("bad_value", "near takes a point [longitude, latitude], not null");
      const limit = this.#limit?.(env) ?? Number.POSITIVE_INFINITY;
      const offset = this.#offset?.(env) ?? 0;
      const most = limit + offset;
      if (this.#limit !== null && most > NEAR_ROWS) {
        throw new Refusal("limit_passed", `near answers ${NEAR_ROWS} rows at most, limit and offset together`);
      }
      const found: Row[] = [];
      const metres: number[] = [];
      if (limit === 0) return { rows: found, metres };
      const places = this.#table.geo(near.field);
      const visit = (row: Row, away: number): boolean => {
        env.tested++;
        if (!this.pick.filter.matches(row, env)) return true;
        found.push(row);
        metres.push(away);
        return found.length < most;
      };
      if (places !== undefined) places.nearest(point.lon, point.lat, visit);
      else scanNearest(this.#table, slot, point, visit);
      return { rows: found.slice(offset), metres: metres.slice(offset) };
    };
  }
}

function scanNearest(table: Table, slot: number, point: Point, visit: (row: Row, away: number) => boolean): void {
  const placed: { row: Row; away: number }[] = [];
  table.scan(-Infinity, (row) => {
    const at = row[slot] as Point | null;
    if (at !== null) placed.push({ row, away: distance(at.lon, at.lat, point.lon, point.lat) });
    return true;
  });
  placed.sort((a, b) => a.away - b.away || (a.row[0] as number) - (b.row[0] as number));
  for (const { row, away } of placed) if (!visit(row, away)) return;
}

/**
 * What a token held to rules is told of a plan: how many rows came of it. Which way was taken and what was tested on it
 * follows from counts of all rows, those it may not know of among them.
 */
export function boundLines(table: Table, lines: readonly string[]): string[] {
  return [`${table.schema.name}, the rows of this token`, ...lines.slice(-1)];
}

function rows(text: string, count: number): Result {
  return { kind: "rows", text, count, change: NO_CHANGE };
}

function pageCount(expr: CountExpr, clause: string, compiler: ExpressionCompiler): (env: Env) => number {
  const compiled = compiler.compile(expr);
  return (env) => {
    const value = compiled.eval([], env);
    if (typeof value === "number" && value >= 0) return value;
    throw new Refusal("bad_value", `${clause} takes a whole number from 0`);
  };
}

/** Which clauses go together. */
function checkClauses(get: GetStatement, grouped: boolean, aggregating: boolean): void {
  const refuse = (words: string): never => {
    throw new Refusal("bad_clause", words);
  };
  if (get.count) {
    if (get.near !== null) refuse("count does not go with near");
    if (get.limit !== null) refuse("count does not go with limit");
    if (get.offset !== null) refuse("count does not go with offset");
    if (get.require !== null) refuse("count does not go with require");
    if (get.order.length > 0) refuse("count does not go with order");
    if (get.select.length > 0 && !grouped) refuse("count does not go with a select list");
  }
  if (get.having !== null && !grouped) refuse("having follows group");
  if (get.near !== null && get.order.length > 0) refuse("near has its own order: it does not go with order");
  if (get.near !== null && aggregating) refuse("near does not go with group or aggregates");
  if (aggregating && !grouped) {
    if (get.limit !== null || get.offset !== null)
      refuse("an aggregate over the whole set is one row: it takes no limit or offset");
    if (get.require !== null) refuse("an aggregate over the whole set is one row: it takes no require");
  }
}
