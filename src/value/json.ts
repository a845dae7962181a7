/**
 * Json as text. A json value is kept as the text it came as, without insignificant white space: digits, escapes and key
 * order are part of what was sent, and no parse into objects keeps them (a double loses digits, an object sorts numeric
 * keys and treats `__proto__` as its own). So there are two kinds of function here: those that take text from outside and
 * check it (`compactJson`, `readJson`, `parseMembers`), and those that trust it (`Json.text` and json cells are valid,
 * compact and of bounded depth) and find their way by skipping.
 *
 * What is refused, beyond the grammar of RFC 8259: a key twice in one object (also when one of the two is written with
 * escapes), a number no double can hold, nesting past a limit. Half of a surrogate pair is kept.
 */

import { assert } from "../base/assert.ts";
import { BODY_DEPTH, EXPRESSION_DEPTH, INT_MAX, INT_MIN, JSON_DEPTH } from "../base/limits.ts";
import { Refusal } from "../base/refusal.ts";
import { compareText } from "./text.ts";
import { formatTime } from "./time.ts";
import { Float, intOf, Json, Point, Time, type Value } from "./value.ts";

const QUOTE = 0x22;
const COMMA = 0x2c;
const MINUS = 0x2d;
const COLON = 0x3a;
const OPEN_LIST = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

// ---------------------------------------------------------------------------------------------------------- checking

/** Keys of an object compared one by one; an object with more has a Set. */
const COMPARED_KEYS = 12;

/**
 * Where the check stands: one frame a level. Kept outside the function and used again, as a check runs to its end without
 * a pause and never inside another.
 */
const isObject = new Uint8Array(BODY_DEPTH + 1);
/** Of a list: the index of the element under way. Of an object: how many keys were met. */
const counts = new Int32Array(BODY_DEPTH + 1);
/** Of an object: where its latest keys begin and end, quotes left out. */
const keyFrom = new Int32Array((BODY_DEPTH + 1) * COMPARED_KEYS);
const keyTo = new Int32Array((BODY_DEPTH + 1) * COMPARED_KEYS);
/** Of an object: the keys met, decoded, once there are many or one has an escape. */
const keySets: (Set<string> | undefined)[] = new Array(BODY_DEPTH + 1).fill(undefined);
/** Of an object: the key under way. */
const currentFrom = new Int32Array(BODY_DEPTH + 1);
const currentTo = new Int32Array(BODY_DEPTH + 1);

/** How many steps of a path an error names, from the outside in. */
const NAMED_STEPS = 16;
const NAMED_CHARACTERS = 200;

/** `payload.a[2].b`, from the frames of the check; the whole value is "". */
function pathWords(text: string, levels: number, prefix: string): string {
  let path = prefix;
  for (let level = 1; level <= levels; level++) {
    if (level > NAMED_STEPS || path.length > NAMED_CHARACTERS) return `${path}...`;
    if (isObject[level] === 0) {
      path += `[${counts[level]}]`;
    } else if (currentFrom[level]! >= 0) {
      const key = decodeString(text, currentFrom[level]!, currentTo[level]!);
      path += path === "" ? key : `.${key}`;
    }
  }
  return path.length > NAMED_CHARACTERS ? `${path.slice(0, NAMED_CHARACTERS)}...` : path;
}

function fail(text: string, at: number, levels: number, prefix: string, words: string): never {
  const path = pathWords(text, levels, prefix);
  throw new Refusal("bad_json", path === "" ? `json: ${words}` : `json at ${path}: ${words}`, { path, offset: at });
}

/** What stands at an offset, for an error: a character, or the end. */
function found(text: string, at: number): string {
  return at < text.length ? JSON.stringify(String.fromCodePoint(text.codePointAt(at)!)) : "the end";
}

