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
 * | int       | number when a safe integer, else bigint          | the same |
 * | float     | number, finite                                   | Float |
 * | text      | string                                           | string |
 * | timestamp | number, epoch ms within the years 0000 to 9999   | Time |
 * | bytes     | Uint8Array                                       | Uint8Array |
 * | list      | array of cells of the element type               | array of values |
 * | geo       | Point                                            | Point |
 * | json      | string: compact json text, digits and key order as sent | null, boolean, number, bigint, Float, string, array of values; an object is a Json |
 */

export class Float {
  readonly n: number;
  constructor(n: number) {
    this.n = n;
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

/** A json object, as compact text: key order and digits as they were sent. */
export class Json {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
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
