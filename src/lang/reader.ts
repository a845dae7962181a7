/**
 * The tokens of FenecQL, and a place in a text that walks over them. Every custom Parsimmon parser of the grammar runs
 * on a reader (`reading`), so that the hot parts, expressions, documents and clauses, look at each character once and
 * allocate nothing but nodes; Parsimmon puts the parts together.
 *
 * `at` always stands on the first character of a token (or past the end): white space and comments are walked over behind
 * a token, never in front of one.
 *
 * A wrong text is read twice. The first reading only finds that it is wrong; the second one, with `recording` on, notes
 * what would have been right at the furthest place reached. So a text that is right, which nearly all are, pays nothing
 * for messages.
 */

import Parsimmon from "parsimmon";
import { EXPRESSION_DEPTH, JSON_DEPTH, NAME_LENGTH, PATH_KEYS } from "../base/limits.ts";
import { Refusal, type RefusalCode } from "../base/refusal.ts";
import type { Value } from "../value/value.ts";
import { type Literal, scanNumber, scanString } from "./literal.ts";
import { placeOf } from "./place.ts";

declare module "parsimmon" {
  interface Parser<T> {
    /**
     * A parser's own step, without `parse` around it. `parse` keeps the text of a failure as the key of a plain object, and
     * a text `__proto__` would write into every object there is.
     */
    _(input: string, from: number): Reply<T>;
  }
}

/** Which of the language's faces is read. */
export interface Dialect {
  /** `$jwt.x` stands for a token's claim, and `$1` is refused. */
  readonly claims: boolean;
  /** `?0`, `?1`, ... stand for literals taken out of the text. */
  readonly lifted: boolean;
  /** Notes what was expected, for the words of a refusal. */
  readonly recording: boolean;
}

/** Thrown to leave a parser that failed: the reader holds where and why. Never leaves `reading`. */
const STOP: unique symbol = Symbol("stop");

const NAME_START = 1;
const NAME_DIGIT = 2;
const ASCII = new Uint8Array(128);
for (let c = 97; c <= 122; c++) ASCII[c] = NAME_START;
for (let c = 65; c <= 90; c++) ASCII[c] = NAME_START;
ASCII[95] = NAME_START;
for (let c = 48; c <= 57; c++) ASCII[c] = NAME_DIGIT;

const UNICODE_START = /\p{L}/u;
const UNICODE_PART = /[\p{L}\p{M}\p{Nd}]/u;
const WIDE_SPACE = /[\s\u0085]/;

const NO_EXPECTATIONS: string[] = [];

/** The index behind the name that starts at `from`; `from` itself when none does. */
export function nameEnd(text: string, from: number): number {
  const length = text.length;
  let i = from;
  while (i < length) {
    const c = text.charCodeAt(i);
    if (c < 128) {
      const kind = ASCII[c];
      if (kind === NAME_START || (kind === NAME_DIGIT && i > from)) i++;
      else break;
    } else {
      const point = text.codePointAt(i) ?? 0;
      const character = String.fromCodePoint(point);
      if (!(i === from ? UNICODE_START : UNICODE_PART).test(character)) break;
      i += character.length;
    }
  }
  return i;
}

/** The index of the first character at or behind `from` that is neither white space nor in a comment. */
export function spaceEnd(text: string, from: number): number {
  const length = text.length;
  let i = from;
  while (i < length) {
    const c = text.charCodeAt(i);
    if (c === 32 || (c <= 13 && c >= 9)) i++;
    else if (c === 35 || (c === 45 && i + 1 < length && text.charCodeAt(i + 1) === 45)) {
      while (i < length) {
        const inComment = text.charCodeAt(i);
        if (inComment === 10 || inComment === 13) break;
        i++;
      }
    } else if (c > 127 && WIDE_SPACE.test(text[i] ?? "")) i++;
    else break;
  }
  return i;
}

/** Does the keyword `word`, given in lower case, stand at `from`, in any case? */
export function isWordAt(text: string, word: string, from: number): boolean {
  const end = from + word.length;
  if (end > text.length) return false;
  for (let i = 0; i < word.length; i++) {
    if ((text.charCodeAt(from + i) | 32) !== word.charCodeAt(i)) return false;
  }
  return end === text.length || !continuesName(text, end);
}

function continuesName(text: string, index: number): boolean {
  const c = text.charCodeAt(index);
  return c < 128 ? ASCII[c] !== 0 : UNICODE_PART.test(String.fromCodePoint(text.codePointAt(index) ?? 0));
}