function failString(text: string, at: number, levels: number, prefix: string): never {
  if (at >= text.length) fail(text, at, levels, prefix, "a string is not closed");
  const unit = text.charCodeAt(at);
  if (unit === BACKSLASH) {
    const sequence = text.slice(at, at + (text.charCodeAt(at + 1) === 0x75 ? 6 : 2));
    fail(text, at, levels, prefix, `${JSON.stringify(sequence)} is no escape`);
  }
  const code = unit.toString(16).padStart(4, "0");
  fail(text, at, levels, prefix, `a control character in a string is written as an escape: \\u${code}`);
}

/** How long the escape at a backslash is: 2 or 6, or 0 when it is none. */
function escapeLength(text: string, at: number): number {
  const escaped = at + 1 < text.length ? text.charCodeAt(at + 1) : 0;
  switch (escaped) {
    case 0x22: // "
    case 0x5c: // \
    case 0x2f: // /
    case 0x62: // b
    case 0x66: // f
    case 0x6e: // n
    case 0x72: // r
    case 0x74: // t
      return 2;
    case 0x75: // u
      for (let i = at + 2; i < at + 6; i++) {
        const digit = i < text.length ? text.charCodeAt(i) : 0;
        const hex =
          (digit >= 0x30 && digit <= 0x39) || (digit >= 0x41 && digit <= 0x46) || (digit >= 0x61 && digit <= 0x66);
        if (!hex) return 0;
      }
      return 6;
    default:
      return 0;
  }
}

/** The offset behind the string whose opening quote is at `at`; or, when it is bad, -1 less the offset of the fault. */
function checkString(text: string, at: number): number {
  const length = text.length;
  let i = at + 1;
  while (i < length) {
    const unit = text.charCodeAt(i);
    if (unit > BACKSLASH) {
      i++;
    } else if (unit === QUOTE) {
      return i + 1;
    } else if (unit === BACKSLASH) {
      const size = escapeLength(text, i);
      if (size === 0) return -1 - i;
      i += size;
    } else if (unit < 0x20) {
      return -1 - i;
    } else {
      i++;
    }
  }
  return -1 - length;
}

/** The offset behind the number at `at`, -1 when there is none, -2 when no double can hold it. */
function checkNumber(text: string, at: number): number {
  const length = text.length;
  let i = at;
  if (i < length && text.charCodeAt(i) === MINUS) i++;
  const whole = i;
  while (i < length && text.charCodeAt(i) >= 0x30 && text.charCodeAt(i) <= 0x39) i++;
  if (i === whole || (i > whole + 1 && text.charCodeAt(whole) === 0x30)) return -1;
  let large = i - whole > 308;
  if (i < length && text.charCodeAt(i) === 0x2e) {
    const fraction = ++i;
    while (i < length && text.charCodeAt(i) >= 0x30 && text.charCodeAt(i) <= 0x39) i++;
    if (i === fraction) return -1;
  }
  if (i < length && (text.charCodeAt(i) | 0x20) === 0x65) {
    i++;
    if (i < length && (text.charCodeAt(i) === 0x2b || text.charCodeAt(i) === MINUS)) i++;
    const exponent = i;
    while (i < length && text.charCodeAt(i) >= 0x30 && text.charCodeAt(i) <= 0x39) i++;
    if (i === exponent) return -1;
    large = true;
  }
  if (large && !Number.isFinite(Number(text.slice(at, i)))) return -2;
  return i;
}

/** Whether the key from `from` to `to` was met before in the object at `level`; it is noted as met. */
function keyMet(text: string, level: number, from: number, to: number, escaped: boolean): boolean {
  const met = counts[level]!;
  counts[level] = met + 1;
  let set = keySets[level];
  if (set === undefined) {
    const base = level * COMPARED_KEYS;
    if (met < COMPARED_KEYS && !escaped) {
      const size = to - from;
      next: for (let k = base; k < base + met; k++) {
        const other = keyFrom[k]!;
        if (keyTo[k]! - other !== size) continue;
        for (let i = 0; i < size; i++) {
          if (text.charCodeAt(from + i) !== text.charCodeAt(other + i)) continue next;
        }
        return true;
      }
      keyFrom[base + met] = from;
      keyTo[base + met] = to;
      return false;
    }
    set = new Set();
    for (let k = base; k < base + met; k++) set.add(text.slice(keyFrom[k], keyTo[k]));
    keySets[level] = set;
  }
  const size = set.size;
  set.add(escaped ? decodeString(text, from, to) : text.slice(from, to));
  return set.size === size;
}

