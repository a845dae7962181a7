/**
 * Equality and order of values, twice: one total order over everything a value can be (indexes over paths, `order`,
 * `group`, `distinct`), and the comparison the language's operators make, in which some kinds do not compare at all.
 *
 * The total order: null, booleans (false first), numbers (ints and floats by their exact value, `-0.0` equal to `0.0`),
 * text (by UTF-8 bytes), lists (element by element), objects (by their text with keys sorted), then times, bytes and
 * points.
 */

import { canonicalJson, canonicalNumber, jsonString, listValues } from "./json.ts";
import { compareText } from "./text.ts";
import { parseTime } from "./time.ts";
import { Float, Json, Point, Time, type Value } from "./value.ts";

export { compareText } from "./text.ts";

const NULL = 0;
const BOOL = 1;
const NUMBER = 2;
const TEXT = 3;
const LIST = 4;
const OBJECT = 5;
const TIME = 6;
const BYTES = 7;
const POINT = 8;

function rankOf(value: Value): number {
  if (value === null) return NULL;
  switch (typeof value) {
    case "boolean":
      return BOOL;
    case "number":
    case "bigint":
      return NUMBER;
    case "string":
      return TEXT;
  }
  if (value instanceof Float) return NUMBER;
  if (value instanceof Json) return value.isList ? LIST : OBJECT;
  if (value instanceof Time) return TIME;
  if (value instanceof Uint8Array) return BYTES;
  if (value instanceof Point) return POINT;
  return LIST;
}

