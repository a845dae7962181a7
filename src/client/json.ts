/**
 * JSON that keeps whole numbers exact. `JSON.parse` rounds an int past 2^53 and `JSON.stringify` refuses a bigint, so a
 * job's id in a payload would change on its way through a worker. Here such an int is read as a bigint and a bigint is
 * written as its digits. The text access of newer engines' revivers is missing in Node 20, so both ways go through a
 * mark before the digits, 128 random bits that never leave the process, so that no string of a document can pose as one.
 */

import { refuse } from "./error.ts";

/** `exact`: ints past 2^53 are read as bigint, all others as number. `number`: every int as number, rounded past 2^53. */
export type Ints = "exact" | "number";

/** No int of fewer digits can be past 2^53 - 1 (16 digits). */
const MAYBE_WIDE = /[0-9]{16}/;
const WHOLE = /^-?[0-9]{16,}$/;
const NUMBER_CHARACTERS = /[-+.0-9eE]+/y;

const MARK = `int-${Array.from(crypto.getRandomValues(new Uint32Array(4)), (n) => n.toString(36)).join("-")}:`;
const MARKED = new RegExp(`"${MARK}(-?[0-9]+)"`, "g");

/** @throws SyntaxError as JSON.parse does. */
export function readJson(text: string, ints: Ints): unknown {
  if (ints === "number" || !MAYBE_WIDE.test(text)) return JSON.parse(text);
  const marked = markWideInts(text);
  if (marked === text) return JSON.parse(text);
  return JSON.parse(marked, (_key, value: unknown) =>
    typeof value === "string" && value.startsWith(MARK) ? BigInt(value.slice(MARK.length)) : value,
  );
}

/** Every int past 2^53, outside of strings, becomes a string of the mark and its digits. */
function markWideInts(text: string): string {
  let out = "";
  let copied = 0;
  let i = 0;
  while (i < text.length) {
    const c = text.charCodeAt(i);
    if (c === 0x22) {
      i = endOfString(text, i);
    } else if (c === 0x2d || (c >= 0x30 && c <= 0x39)) {
      NUMBER_CHARACTERS.lastIndex = i;
      const number = NUMBER_CHARACTERS.exec(text)?.[0] ?? "";
      if (WHOLE.test(number) && !Number.isSafeInteger(Number(number))) {
        out += `${text.slice(copied, i)}"${MARK}${number}"`;
        copied = i + number.length;
      }
      i += number.length;
    } else {
      i++;
    }
  }
  return copied === 0 ? text : out + text.slice(copied);
}

/** The offset behind the string that starts at `from`. */
function endOfString(text: string, from: number): number {
  let i = from + 1;
  for (;;) {
    const quote = text.indexOf('"', i);
    if (quote < 0) return text.length;
    let backslashes = 0;
    while (text.charCodeAt(quote - 1 - backslashes) === 0x5c) backslashes++;
    if (backslashes % 2 === 0) return quote + 1;
    i = quote + 1;
  }
}

/**
 * The JSON text of a value: a bigint as its digits, a typed array (a Node `Buffer` too) as the list of its numbers, a
 * Date as ISO text in UTC.
 * @throws FenecError `bad-value` for what JSON cannot hold: a number that is not finite, an undefined in a list, a Map.
 */
export function writeJson(value: unknown): string {
  let wide = false;
  const text = JSON.stringify(value, function (this: unknown, key: string, converted: unknown): unknown {
    const held = (this as Record<string, unknown>)[key];
    if (ArrayBuffer.isView(held) && !(held instanceof DataView)) {
      return Array.from(held as unknown as ArrayLike<number | bigint>);
    }
    if (typeof converted === "bigint") {
      wide = true;
      return MARK + converted;
    }
    checkKept(held, converted, Array.isArray(this));
    return converted;
  });
  if (text === undefined) refuse("bad-value", `${typeof value} is no value`);
  return wide ? text.replace(MARKED, "$1") : text;
}

/** JSON writes some values as others without a word: NaN as null, a Map as {}. An undefined member is left out, as usual. */
function checkKept(held: unknown, converted: unknown, inList: boolean): void {
  const lost =
    (typeof converted === "number" && !Number.isFinite(converted)) ||
    typeof converted === "function" ||
    typeof converted === "symbol" ||
    (converted === undefined && inList) ||
    (converted === null && held instanceof Date) ||
    converted instanceof Map ||
    converted instanceof Set ||
    converted instanceof ArrayBuffer ||
    converted instanceof DataView;
  if (lost) refuse("bad-value", `${nameOf(held)} is no value: no field holds it`);
}

/** "NaN", "an invalid Date", "Map". */
function nameOf(held: unknown): string {
  if (held instanceof Date) return "an invalid Date";
  return typeof held === "number" ? String(held) : Object.prototype.toString.call(held).slice("[object ".length, -1);
}
