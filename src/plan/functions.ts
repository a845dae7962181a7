/** The functions of the language, but for aggregates. Each compiles its call to a closure over its arguments. */

import { Refusal } from "../base/refusal.ts";
import { distance, withinBox } from "../geo/distance.ts";
import type { CallExpr, Expr } from "../lang/ast.ts";
import { comparable, compareValues } from "../value/order.ts";
import { bucketValue, intervalOf, parseDuration, parseTime } from "../value/time.ts";
import { Float, kindWords, Point, Time, type Value } from "../value/value.ts";
import { type Compiled, type Eval, type ExpressionCompiler, listOf } from "./expression.ts";

export const FUNCTION_NAMES: readonly string[] = [
  "now",
  "coalesce",
  "greatest",
  "least",
  "lower",
  "upper",
  "len",
  "timestamp",
  "bucket",
  "distance",
  "within",
  "expired",
];

const ARGUMENTS: ReadonlyMap<string, readonly [least: number, most: number]> = new Map([
  ["now", [0, 0]],
  ["coalesce", [1, Number.POSITIVE_INFINITY]],
  ["greatest", [1, Number.POSITIVE_INFINITY]],
  ["least", [1, Number.POSITIVE_INFINITY]],
  ["lower", [1, 1]],
  ["upper", [1, 1]],
  ["len", [1, 1]],
  ["timestamp", [1, 1]],
  ["bucket", [2, 2]],
  ["distance", [2, 2]],
  ["within", [2, 2]],
]);

export function callFunction(expr: CallExpr, compiler: ExpressionCompiler): Compiled {
  const name = expr.name;
  const [least, most] = ARGUMENTS.get(name) ?? [0, 0];
  if (expr.args.length < least || expr.args.length > most) {
    const wanted = most === least ? String(least) : `${least} or more`;
    throw new Refusal(
      "bad_clause",
      `${name}() takes ${wanted} ${wanted === "1" ? "argument" : "arguments"}, not ${expr.args.length}`,
    );
  }
  if (name === "now") {
    return { eval: compiler.kept((_row, env) => new Time(env.now)), constant: true, json: false, field: null };
  }
  if (name === "bucket") return bucketCall(expr, compiler);
  const args = expr.args.map((arg) => compiler.compile(arg));
  const constant = args.every((arg) => arg.constant);
  const built = (evaluate: Compiled["eval"]): Compiled => ({
    eval: constant ? compiler.kept(evaluate) : evaluate,
    constant,
    json: false,
    field: null,
  });
  const first = args[0] as Compiled;
  const second = args[1] as Compiled;
  switch (name) {
    case "coalesce":
      return {
        ...built((row, env) => {
          for (const arg of args) {
            const value = arg.eval(row, env);
            if (value !== null) return value;
          }
          return null;
        }),
        json: args.some((arg) => arg.json),
      };
    case "greatest":
      return built((row, env) => extreme(args, row, env, 1));
    case "least":
      return built((row, env) => extreme(args, row, env, -1));
    case "lower":
      return built((row, env) => textOf(first.eval(row, env), name)?.toLowerCase() ?? null);
    case "upper":
      return built((row, env) => textOf(first.eval(row, env), name)?.toUpperCase() ?? null);
    case "len":
      return built((row, env) => lengthOf(first.eval(row, env)));
    case "timestamp":
      return built((row, env) => timeOf(first.eval(row, env)));
    case "distance": {
      const from = pointReader(first, compiler, "distance");
      const to = pointReader(second, compiler, "distance");
      return built((row, env) => {
        const a = from(row, env) as Point | null;
        const b = to(row, env) as Point | null;
        return a === null || b === null ? null : new Float(distance(a.lon, a.lat, b.lon, b.lat));
      });
    }
    default: {
      const point = pointReader(first, compiler, "within");
      return built((row, env) => {
        const at = point(row, env) as Point | null;
        const value = second.eval(row, env);
        if (at === null || value === null) return false;
        return withinBox(at.lon, at.lat, boxOf(value));
      });
    }
  }
}

