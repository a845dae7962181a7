/**
 * What a field can hold and what an expression can be.
 *
 * A `Cell` is a value at rest in a row: the field's type says how to read it, so it is as bare as can be (a timestamp is
 * a number, a json value its text). A `Value` is one on its way through an expression, where nothing but itself tells its
 * kind: an int and a float, or a number and a time, differ.
 *
 * | kind      | Cell                                             | Value |
 * | --------- | ------------------------------------------------ | ----- |
 * | null      | null                                             | null |
 * | bool      | boolean                                          | boolean |
 * | int       | number when a safe integer (never -0), else bigint | the same |
 * | float     | number, finite                                   | Float |
 * | text      | string                                           | string |
 * | timestamp | number, epoch ms within the years 0000 to 9999   | Time |
 * | bytes     | Uint8Array                                       | Uint8Array |
 * | list      | array of cells of the element type               | array of values, or a Json that is a list |
 * | geo       | Point                                            | Point |
 * | json      | string: compact json text, digits and key order as sent (json null is the cell null) | null, boolean, number, bigint, Float, string, array of values; an object or a list that came as json is a Json |
 */

/**
 * An IEEE double. `text` holds the digits as they were written when rendering the double would give others (`1.50`,
 * `1E2`, `-0`, an integer past 64 bits); an int that fits 64 bits is never a Float.
 */
export class Float {
  readonly n: number;
  readonly text: string | undefined;
  constructor(n: number, text?: string) {
    this.n = n;
    this.text = text;
  }
}

/** Epoch milliseconds, UTC. */
export class Time {
  readonly ms: number;
  constructor(ms: number) {
    this.ms = ms;
  }
}

/** Degrees. */
export class Point {
  readonly lon: number;
  readonly lat: number;
  constructor(lon: number, lat: number) {
    this.lon = lon;
    this.lat = lat;
  }
}

/** A json object or a json list, as valid compact text: key order, escapes and digits as they were sent. */
export class Json {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }

  get isList(): boolean {
    return this.text.charCodeAt(0) === 0x5b;
  }
}

export type Cell = null | boolean | number | bigint | string | Uint8Array | Point | readonly Cell[];

export type Value =
  | null
  | boolean
  | number
  | bigint
  | string
  | Float
  | Time
  | Uint8Array
  | Point
  | Json
  | readonly Value[];

/** A row at rest: `row[0]` is its id, `row[slot]` the cell of the field with that slot. Mutated in place by the store alone. */
export type Row = Cell[];

export type ScalarKind = "bool" | "int" | "float" | "text" | "bytes" | "timestamp" | "json" | "geo";
export type FieldType = { readonly kind: ScalarKind } | { readonly kind: "list"; readonly of: FieldType };

/** An int in its one form: a number when safe, else a bigint. The caller has checked the 64 bits. */
export function intOf(n: bigint): number | bigint {
  return n >= -9007199254740991n && n <= 9007199254740991n ? Number(n) : n;
}

/** A value's kind with its article, for the words of a refusal: "a text", "an int". */
export function kindWords(value: Value): string {
  if (value === null) return "null";
  switch (typeof value) {
    case "boolean":
      return "a bool";
    case "number":
    case "bigint":
      return "an int";
    case "string":
      return "a text";
  }
  if (value instanceof Float) return "a float";
  if (value instanceof Time) return "a timestamp";
  if (value instanceof Uint8Array) return "bytes";
  if (value instanceof Point) return "a point";
  if (value instanceof Json) return value.isList ? "a list" : "an object";
  return "a list";
}
