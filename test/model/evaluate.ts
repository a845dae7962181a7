/**
 * Expressions worked out node by node, for one row at a time, the way the language's reference tells it: no plan, nothing
 * kept, every part asked in the order it is written.
 */

import { distance } from "../../src/geo/distance.ts";
import type { BinaryExpr, CallExpr, Expr, GetStatement } from "../../src/lang/ast.ts";
import { parseTime } from "../../src/value/time.ts";
import { Float, Json, type Value } from "../../src/value/value.ts";
import {
  bool,
  compared,
  comparedInJson,
  equal,
  float,
  INT_LEAST,
  INT_MOST,
  inTime,
  int,
  NULL,
  numberOf,
  order,
  type Plain,
  readPlain,
  text,
  time,
  Wrong,
} from "./plain.ts";

export type Row = ReadonlyMap<string, Plain>;

/** All that an expression may read. */
export interface Scope {
  readonly row: Row;
  readonly incoming: Row | null;
  /** Names of fields that hold json. */
  readonly json: ReadonlySet<string>;
  readonly now: number;
  readonly params: readonly Plain[];
  readonly ttl: { readonly field: string; readonly ms: number } | null;
  /** The values of an inner read. */
  readonly inner: (get: GetStatement) => readonly Plain[];
  /** The rows of the group at hand, and the columns that names may stand for. */
  readonly group: readonly Row[] | null;
  readonly columns: ReadonlyMap<string, Expr> | null;
}

export function evaluate(expr: Expr, scope: Scope): Plain {
  const of = (part: Expr): Plain => evaluate(part, scope);
  switch (expr.kind) {
    case "const":
      return plainOf(expr.value);
    case "param": {
      const value = scope.params[expr.index];
      if (value === undefined) throw new Wrong(400, `no parameter ${expr.index}`);
      return value;
    }
    case "path": {
      const column = columnOf(expr, scope);
      if (column !== undefined) return evaluate(column, { ...scope, columns: null });
      if (expr.field === "new" && scope.incoming !== null && expr.keys.length > 0) {
        const [field = "", ...keys] = expr.keys;
        return follow(scope.incoming.get(field) ?? NULL, keys);
      }
      return follow(scope.row.get(expr.field) ?? NULL, expr.keys);
    }
    case "unary":
      return expr.op === "not" ? bool(!holds(of(expr.of))) : negated(of(expr.of));
    case "binary":
      return binary(expr, of(expr.left), of(expr.right), scope);
    case "and":
      return bool(expr.of.every((part) => holds(of(part))));
    case "or":
      return bool(expr.of.some((part) => holds(of(part))));
    case "in": {
      const value = of(expr.left);
      return bool(expr.list.map(of).some((member) => equal(value, member)));
    }
    case "inGet": {
      const value = of(expr.left);
      return bool(scope.inner(expr.get).some((member) => equal(value, member)));
    }
    case "isNull":
      return bool((of(expr.of).kind === "null") !== expr.not);
    case "case": {
      for (const arm of expr.whens) if (holds(of(arm.when))) return of(arm.then);
      return expr.otherwise === null ? NULL : of(expr.otherwise);
    }
    case "list":
      return { kind: "list", items: expr.items.map(of) };
    case "object":
      return { kind: "object", members: expr.entries.map(({ key, value }) => [key, of(value)] as const) };
    case "call":
      return isAggregate(expr) ? aggregate(expr, scope) : call(expr, scope);
    default:
      throw new Error(`the model knows no ${expr.kind}`);
  }
}

/** Whether a condition holds: null does not, and what is neither true nor false is no condition. */
export function holds(value: Plain): boolean {
  if (value.kind === "bool") return value.is;
  if (value.kind === "null") return false;
  throw new Wrong(400, `${value.kind} is no condition`);
}

export function plainOf(value: Value): Plain {
  if (value === null) return NULL;
  if (typeof value === "boolean") return bool(value);
  if (typeof value === "number" || typeof value === "bigint") return int(value);
  if (typeof value === "string") return text(value);
  if (value instanceof Float) return value.text === undefined ? float(value.n) : numberOf(value.text);
  if (value instanceof Json) return readPlain(value.text);
  if (Array.isArray(value)) return { kind: "list", items: (value as readonly Value[]).map(plainOf) };
  throw new Error("a text has no other constants");
}

export const AGGREGATES = ["count", "sum", "avg", "min", "max", "first", "last"];