/**
 * Checks the json value that starts at or behind `from` and answers it without insignificant white space, every digit,
 * escape and key in its place, with the offset behind it. What stands behind it is the caller's to judge.
 * Refuses with `bad_json` (`too_deep` past `depth` levels of objects and lists), naming the path, such as
 * `payload.a[2].b`.
 */
export function compactJson(text: string, from = 0, depth = JSON_DEPTH): { text: string; end: number } {
  return check(text, from, depth, "");
}

function check(text: string, from: number, depth: number, prefix: string): { text: string; end: number } {
  assert(depth <= BODY_DEPTH, "json is checked to the depth of a body at most");
  const length = text.length;
  let i = from;
  while (i < length && isSpace(text.charCodeAt(i))) i++;
  /** What is copied so far, and from where on nothing is. */
  let compact = "";
  let copied = i;
  let level = 0;

  try {
    value: for (;;) {
      let unit = i < length ? text.charCodeAt(i) : 0;
      if (unit <= 0x20 && isSpace(unit)) {
        compact += text.slice(copied, i);
        do unit = ++i < length ? text.charCodeAt(i) : 0;
        while (isSpace(unit));
        copied = i;
      }
      let inObject = false;
      if (unit === QUOTE) {
        const end = checkString(text, i);
        if (end < 0) failString(text, -1 - end, level, prefix);
        i = end;
      } else if (unit === OPEN_OBJECT || unit === OPEN_LIST) {
        if (level === depth) {
          // A body may nest a little deeper, for the documents round its values; what users can change is the value.
          throw new Refusal(
            "too_deep",
            `json nested too deep: at most ${Math.min(depth, JSON_DEPTH)} levels of objects and lists`,
            {
              path: pathWords(text, level, prefix),
              offset: i,
            },
          );
        }
        level++;
        counts[level] = 0;
        i++;
        inObject = unit === OPEN_OBJECT;
        isObject[level] = inObject ? 1 : 0;
        currentFrom[level] = -1;
        unit = i < length ? text.charCodeAt(i) : 0;
        if (unit <= 0x20 && isSpace(unit)) {
          compact += text.slice(copied, i);
          do unit = ++i < length ? text.charCodeAt(i) : 0;
          while (isSpace(unit));
          copied = i;
        }
        if (unit === (inObject ? CLOSE_OBJECT : CLOSE_LIST)) {
          level--;
          i++;
          inObject = false;
        } else if (!inObject) {
          continue;
        }
      } else if (unit === MINUS || (unit >= 0x30 && unit <= 0x39)) {
        const end = checkNumber(text, i);
        if (end === -1) fail(text, i, level, prefix, "not a number of json's form");
        if (end === -2) fail(text, i, level, prefix, "the number is too large: no double can hold it");
        i = end;
      } else if (unit === 0x74 && text.startsWith("true", i)) {
        i += 4;
      } else if (unit === 0x66 && text.startsWith("false", i)) {
        i += 5;
      } else if (unit === 0x6e && text.startsWith("null", i)) {
        i += 4;
      } else {
        fail(text, i, level, prefix, `expected a value, found ${found(text, i)}`);
      }

      // Behind a value: what closes is closed, a comma leads to the next element or key.
      for (;;) {
        if (!inObject) {
          if (level === 0) {
            const end = i;
            return {
              text: copied === from && compact === "" ? text.slice(from, end) : compact + text.slice(copied, end),
              end,
            };
          }
          unit = i < length ? text.charCodeAt(i) : 0;
          if (unit <= 0x20 && isSpace(unit)) {
            compact += text.slice(copied, i);
            do unit = ++i < length ? text.charCodeAt(i) : 0;
            while (isSpace(unit));
            copied = i;
          }
          if (isObject[level] === 0) {
            if (unit === COMMA) {
              counts[level] = counts[level]! + 1;
              i++;
              continue value;
            }
            if (unit !== CLOSE_LIST) fail(text, i, level, prefix, `expected , or ] but found ${found(text, i)}`);
            level--;
            i++;
            continue;
          }
          if (unit === CLOSE_OBJECT) {
            if (keySets[level] !== undefined) keySets[level] = undefined;
            level--;
            i++;
            continue;
          }
          if (unit !== COMMA) fail(text, i, level, prefix, `expected , or } but found ${found(text, i)}`);
          unit = ++i < length ? text.charCodeAt(i) : 0;
          if (unit <= 0x20 && isSpace(unit)) {
            compact += text.slice(copied, i);
            do unit = ++i < length ? text.charCodeAt(i) : 0;
            while (isSpace(unit));
            copied = i;
          }
        }
        // A key and its colon.
        if (unit !== QUOTE) fail(text, i, level, prefix, `expected a key in quotes, found ${found(text, i)}`);
        let end = i + 1;
        let escaped = false;
        for (;;) {
          unit = end < length ? text.charCodeAt(end) : 0;
          if (unit > BACKSLASH) {
            end++;
          } else if (unit === QUOTE) {
            break;
          } else if (unit === BACKSLASH) {
            const size = escapeLength(text, end);
            if (size === 0) failString(text, end, level, prefix);
            escaped = true;
            end += size;
          } else if (unit < 0x20) {
            failString(text, end, level, prefix);
          } else {
            end++;
          }
        }
        currentFrom[level] = i + 1;
        currentTo[level] = end;
        if (keyMet(text, level, i + 1, end, escaped)) {
          const key = text.slice(i, end + 1);
          fail(
            text,
            i,
            level - 1,
            prefix,
            `the key ${key.length > 100 ? `${key.slice(0, 100)}...` : key} stands twice`,
          );
        }
        i = end + 1;
        unit = i < length ? text.charCodeAt(i) : 0;
        if (unit <= 0x20 && isSpace(unit)) {
          compact += text.slice(copied, i);
          do unit = ++i < length ? text.charCodeAt(i) : 0;
          while (isSpace(unit));
          copied = i;
        }
        if (unit !== COLON) fail(text, i, level, prefix, `expected : but found ${found(text, i)}`);
        i++;
        continue value;
      }
    }
  } catch (error) {
    keySets.fill(undefined);
    throw error;
  }
}

