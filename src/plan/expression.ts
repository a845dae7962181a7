/**
 * Expressions become closures once, at plan time; a row loop makes no choice that could have been made here.
 *
 * A closure reads a row and the run's `Env` and gives a `Value`. What reads no row is a constant of the run: it is worked
 * out when the first row asks and kept, so an error in it comes at the first row and never over none.
 */

import { Refusal } from "../base/refusal.ts";
import type { BinaryExpr, CallExpr, CaseExpr, Expr, GetStatement, PathExpr } from "../lang/ast.ts";
import { LIFTED_BASE } from "../lang/lifted.ts";
import { nearestWord } from "../lang/nearest_word.ts";
import type { Table } from "../store/table.ts";
import { add, divide, multiply, negate, subtract } from "../value/arithmetic.ts";
import { jsonPathText, jsonToValue, listValues, valueToJson } from "../value/json.ts";
import { comparable, comparableInJson, compareText } from "../value/order.ts";
import { cellToValue, typeText } from "../value/types.ts";
import { type Cell, type FieldType, Float, Json, kindWords, type Row, Time, type Value } from "../value/value.ts";
import type { Env } from "./env.ts";
import { callFunction, FUNCTION_NAMES } from "./functions.ts";
import { type KeyMaker, keyMaker, NO_KEY } from "./key.ts";
import { equal, ValueSet } from "./value_set.ts";

export type Eval = (row: Row, env: Env) => Value;
export type Test = (row: Row, env: Env) => boolean;

/** A field of the row at hand, or a path into a json one. */
export interface FieldRef {
  readonly slot: number;
  readonly name: string;
  readonly keys: readonly string[];
  readonly type: FieldType;
}

export interface Compiled {
  readonly eval: Eval;
  /** Reads no row. */
  readonly constant: boolean;
  /** A json field or a path into one: mixed kinds have an order there. */
  readonly json: boolean;
  readonly field: FieldRef | null;
}

export interface AggregateSpec {
  readonly name: string;
  readonly arg: Compiled | null;
  readonly by: Compiled | null;
  readonly distinct: boolean;
}

/** An inner read, run once before the first row is asked. */
export type InnerGet = (env: Env) => readonly Value[];

/** Where an expression stands, which says what its names mean. */
export interface Place {
  /** The rows' collection; null where there is no row to read (a put's values). */
  readonly table: Table;
  readonly row: boolean;
  /** `new.f` may be read. */
  readonly incoming: boolean;
  /** Aggregates may be asked for. */
  readonly aggregates: boolean;
  /** Columns of the select list that a name may stand for (`having`, `order` over groups). */
  readonly columns: ReadonlyMap<string, Compiled> | null;
}

export const AGGREGATES: ReadonlySet<string> = new Set(["count", "sum", "avg", "min", "max", "first", "last"]);

const ID_TYPE: FieldType = { kind: "int" };

export class ExpressionCompiler {
  readonly place: Place;
  readonly counters: Counters;
  readonly planInner: (get: GetStatement) => InnerGet;
  /** The aggregates asked for so far; compilers of one statement's list, having and order share them. */
  readonly aggregates: AggregateSpec[];
  #insideAggregate = false;

  constructor(
    place: Place,
    counters: Counters,
    planInner: (get: GetStatement) => InnerGet,
    aggregates: AggregateSpec[] = [],
  ) {
    this.place = place;
    this.counters = counters;
    this.planInner = planInner;
    this.aggregates = aggregates;
  }

  /** The same statement's constants over another collection's rows: an inner read. */
  over(table: Table): ExpressionCompiler {
    const place: Place = { table, row: true, incoming: false, aggregates: false, columns: null };
    return new ExpressionCompiler(place, this.counters, this.planInner);
  }

