/**
 * Lifting: a statement's literals are taken out of its text, so that texts which differ only in them share one plan.
 *
 *     set jobs {owner: "w1", attempts: attempts + 1} where id = 7
 *     set jobs {owner: ?0, attempts: attempts + ?1} where id = ?2        and  ["w1", 1, 7]
 *
 * The key is the text with a marker in the place of each literal and one space in the place of each run of white space and
 * comments. It is made by one walk over the characters, without the grammar: 1 to 2 us for a claim, where a parse takes
 * more than twice that and a plan more still. So the walk errs to one side only. What it leaves in the text is still
 * right, only shared by fewer; what it takes out must mean the same as a parameter. Left where they are:
 *
 * * `require N` and durations, which are part of the statement's shape;
 * * columns of a list (`select a * 2 as b`), since a column may be called by its text;
 * * keys of objects, and a number behind a word and a minus, where only the grammar can tell `limit -1` from `n -1`.
 *
 * A list or an object of constants alone is one literal (a point, a json payload). Nothing is lifted from a grouped read,
 * whose columns are told by comparing expressions, or from a `near`.
 */

import { CACHED_TEXT_LENGTH, JSON_DEPTH } from "../base/limits.ts";
import type { Value } from "../value/value.ts";
import { objectValue } from "./constant.ts";
import { type Literal, scanNumber, scanString } from "./literal.ts";
import { isWordAt, nameEnd, spaceEnd } from "./reader.ts";

export interface Lifted {
  readonly key: string;
  /** In the order of their markers. */
  readonly literals: readonly Value[];
}

// What the token before says about the one that follows.
/** A value ends here: a minus subtracts, a bracket opens no literal. */
const VALUE = 0;
/** A value starts here. */
const OPEN = 1;
/** A keyword, or a field of that name. */
const WORD = 2;
/** The word `require`. */
const REQUIRE = 3;
/** `*` for every field; times is an operator like others. */
const STAR = 4;
/** A document, a key, or the first column of a list. */
const SHAPE = 5;

const PAREN = 1;
const LIST = 2;
const OBJECT = 3;
/** The bracket around documents. */
const DOCUMENTS = 4;

/** Brackets open at the place of the walk, innermost last. A text holds no more than it has characters. */
const open = new Uint8Array(CACHED_TEXT_LENGTH + 1);