export class Reader {
  readonly input: string;
  readonly length: number;
  readonly dialect: Dialect;
  /** Offset of the next token, in UTF-16 units. */
  at: number;
  /** How deep the expression being read is nested. */
  depth = 0;
  /** How deep the tree of the expression read last is; chains count their length. */
  height = 0;
  /** Lists and objects around the value being read. */
  containers = 0;
  /** `in (get ...)` around what is being read. */
  innerGets = 0;
  /** Lifted literals read so far. */
  lifted = 0;
  furthest = -1;
  expected: string[] = NO_EXPECTATIONS;

  constructor(input: string, from: number, dialect: Dialect) {
    this.input = input;
    this.length = input.length;
    this.dialect = dialect;
    this.at = from;
  }

  /** The UTF-16 unit of the next token's first character, -1 at the end. */
  code(): number {
    return this.at < this.length ? this.input.charCodeAt(this.at) : -1;
  }

  codeAt(index: number): number {
    return index < this.length ? this.input.charCodeAt(index) : -1;
  }

  /** Walks to `index`, the end of a token, and over the white space behind it. */
  moveTo(index: number): void {
    if (index < this.length) {
      const c = this.input.charCodeAt(index);
      // The common cases without a call: no space, or one.
      if (c > 32 && c < 128 && c !== 35 && c !== 45) {
        this.at = index;
        return;
      }
      if (c === 32 && index + 1 < this.length) {
        const next = this.input.charCodeAt(index + 1);
        if (next > 32 && next < 128 && next !== 35 && next !== 45) {
          this.at = index + 1;
          return;
        }
      }
    }
    this.at = spaceEnd(this.input, index);
  }

  /** Notes that `what` would have been right here. */
  note(what: string): void {
    if (this.dialect.recording) this.mark(what);
  }

  private mark(what: string): void {
    if (this.at > this.furthest) {
      this.furthest = this.at;
      this.expected = [];
    }
    if (this.at === this.furthest && !this.expected.includes(what)) this.expected.push(what);
  }

  /** Leaves the parser: `what` was expected here. */
  fail(what: string): never {
    this.mark(what);
    throw STOP;
  }

  /** Refuses the whole text with words of its own, which the place is put before. */
  refuse(code: RefusalCode, words: string, at = this.at, expected: readonly string[] = []): never {
    const { line, column } = placeOf(this.input, at);
    throw new Refusal(code, `line ${line}, column ${column}: ${words}`, { line, column, expected });
  }

  /** Is the next character the ASCII character with this code? */
  is(code: number): boolean {
    return this.at < this.length && this.input.charCodeAt(this.at) === code;
  }

  /** Takes the symbol of one character if it is next. */
  take(code: number): boolean {
    if (this.at < this.length && this.input.charCodeAt(this.at) === code) {
      this.moveTo(this.at + 1);
      return true;
    }
    if (this.dialect.recording) this.mark(`\`${String.fromCharCode(code)}\``);
    return false;
  }

  need(code: number): void {
    if (!this.take(code)) this.fail(`\`${String.fromCharCode(code)}\``);
  }

  /** Is the next token this keyword (given in lower case), in any case? */
  isWord(word: string): boolean {
    return isWordAt(this.input, word, this.at);
  }

  isWordAt(word: string, from: number): boolean {
    return isWordAt(this.input, word, from);
  }

  takeWord(word: string): boolean {
    if (isWordAt(this.input, word, this.at)) {
      this.moveTo(this.at + word.length);
      return true;
    }
    if (this.dialect.recording) this.mark(`\`${word}\``);
    return false;
  }

  needWord(word: string): void {
    if (!this.takeWord(word)) this.fail(`\`${word}\``);
  }

  /** The word that is next, in lower case and not taken; empty when the next token is no word. */
  peekWord(): string {
    return this.wordAt(this.at);
  }

  wordAt(from: number): string {
    const end = nameEnd(this.input, from);
    if (end === from) return "";
    const word = this.input.slice(from, end);
    for (let i = 0; i < word.length; i++) {
      const c = word.charCodeAt(i);
      if (c < 97 || c > 122) return word.toLowerCase();
    }
    return word;
  }

  /** Offset of the token behind the word that is next. */
  behindWord(): number {
    return spaceEnd(this.input, nameEnd(this.input, this.at));
  }