function extreme(
  args: readonly Compiled[],
  row: Parameters<Compiled["eval"]>[0],
  env: Parameters<Compiled["eval"]>[1],
  sign: number,
): Value {
  let best: Value = null;
  for (const arg of args) {
    const value = arg.eval(row, env);
    if (value === null) continue;
    if (best === null || (comparable(value, best) ?? compareValues(value, best)) * sign > 0) best = value;
  }
  return best;
}

function bucketCall(expr: CallExpr, compiler: ExpressionCompiler): Compiled {
  const [of, size] = expr.args as readonly [Expr, Expr];
  const value = compiler.compile(of);
  if (size.kind === "duration") {
    const interval = parseDuration(size.text);
    const evaluate: Eval = (row, env) => bucketValue(value.eval(row, env), interval);
    return {
      eval: value.constant ? compiler.kept(evaluate) : evaluate,
      constant: value.constant,
      json: false,
      field: null,
    };
  }
  const by = compiler.compile(size);
  const evaluate: Eval = (row, env) => {
    const interval = intervalOf(by.eval(row, env));
    return interval === undefined ? null : bucketValue(value.eval(row, env), interval);
  };
  const constant = value.constant && by.constant;
  return { eval: constant ? compiler.kept(evaluate) : evaluate, constant, json: false, field: null };
}

function textOf(value: Value, name: string): string | null {
  if (value === null || typeof value === "string") return value;
  throw new Refusal("bad_value", `${name}() takes text, not ${kindWords(value)}`);
}

function lengthOf(value: Value): Value {
  if (value === null) return null;
  const items = listOf(value);
  if (items !== undefined) return items.length;
  if (value instanceof Uint8Array) return value.length;
  if (typeof value === "string") {
    let points = 0;
    for (const _point of value) points++;
    return points;
  }
  throw new Refusal("bad_value", `len() takes a list or text, not ${kindWords(value)}`);
}

function timeOf(value: Value): Value {
  if (value === null || value instanceof Time) return value;
  if (typeof value === "string") {
    const ms = parseTime(value);
    if (ms !== undefined) return new Time(ms);
    throw new Refusal("bad_value", `"${value.slice(0, 60)}" is no time: write 2027-01-31 or 2027-01-31T08:30:00Z`);
  }
  throw new Refusal("bad_value", `timestamp() takes text, not ${kindWords(value)}`);
}

/** A constant point is made once a run. */
function pointReader(from: Compiled, compiler: ExpressionCompiler, name: string): Compiled["eval"] {
  if (from.field?.type.kind === "geo") return from.eval;
  const read: Compiled["eval"] = (row, env) => pointOf(from.eval(row, env), name);
  return from.constant ? compiler.kept(read) : read;
}

/** A point out of `[lon, lat]` in degrees; null stays null. */
export function pointOf(value: Value, name: string): Point | null {
  if (value === null || value instanceof Point) return value;
  const items = listOf(value);
  const [lon, lat] = (items ?? []).map(numberOf);
  if (items?.length === 2 && lon !== undefined && lat !== undefined && Math.abs(lon) <= 180 && Math.abs(lat) <= 90) {
    return new Point(lon, lat);
  }
  throw new Refusal(
    "bad_value",
    `${name}() takes a geo field or a point [longitude, latitude] within 180 and 90 degrees`,
  );
}

/** `[west, south, east, north]` in degrees. */
export function boxOf(value: Value): readonly [number, number, number, number] {
  const [west, south, east, north, ...more] = (listOf(value) ?? []).map(numberOf);
  if (
    west !== undefined &&
    south !== undefined &&
    east !== undefined &&
    north !== undefined &&
    more.length === 0 &&
    Math.abs(west) <= 180 &&
    Math.abs(east) <= 180 &&
    Math.abs(south) <= 90 &&
    Math.abs(north) <= 90
  ) {
    return [west, south, east, north];
  }
  throw new Refusal("bad_value", "within() takes a box [west, south, east, north] in degrees");
}

function numberOf(value: Value): number | undefined {
  if (typeof value === "number") return value;
  return value instanceof Float ? value.n : undefined;
}
