/**
 * A constant as a key of a field's cells. Only an exact stand-in will do: `cell < key` must say what `<` says of the two
 * values, or the maker answers NO_KEY and the rows are asked one by one. Index ranges and row tests share these keys, so
 * an index cannot answer other rows than a scan.
 */

import { parseTime } from "../value/time.ts";
import { type FieldType, Float, Time, type Value } from "../value/value.ts";

/** No cell of the field stands for this value. */
export const NO_KEY = Symbol("no key");

export interface KeyMaker {
  /** Cells of the field compare with keys by `<` or, for text, by compareText. */
  readonly native: boolean;
  key(value: Value): unknown;
}

const NUMBERS: KeyMaker = {
  native: true,
  key: (value) => {
    if (value === null || typeof value === "number" || typeof value === "bigint") return value;
    if (value instanceof Float) return value.n;
    return value instanceof Time ? value.ms : NO_KEY;
  },
};
/** As numbers; but the tree of a float or time field holds doubles alone. */
const DOUBLES: KeyMaker = {
  native: true,
  key: (value) => {
    if (value === null || typeof value === "number") return value;
    if (value instanceof Float) return value.n;
    return value instanceof Time ? value.ms : NO_KEY;
  },
};
const TIMES: KeyMaker = {
  native: true,
  key: (value) => {
    if (value === null || typeof value === "number") return value;
    if (value instanceof Time) return value.ms;
    if (value instanceof Float) return value.n;
    if (typeof value === "string") return parseTime(value) ?? NO_KEY;
    return NO_KEY;
  },
};
const TEXTS: KeyMaker = {
  native: true,
  key: (value) => (value === null || typeof value === "string" ? value : NO_KEY),
};
const BOOLEANS: KeyMaker = {
  native: true,
  key: (value) => (value === null || typeof value === "boolean" ? value : NO_KEY),
};
const BYTES: KeyMaker = {
  native: false,
  key: (value) => (value === null || value instanceof Uint8Array ? value : NO_KEY),
};

/** How constants meet cells of a plain field of this type; undefined where they never do by key. */
export function keyMaker(type: FieldType): KeyMaker | undefined {
  switch (type.kind) {
    case "int":
      return NUMBERS;
    case "float":
      return DOUBLES;
    case "timestamp":
      return TIMES;
    case "text":
      return TEXTS;
    case "bool":
      return BOOLEANS;
    case "bytes":
      return BYTES;
    default:
      return undefined;
  }
}

/** Keys of an index on a json path are values: all but a time, which may equal text that is not its own. */
export const PATH_KEYS: KeyMaker = {
  native: false,
  key: (value) => (value instanceof Time || value instanceof Uint8Array ? NO_KEY : value),
};