function isSpace(unit: number): boolean {
  return unit === 0x20 || unit === 0x0a || unit === 0x0d || unit === 0x09;
}

function skipSpace(text: string, from: number): number {
  let i = from;
  while (i < text.length && isSpace(text.charCodeAt(i))) i++;
  return i;
}

function refuseRest(text: string, from: number): void {
  const end = skipSpace(text, from);
  if (end !== text.length) fail(text, end, 0, "", `one value was expected, and behind it stands ${found(text, end)}`);
}

/** A whole text as one json value, checked: scalars decoded, containers as `Json`. `depth` as in `compactJson`. */
export function readJson(text: string, depth = JSON_DEPTH): Value {
  const value = check(text, 0, depth, "");
  refuseRest(text, value.end);
  return jsonToValue(value.text);
}

/**
 * The members of a request body, in their order. The body must be one json object; a member given twice is refused.
 * Containers are bounded by BODY_DEPTH, as a document's json field lies inside a document, a list and the body.
 */
export function parseMembers(text: string): Map<string, Value> {
  let i = skipSpace(text, 0);
  if (i === text.length) throw new Refusal("bad_json", "the body is empty: send a json object");
  if (text.charCodeAt(i) === 0xfeff) {
    throw new Refusal("bad_json", "the body begins with a byte order mark: send json without one");
  }
  if (text.charCodeAt(i) !== OPEN_OBJECT) {
    const { text: whole, end } = check(text, i, BODY_DEPTH, "");
    refuseRest(text, end);
    throw new Refusal("bad_json", `the body is ${jsonKindWords(whole)}: send a json object`);
  }
  const members = new Map<string, Value>();
  i = skipSpace(text, i + 1);
  if (text.charCodeAt(i) === CLOSE_OBJECT) {
    refuseRest(text, i + 1);
    return members;
  }
  for (;;) {
    if (text.charCodeAt(i) !== QUOTE) fail(text, i, 0, "", `expected a key in quotes, found ${found(text, i)}`);
    const keyEnd = checkString(text, i);
    if (keyEnd < 0) failString(text, -1 - keyEnd, 0, "");
    const key = decodeString(text, i + 1, keyEnd - 1);
    if (members.has(key)) fail(text, i, 0, "", `the key ${JSON.stringify(key)} stands twice`);
    i = skipSpace(text, keyEnd);
    if (text.charCodeAt(i) !== COLON) fail(text, i, 0, key, `expected : but found ${found(text, i)}`);
    const value = check(text, i + 1, BODY_DEPTH - 1, key);
    members.set(key, jsonToValue(value.text));
    i = skipSpace(text, value.end);
    const unit = text.charCodeAt(i);
    if (unit === CLOSE_OBJECT) break;
    if (unit !== COMMA) fail(text, i, 0, "", `expected , or } but found ${found(text, i)}`);
    i = skipSpace(text, i + 1);
  }
  refuseRest(text, i + 1);
  return members;
}

