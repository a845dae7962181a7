/**
 * The pieces of FenecQL text a chain is made of, and the values bound into them. A value is never written into a text:
 * it becomes `$n`, numbered in the order of the text. Text comes from names, which are checked, and from the caller's own
 * `raw` and `expr`, where each `?` outside of a string literal stands for a value.
 */

import { refuse } from "./error.ts";

/** Values bound so far, in the order of the text. */
export class Binder {
  readonly params: unknown[] = [];

  /** Binds one value and gives the `$n` that stands for it. */
  bind(value: unknown): string {
    this.params.push(plainValue(value));
    return `$${this.params.length}`;
  }
}

/** A value as the server takes it: a Date as ISO text, a typed array as its numbers. */
function plainValue(value: unknown): unknown {
  switch (typeof value) {
    case "undefined":
    case "function":
    case "symbol":
      return refuse("bad-value", `${typeof value} is no value: leave the field out, or send null`);
    case "number":
      return Number.isFinite(value) ? value : refuse("bad-value", `${value} is no value: no field holds it`);
    case "object":
      break;
    default:
      return value;
  }
  if (value instanceof Date) {
    return Number.isNaN(value.getTime()) ? refuse("bad-value", "an invalid Date is no time") : value.toISOString();
  }
  if (ArrayBuffer.isView(value) && !(value instanceof DataView)) {
    return Array.from(value as unknown as ArrayLike<number | bigint>);
  }
  return value instanceof Piece ? value.toJSON() : value;
}

/** What chains are made of, and chains: text, and no value. */
export abstract class Piece {
  /** Deep inside a value it is refused as well, not written as an object. */
  toJSON(): never {
    return refuse(
      "bad-value",
      "a value is expected here, and this is a piece of a chain: an expr, raw, inc, condition",
    );
  }
}

/** Text with its values: `?` after `?`. */
export abstract class Fragment extends Piece {
  readonly text: string;
  readonly values: readonly unknown[];
  readonly #pieces: readonly string[];

  constructor(word: "raw" | "expr", text: string, values: readonly unknown[]) {
    super();
    this.text = text;
    this.values = values;
    this.#pieces = piecesOf(text);
    const places = this.#pieces.length - 1;
    if (values.length < places) {
      refuse(`${word}-too-few-values`, `${word}: ${places} ? and only ${values.length} values in \`${text}\``);
    }
    if (values.length > places) {
      refuse(`${word}-too-many-values`, `${word}: only ${places} ? and ${values.length} values in \`${text}\``);
    }
  }

  render(binder: Binder): string {
    let out = this.#pieces[0] ?? "";
    for (let i = 0; i < this.values.length; i++) out += binder.bind(this.values[i]) + (this.#pieces[i + 1] ?? "");
    return out;
  }
}

/** Cuts a text at every `?` that is not inside a string literal. */
function piecesOf(text: string): string[] {
  const pieces: string[] = [];
  let from = 0;
  let quote = "";
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (quote !== "") {
      if (c === "\\") i++;
      else if (c === quote) quote = "";
    } else if (c === '"' || c === "'") {
      quote = c;
    } else if (c === "?") {
      pieces.push(text.slice(from, i));
      from = i + 1;
    }
  }
  pieces.push(text.slice(from));
  return pieces;
}

/** A condition, or a key of `order`, in the language's own words. */
export class Raw extends Fragment {
  declare protected readonly kind: "raw";
  constructor(text: string, values: readonly unknown[] = []) {
    super("raw", text, values);
  }
}