export function isAggregate(expr: Expr): boolean {
  return expr.kind === "call" && (AGGREGATES.includes(expr.name) || expr.star || expr.distinct || expr.by !== null);
}

function columnOf(expr: Expr, scope: Scope): Expr | undefined {
  return expr.kind === "path" ? scope.columns?.get([expr.field, ...expr.keys].join(".")) : undefined;
}

function follow(value: Plain, keys: readonly string[]): Plain {
  let at = value;
  for (const key of keys) {
    const member = at.kind === "object" ? at.members.find(([name]) => name === key) : undefined;
    at = member === undefined ? NULL : member[1];
  }
  return at;
}

/** Whether a value comes out of json, where kinds that differ have an order. */
function isJson(expr: Expr, scope: Scope): boolean {
  if (expr.kind === "path") {
    const column = columnOf(expr, scope);
    if (column !== undefined) return isJson(column, { ...scope, columns: null });
    const isNew = expr.field === "new" && scope.incoming !== null && expr.keys.length > 0;
    return scope.json.has(isNew ? (expr.keys[0] as string) : expr.field);
  }
  return expr.kind === "call" && expr.name === "coalesce" && expr.args.some((arg) => isJson(arg, scope));
}

// --------------------------------------------------------------------------------------------------------- operators

function binary(expr: BinaryExpr, a: Plain, b: Plain, scope: Scope): Plain {
  switch (expr.op) {
    case "=":
      return bool(equal(a, b));
    case "!=":
      return bool(!equal(a, b));
    case "~":
      return bool(a.kind === "text" && b.kind === "text" && a.text.toLowerCase().includes(b.text.toLowerCase()));
    case "has":
      return bool(a.kind === "list" && b.kind !== "null" && a.items.some((item) => equal(item, b)));
    case "<":
    case "<=":
    case ">":
    case ">=": {
      if (a.kind === "null" || b.kind === "null") return bool(false);
      const inJson = isJson(expr.left, scope) || isJson(expr.right, scope);
      const found = inJson ? comparedInJson(a, b) : compared(a, b);
      if (found === undefined) return bool(false);
      return bool(
        expr.op === "<" ? found < 0 : expr.op === "<=" ? found <= 0 : expr.op === ">" ? found > 0 : found >= 0,
      );
    }
    default:
      return arithmetic(expr.op, a, b);
  }
}

function arithmetic(op: "+" | "-" | "*" | "/", a: Plain, b: Plain): Plain {
  if (a.kind === "null" || b.kind === "null") return NULL;
  if ((a.kind === "int" || a.kind === "float") && (b.kind === "int" || b.kind === "float")) {
    if (op === "/" && Number(b.n) === 0) throw new Wrong(400, "division by zero");
    if (a.kind === "int" && b.kind === "int") {
      return checkedInt(op === "+" ? a.n + b.n : op === "-" ? a.n - b.n : op === "*" ? a.n * b.n : a.n / b.n);
    }
    const x = Number(a.n);
    const y = Number(b.n);
    return checkedFloat(op === "+" ? x + y : op === "-" ? x - y : op === "*" ? x * y : x / y);
  }
  if (op === "+" && a.kind === "text" && b.kind === "text") return text(a.text + b.text);
  if (op === "+" && a.kind === "time" && b.kind === "int") return checkedTime(BigInt(a.ms) + b.n);
  if (op === "+" && a.kind === "int" && b.kind === "time") return checkedTime(a.n + BigInt(b.ms));
  if (op === "-" && a.kind === "time" && b.kind === "int") return checkedTime(BigInt(a.ms) - b.n);
  if (op === "-" && a.kind === "time" && b.kind === "time") return int(a.ms - b.ms);
  throw new Wrong(400, `${a.kind} ${op} ${b.kind}`);
}

function checkedInt(n: bigint): Plain {
  if (n < INT_LEAST || n > INT_MOST) throw new Wrong(400, "past 64 bits");
  return int(n);
}

function checkedFloat(n: number): Plain {
  if (!Number.isFinite(n)) throw new Wrong(400, "past what a float holds");
  return float(n);
}

function checkedTime(ms: bigint): Plain {
  if (!inTime(ms)) throw new Wrong(400, "past the years");
  return time(Number(ms));
}

function negated(value: Plain): Plain {
  if (value.kind === "null") return NULL;
  if (value.kind === "int") return checkedInt(-value.n);
  if (value.kind === "float") return float(-value.n);
  throw new Wrong(400, `minus ${value.kind}`);
}