function jsonKindWords(text: string): string {
  switch (text.charCodeAt(0)) {
    case OPEN_OBJECT:
      return "an object";
    case OPEN_LIST:
      return "a list";
    case QUOTE:
      return "a text";
    case 0x74:
    case 0x66:
      return "a bool";
    case 0x6e:
      return "null";
    default:
      return "a number";
  }
}

// ---------------------------------------------------------------------------------------------------- finding the way

/** Behind the string whose opening quote is at `at`; the text is valid. */
export function skipString(text: string, at: number): number {
  let i = at + 1;
  for (;;) {
    const unit = text.charCodeAt(i);
    if (unit === QUOTE) return i + 1;
    i += unit === BACKSLASH ? 2 : 1;
  }
}

/** Behind the value at `at`; the text is valid and compact. */
export function skipValue(text: string, at: number): number {
  const length = text.length;
  const first = text.charCodeAt(at);
  if (first === QUOTE) return skipString(text, at);
  let i = at;
  if (first === OPEN_OBJECT || first === OPEN_LIST) {
    let level = 0;
    for (;;) {
      const unit = text.charCodeAt(i);
      if (unit === QUOTE) {
        i = skipString(text, i);
        continue;
      }
      i++;
      if (unit === OPEN_OBJECT || unit === OPEN_LIST) level++;
      else if ((unit === CLOSE_OBJECT || unit === CLOSE_LIST) && --level === 0) return i;
    }
  }
  while (i < length) {
    const unit = text.charCodeAt(i);
    if (unit === COMMA || unit === CLOSE_OBJECT || unit === CLOSE_LIST) break;
    i++;
  }
  return i;
}

/** The string between two quotes. JSON.parse decodes escapes, halves of surrogate pairs too. */
export function decodeString(text: string, from: number, to: number): string {
  const raw = text.slice(from, to);
  return raw.includes("\\") ? JSON.parse(`"${raw}"`) : raw;
}

/**
 * A number's value from its digits: an int when it is written as one and fits 64 bits, else a float, which keeps the text
 * when the double's own rendering has other digits. `-0` is a float, as no int is it.
 */
export function numberValue(digits: string): number | bigint | Float {
  const n = Number(digits);
  if (isWholeText(digits)) {
    if (Number.isSafeInteger(n)) return Object.is(n, -0) ? new Float(n, digits) : n;
    const whole = BigInt(digits);
    if (whole >= INT_MIN && whole <= INT_MAX) return intOf(whole);
  }
  return String(n) === digits ? new Float(n) : new Float(n, digits);
}

/** Whether a number's text has neither fraction nor exponent. */
export function isWholeText(digits: string): boolean {
  for (let i = 0; i < digits.length; i++) {
    const unit = digits.charCodeAt(i);
    if (unit === 0x2e || unit === 0x65 || unit === 0x45) return false;
  }
  return true;
}