const AGGREGATE_CALL = /\b(?:count|sum|avg|min|max|first|last)\s*\(/i;

/** A value the server works out: in a patch, a document, a comparison, or as a column with `as`. */
export class Expr extends Fragment {
  declare protected readonly kind: "expr";
  constructor(text: string, values: readonly unknown[] = []) {
    super("expr", text, values);
  }

  /** The column under a name, for `select`. */
  as<const Name extends string>(name: Name): Aliased<Name> {
    return new Aliased(this, simpleName(name, "a column's name"));
  }

  get aggregates(): boolean {
    return AGGREGATE_CALL.test(this.text);
  }
}

export class Aliased<Name extends string = string> extends Piece {
  readonly of: Expr;
  readonly columnName: Name;
  constructor(of: Expr, columnName: string) {
    super();
    this.of = of;
    this.columnName = columnName as Name;
  }
}

/** Adds to a number; a null counts as 0. */
export class Inc extends Piece {
  readonly by: number | bigint;
  constructor(by: number | bigint) {
    super();
    if (typeof by !== "bigint" && !(typeof by === "number" && Number.isFinite(by))) {
      refuse("inc-not-a-number", `inc takes a number, not ${String(by)}`);
    }
    this.by = by;
  }
}

/** `raw("run_at <= now() - ?", 60000)`: a condition as it stands, each `?` bound. It is never put in parentheses. */
export function raw(text: string, ...values: readonly unknown[]): Raw {
  return new Raw(text, values);
}

/** `expr("now() + ?", 30000)`: a value the server works out, each `?` bound. */
export function expr(text: string, ...values: readonly unknown[]): Expr {
  return new Expr(text, values);
}

/** `inc(1)` in a patch: `attempts: coalesce(attempts, 0) + 1`. */
export function inc(by: number | bigint = 1): Inc {
  return new Inc(by);
}

const INTERVAL = /^0*[1-9][0-9]*(?:ms|s|m|h|d|w|mo|y)$/;

/** The start of the interval a time lies in: `bucket("run_at", "15m")`. */
export function bucket(field: string, interval: string): Expr {
  if (!INTERVAL.test(interval)) {
    refuse("bucket-interval", `\`${interval}\` is no interval: a whole number past 0 and one of ms s m h d w mo y`);
  }
  return new Expr(`bucket(${pathName(field)}, ${interval})`);
}

/** `count(distinct owner)`. */
export function countDistinct(field: string): Expr {
  return new Expr(`count(distinct ${pathName(field)})`);
}

/** Metres between a geo field and a point `[longitude, latitude]`. */
export function distance(field: string, point: readonly number[]): Expr {
  return new Expr(`distance(${pathName(field)}, ?)`, [point]);
}

/** The field of the row with the least `by` (without `by`: of the first row). */
export function first(field: string, by?: string): Expr {
  return new Expr(`first(${pathName(field)}${by === undefined ? "" : ` by ${pathName(by)}`})`);
}

/** The field of the row with the greatest `by` (without `by`: of the last row). */
export function last(field: string, by?: string): Expr {
  return new Expr(`last(${pathName(field)}${by === undefined ? "" : ` by ${pathName(by)}`})`);
}

const NAME = /^[\p{L}_][\p{L}\p{M}\p{Nd}_]*$/u;

/** A single name: a collection's, a column's. */
export function simpleName(name: string, what: string): string {
  if (typeof name !== "string" || !NAME.test(name)) {
    refuse("bad-name", `\`${String(name)}\` is not ${what}: a letter or _, then letters, digits and _`);
  }
  return name;
}

/** A field, or a path into one. */
export function pathName(name: string): string {
  if (typeof name !== "string" || !name.split(".").every((part) => NAME.test(part))) {
    refuse("bad-name", `\`${String(name)}\` is not a field: names of letters, digits and _, joined by dots in a path`);
  }
  return name;
}

const AGGREGATE_TEXT = /^(count|sum|avg|min|max|first|last)\(([^()]*)\)$/i;

/** `Max(attempts)` as `max(attempts)`, `Count()` as `count(*)`; undefined for what is no aggregate. */
export function aggregateText(text: string): string | undefined {
  const match = typeof text === "string" ? AGGREGATE_TEXT.exec(text) : null;
  if (match === null) return undefined;
  const name = (match[1] ?? "").toLowerCase();
  const of = (match[2] ?? "").trim();
  if (name === "count") {
    if (of !== "" && of !== "*")
      refuse("bad-name", `\`${text}\`: count takes * alone; countDistinct counts a field's values`);
    return "count(*)";
  }
  return `${name}(${pathName(of)})`;
}
