/**
 * Field types: what a field takes, and how its cells compare. A value written goes through `fitCell`; one that does not
 * fit is refused and never quietly changed into something near it.
 */

import { unreachable } from "../base/assert.ts";
import { ownText } from "../base/bytes.ts";
import { EXPRESSION_DEPTH, INT_MAX, INT_MIN, JSON_DEPTH, TIME_MAX_MS, TIME_MIN_MS } from "../base/limits.ts";
import { Refusal } from "../base/refusal.ts";
import { isWholeText, jsonToValue, listValues, tooDeep, valueToJson } from "./json.ts";
import { compareBytes, compareNumbers, comparePoints, compareValues } from "./order.ts";
import { compareText } from "./text.ts";
import { parseTime } from "./time.ts";
import { type Cell, type FieldType, Float, intOf, Json, kindWords, Point, Time, type Value } from "./value.ts";

/** As it is declared: `int`, `[text]`. */
export function typeText(type: FieldType): string {
  let open = "";
  let close = "";
  let inner = type;
  while (inner.kind === "list") {
    open += "[";
    close += "]";
    inner = inner.of;
  }
  return open + inner.kind + close;
}

function refuse(type: FieldType, where: string, words: string): never {
  throw new Refusal("bad_value", `${where} is ${typeText(type)} and ${words}`);
}

/** How much of a text is quoted in the words of a refusal. */
const QUOTED_LENGTH = 60;

function quoted(text: string): string {
  return JSON.stringify(text.length > QUOTED_LENGTH ? `${text.slice(0, QUOTED_LENGTH)}...` : text);
}

/**
 * A value as a cell of the field `where` (its name; named in the refusal). Null fits every type.
 * Refuses with `bad_value`; json nested past JSON_DEPTH with `too_deep`.
 */
export function fitCell(type: FieldType, value: Value, where: string): Cell {
  if (value === null) return null;
  switch (type.kind) {
    case "bool":
      if (typeof value === "boolean") return value;
      return refuse(type, where, `takes true or false, not ${kindWords(value)}`);
    case "int":
      return fitInt(type, value, where);
    case "float":
      return fitFloat(type, value, where);
    case "text":
      if (typeof value === "string") return ownText(value);
      return refuse(type, where, `takes a text, not ${kindWords(value)}`);
    case "bytes":
      return fitBytes(type, value, where);
    case "timestamp":
      return fitTime(type, value, where);
    case "json":
      return fitJson(type, value, where);
    case "geo":
      return fitPoint(type, value, where);
    case "list": {
      const elements = elementsOf(value);
      if (elements === undefined) refuse(type, where, `takes a list, not ${kindWords(value)}`);
      const cells: Cell[] = new Array(elements.length);
      for (let i = 0; i < elements.length; i++) cells[i] = fitElement(type.of, elements[i]!, where, i);
      return cells;
    }
    default:
      return unreachable(type);
  }
}

function elementsOf(value: Value): readonly Value[] | undefined {
  if (value instanceof Json) return value.isList ? listValues(value) : undefined;
  return Array.isArray(value) ? (value as readonly Value[]) : undefined;
}

/** Names the element only when it is refused: a text for each would cost more than the fit. */
function fitElement(type: FieldType, value: Value, where: string, index: number): Cell {
  switch (typeof value) {
    case "number":
      if (type.kind === "int" || type.kind === "float") return value;
      break;
    case "string":
      if (type.kind === "text") return ownText(value);
      break;
  }
  return fitCell(type, value, `${where}[${index}]`);
}

function fitInt(type: FieldType, value: Value, where: string): Cell {
  if (typeof value === "number") return value;
  if (typeof value === "bigint") {
    if (value >= INT_MIN && value <= INT_MAX) return intOf(value);
    return refuse(type, where, `takes a signed 64-bit int; ${value} is past it`);
  }
  if (!(value instanceof Float)) return refuse(type, where, `takes an int, not ${kindWords(value)}`);
  const whole = wholeOf(value);
  if (whole === undefined) return refuse(type, where, `takes a whole number, not ${value.text ?? value.n}`);
  if (whole < INT_MIN || whole > INT_MAX) {
    return refuse(type, where, `takes a signed 64-bit int; ${value.text ?? value.n} is past it`);
  }
  return typeof whole === "bigint" ? intOf(whole) : whole;
}

