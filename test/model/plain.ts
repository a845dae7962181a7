/**
 * Values as the model has them: everything taken apart, every int a bigint, json as trees. Its rules of equality, order and
 * text are written from the language's reference and know nothing of the server's.
 */

import { parseTime } from "../../src/value/time.ts";

export type Plain =
  | { readonly kind: "null" }
  | { readonly kind: "bool"; readonly is: boolean }
  | { readonly kind: "int"; readonly n: bigint }
  /** `digits` as they were written, when a value of json or a literal. */
  | { readonly kind: "float"; readonly n: number; readonly digits: string | null }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "time"; readonly ms: number }
  | { readonly kind: "bytes"; readonly bytes: readonly number[] }
  | { readonly kind: "point"; readonly lon: number; readonly lat: number }
  | { readonly kind: "list"; readonly items: readonly Plain[] }
  | { readonly kind: "object"; readonly members: readonly (readonly [string, Plain])[] };

export const NULL: Plain = { kind: "null" };

export const bool = (is: boolean): Plain => ({ kind: "bool", is });
export const int = (n: bigint | number): Plain => ({ kind: "int", n: BigInt(n) });
export const float = (n: number, digits: string | null = null): Plain => ({ kind: "float", n, digits });
export const text = (value: string): Plain => ({ kind: "text", text: value });
export const time = (ms: number): Plain => ({ kind: "time", ms });

/** The status of a refusal, thrown wherever the model meets one. */
export class Wrong extends Error {
  readonly status: number;
  constructor(status: number, why: string) {
    super(why);
    this.status = status;
  }
}

export const INT_LEAST = -(2n ** 63n);
export const INT_MOST = 2n ** 63n - 1n;
const YEAR_0 = Date.UTC(2000, 0, 1) - 730_485 * 86_400_000;
const YEAR_9999_END = Date.UTC(10_000, 0, 1) - 1;

export function inTime(ms: bigint | number): boolean {
  return ms >= YEAR_0 && ms <= YEAR_9999_END;
}

/** A number by its digits: an int where they say one that 64 bits hold. */
export function numberOf(digits: string): Plain {
  const n = Number(digits);
  if (/^-?\d+$/.test(digits) && !Object.is(n, -0)) {
    const whole = BigInt(digits);
    if (whole >= INT_LEAST && whole <= INT_MOST) return int(whole);
  }
  return float(n, digits);
}

// ------------------------------------------------------------------------------------------------------------- order

const RANKS = ["null", "bool", "number", "text", "list", "object", "time", "bytes", "point"];

function rank(value: Plain): number {
  return RANKS.indexOf(value.kind === "int" || value.kind === "float" ? "number" : value.kind);
}

function less(a: number | bigint | boolean, b: number | bigint | boolean): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Texts by their code points, which is the order of their UTF-8. */
function textOrder(a: string, b: string): number {
  if (a === b) return 0;
  const left = [...a];
  const right = [...b];
  for (let at = 0; at < left.length && at < right.length; at++) {
    const order = less(left[at]!.codePointAt(0)!, right[at]!.codePointAt(0)!);
    if (order !== 0) return order;
  }
  return less(left.length, right.length);
}

function sequence<T>(a: readonly T[], b: readonly T[], compare: (a: T, b: T) => number): number {
  for (let at = 0; at < a.length && at < b.length; at++) {
    const order = compare(a[at]!, b[at]!);
    if (order !== 0) return order;
  }
  return less(a.length, b.length);
}

/** The one order over everything. */
export function order(a: Plain, b: Plain): number {
  const ranks = less(rank(a), rank(b));
  if (ranks !== 0) return ranks;
  switch (a.kind) {
    case "null":
      return 0;
    case "bool":
      return less(a.is, (b as typeof a).is);
    case "int":
    case "float":
      return less(a.n, (b as typeof a).n);
    case "text":
      return textOrder(a.text, (b as typeof a).text);
    case "time":
      return less(a.ms, (b as typeof a).ms);
    case "bytes":
      return sequence(a.bytes, (b as typeof a).bytes, less);
    case "point":
      return less(a.lon, (b as typeof a).lon) || less(a.lat, (b as typeof a).lat);
    case "list":
      return sequence(a.items, (b as typeof a).items, order);
    case "object":
      return textOrder(sortedText(a), sortedText(b));
  }
}

/** Json text with sorted keys and each number in one form. */
function sortedText(value: Plain): string {
  if (value.kind === "list") return `[${value.items.map(sortedText).join(",")}]`;
  if (value.kind === "float" && Number.isInteger(value.n) && Math.abs(value.n) < 1e21) return String(BigInt(value.n));
  if (value.kind === "float") return String(value.n);
  if (value.kind !== "object") return jsonOf(value);
  const members = [...value.members].sort((a, b) => textOrder(a[0], b[0]));
  return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${sortedText(member)}`).join(",")}}`;
}

