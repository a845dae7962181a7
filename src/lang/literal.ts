/**
 * Numbers and quoted texts, as the grammar and the lifting of literals both read them. A scanner answers the value and
 * the offset behind it, or what is wrong with the literal; it never throws, since each caller has its own way to say so.
 */

import { INT_MAX, INT_MIN } from "../base/limits.ts";
import { Float, type Value } from "../value/value.ts";

export interface Literal {
  readonly value: Value;
  /** Offset behind the literal, or of what is wrong. */
  readonly end: number;
  readonly wrong: string | undefined;
}

/** Digits that surely fit a safe integer. */
const SAFE_DIGITS = 15;
const LETTER = /[\p{L}_]/u;

function wrong(words: string, end: number): Literal {
  return { value: null, end, wrong: words };
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}

function codeAt(text: string, index: number): number {
  return index < text.length ? text.charCodeAt(index) : -1;
}

/** Behind the digits at `from`; single underscores may stand between them. */
function digitsEnd(text: string, from: number): number {
  let i = from;
  for (;;) {
    const c = codeAt(text, i);
    if (isDigit(c)) i++;
    else if (c === 95 && i > from && isDigit(codeAt(text, i + 1))) i++;
    else return i;
  }
}

/**
 * The number at `from`: a digit, or a minus directly before one. An int is a number or, past 2^53, a bigint; a float keeps
 * its digits when the double would be written with others.
 */
export function scanNumber(text: string, from: number): Literal {
  const negative = text.charCodeAt(from) === 45;
  const first = negative ? from + 1 : from;
  let i = first;
  let whole = 0;
  for (;;) {
    const c = codeAt(text, i);
    if (c < 48 || c > 57) break;
    whole = whole * 10 + (c - 48);
    i++;
  }
  const next = codeAt(text, i);
  // By far the most numbers: a few digits, and nothing behind them that could belong to the number.
  if (
    i - first <= SAFE_DIGITS &&
    next !== 46 &&
    next !== 95 &&
    next < 128 &&
    (next < 65 || (next > 90 && next < 97) || next > 122)
  ) {
    // A minus zero is a float, as in json: an int has none, and a payload is to come back as it was written.
    if (negative && whole === 0) return { value: new Float(-0, "-0"), end: i, wrong: undefined };
    return { value: negative ? -whole : whole, end: i, wrong: undefined };
  }
  return scanLongNumber(text, from, first);
}

function scanLongNumber(text: string, from: number, first: number): Literal {
  let end = digitsEnd(text, first);
  let isFloat = false;
  if (codeAt(text, end) === 46) {
    if (!isDigit(codeAt(text, end + 1))) return wrong("a number does not end with a dot: write a digit behind it", end);
    end = digitsEnd(text, end + 1);
    isFloat = true;
    if (codeAt(text, end) === 46) return wrong("a number has one dot", end);
  }
  const e = codeAt(text, end);
  if (e === 101 || e === 69) {
    const sign = codeAt(text, end + 1);
    const digits = sign === 43 || sign === 45 ? end + 2 : end + 1;
    if (isDigit(codeAt(text, digits))) {
      end = digitsEnd(text, digits);
      isFloat = true;
    }
  }
  if (codeAt(text, end) === 95) return wrong("in a number `_` stands between two digits", end);
  const behind = text.codePointAt(end);
  if (behind !== undefined && LETTER.test(String.fromCodePoint(behind))) {
    return wrong("a number runs into a letter: put a space between them, or take the letter out", end);
  }
  const digits = text.slice(from, end).replaceAll("_", "");
  if (isFloat) {
    const n = Number(digits);
    if (!Number.isFinite(n)) return wrong(`the number ${digits} is past what a float holds`, from);
    return { value: String(n) === digits ? new Float(n) : new Float(n, digits), end, wrong: undefined };
  }
  // A long run of zeros or digits is cut short before it costs: 64 bits have 19 digits.
  const bare = digits.replace(/^(-?)0+(?=\d)/, "$1");
  if (bare.length > 20) return wrong(`the whole number ${shortened(digits)} does not fit 64 bits`, from);
  const int = BigInt(bare);
  if (int < INT_MIN || int > INT_MAX) return wrong(`the whole number ${shortened(digits)} does not fit 64 bits`, from);
  const n = Number(int);
  return { value: Number.isSafeInteger(n) ? n : int, end, wrong: undefined };
}

function shortened(digits: string): string {
  return digits.length <= 40 ? digits : `${digits.slice(0, 40)}...`;
}

/** The text between the quote at `from` and its like. */
export function scanString(text: string, from: number): Literal {
  const quote = text.charCodeAt(from);
  const length = text.length;
  let start = from + 1;
  let i = start;
  let value = "";
  while (i < length) {
    const c = text.charCodeAt(i);
    if (c === quote) return { value: value + text.slice(start, i), end: i + 1, wrong: undefined };
    if (c === 92) {
      if (i + 1 >= length) break;
      value += text.slice(start, i);
      const escaped = text.charCodeAt(i + 1);
      if (escaped === 110) value += "\n";
      else if (escaped === 116) value += "\t";
      else if (escaped === 114) value += "\r";
      else if (escaped === 48) value += "\0";
      else {
        // The backslash vanishes and the character stands.
        start = i + 1;
        i += 2;
        continue;
      }
      i += 2;
      start = i;
    } else i++;
  }
  return wrong("a text that is never closed: its quote is missing", from);
}