/** Null: this text is to be parsed as it is. */
export function lift(text: string): Lifted | null {
  const length = text.length;
  if (length > CACHED_TEXT_LENGTH) return null;
  const start = spaceEnd(text, 0);
  let i = start;
  const verb = verbAt(text, i);
  if (verb === "") return null;
  i += verb.length;

  const literals: Value[] = [];
  let key = "";
  let from = start;
  let depth = 0;
  let before = SHAPE;
  const isPut = verb === "put" || verb === "insert";
  // A list of columns ends with the first clause behind it; a read may start with one.
  let inList = verb === "get" || verb === "select" || verb === "explain";
  let listDepth = 0;

  while (i < length) {
    const c = text.charCodeAt(i);

    if ((c >= 97 && c <= 122) || (c >= 65 && c <= 90) || c === 95 || c > 127) {
      const end = nameEnd(text, i);
      if (end === i) {
        const space = spaceEnd(text, i);
        if (space === i) return null;
        key += `${text.slice(from, i)} `;
        from = i = space;
        continue;
      }
      if (end < length && text.charCodeAt(end) === 46) {
        i = end;
        while (i < length && text.charCodeAt(i) === 46) {
          const keyEnd = nameEnd(text, i + 1);
          if (keyEnd === i + 1) return null;
          i = keyEnd;
        }
        before = VALUE;
        continue;
      }
      switch (wordKind(text, i, end)) {
        case KEYWORD:
          before = WORD;
          break;
        case OPERATOR:
          // Two names never stand side by side, so behind a value this is the operator and no field.
          before = before === VALUE ? OPEN : WORD;
          break;
        case WHERE:
          if (inList && endsList(before, depth, listDepth)) inList = false;
          before = before === VALUE ? OPEN : WORD;
          break;
        case CLAUSE:
          if (inList && endsList(before, depth, listDepth)) inList = false;
          before = WORD;
          break;
        case COUNT:
          if (inList && endsList(before, depth, listDepth) && text.charCodeAt(spaceEnd(text, end)) !== 40)
            inList = false;
          before = WORD;
          break;
        case REQUIRE_CLAUSE:
          if (inList && endsList(before, depth, listDepth)) inList = false;
          before = REQUIRE;
          break;
        case LIST_CLAUSE:
          // An inner read among the columns: one list inside another is more than this walk keeps apart.
          if (inList && depth > listDepth) return null;
          inList = true;
          listDepth = depth;
          before = SHAPE;
          break;
        case NEVER:
          // As a field's name it stands where a value or a key does.
          if (before !== OPEN && text.charCodeAt(spaceEnd(text, end)) !== 58) return null;
          before = VALUE;
          break;
        default:
          before = VALUE;
      }
      i = end;
      continue;
    }

    if (c >= 48 && c <= 57) {
      const literal = scanNumber(text, i);
      if (literal.wrong !== undefined) {
        const end = durationEnd(text, i);
        if (end === i) return null;
        i = end;
      } else if (inList || before === REQUIRE) {
        i = literal.end;
      } else {
        key += `${text.slice(from, i)}?${literals.length}`;
        literals.push(literal.value);
        from = i = literal.end;
      }
      before = VALUE;
      continue;
    }

    switch (c) {
      case 34: // "
      case 39: {
        const literal = scanString(text, i);
        if (literal.wrong !== undefined) return null;
        const isKey = depth > 0 && open[depth] === OBJECT && text.charCodeAt(spaceEnd(text, literal.end)) === 58;
        if (isKey || inList) {
          i = literal.end;
        } else {
          const next = literal.end < length ? text.charCodeAt(literal.end) : 0;
          // A digit right behind the marker would be taken for one of its own.
          if (next >= 48 && next <= 57) return null;
          key += `${text.slice(from, i)}?${literals.length}`;
          literals.push(literal.value);
          from = i = literal.end;
        }
        before = VALUE;
        continue;
      }
      case 32: {
        const next = i + 1 < length ? text.charCodeAt(i + 1) : 0;
        if (next > 32 && next < 128 && next !== 35 && next !== 45) {
          i++;
          continue;
        }
        const space = spaceEnd(text, i);
        if (space !== i + 1) {
          key += `${text.slice(from, i)} `;
          from = space;
        }
        i = space;
        continue;
      }
      case 9:
      case 10:
      case 11:
      case 12:
      case 13:
      case 35: // #
        key += `${text.slice(from, i)} `;
        from = i = spaceEnd(text, i);
        continue;
      case 45: {
        const next = i + 1 < length ? text.charCodeAt(i + 1) : 0;
        if (next === 45) {
          key += `${text.slice(from, i)} `;
          from = i = spaceEnd(text, i);
          continue;
        }
        if (next < 48 || next > 57 || before === VALUE) {
          i++;
          before = OPEN;
          continue;
        }
        const literal = scanNumber(text, i);
        if (literal.wrong !== undefined) return null;
        if (inList || (before !== OPEN && before !== STAR)) {
          i = literal.end;
        } else {
          key += `${text.slice(from, i)}?${literals.length}`;
          literals.push(literal.value);
          from = i = literal.end;
        }
        before = VALUE;
        continue;
      }
      case 36: // $
        i++;
        while (i < length && text.charCodeAt(i) >= 48 && text.charCodeAt(i) <= 57) i++;
        before = VALUE;
        continue;
      case 40:
        open[++depth] = PAREN;
        before = OPEN;
        i++;
        continue;
      case 91: // [
      case 123: {
        // What opens outside all brackets of a put is a document, whatever its collection is called.
        const isDocument = isPut && depth === 0;
        if (before === OPEN && !inList && !isDocument) {
          const literal = scanConstant(text, i, JSON_DEPTH - depth);
          if (literal !== undefined) {
            key += `${text.slice(from, i)}?${literals.length}`;
            literals.push(literal.value);
            from = i = literal.end;
            const next = i < length ? text.charCodeAt(i) : 0;
            if (next >= 48 && next <= 57) return null;
            before = VALUE;
            continue;
          }
        }
        if (c === 123) open[++depth] = OBJECT;
        else open[++depth] = isDocument || before === VALUE || before === SHAPE ? DOCUMENTS : LIST;
        before = open[depth] === LIST ? OPEN : SHAPE;
        i++;
        continue;
      }
      case 41: // )
      case 93:
      case 125:
        if (depth === 0) return null;
        depth--;
        if (depth < listDepth) inList = false;
        before = VALUE;
        i++;
        continue;
      case 44: // ,
        before = depth === 0 || open[depth] === PAREN || open[depth] === LIST ? OPEN : SHAPE;
        i++;
        continue;
      case 58: // :
      case 61: // =
      case 60: // <
      case 62: // >
      case 33: // !
      case 126: // ~
      case 43: // +
      case 47: // /
        before = OPEN;
        i++;
        continue;
      case 42: // *
        before = before === OPEN || before === SHAPE ? STAR : OPEN;
        i++;
        continue;
      case 59: // ;
        before = SHAPE;
        i++;
        continue;
      default:
        return null;
    }
  }
  // The last run of white space is no part of the key.
  const tail = text.slice(from, length);
  return { key: tail === "" && key.endsWith(" ") ? key.slice(0, -1) : key + tail.trimEnd(), literals };
}

const VERBS = ["get", "set", "put", "del", "select", "insert", "update", "delete", "explain"];

function verbAt(text: string, from: number): string {
  for (const verb of VERBS) if (isWordAt(text, verb, from)) return verb;
  return "";
}

/** Does a clause's word end the list of columns? Where a column starts, it is a field of that name. */
function endsList(before: number, depth: number, listDepth: number): boolean {
  return depth === listDepth && (before === VALUE || before === STAR);
}