/** The whole number a float stands for, by its digits where the double may have lost some; undefined when it has a fraction. */
function wholeOf(value: Float): number | bigint | undefined {
  if (!Number.isInteger(value.n)) return undefined;
  if (value.text !== undefined) return wholeOfText(value.text);
  return Number.isSafeInteger(value.n) ? value.n + 0 : BigInt(value.n);
}

/** The digits as an integer and the power of ten it is scaled by, with the zeros at its end counted to the power. */
function wholeOfText(text: string): bigint | undefined {
  const parts = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text);
  if (parts === null) return undefined;
  const [, sign = "", before = "", after = "", power = "0"] = parts;
  const all = before + after;
  let end = all.length;
  while (end > 0 && all.charCodeAt(end - 1) === 0x30) end--;
  if (end === 0) return 0n;
  let start = 0;
  while (all.charCodeAt(start) === 0x30) start++;
  const scale = Number(power) - after.length + (all.length - end);
  // The double is finite, so what has no fraction has 309 digits at most.
  return scale < 0 ? undefined : BigInt(sign + all.slice(start, end)) * 10n ** BigInt(scale);
}

function fitFloat(type: FieldType, value: Value, where: string): Cell {
  if (typeof value === "number") return value;
  if (typeof value === "bigint") {
    const n = Number(value);
    if (BigInt(n) === value) return n;
    return refuse(type, where, `cannot hold the int ${value} exactly`);
  }
  if (!(value instanceof Float)) return refuse(type, where, `takes a number, not ${kindWords(value)}`);
  if (!Number.isFinite(value.n)) return refuse(type, where, "takes a finite number");
  if (value.text !== undefined && value.n !== 0 && isWholeText(value.text) && BigInt(value.text) !== BigInt(value.n)) {
    return refuse(type, where, `cannot hold the int ${value.text} exactly`);
  }
  return value.n;
}

const utf8 = new TextEncoder();

function fitBytes(type: FieldType, value: Value, where: string): Cell {
  if (value instanceof Uint8Array) return value;
  if (typeof value === "string") {
    if (!value.isWellFormed()) return refuse(type, where, "takes text that has UTF-8: half a surrogate pair has none");
    return utf8.encode(value);
  }
  const elements = elementsOf(value);
  if (elements === undefined)
    return refuse(type, where, `takes a text or a list of byte numbers, not ${kindWords(value)}`);
  const bytes = new Uint8Array(elements.length);
  for (let i = 0; i < elements.length; i++) {
    const element = elements[i]!;
    const n = element instanceof Float ? element.n : element;
    if (typeof n !== "number" || !Number.isInteger(n) || n < 0 || n > 255) {
      return refuse(type, `${where}[${i}]`, "takes whole numbers from 0 to 255");
    }
    bytes[i] = n;
  }
  return bytes;
}

function fitTime(type: FieldType, value: Value, where: string): Cell {
  if (value instanceof Time) return inTime(type, value.ms, where);
  if (typeof value === "number" || typeof value === "bigint") return inTime(type, value, where);
  if (typeof value === "string") {
    const ms = parseTime(value);
    if (ms !== undefined) return ms;
    return refuse(type, where, `takes a time such as 2030-01-31T12:00:00Z; ${quoted(value)} is none`);
  }
  return refuse(type, where, `takes a timestamp, an int of epoch milliseconds or ISO text, not ${kindWords(value)}`);
}

function inTime(type: FieldType, ms: number | bigint, where: string): number {
  if (ms < TIME_MIN_MS || ms > TIME_MAX_MS) {
    return refuse(type, where, `takes epoch milliseconds within the years 0000 to 9999; ${ms} is outside`);
  }
  return Number(ms);
}

/** Json null is null: a field that holds it reads as a field that holds nothing. */
function fitJson(type: FieldType, value: Value, where: string): Cell {
  if (typeof value === "object") {
    checkJson(type, value, where, 0);
  }
  const text = typeof value === "object" ? ownText(valueToJson(value)) : valueToJson(value);
  if (tooDeep(text)) {
    throw new Refusal("too_deep", `${where} is nested too deep: at most ${JSON_DEPTH} levels of objects and lists`);
  }
  return text;
}