  compile(expr: Expr): Compiled {
    switch (expr.kind) {
      case "const": {
        const value = expr.value;
        return { eval: () => value, constant: true, json: false, field: null };
      }
      case "param": {
        const index = expr.index;
        this.counters.sees(index);
        return { eval: (_row, env) => env.param(index), constant: true, json: false, field: null };
      }
      case "claim": {
        const name = expr.name;
        return { eval: (_row, env) => env.claims.get(name) ?? null, constant: true, json: false, field: null };
      }
      case "path":
        return this.#path(expr);
      case "unary": {
        const of = this.compile(expr.of);
        if (expr.op === "not") {
          const test = truth(of, expr.of);
          return this.#derived([of], (row, env) => !test(row, env));
        }
        return this.#derived([of], (row, env) => negate(of.eval(row, env)));
      }
      case "binary":
        return this.#binary(expr);
      case "and":
      case "or": {
        const tests = expr.of.map((part) => this.test(part));
        const parts = tests.map((part) => part.compiled);
        const all = tests.map((part) => part.test);
        return this.#derived(parts, expr.kind === "and" ? allOf(all) : anyOf(all));
      }
      case "in":
        return this.#in(expr.left, expr.list);
      case "inGet": {
        const left = this.compile(expr.left);
        const set = this.innerSet(expr.get);
        return this.#derived([left], (row, env) => set(env).has(left.eval(row, env)), false);
      }
      case "isNull": {
        const of = this.compile(expr.of);
        const wanted = !expr.not;
        const field = of.field;
        if (field !== null && field.keys.length === 0) {
          const slot = field.slot;
          return this.#derived([of], (row) => (row[slot] === null) === wanted, false);
        }
        return this.#derived([of], (row, env) => (of.eval(row, env) === null) === wanted);
      }
      case "call":
        return this.#call(expr);
      case "case":
        return this.#case(expr);
      case "list": {
        const items = expr.items.map((item) => this.compile(item));
        return this.#derived(items, (row, env) => items.map((item) => item.eval(row, env)));
      }
      case "object": {
        const entries = expr.entries.map((entry) => ({
          key: `${JSON.stringify(entry.key)}:`,
          value: this.compile(entry.value),
        }));
        return this.#derived(
          entries.map((entry) => entry.value),
          (row, env) => {
            const members = entries.map((entry) => entry.key + memberJson(entry.value.eval(row, env)));
            return new Json(`{${members.join(",")}}`);
          },
        );
      }
      case "duration":
        throw new Refusal("bad_clause", `the interval ${expr.text} stands only as bucket's second argument`);
    }
  }

  /** A condition: what holds, and how. */
  test(expr: Expr): { compiled: Compiled; test: Test } {
    const compiled = this.compile(expr);
    return { compiled, test: truth(compiled, expr) };
  }

  /** The set of an inner read, filled once a run. */
  innerSet(get: GetStatement): (env: Env) => ValueSet {
    const run = this.planInner(get);
    const number = this.counters.set();
    return (env) => {
      let set = env.sets[number];
      if (set === undefined) {
        set = new ValueSet(run(env));
        env.sets[number] = set;
      }
      return set;
    };
  }

  #path(expr: PathExpr): Compiled {
    const { place } = this;
    if (place.incoming && expr.field === "new" && expr.keys.length > 0) {
      const [name, ...keys] = expr.keys;
      const ref = fieldRef(place.table, name ?? "", keys);
      const read = reader(ref);
      return {
        eval: (_row, env) => read(env.incoming, env),
        constant: false,
        json: ref.type.kind === "json",
        field: null,
      };
    }
    const text = place.columns === null || this.#insideAggregate ? "" : [expr.field, ...expr.keys].join(".");
    const column = place.columns?.get(text);
    if (column !== undefined) return column;
    const ref = fieldRef(place.table, expr.field, expr.keys);
    if (!place.row) {
      const path = [expr.field, ...expr.keys].join(".");
      throw new Refusal("bad_value", `\`${path}\` cannot be read here: a put's values have no row to read`);
    }
    return { eval: reader(ref), constant: false, json: ref.type.kind === "json", field: ref };
  }

  /** A node over `parts`: a constant when they all are, and then kept for the run. */
  #derived(parts: readonly Compiled[], evaluate: Eval, foldable = true): Compiled {
    const constant = foldable && parts.every((part) => part.constant);
    if (!constant) return { eval: evaluate, constant: false, json: false, field: null };
    return { eval: this.kept(evaluate), constant: true, json: false, field: null };
  }

  /** Works a constant out once a run. */
  kept(evaluate: Eval): Eval {
    const number = this.counters.memo();
    return (row, env) => {
      let value = env.memo[number];
      if (value === undefined) {
        value = evaluate(row, env);
        env.memo[number] = value;
      }
      return value;
    };
  }

  #binary(expr: BinaryExpr): Compiled {
    const left = this.compile(expr.left);
    const right = this.compile(expr.right);
    const parts = [left, right];
    const a = left.eval;
    const b = right.eval;
    switch (expr.op) {
      case "+":
        return this.#derived(parts, (row, env) => {
          const x = a(row, env);
          const y = b(row, env);
          if (typeof x === "number" && typeof y === "number") {
            const sum = x + y;
            if (Number.isSafeInteger(sum)) return sum;
          }
          return add(x, y);
        });
      case "-":
        return this.#derived(parts, (row, env) => subtract(a(row, env), b(row, env)));
      case "*":
        return this.#derived(parts, (row, env) => multiply(a(row, env), b(row, env)));
      case "/":
        return this.#derived(parts, (row, env) => divide(a(row, env), b(row, env)));
      case "~":
        return this.#derived(parts, (row, env) => contains(a(row, env), b(row, env)));
      case "has":
        return this.#derived(parts, (row, env) => has(a(row, env), b(row, env)));
      default:
        return this.#derived(parts, this.#comparison(expr.op, left, right));
    }
  }

  #comparison(op: "=" | "!=" | "<" | "<=" | ">" | ">=", left: Compiled, right: Compiled): Test {
    const general = generalComparison(op, left, right);
    if (left.field !== null && right.constant) return this.#fieldComparison(op, left.field, right, general);
    if (right.field !== null && left.constant) return this.#fieldComparison(MIRRORED[op], right.field, left, general);
    return general;
  }

  /** A plain field against a constant: the cell meets a key made once a run, with no value built for the row. */
  #fieldComparison(op: "=" | "!=" | "<" | "<=" | ">" | ">=", field: FieldRef, constant: Compiled, general: Test): Test {
    const maker = field.keys.length === 0 ? keyMaker(field.type) : undefined;
    if (maker === undefined || !maker.native) return general;
    const key = this.key(maker, constant);
    const slot = field.slot;
    const text = field.type.kind === "text";
    return (row, env) => {
      const wanted = key(row, env);
      if (wanted === NO_KEY) return general(row, env);
      const cell = row[slot] as Cell;
      if (op === "=") return cell === wanted || looselyEqual(cell, wanted);
      if (op === "!=") return !(cell === wanted || looselyEqual(cell, wanted));
      if (cell === null || wanted === null) return false;
      if (text) {
        const order = compareText(cell as string, wanted as string);
        return op === "<" ? order < 0 : op === "<=" ? order <= 0 : op === ">" ? order > 0 : order >= 0;
      }
      const x = cell as number;
      const y = wanted as number;
      return op === "<" ? x < y : op === "<=" ? x <= y : op === ">" ? x > y : x >= y;
    };
  }

  /** A constant as a key of a field's cells, made once a run; NO_KEY when the field cannot hold it exactly. */
  key(maker: KeyMaker, constant: Compiled): (row: Row, env: Env) => unknown {
    const number = this.counters.key();
    const evaluate = constant.eval;
    return (row, env) => {
      let key = env.keys[number];
      if (key === undefined) {
        key = maker.key(evaluate(row, env));
        env.keys[number] = key;
      }
      return key;
    };
  }

  #in(leftExpr: Expr, list: readonly Expr[]): Compiled {
    const left = this.compile(leftExpr);
    const items = list.map((item) => this.compile(item));
    if (items.every((item) => item.constant)) {
      const set = this.constantSet(items, list);
      return this.#derived([left, ...items], (row, env) => set(row, env).has(left.eval(row, env)));
    }
    return this.#derived([left, ...items], (row, env) => {
      const value = left.eval(row, env);
      return items.some((item) => equal(value, item.eval(row, env)));
    });
  }

  /** The members of a constant list; a claim that is a list stands for its members. */
  constantSet(items: readonly Compiled[], exprs: readonly Expr[]): (row: Row, env: Env) => ValueSet {
    const number = this.counters.set();
    return (row, env) => {
      let set = env.sets[number];
      if (set === undefined) {
        const values: Value[] = [];
        for (const [at, item] of items.entries()) {
          const value = item.eval(row, env);
          const members = exprs[at]?.kind === "claim" ? listOf(value) : undefined;
          if (members === undefined) values.push(value);
          else for (const member of members) values.push(member);
        }
        set = new ValueSet(values);
        env.sets[number] = set;
      }
      return set;
    };
  }

  #call(expr: CallExpr): Compiled {
    const name = expr.name;
    if (AGGREGATES.has(name) || expr.star || expr.distinct || expr.by !== null) return this.#aggregate(expr);
    if (!FUNCTION_NAMES.includes(name)) {
      const near = nearestWord(name, [...FUNCTION_NAMES, ...AGGREGATES]);
      const hint = near === undefined ? `known are ${FUNCTION_NAMES.join(", ")}` : `did you mean \`${near}\`?`;
      throw new Refusal("unknown_function", `there is no function \`${name}\`: ${hint}`);
    }
    if (name === "expired") {
      const ttl = this.place.table.ttl;
      if (ttl === undefined || !this.place.row) {
        throw new Refusal("bad_clause", `expired() needs a collection with @ttl, and rows to read`);
      }
      const { slot, ttlMs } = ttl;
      return {
        eval: (row, env) => isExpired(row[slot] as Cell, ttlMs, env.now),
        constant: false,
        json: false,
        field: null,
      };
    }
    return callFunction(expr, this);
  }

  #aggregate(expr: CallExpr): Compiled {
    if (!AGGREGATES.has(expr.name)) {
      throw new Refusal(
        "unknown_function",
        `there is no aggregate \`${expr.name}\`: known are ${[...AGGREGATES].join(", ")}`,
      );
    }
    if (!this.place.aggregates || this.#insideAggregate) {
      throw new Refusal(
        "bad_clause",
        `the aggregate ${expr.name}() stands only in a select list, having or order of a get`,
      );
    }
    this.#insideAggregate = true;
    try {
      if (expr.name === "count" && !expr.star && !expr.distinct) {
        throw new Refusal("bad_clause", "count takes * or distinct: count(*), count(distinct field)");
      }
      if (expr.name !== "count" && (expr.star || expr.distinct)) {
        throw new Refusal("bad_clause", `${expr.name} takes one expression`);
      }
      if (!expr.star && expr.args.length !== 1) {
        throw new Refusal("bad_clause", `${expr.name} takes one expression, not ${expr.args.length}`);
      }
      if (expr.by !== null && expr.name !== "first" && expr.name !== "last") {
        throw new Refusal("bad_clause", `only first and last take \`by\``);
      }
      const [argument] = expr.args;
      const spec: AggregateSpec = {
        name: expr.name,
        arg: argument === undefined ? null : this.compile(argument),
        by: expr.by === null ? null : this.compile(expr.by),
        distinct: expr.distinct,
      };
      const number = this.aggregates.length;
      this.aggregates.push(spec);
      return { eval: (_row, env) => env.aggregates[number] ?? null, constant: false, json: false, field: null };
    } finally {
      this.#insideAggregate = false;
    }
  }

  #case(expr: CaseExpr): Compiled {
    const whens = expr.whens.map((arm) => ({ when: this.test(arm.when), result: this.compile(arm.then) }));
    const otherwise = expr.otherwise === null ? null : this.compile(expr.otherwise);
    const parts = whens.flatMap((arm) => [arm.when.compiled, arm.result]);
    if (otherwise !== null) parts.push(otherwise);
    return this.#derived(parts, (row, env) => {
      for (const arm of whens) if (arm.when.test(row, env)) return arm.result.eval(row, env);
      return otherwise === null ? null : otherwise.eval(row, env);
    });
  }
}