export function valueAt(text: string, from: number, to: number): Value {
  switch (text.charCodeAt(from)) {
    case QUOTE:
      return decodeString(text, from + 1, to - 1);
    case OPEN_OBJECT:
    case OPEN_LIST:
      return new Json(text.slice(from, to));
    case 0x74:
      return true;
    case 0x66:
      return false;
    case 0x6e:
      return null;
    default:
      return numberAt(text, from, to);
  }
}

/** Digits that make a safe int whatever they are. */
const SAFE_DIGITS = 15;

/** The same as `numberValue`, without a text of its own for the ints that are most of all numbers. */
function numberAt(text: string, from: number, to: number): number | bigint | Float {
  const isNegative = text.charCodeAt(from) === MINUS;
  const first = isNegative ? from + 1 : from;
  if (to - first <= SAFE_DIGITS) {
    let n = 0;
    let i = first;
    for (; i < to; i++) {
      const digit = text.charCodeAt(i) - 0x30;
      if (!(digit >= 0 && digit <= 9)) break;
      n = n * 10 + digit;
    }
    if (i === to && (n !== 0 || !isNegative)) return isNegative ? -n : n;
  }
  return numberValue(text.slice(from, to));
}

/** Valid compact text as a value, one level: objects and lists stay text inside a `Json`. */
export function jsonToValue(text: string): Value {
  return valueAt(text, 0, text.length);
}

/** The elements of a json list; containers among them stay text. */
export function listValues(json: Json): Value[] {
  const text = json.text;
  assert(text.charCodeAt(0) === OPEN_LIST, "only a list has elements");
  const values: Value[] = [];
  let i = 1;
  while (text.charCodeAt(i) !== CLOSE_LIST) {
    const end = skipValue(text, i);
    values.push(valueAt(text, i, end));
    i = text.charCodeAt(end) === COMMA ? end + 1 : end;
  }
  return values;
}

/** The members of a json object in their order; containers among the values stay text. */
export function objectEntries(json: Json): [string, Value][] {
  const text = json.text;
  assert(text.charCodeAt(0) === OPEN_OBJECT, "only an object has members");
  const entries: [string, Value][] = [];
  let i = 1;
  while (text.charCodeAt(i) !== CLOSE_OBJECT) {
    const keyEnd = skipString(text, i);
    const end = skipValue(text, keyEnd + 1);
    entries.push([decodeString(text, i + 1, keyEnd - 1), valueAt(text, keyEnd + 1, end)]);
    i = text.charCodeAt(end) === COMMA ? end + 1 : end;
  }
  return entries;
}

/** How deep objects and lists nest in valid text: 0 for a scalar. */
export function jsonDepth(text: string): number {
  let level = 0;
  let deepest = 0;
  for (let i = 0; i < text.length; ) {
    const unit = text.charCodeAt(i);
    if (unit === QUOTE) {
      i = skipString(text, i);
      continue;
    }
    i++;
    if (unit === OPEN_OBJECT || unit === OPEN_LIST) {
      if (++level > deepest) deepest = level;
    } else if (unit === CLOSE_OBJECT || unit === CLOSE_LIST) {
      level--;
    }
  }
  return deepest;
}

/** Whether valid text nests past JSON_DEPTH. A shorter text cannot: each level takes two characters. */
export function tooDeep(text: string): boolean {
  return text.length > 2 * JSON_DEPTH && jsonDepth(text) > JSON_DEPTH;
}

/** Offset of the value of `key` in the object that starts at `at`, or -1 less the offset of its closing brace. */
function findKey(text: string, at: number, key: string): number {
  const size = key.length;
  let i = at + 1;
  if (text.charCodeAt(i) === CLOSE_OBJECT) return -1 - i;
  for (;;) {
    const end = skipString(text, i);
    const keySize = end - i - 2;
    // A key written with escapes is longer than the key it stands for; one with a backslash of its own has escapes.
    if (
      keySize === size
        ? text.startsWith(key, i + 1) && !key.includes("\\")
        : keySize > size && isEscapedKey(text, i + 1, end - 1, key)
    ) {
      return end + 1;
    }
    i = skipValue(text, end + 1);
    if (text.charCodeAt(i) !== COMMA) return -1 - i;
    i++;
  }
}