// --------------------------------------------------------------------------------------------------------- functions

function call(expr: CallExpr, scope: Scope): Plain {
  const of = (part: Expr): Plain => evaluate(part, scope);
  const [first, second] = expr.args as readonly [Expr, Expr];
  switch (expr.name) {
    case "now":
      return time(scope.now);
    case "expired":
      return bool(isExpired(scope.row, scope.ttl, scope.now));
    case "coalesce": {
      for (const arg of expr.args) {
        const value = of(arg);
        if (value.kind !== "null") return value;
      }
      return NULL;
    }
    case "greatest":
    case "least":
      return extreme(expr.args.map(of), expr.name === "greatest" ? 1 : -1);
    case "lower":
    case "upper": {
      const value = of(first);
      if (value.kind === "null") return NULL;
      if (value.kind !== "text") throw new Wrong(400, `${expr.name} of ${value.kind}`);
      return text(expr.name === "lower" ? value.text.toLowerCase() : value.text.toUpperCase());
    }
    case "len": {
      const value = of(first);
      if (value.kind === "null") return NULL;
      if (value.kind === "list") return int(value.items.length);
      if (value.kind === "bytes") return int(value.bytes.length);
      if (value.kind === "text") return int([...value.text].length);
      throw new Wrong(400, `len of ${value.kind}`);
    }
    case "timestamp": {
      const value = of(first);
      if (value.kind === "null" || value.kind === "time") return value;
      const ms = value.kind === "text" ? parseTime(value.text) : undefined;
      if (ms === undefined) throw new Wrong(400, "no time");
      return time(ms);
    }
    case "bucket": {
      const interval = second.kind === "duration" ? intervalOf(text(second.text)) : intervalOf(of(second));
      return interval === null ? NULL : bucketOf(of(first), interval);
    }
    case "distance": {
      const a = pointOf(of(first));
      const b = pointOf(of(second));
      return a === null || b === null ? NULL : float(distance(a.lon, a.lat, b.lon, b.lat));
    }
    case "within": {
      const point = pointOf(of(first));
      const box = of(second);
      if (point === null || box.kind === "null") return bool(false);
      const [west = NaN, south = NaN, east = NaN, north = NaN, ...more] = degreesOf(box);
      const sound = [west, east].every((n) => Math.abs(n) <= 180) && [south, north].every((n) => Math.abs(n) <= 90);
      if (!sound || more.length > 0) throw new Wrong(400, "no box");
      const { lon, lat } = point;
      const across = west <= east ? lon >= west && lon <= east : lon >= west || lon <= east;
      return bool(across && lat >= south && lat <= north);
    }
    default:
      throw new Wrong(400, `no function ${expr.name}`);
  }
}

function extreme(values: readonly Plain[], sign: number): Plain {
  let best: Plain = NULL;
  for (const value of values) {
    if (value.kind === "null") continue;
    if (best.kind === "null" || (compared(value, best) ?? order(value, best)) * sign > 0) best = value;
  }
  return best;
}

export function isExpired(row: Row, ttl: Scope["ttl"], now: number): boolean {
  const at = ttl === null ? NULL : (row.get(ttl.field) ?? NULL);
  return ttl !== null && at.kind === "time" && at.ms <= now - ttl.ms;
}

export function pointOf(value: Plain): { readonly lon: number; readonly lat: number } | null {
  if (value.kind === "null") return null;
  if (value.kind === "point") return value;
  const [lon = NaN, lat = NaN, ...more] = degreesOf(value);
  if (!(Math.abs(lon) <= 180 && Math.abs(lat) <= 90) || more.length > 0) throw new Wrong(400, "no point");
  return { lon, lat };
}

function degreesOf(value: Plain): number[] {
  const items = value.kind === "list" ? value.items : [];
  return items.map((item) => (item.kind === "int" || item.kind === "float" ? Number(item.n) : NaN));
}

type Interval = { readonly ms: bigint; readonly from: bigint } | { readonly months: number };

const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