/** Numbers of what a plan keeps in its `Env`; one for a whole statement, inner reads included. */
export class Counters {
  #memos = 0;
  #keys = 0;
  #sets = 0;
  /** Parameters the statement reads: one more than the highest index, lifted literals not counted. */
  params = 0;

  memo(): number {
    return this.#memos++;
  }
  key(): number {
    return this.#keys++;
  }
  set(): number {
    return this.#sets++;
  }
  sees(index: number): void {
    if (index < LIFTED_BASE && index >= this.params) this.params = index + 1;
  }
}

/** A value as a part of json. Bytes are none, alone or in a list. */
export function memberJson(value: Value): string {
  if (holdsBytes(value)) throw new Refusal("bad_value", "json holds no bytes");
  return valueToJson(value);
}

/** Lists nest no deeper than the expression they come from. */
function holdsBytes(value: Value): boolean {
  return value instanceof Uint8Array || (Array.isArray(value) && value.some(holdsBytes));
}

/** The field a name means, or a 404 that knows the nearest name. */
export function fieldRef(table: Table, name: string, keys: readonly string[]): FieldRef {
  const slot = name === "id" ? 0 : table.slotOf(name);
  if (slot === undefined) throw unknownField(table, name);
  const type = slot === 0 ? ID_TYPE : (table.types[slot - 1] as FieldType);
  if (keys.length > 0 && type.kind !== "json") {
    throw new Refusal(
      "bad_value",
      `\`${name}.${keys.join(".")}\`: \`${name}\` is ${typeText(type)}, and only a json field has paths`,
    );
  }
  return { slot, name, keys, type };
}