function isEscapedKey(text: string, from: number, to: number, key: string): boolean {
  for (let i = from; i < to; i++) {
    if (text.charCodeAt(i) === BACKSLASH) return decodeString(text, from, to) === key;
  }
  return false;
}

/** The raw text of the value a path leads to; undefined when it leads nowhere. Parses only what it must pass. */
export function jsonPathText(text: string, keys: readonly string[]): string | undefined {
  let at = 0;
  for (let k = 0; k < keys.length; k++) {
    if (text.charCodeAt(at) !== OPEN_OBJECT) return undefined;
    at = findKey(text, at, keys[k]!);
    if (at < 0) return undefined;
  }
  return at === 0 ? text : text.slice(at, skipValue(text, at));
}

/** The value a path leads to, null when it leads nowhere. */
export function jsonPathValue(text: string, keys: readonly string[]): Value {
  let at = 0;
  for (let k = 0; k < keys.length; k++) {
    if (text.charCodeAt(at) !== OPEN_OBJECT) return null;
    at = findKey(text, at, keys[k]!);
    if (at < 0) return null;
  }
  return valueAt(text, at, skipValue(text, at));
}

/** `{"b":{"c":value}}` for the keys from `first` on. */
function nested(keys: readonly string[], first: number, valueText: string): string {
  let open = "";
  for (let k = first; k < keys.length; k++) open += `{${jsonString(keys[k]!)}:`;
  return open + valueText + "}".repeat(keys.length - first);
}

/**
 * The text with the value a path leads to changed, and nothing else: every other digit and key stays in its place, a new
 * key goes last, and objects are made where there is null or nothing. `null` as text is json null. Refuses
 * (`bad_value`) what lies on the way and is neither an object nor null, and (`too_deep`) a result past JSON_DEPTH.
 */
export function jsonPathSet(text: string | null, keys: readonly string[], valueText: string): string {
  assert(keys.length > 0, "a path has a key");
  const set = text === null ? nested(keys, 0, valueText) : setIn(text, keys, valueText);
  if (tooDeep(set)) {
    throw new Refusal("too_deep", `json nested too deep: at most ${JSON_DEPTH} levels of objects and lists`);
  }
  return set;
}

function setIn(text: string, keys: readonly string[], valueText: string): string {
  let at = 0;
  for (let k = 0; k < keys.length; k++) {
    const unit = text.charCodeAt(at);
    if (unit === 0x6e) return text.slice(0, at) + nested(keys, k, valueText) + text.slice(at + 4);
    if (unit !== OPEN_OBJECT) {
      const way = k === 0 ? "the field" : keys.slice(0, k).join(".");
      const kind = jsonKindWords(text.slice(at, at + 1));
      throw new Refusal("bad_value", `${way} is ${kind}, not an object: it has no key ${jsonString(keys[k]!)} to set`);
    }
    const next = findKey(text, at, keys[k]!);
    if (next < 0) {
      const close = -1 - next;
      const comma = close - 1 === at ? "" : ",";
      const member = `${jsonString(keys[k]!)}:${k + 1 < keys.length ? nested(keys, k + 1, valueText) : valueText}`;
      return text.slice(0, close) + comma + member + text.slice(close);
    }
    at = next;
  }
  return text.slice(0, at) + valueText + text.slice(skipValue(text, at));
}

// ---------------------------------------------------------------------------------------------------------- rendering

/** A text as a json string. Half a surrogate pair is written as an escape. */
export function jsonString(text: string): string {
  return JSON.stringify(text);
}

/** A double as json: a whole one has no fraction; minus zero keeps its sign. */
export function doubleJson(n: number): string {
  if (Object.is(n, -0)) return "-0";
  // Past the safe ints a whole double's shortest digits read back as another int: an exponent keeps it the same float.
  return Number.isInteger(n) && !Number.isSafeInteger(n) ? n.toExponential() : String(n);
}