  /** Offset of the token behind the word at `index`. */
  tokenBehind(index: number): number {
    return spaceEnd(this.input, nameEnd(this.input, index));
  }

  startsName(index: number): boolean {
    return nameEnd(this.input, index) > index;
  }

  /** A name of a collection, a field, a column or a function. */
  name(what: string): string {
    const end = nameEnd(this.input, this.at);
    if (end === this.at) this.fail(what);
    const name = this.input.slice(this.at, end);
    if (name.length > NAME_LENGTH) this.checkNameLength(name);
    if (this.codeAt(end) === 46) {
      this.refuse("syntax", `${what} has no dots, and \`${name}.\` has one`, end);
    }
    this.moveTo(end);
    return name;
  }

  private checkNameLength(name: string): void {
    let points = 0;
    for (const _ of name) {
      if (++points > NAME_LENGTH) this.refuse("limit_passed", `a name has at most ${NAME_LENGTH} characters`);
    }
  }

  /** Where the name that is next ends; `at` when the next token is none. */
  fieldEnd(): number {
    return nameEnd(this.input, this.at);
  }

  /** The keys of the path whose field ended at `end`, where a dot stands. Moves behind the path. */
  pathKeys(end: number): string[] {
    const keys: string[] = [];
    let dot = end;
    while (this.codeAt(dot) === 46) {
      const keyEnd = nameEnd(this.input, dot + 1);
      if (keyEnd === dot + 1) this.refuse("syntax", "a dot in a path needs a name right behind it", dot);
      keys.push(this.input.slice(dot + 1, keyEnd));
      dot = keyEnd;
    }
    if (keys.length > PATH_KEYS) {
      this.refuse("limit_passed", `a path of ${keys.length} keys behind its field; a path has at most ${PATH_KEYS}`);
    }
    this.moveTo(dot);
    return keys;
  }

  /** The field's name that ends at `end`; does not move. */
  checkedField(end: number): string {
    const field = this.input.slice(this.at, end);
    if (field.length > NAME_LENGTH) this.checkNameLength(field);
    return field;
  }

  /** The number that is next, made negative when a minus stands directly before its digits. */
  number(): Value {
    return this.literal(scanNumber(this.input, this.at));
  }

  /** The quoted text that is next. */
  text(): string {
    const literal = scanString(this.input, this.at);
    this.literal(literal);
    return literal.value as string;
  }

  private literal(literal: Literal): Value {
    if (literal.wrong !== undefined) this.refuse("syntax", literal.wrong, literal.end);
    this.moveTo(literal.end);
    return literal.value;
  }

  /** The token at `index` as a refusal shows it. */
  shown(index: number): string {
    return this.input.slice(index, Math.max(index + 1, nameEnd(this.input, index)));
  }

  /** One level deeper into an expression; `leave` goes back. */
  enter(): void {
    if (this.depth >= EXPRESSION_DEPTH) this.tooDeep();
    this.depth++;
  }

  leave(): void {
    this.depth--;
  }

  /** Sets the height of the tree just built. */
  rise(height: number): void {
    if (height > EXPRESSION_DEPTH) this.tooDeep();
    this.height = height;
  }

  enterContainer(): void {
    this.enter();
    if (this.containers >= JSON_DEPTH) {
      this.refuse("too_deep", `lists and objects are nested too deep: a value has at most ${JSON_DEPTH} levels`);
    }
    this.containers++;
  }

  leaveContainer(): void {
    this.containers--;
    this.depth--;
  }

  private tooDeep(): never {
    return this.refuse(
      "too_deep",
      `the expression is too deep: parentheses, operators and the length of a chain may nest to ${EXPRESSION_DEPTH}`,
    );
  }
}

/** A Parsimmon parser that is one walk of a reader. */
export function reading<T>(dialect: Dialect, read: (reader: Reader) => T): Parsimmon.Parser<T> {
  return Parsimmon<T>((input, from) => {
    const reader = new Reader(input, from, dialect);
    try {
      const value = read(reader);
      const reply = {
        status: true as const,
        index: reader.at,
        value,
        // What Parsimmon merges behind a success; nothing noted: an index that grows spares it the merge.
        furthest: reader.furthest >= 0 ? reader.furthest : reader.at - 1,
        expected: reader.expected,
      };
      return reply as unknown as Parsimmon.SuccessReply<T>;
    } catch (thrown) {
      if (thrown !== STOP) throw thrown;
      return Parsimmon.makeFailure(reader.furthest, reader.expected);
    }
  });
}