/** How `<` and `=` see two values outside json; undefined where they do not compare. */
export function compared(a: Plain, b: Plain): number | undefined {
  if (a.kind === "time" && b.kind !== "time") return timeAgainst(a.ms, b);
  if (b.kind === "time" && a.kind !== "time") {
    const order = timeAgainst(b.ms, a);
    return order === undefined ? undefined : -order;
  }
  if (a.kind === "point" && b.kind === "list") return pointAgainst(a, b.items);
  if (a.kind === "list" && b.kind === "point") {
    const order = pointAgainst(b, a.items);
    return order === undefined ? undefined : -order;
  }
  if (a.kind === "bytes" && b.kind === "text") return sequence(a.bytes, utf8(b.text), less);
  if (a.kind === "text" && b.kind === "bytes") return sequence(utf8(a.text), b.bytes, less);
  return rank(a) === rank(b) ? order(a, b) : undefined;
}

function timeAgainst(ms: number, other: Plain): number | undefined {
  if (other.kind === "int" || other.kind === "float") return less(ms, other.n);
  if (other.kind !== "text") return undefined;
  const otherMs = parseTime(other.text);
  return otherMs === undefined ? undefined : less(ms, otherMs);
}

/** A point and a list of two numbers, which it is written as. */
function pointAgainst(point: Plain & { readonly kind: "point" }, items: readonly Plain[]): number | undefined {
  const [lon, lat, more] = items.map((item) => (item.kind === "int" || item.kind === "float" ? item.n : undefined));
  if (lon === undefined || lat === undefined || more !== undefined || items.length !== 2) return undefined;
  return less(point.lon, lon) || less(point.lat, lat);
}

function utf8(value: string): number[] {
  return [...new TextEncoder().encode(value)];
}

/** The same inside json, where kinds that differ have an order too. */
export function comparedInJson(a: Plain, b: Plain): number | undefined {
  const outside = compared(a, b);
  if (outside !== undefined) return outside;
  const late = RANKS.indexOf("time");
  if (a.kind === "null" || b.kind === "null" || rank(a) >= late || rank(b) >= late) return undefined;
  return order(a, b);
}

export function equal(a: Plain, b: Plain): boolean {
  if (a.kind === "null" || b.kind === "null") return a.kind === b.kind;
  return compared(a, b) === 0;
}

// -------------------------------------------------------------------------------------------------------------- json

export function isoOf(ms: number): string {
  return new Date(ms).toISOString().replace(".000Z", "Z");
}

/** A value as an answer shows it. */
export function jsonOf(value: Plain): string {
  switch (value.kind) {
    case "null":
      return "null";
    case "bool":
      return String(value.is);
    case "int":
      return String(value.n);
    case "float": {
      if (value.digits !== null) return value.digits;
      if (Object.is(value.n, -0)) return "-0";
      // A whole double past 2^53 would read back as an int.
      return Number.isInteger(value.n) && !Number.isSafeInteger(value.n) ? value.n.toExponential() : String(value.n);
    }
    case "text":
      return JSON.stringify(value.text);
    case "time":
      return `"${isoOf(value.ms)}"`;
    case "bytes":
      return `[${value.bytes.join(",")}]`;
    case "point":
      return `[${jsonOf(float(value.lon))},${jsonOf(float(value.lat))}]`;
    case "list":
      return `[${value.items.map(jsonOf).join(",")}]`;
    case "object":
      return `{${value.members.map(([key, member]) => `${JSON.stringify(key)}:${jsonOf(member)}`).join(",")}}`;
  }
}

/** Json text as a tree, every digit kept. The tests write their json compactly and well. */
export function readPlain(json: string): Plain {
  const tokens = json.match(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null|[[\]{},:]/g) ?? [];
  let at = 0;
  const value = (): Plain => {
    const token = tokens[at++] ?? "";
    if (token === "null") return NULL;
    if (token === "true" || token === "false") return bool(token === "true");
    if (token.startsWith('"')) return text(JSON.parse(token));
    if (token === "[") {
      const items: Plain[] = [];
      while (tokens[at] !== "]") {
        items.push(value());
        if (tokens[at] === ",") at++;
      }
      at++;
      return { kind: "list", items };
    }
    if (token === "{") {
      const members: [string, Plain][] = [];
      while (tokens[at] !== "}") {
        const key: string = JSON.parse(tokens[at] ?? "");
        at += 2;
        members.push([key, value()]);
        if (tokens[at] === ",") at++;
      }
      at++;
      return { kind: "object", members };
    }
    return numberOf(token);
  };
  return value();
}

export function depthOf(value: Plain): number {
  if (value.kind === "list") return 1 + Math.max(0, ...value.items.map(depthOf));
  if (value.kind === "object") return 1 + Math.max(0, ...value.members.map(([, member]) => depthOf(member)));
  return 0;
}
