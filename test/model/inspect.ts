/**
 * What can be said against a statement before any row is read: unknown names (404), and clauses, paths and calls that do not
 * go together (400). All of it is gathered; whichever a server meets first it may answer.
 */

import type { CallExpr, Expr, GetStatement, PathExpr, SelectItem } from "../../src/lang/ast.ts";
import type { Collection, Database } from "./database.ts";
import { AGGREGATES, intervalOf, isAggregate } from "./evaluate.ts";
import { text, Wrong } from "./plain.ts";

export interface Place {
  readonly collection: Collection;
  /** There is a row to read. */
  readonly row: boolean;
  readonly incoming: boolean;
  readonly aggregates: boolean;
  /** Columns a name may stand for. */
  readonly columns: ReadonlySet<string>;
  readonly level: number;
}

const ARGUMENTS: Readonly<Record<string, readonly [number, number]>> = {
  now: [0, 0],
  coalesce: [1, Infinity],
  greatest: [1, Infinity],
  least: [1, Infinity],
  lower: [1, 1],
  upper: [1, 1],
  len: [1, 1],
  timestamp: [1, 1],
  bucket: [2, 2],
  distance: [2, 2],
  within: [2, 2],
  expired: [0, Infinity],
};

export function placeOf(collection: Collection, level = 0): Place {
  return { collection, row: true, incoming: false, aggregates: false, columns: new Set(), level };
}

export class Inspector {
  readonly statuses = new Set<number>();
  readonly #database: Database;
  readonly #params: number;

  constructor(database: Database, params: number) {
    this.#database = database;
    this.#params = params;
  }

  expr(expr: Expr, place: Place): void {
    if (expr.kind === "param") {
      if (expr.index >= this.#params) this.statuses.add(400);
    } else if (expr.kind === "path") this.#name(expr, place);
    else if (expr.kind === "call") {
      if (isAggregate(expr)) this.#aggregate(expr, place);
      else this.#call(expr, place);
    } else {
      for (const part of partsOf(expr)) this.expr(part, place);
      if (expr.kind === "inGet") this.inner(expr.get, place.level + 1);
    }
  }

  #name(expr: PathExpr, place: Place): void {
    if (place.incoming && expr.field === "new" && expr.keys.length > 0) {
      const [field = "", ...keys] = expr.keys;
      this.path(place.collection, field, keys);
    } else if (!place.columns.has([expr.field, ...expr.keys].join("."))) {
      this.path(place.collection, expr.field, expr.keys);
      if (!place.row) this.statuses.add(400);
    }
  }

  path(collection: Collection, field: string, keys: readonly string[]): void {
    const type = field === "id" ? "int" : collection.field(field)?.type.kind;
    if (type === undefined) this.statuses.add(404);
    else if (keys.length > 0 && type !== "json") this.statuses.add(400);
  }