export function unknownField(table: Table, name: string): Refusal {
  const names = ["id", ...table.schema.fields.map((field) => field.name)];
  const near = nearestWord(name, names);
  const hint = near === undefined ? `: its fields are ${names.join(", ")}` : `: did you mean \`${near}\`?`;
  return new Refusal("unknown_field", `no field \`${name}\` in collection \`${table.schema.name}\``, {}, hint);
}

/** A closure that reads a field as a value. */
export function reader(ref: FieldRef): Eval {
  const { slot, keys, type } = ref;
  switch (type.kind) {
    case "json":
      if (keys.length === 0) {
        return (row) => {
          const cell = row[slot] as string | null;
          return cell === null ? null : jsonToValue(cell);
        };
      }
      return (row) => {
        const cell = row[slot] as string | null;
        if (cell === null) return null;
        const text = jsonPathText(cell, keys);
        return text === undefined ? null : jsonToValue(text);
      };
    case "bool":
    case "int":
    case "text":
    case "bytes":
    case "geo":
      return (row) => row[slot] as Value;
    case "float":
      return (row) => {
        const cell = row[slot] as number | null;
        return cell === null ? null : new Float(cell);
      };
    case "timestamp":
      return (row) => {
        const cell = row[slot] as number | null;
        return cell === null ? null : new Time(cell);
      };
    case "list":
      return (row) => cellToValue(type, row[slot] as Cell);
  }
}