const NAME = 0;
/** `then`, `by`, ...: what follows may be a value. */
const KEYWORD = 1;
/** `and`, `or`, `has`: behind a value, what follows is one. */
const OPERATOR = 2;
/** The same, and the end of a list of columns. */
const WHERE = 3;
/** The end of a list of columns; what follows may be a value. */
const CLAUSE = 4;
const REQUIRE_CLAUSE = 5;
const LIST_CLAUSE = 6;
const COUNT = 7;
/** Clauses of reads nothing is lifted from. */
const NEVER = 8;

const KINDS = new Map<string, number>([
  ["and", OPERATOR],
  ["or", OPERATOR],
  ["not", KEYWORD],
  ["in", KEYWORD],
  ["is", KEYWORD],
  ["by", KEYWORD],
  ["as", KEYWORD],
  ["case", KEYWORD],
  ["when", KEYWORD],
  ["then", KEYWORD],
  ["else", KEYWORD],
  ["distinct", KEYWORD],
  ["set", KEYWORD],
  ["into", KEYWORD],
  ["from", CLAUSE],
  ["where", WHERE],
  ["order", CLAUSE],
  ["limit", CLAUSE],
  ["offset", CLAUSE],
  ["returning", CLAUSE],
  ["count", COUNT],
  ["require", REQUIRE_CLAUSE],
  ["select", LIST_CLAUSE],
  ["has", OPERATOR],
  ["group", NEVER],
  ["having", NEVER],
  ["near", NEVER],
]);

/** The keywords by their first letter, so that most names are told from them without a look-up. */
const BY_LETTER: readonly (readonly [string, number])[][] = Array.from({ length: 26 }, (_, letter) =>
  [...KINDS].filter(([word]) => word.charCodeAt(0) === 97 + letter),
);

function wordKind(text: string, from: number, end: number): number {
  const letter = (text.charCodeAt(from) | 32) - 97;
  const candidates = BY_LETTER[letter];
  if (candidates === undefined) return NAME;
  for (const [word, kind] of candidates) {
    if (word.length === end - from && isWordAt(text, word, from)) return kind;
  }
  return NAME;
}

/** Behind digits that run into letters; `from` when the number at `from` is wrong in another way. */
function durationEnd(text: string, from: number): number {
  let i = from;
  while (i < text.length && text.charCodeAt(i) >= 48 && text.charCodeAt(i) <= 57) i++;
  const end = nameEnd(text, i);
  return end > i ? end : from;
}

/** The list or object at `from`, if nothing but constants is in it. `levels` bounds its nesting. */
function scanConstant(text: string, from: number, levels: number): Literal | undefined {
  if (levels <= 0) return undefined;
  const isObject = text.charCodeAt(from) === 123;
  const close = isObject ? 125 : 93;
  const keys: string[] = [];
  const values: Value[] = [];
  let i = spaceEnd(text, from + 1);
  while (text.charCodeAt(i) !== close) {
    if (isObject) {
      const c = text.charCodeAt(i);
      if (c === 34 || c === 39) {
        const key = scanString(text, i);
        if (key.wrong !== undefined) return undefined;
        keys.push(key.value as string);
        i = key.end;
      } else {
        const end = nameEnd(text, i);
        if (end === i) return undefined;
        keys.push(text.slice(i, end));
        i = end;
      }
      i = spaceEnd(text, i);
      if (text.charCodeAt(i) !== 58) return undefined;
      i = spaceEnd(text, i + 1);
    }
    const literal = scanElement(text, i, levels);
    if (literal === undefined || literal.wrong !== undefined) return undefined;
    values.push(literal.value);
    i = spaceEnd(text, literal.end);
    const next = text.charCodeAt(i);
    if (next === 44) i = spaceEnd(text, i + 1);
    else if (next !== close) return undefined;
  }
  if (isObject && new Set(keys).size < keys.length) return undefined;
  const value = isObject ? objectValue(keys, values) : values;
  return { value, end: i + 1, wrong: undefined };
}

function scanElement(text: string, from: number, levels: number): Literal | undefined {
  const c = from < text.length ? text.charCodeAt(from) : 0;
  if (c === 34 || c === 39) return scanString(text, from);
  if (c >= 48 && c <= 57) return scanNumber(text, from);
  switch (c) {
    case 45: {
      const next = from + 1 < text.length ? text.charCodeAt(from + 1) : 0;
      return next >= 48 && next <= 57 ? scanNumber(text, from) : undefined;
    }
    case 91:
    case 123:
      return scanConstant(text, from, levels - 1);
    case 110: // n
    case 78:
      return isWordAt(text, "null", from) ? { value: null, end: from + 4, wrong: undefined } : undefined;
    case 116: // t
    case 84:
      return isWordAt(text, "true", from) ? { value: true, end: from + 4, wrong: undefined } : undefined;
    case 102: // f
    case 70:
      return isWordAt(text, "false", from) ? { value: false, end: from + 5, wrong: undefined } : undefined;
    default:
      return undefined;
  }
}