/** Null for null; wrong where it is no interval. */
export function intervalOf(value: Plain): Interval | null {
  if (value.kind === "null") return null;
  if (value.kind === "text") {
    const [, digits = "0", unit = ""] = /^(\d+)(ms|s|m|h|d|w|mo|y)$/.exec(value.text) ?? [];
    const count = Number(digits);
    if (count === 0) throw new Wrong(400, "no interval");
    if (unit === "mo" || unit === "y") return { months: unit === "y" ? count * 12 : count };
    // Weeks are counted from a Monday, 1969-12-29.
    return { ms: BigInt(count) * BigInt(UNIT_MS[unit] as number), from: unit === "w" ? BigInt(-3 * 86_400_000) : 0n };
  }
  const isWhole = value.kind === "int" || (value.kind === "float" && Number.isSafeInteger(value.n));
  if (!isWhole || value.n <= 0) throw new Wrong(400, "no interval");
  return { ms: BigInt(value.n), from: 0n };
}

function bucketOf(value: Plain, interval: Interval): Plain {
  if (value.kind === "null") return NULL;
  if (value.kind !== "time" && value.kind !== "int") throw new Wrong(400, `bucket of ${value.kind}`);
  const n = value.kind === "int" ? value.n : BigInt(value.ms);
  if ("months" in interval) {
    if (!inTime(n)) throw new Wrong(400, "past the years");
    const at = new Date(Number(n));
    const month = at.getUTCFullYear() * 12 + at.getUTCMonth();
    const first = month - (month % interval.months);
    const start = new Date(0);
    start.setUTCFullYear(Math.floor(first / 12), first % 12, 1);
    return value.kind === "int" ? int(start.getTime()) : time(start.getTime());
  }
  const past = (((n - interval.from) % interval.ms) + interval.ms) % interval.ms;
  return value.kind === "int" ? checkedInt(n - past) : checkedTime(n - past);
}

// -------------------------------------------------------------------------------------------------------- aggregates

/** One name for all values that are equal. */
export function keyOf(value: Plain): string {
  if (value.kind === "list") return `[${value.items.map(keyOf).join(" ")}]`;
  if (value.kind === "object") {
    const members = value.members.map(([key, member]) => `${JSON.stringify(key)}:${keyOf(member)}`);
    return `{${members.sort().join(" ")}}`;
  }
  if (value.kind === "int") return `n${value.n}`;
  if (value.kind === "float") return `n${Number.isInteger(value.n) ? BigInt(value.n) : value.n}`;
  return JSON.stringify(value);
}

function aggregate(expr: CallExpr, scope: Scope): Plain {
  const rows = scope.group ?? [];
  if (expr.star) return int(rows.length);
  const [arg] = expr.args as readonly [Expr];
  const alone = (row: Row): Scope => ({ ...scope, row, group: null, columns: null });
  const pairs = rows
    .map((row) => ({ row, value: evaluate(arg, alone(row)) }))
    .filter((pair) => pair.value.kind !== "null");
  const values = pairs.map((pair) => pair.value);
  switch (expr.name) {
    case "count":
      return int(new Set(values.map(keyOf)).size);
    case "sum":
    case "avg":
      return total(values, expr.name === "avg");
    case "min":
    case "max": {
      for (const { kind } of values) {
        if (kind === "list" || kind === "object" || kind === "bytes") throw new Wrong(400, `${expr.name} of ${kind}`);
      }
      return extreme(values, expr.name === "max" ? 1 : -1);
    }
    default: {
      const sign = expr.name === "last" ? 1 : -1;
      let best: { value: Plain; key: Plain } | null = null;
      for (const { row, value } of pairs) {
        const key = expr.by === null ? (row.get("id") as Plain) : evaluate(expr.by, alone(row));
        if (key.kind === "null") continue;
        const ahead = best === null ? 1 : (compared(key, best.key) ?? order(key, best.key)) * sign;
        // Rows come by ascending id: of equal keys `first` keeps the one it has, `last` takes the next.
        if (ahead > 0 || (ahead === 0 && sign > 0)) best = { value, key };
      }
      return best === null ? NULL : best.value;
    }
  }
}

function total(values: readonly Plain[], isAverage: boolean): Plain {
  let ints = 0n;
  let floats = 0;
  let isFloat = isAverage;
  for (const value of values) {
    if (value.kind === "int") ints += value.n;
    else if (value.kind === "float") {
      floats += value.n;
      isFloat = true;
    } else throw new Wrong(400, `a sum over ${value.kind}`);
  }
  if (values.length === 0) return NULL;
  if (!isFloat) return checkedInt(ints);
  return checkedFloat((Number(ints) + floats) / (isAverage ? values.length : 1));
}