export function isAggregate(expr: Expr): boolean {
  return expr.kind === "call" && (AGGREGATES.has(expr.name) || expr.star || expr.distinct);
}

export function isExpired(cell: Cell, ttlMs: number, now: number): boolean {
  return cell !== null && (cell as number) <= now - ttlMs;
}

/** What counts as holding: true does, false and null do not, anything else is no condition. */
export function truth(compiled: Compiled, expr: Expr): Test {
  const evaluate = compiled.eval;
  if (alwaysBoolean(expr)) return evaluate as Test;
  return (row, env) => {
    const value = evaluate(row, env);
    if (value === true) return true;
    if (value === false || value === null) return false;
    throw new Refusal("bad_value", `a condition is true or false, and this one is ${kindWords(value)}`);
  };
}

function alwaysBoolean(expr: Expr): boolean {
  switch (expr.kind) {
    case "binary":
      return !(expr.op === "+" || expr.op === "-" || expr.op === "*" || expr.op === "/");
    case "unary":
      return expr.op === "not";
    case "and":
    case "or":
    case "in":
    case "inGet":
    case "isNull":
      return true;
    default:
      return false;
  }
}

function allOf(tests: readonly Test[]): Test {
  const [first, second, third] = tests;
  if (first !== undefined && second !== undefined && tests.length === 2) {
    return (row, env) => first(row, env) && second(row, env);
  }
  if (first !== undefined && second !== undefined && third !== undefined && tests.length === 3) {
    return (row, env) => first(row, env) && second(row, env) && third(row, env);
  }
  return (row, env) => {
    for (const test of tests) if (!test(row, env)) return false;
    return true;
  };
}

function anyOf(tests: readonly Test[]): Test {
  return (row, env) => {
    for (const test of tests) if (test(row, env)) return true;
    return false;
  };
}

export const MIRRORED = { "=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<=" } as const;

function generalComparison(op: "=" | "!=" | "<" | "<=" | ">" | ">=", left: Compiled, right: Compiled): Test {
  const a = left.eval;
  const b = right.eval;
  if (op === "=") return (row, env) => equal(a(row, env), b(row, env));
  if (op === "!=") return (row, env) => !equal(a(row, env), b(row, env));
  const compare = left.json || right.json ? comparableInJson : comparable;
  return (row, env) => {
    const x = a(row, env);
    const y = b(row, env);
    if (x === null || y === null) return false;
    const order = compare(x, y);
    if (order === undefined) return false;
    return op === "<" ? order < 0 : op === "<=" ? order <= 0 : op === ">" ? order > 0 : order >= 0;
  };
}

/** `===` misses a bigint against a number; cells of one field are otherwise of one kind. */
function looselyEqual(cell: Cell, wanted: unknown): boolean {
  // biome-ignore lint/suspicious/noDoubleEquals: exact between bigint and number
  return (typeof cell === "bigint" || typeof wanted === "bigint") && cell !== null && cell == wanted;
}

function contains(value: Value, part: Value): boolean {
  if (typeof value !== "string" || typeof part !== "string") return false;
  return value.toLowerCase().includes(part.toLowerCase());
}

function has(value: Value, member: Value): boolean {
  if (value === null || member === null) return false;
  const items = listOf(value);
  return items?.some((item) => equal(item, member)) ?? false;
}

/** The members of a list, written out or json; undefined for anything else. */
export function listOf(value: Value): readonly Value[] | undefined {
  if (Array.isArray(value)) return value as readonly Value[];
  if (value instanceof Json && value.isList) return listValues(value);
  return undefined;
}