/** Lists of the language may hold what json has no form for. */
function checkJson(type: FieldType, value: Value, where: string, level: number): void {
  if (value instanceof Uint8Array) refuse(type, where, "takes any json value, not bytes");
  if (value instanceof Float && !Number.isFinite(value.n)) refuse(type, where, "takes finite numbers");
  if (!Array.isArray(value)) return;
  if (level === EXPRESSION_DEPTH) {
    throw new Refusal("too_deep", `${where} is nested too deep: at most ${JSON_DEPTH} levels of objects and lists`);
  }
  const elements = value as readonly Value[];
  for (let i = 0; i < elements.length; i++) {
    const element = elements[i]!;
    if (typeof element === "object" && element !== null) checkJson(type, element, where, level + 1);
  }
}

function fitPoint(type: FieldType, value: Value, where: string): Cell {
  if (value instanceof Point) return value;
  const elements = elementsOf(value);
  if (elements === undefined || elements.length !== 2) {
    return refuse(type, where, "takes a point: a list of two numbers, longitude and latitude");
  }
  const lon = degrees(elements[0]!);
  const lat = degrees(elements[1]!);
  if (lon === undefined || lat === undefined) {
    return refuse(type, where, "takes a point: a list of two numbers, longitude and latitude");
  }
  if (!(lon >= -180 && lon <= 180)) return refuse(type, where, `takes a longitude from -180 to 180, not ${lon}`);
  if (!(lat >= -90 && lat <= 90)) return refuse(type, where, `takes a latitude from -90 to 90, not ${lat}`);
  return new Point(lon, lat);
}

function degrees(value: Value): number | undefined {
  if (value instanceof Float) return value.n;
  return typeof value === "number" || typeof value === "bigint" ? Number(value) : undefined;
}

/** A cell on its way into an expression. */
export function cellToValue(type: FieldType, cell: Cell): Value {
  if (cell === null) return null;
  switch (type.kind) {
    case "float":
      return new Float(cell as number);
    case "timestamp":
      return new Time(cell as number);
    case "json":
      return jsonToValue(cell as string);
    case "list": {
      const cells = cell as readonly Cell[];
      const values: Value[] = new Array(cells.length);
      for (let i = 0; i < cells.length; i++) values[i] = cellToValue(type.of, cells[i]!);
      return values;
    }
    default:
      return cell as Value;
  }
}

type CellOrder = (a: Cell, b: Cell) => number;

function nullFirst(order: (a: NonNullable<Cell>, b: NonNullable<Cell>) => number): CellOrder {
  return (a, b) => (a === null ? (b === null ? 0 : -1) : b === null ? 1 : order(a, b));
}

const ORDERS: { readonly [K in Exclude<FieldType["kind"], "list">]: CellOrder } = {
  bool: nullFirst((a, b) => Number(a) - Number(b)),
  int: nullFirst((a, b) => compareNumbers(a as number | bigint, b as number | bigint)),
  float: nullFirst((a, b) => compareNumbers(a as number, b as number)),
  text: nullFirst((a, b) => compareText(a as string, b as string)),
  bytes: nullFirst((a, b) => compareBytes(a as Uint8Array, b as Uint8Array)),
  timestamp: nullFirst((a, b) => (a as number) - (b as number)),
  json: nullFirst((a, b) => (a === b ? 0 : compareValues(jsonToValue(a as string), jsonToValue(b as string)))),
  geo: nullFirst((a, b) => comparePoints(a as Point, b as Point)),
};

/** The total order of a type's cells, null first: negative, 0 or positive. */
export function compareCells(type: FieldType): CellOrder {
  if (type.kind !== "list") return ORDERS[type.kind];
  const order = compareCells(type.of);
  return nullFirst((a, b) => {
    const left = a as readonly Cell[];
    const right = b as readonly Cell[];
    const length = Math.min(left.length, right.length);
    for (let i = 0; i < length; i++) {
      const difference = order(left[i]!, right[i]!);
      if (difference !== 0) return difference;
    }
    return left.length - right.length;
  });
}