  #call(expr: CallExpr, place: Place): void {
    const [least, most] = ARGUMENTS[expr.name] ?? [0, -1];
    if (expr.args.length < least || expr.args.length > most) this.statuses.add(400);
    if (expr.name === "expired" && (place.collection.ttl === null || !place.row)) this.statuses.add(400);
    for (const arg of expr.args) {
      if (arg.kind !== "duration") this.expr(arg, place);
      else if (!isInterval(arg.text)) this.statuses.add(400);
    }
  }

  #aggregate(expr: CallExpr, place: Place): void {
    const isEdge = expr.name === "first" || expr.name === "last";
    const isSound =
      AGGREGATES.includes(expr.name) &&
      place.aggregates &&
      (expr.name === "count" ? expr.star || expr.distinct : !expr.star && !expr.distinct) &&
      (expr.star || expr.args.length === 1) &&
      (expr.by === null || isEdge);
    if (!isSound) this.statuses.add(400);
    const inside: Place = { ...place, aggregates: false, columns: new Set() };
    for (const arg of expr.args) this.expr(arg, inside);
    if (expr.by !== null) this.expr(expr.by, inside);
  }

  inner(get: GetStatement, level: number): void {
    const [item] = get.select;
    if (level > 4 || get.count || get.require !== null) this.statuses.add(400);
    if (get.select.length !== 1 || item?.kind !== "item") {
      this.statuses.add(400);
      return;
    }
    // Nobody is shown the column, so it needs no name.
    this.get({ ...get, select: [{ ...item, as: item.text }] }, level);
  }

  get(get: GetStatement, level: number): void {
    const collection = this.#database.collections.get(get.collection);
    if (collection === undefined) {
      this.statuses.add(404);
      return;
    }
    const place = placeOf(collection, level);
    const isGrouped = get.group.length > 0;
    const isAggregating = isGrouped || get.select.some((item) => item.kind === "item" && hasAggregate(item.expr));
    if (get.where !== null) this.expr(get.where, place);
    if (get.limit !== null) this.expr(get.limit, place);
    if (get.offset !== null) this.expr(get.offset, place);
    if (get.near !== null) {
      const field = collection.field(get.near.field);
      if (field === undefined && get.near.field !== "id") this.statuses.add(404);
      else if (field?.type.kind !== "geo") this.statuses.add(400);
      this.expr(get.near.point, { ...place, row: false });
    }
    this.#clauses(get, isGrouped, isAggregating);
    if (isAggregating) this.#groups(get, place);
    else {
      this.list(get.select, place);
      for (const key of get.order) this.expr(key.expr, place);
    }
  }

  /** The same thing said twice is one column; two things are not called the same. */
  list(items: readonly SelectItem[], place: Place): void {
    const named = new Map<string, Expr>();
    for (const item of items) {
      if (item.kind === "star") {
        for (const field of ["id", ...place.collection.fields.map(({ name }) => name)]) {
          named.set(field, { kind: "path", field, keys: [], at: 0 });
        }
        continue;
      }
      this.item(item, place);
      const name = item.as ?? item.text;
      const before = named.get(name);
      if (before !== undefined && !same(before, item.expr)) this.statuses.add(400);
      named.set(name, item.expr);
    }
  }

  item(item: SelectItem, place: Place): void {
    if (item.kind === "star") return;
    if (item.as === null && !namesItself(item.expr)) this.statuses.add(400);
    this.expr(item.expr, place);
  }

  #clauses(get: GetStatement, isGrouped: boolean, isAggregating: boolean): void {
    const hasPage = get.limit !== null || get.offset !== null;
    const wrong =
      (get.count && (get.near !== null || hasPage || get.require !== null || get.order.length > 0)) ||
      (get.count && get.select.length > 0 && !isGrouped) ||
      (get.having !== null && !isGrouped) ||
      (get.near !== null && (get.order.length > 0 || isAggregating)) ||
      (isAggregating && !isGrouped && (hasPage || get.require !== null)) ||
      (isGrouped && !get.count && !get.select.some((item) => item.kind === "item" && hasAggregate(item.expr)));
    if (wrong) this.statuses.add(400);
  }

  #groups(get: GetStatement, place: Place): void {
    const keys = groupKeys(get, place.collection);
    for (const key of keys) this.expr(key, place);
    const names = new Set<string>();
    const grouped: Place = { ...place, aggregates: true };
    for (const item of get.select) {
      if (item.kind === "star") {
        this.statuses.add(400);
        continue;
      }
      this.item(item, grouped);
      this.#ofGroup(item.expr, keys, new Set());
      const name = item.as ?? item.text;
      if (names.has(name)) this.statuses.add(400);
      names.add(name);
    }
    const later: Place = { ...grouped, columns: names };
    for (const expr of [...(get.having === null ? [] : [get.having]), ...get.order.map((key) => key.expr)]) {
      this.expr(expr, later);
      this.#ofGroup(expr, keys, names);
    }
  }

  /** Outside aggregates a group has its keys and its columns, and nothing else. */
  #ofGroup(expr: Expr, keys: readonly Expr[], names: ReadonlySet<string>): void {
    if (isAggregate(expr) || keys.some((key) => same(key, expr))) return;
    if (expr.kind === "path") {
      if (!names.has([expr.field, ...expr.keys].join("."))) this.statuses.add(400);
      return;
    }
    for (const part of partsOf(expr)) this.#ofGroup(part, keys, names);
  }
}

function isInterval(duration: string): boolean {
  try {
    intervalOf(text(duration));
    return true;
  } catch (error) {
    if (error instanceof Wrong) return false;
    throw error;
  }
}

/** Group keys, with the `as` names among them read as what they name. */
export function groupKeys(get: GetStatement, collection: Collection): readonly Expr[] {
  return get.group.map((key) => {
    if (key.kind !== "path" || key.keys.length > 0 || key.field === "id" || collection.field(key.field)) return key;
    const named = get.select.findLast((item) => item.kind === "item" && item.as === key.field);
    return named?.kind === "item" ? named.expr : key;
  });
}

/** A field, a path, an aggregate of one; anything else needs a name. */
function namesItself(expr: Expr): boolean {
  if (expr.kind === "path") return true;
  if (expr.kind !== "call" || !isAggregate(expr)) return false;
  return [...expr.args, ...(expr.by === null ? [] : [expr.by])].every((part) => part.kind === "path");
}

export function partsOf(expr: Expr): readonly Expr[] {
  switch (expr.kind) {
    case "unary":
    case "isNull":
      return [expr.of];
    case "binary":
      return [expr.left, expr.right];
    case "and":
    case "or":
      return expr.of;
    case "in":
      return [expr.left, ...expr.list];
    case "inGet":
      return [expr.left];
    case "case":
      return [
        ...expr.whens.flatMap((arm) => [arm.when, arm.then]),
        ...(expr.otherwise === null ? [] : [expr.otherwise]),
      ];
    case "list":
      return expr.items;
    case "object":
      return expr.entries.map((entry) => entry.value);
    case "call":
      return [...expr.args, ...(expr.by === null ? [] : [expr.by])];
    default:
      return [];
  }
}

export function hasAggregate(expr: Expr): boolean {
  return isAggregate(expr) || partsOf(expr).some(hasAggregate);
}

export function mentionsExpired(expr: Expr): boolean {
  return (expr.kind === "call" && expr.name === "expired") || partsOf(expr).some(mentionsExpired);
}

/** The same expression, wherever it stands. */
function same(a: Expr, b: Expr): boolean {
  const bare = (expr: Expr): string =>
    JSON.stringify(expr, (key, value) => (key === "at" ? undefined : typeof value === "bigint" ? `${value}n` : value));
  return bare(a) === bare(b);
}