/** Exact over any mix: 2^53 + 1 as a bigint is above 2^53 as a double. */
export function compareNumbers(a: number | bigint, b: number | bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

export function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const difference = a[i]! - b[i]!;
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

export function comparePoints(a: Point, b: Point): number {
  return compareNumbers(a.lon, b.lon) || compareNumbers(a.lat, b.lat);
}

function numberOf(value: Value): number | bigint {
  return value instanceof Float ? value.n : (value as number | bigint);
}

function elementsOf(value: Value): readonly Value[] {
  return value instanceof Json ? listValues(value) : (value as readonly Value[]);
}

function compareLists(a: Value, b: Value): number {
  if (a instanceof Json && b instanceof Json && a.text === b.text) return 0;
  const left = elementsOf(a);
  const right = elementsOf(b);
  const length = Math.min(left.length, right.length);
  for (let i = 0; i < length; i++) {
    const order = compareValues(left[i]!, right[i]!);
    if (order !== 0) return order;
  }
  return left.length - right.length;
}

/** The total order: negative, 0 or positive. */
export function compareValues(a: Value, b: Value): number {
  if (typeof a === "number" && typeof b === "number") return a < b ? -1 : a > b ? 1 : 0;
  const rank = rankOf(a);
  const difference = rank - rankOf(b);
  if (difference !== 0) return difference;
  switch (rank) {
    case NULL:
      return 0;
    case BOOL:
      return Number(a) - Number(b);
    case NUMBER:
      return compareNumbers(numberOf(a), numberOf(b));
    case TEXT:
      return compareText(a as string, b as string);
    case LIST:
      return compareLists(a, b);
    case OBJECT: {
      const left = (a as Json).text;
      const right = (b as Json).text;
      return left === right ? 0 : compareText(canonicalJson(left), canonicalJson(right));
    }
    case TIME:
      return (a as Time).ms - (b as Time).ms;
    case BYTES:
      return compareBytes(a as Uint8Array, b as Uint8Array);
    default:
      return comparePoints(a as Point, b as Point);
  }
}

export function valuesEqual(a: Value, b: Value): boolean {
  return compareValues(a, b) === 0;
}

const utf8 = new TextEncoder();

/** A time, bytes or a point against another kind; undefined when the two do not compare. */
function compareAcross(a: Value, rank: number, b: Value): number | undefined {
  if (rank === TIME) {
    if (typeof b === "string") {
      const ms = parseTime(b);
      return ms === undefined ? undefined : (a as Time).ms - ms;
    }
    if (typeof b === "number" || typeof b === "bigint" || b instanceof Float) {
      return compareNumbers((a as Time).ms, numberOf(b));
    }
  } else if (rank === BYTES) {
    return typeof b === "string" ? compareBytes(a as Uint8Array, utf8.encode(b)) : undefined;
  }
  if (rank === TIME || rankOf(b) !== LIST) return undefined;
  // A point beside a list: the two numbers it is written as.
  const [lon, lat, more] = elementsOf(b);
  if (lon === undefined || lat === undefined || more !== undefined) return undefined;
  if (rankOf(lon) !== NUMBER || rankOf(lat) !== NUMBER) return undefined;
  const { lon: ownLon, lat: ownLat } = a as Point;
  return compareNumbers(ownLon, numberOf(lon)) || compareNumbers(ownLat, numberOf(lat));
}

/**
 * What `<`, `=` and their like see, outside json: negative, 0 or positive, or undefined when the kinds do not compare (then
 * `=` and `<` are false and `!=` true). Two nulls compare as 0; null with anything else does not. A time compares with
 * text that is a time and with a number of ms, bytes with text as its UTF-8, a point with the list it is written as.
 */
export function comparable(a: Value, b: Value): number | undefined {
  if (typeof a === "number" && typeof b === "number") return a < b ? -1 : a > b ? 1 : 0;
  const left = rankOf(a);
  const right = rankOf(b);
  if (left === right) return compareValues(a, b);
  if (left >= TIME) return compareAcross(a, left, b);
  if (right >= TIME) {
    const order = compareAcross(b, right, a);
    return order === undefined ? undefined : -order;
  }
  return undefined;
}

/**
 * The same where one side comes out of json: there mixed kinds have the total order's. A time, bytes or a point beside a
 * json value compares as outside json. Null is null: it compares with null alone.
 */
export function comparableInJson(a: Value, b: Value): number | undefined {
  const left = rankOf(a);
  const right = rankOf(b);
  if (left === right) return compareValues(a, b);
  if (left === NULL || right === NULL) return undefined;
  return left >= TIME || right >= TIME ? comparable(a, b) : left - right;
}

/** First unit of every key that stands for something else than a text. */
const MARK = "\u0001";

/** A number's key: one for every way of writing it. Whole doubles past the safe ints meet bigints of the same value. */
function numberIdentity(n: number): number | bigint {
  if (Number.isSafeInteger(n) || !Number.isInteger(n)) return n === 0 ? 0 : n;
  return BigInt(n);
}

/**
 * A key for a Map or a Set: two values have the same (as SameValueZero judges) exactly when `valuesEqual` says so. Most
 * texts and numbers are their own key.
 */
export function identity(value: Value): string | number | bigint | boolean | null {
  if (value === null) return null;
  switch (typeof value) {
    case "string":
      return value.charCodeAt(0) === 1 ? MARK + value : value;
    case "number":
      return value;
    case "bigint":
    case "boolean":
      return value;
  }
  if (value instanceof Float) return numberIdentity(value.n);
  return MARK + identityText(value);
}

/** Starts with a letter or bracket of its kind, so that no two kinds share a text; a text's mark is another. */
function identityText(value: Value): string {
  if (value === null) return "null";
  switch (typeof value) {
    case "string":
      return jsonString(value);
    case "boolean":
      return String(value);
    case "number":
    case "bigint":
      return canonicalNumber(value);
  }
  if (value instanceof Float) return canonicalNumber(value);
  if (value instanceof Json) return canonicalJson(value.text);
  if (value instanceof Time) return `t${value.ms}`;
  if (value instanceof Uint8Array)
    return `b${Buffer.from(value.buffer, value.byteOffset, value.length).toString("hex")}`;
  if (value instanceof Point) return `p${value.lon},${value.lat}`;
  let list = "[";
  for (let i = 0; i < value.length; i++) list += (i === 0 ? "" : ",") + identityText(value[i]!);
  return `${list}]`;
}