/**
 * Any value as compact json text: times as ISO text, bytes as a list of numbers, a point as `[lon,lat]`, a float by the
 * digits it was written with.
 */
export function valueToJson(value: Value): string {
  return toJson(value, 0);
}

function toJson(value: Value, level: number): string {
  if (value === null) return "null";
  switch (typeof value) {
    case "string":
      return jsonString(value);
    case "number":
    case "bigint":
    case "boolean":
      return String(value);
  }
  if (value instanceof Json) return value.text;
  if (value instanceof Float) return value.text ?? doubleJson(value.n);
  if (value instanceof Time) return `"${formatTime(value.ms)}"`;
  if (value instanceof Point) return `[${doubleJson(value.lon)},${doubleJson(value.lat)}]`;
  if (value instanceof Uint8Array) return `[${Array.prototype.join.call(value, ",")}]`;
  if (level === EXPRESSION_DEPTH) {
    throw new Refusal("too_deep", `a list nested too deep: at most ${EXPRESSION_DEPTH} levels`);
  }
  let list = "[";
  for (let i = 0; i < value.length; i++) list += (i === 0 ? "" : ",") + toJson(value[i]!, level + 1);
  return `${list}]`;
}

// -------------------------------------------------------------------------------------------------------- canonical

/** A number's one text: equal numbers, however they were written, have the same. */
export function canonicalNumber(value: number | bigint | Float): string {
  if (!(value instanceof Float)) return String(value);
  const n = value.n;
  return Number.isInteger(n) && Math.abs(n) < 1e21 ? BigInt(n).toString() : String(n);
}

/** Valid text with its keys sorted, its numbers and escapes in one form: equal exactly when the values are equal. */
export function canonicalJson(text: string): string {
  return canonicalAt(text, 0, text.length, 0);
}

function canonicalAt(text: string, from: number, to: number, level: number): string {
  assert(level <= BODY_DEPTH, "json in memory has a bounded depth");
  const unit = text.charCodeAt(from);
  if (unit === QUOTE) {
    const raw = text.slice(from, to);
    return isCanonicalString(raw) ? raw : JSON.stringify(JSON.parse(raw));
  }
  if (unit === OPEN_LIST) {
    let list = "[";
    let i = from + 1;
    while (text.charCodeAt(i) !== CLOSE_LIST) {
      const end = skipValue(text, i);
      list += canonicalAt(text, i, end, level + 1);
      i = end;
      if (text.charCodeAt(i) === COMMA) {
        list += ",";
        i++;
      }
    }
    return `${list}]`;
  }
  if (unit === OPEN_OBJECT) {
    const members: [string, string][] = [];
    let i = from + 1;
    while (text.charCodeAt(i) !== CLOSE_OBJECT) {
      const keyEnd = skipString(text, i);
      const end = skipValue(text, keyEnd + 1);
      members.push([decodeString(text, i + 1, keyEnd - 1), canonicalAt(text, keyEnd + 1, end, level + 1)]);
      i = text.charCodeAt(end) === COMMA ? end + 1 : end;
    }
    members.sort((a, b) => compareText(a[0], b[0]));
    let object = "{";
    for (let m = 0; m < members.length; m++) {
      object += `${(m === 0 ? "" : ",") + jsonString(members[m]![0])}:${members[m]![1]}`;
    }
    return `${object}}`;
  }
  if (unit === 0x74 || unit === 0x66 || unit === 0x6e) return text.slice(from, to);
  return canonicalNumber(numberValue(text.slice(from, to)));
}

/** Whether a quoted string is already as JSON.stringify writes it: no escapes, and no surrogates that may be halves. */
function isCanonicalString(raw: string): boolean {
  for (let i = 1; i < raw.length - 1; i++) {
    const unit = raw.charCodeAt(i);
    if (unit === BACKSLASH || (unit >= 0xd800 && unit <= 0xdfff)) return false;
  }
  return true;
}
