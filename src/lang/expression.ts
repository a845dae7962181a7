/**
 * Expressions: one parser that climbs by precedence. From loose to tight: `or`; `and`; `not`; the comparisons, which do
 * not chain; `+ -`; `* /`; the minus before a value.
 *
 * Two measures keep a hostile text from overflowing a stack, here and in whoever walks the tree later. `depth` counts on
 * the way down (parentheses, `not`, minus, calls, `case`, lists, objects) and bounds this parser's own recursion. `height`
 * counts on the way up and bounds the tree: a chain of operators leans to the left, one level an operator, so a flat
 * `a + a + a ...` is as deep as it is long, though it was read by a loop. Both end at EXPRESSION_DEPTH.
 */

import { INNER_GET_LEVELS } from "../base/limits.ts";
import type { BinaryOp, CallExpr, ConstExpr, Expr, PathExpr } from "./ast.ts";
import { listConstant, objectConstant } from "./constant.ts";
import { readGet } from "./get.ts";
import { LIFTED_BASE } from "./lifted.ts";
import { scanNumber } from "./literal.ts";
import { nameEnd, type Reader } from "./reader.ts";

const OR = 1;
const AND = 2;
const NOT = 3;
const COMPARE = 4;
const SUM = 5;
const TERM = 6;
const UNARY = 7;

const NO_KEYS: readonly string[] = Object.freeze([]);
const NO_ARGS: readonly Expr[] = Object.freeze([]);
const NULL: ConstExpr = Object.freeze({ kind: "const", value: null });
const TRUE: ConstExpr = Object.freeze({ kind: "const", value: true });
const FALSE: ConstExpr = Object.freeze({ kind: "const", value: false });

/** Functions of the language this server leaves out. */
const UNSUPPORTED_FUNCTIONS = new Set(["highlight", "snippet"]);
const DURATION_UNITS = new Set(["ms", "s", "m", "h", "d", "w", "mo", "y"]);

/** A whole expression. */
export function readExpression(r: Reader): Expr {
  return climb(r, OR);
}

/** A value without comparisons and logic: what stands behind `near f`. */
export function readSum(r: Reader): Expr {
  return climb(r, SUM);
}

function climb(r: Reader, loosest: number): Expr {
  const isBracketed = r.is(40);
  let left = operand(r, loosest);
  let height = r.height;
  let chain: Expr[] | undefined;
  let chainOf = 0;
  // What may follow: nothing looser than what was asked for, no comparison behind a comparison, and behind `not x`, which
  // has taken all that binds tighter, `and` and `or` alone.
  let tightest = left.kind === "unary" && left.op === "not" && !isBracketed ? NOT : UNARY;
  for (;;) {
    const input = r.input;
    const at = r.at;
    const c = at < r.length ? input.charCodeAt(at) : -1;
    if (r.dialect.recording) noteOperators(r, loosest, tightest);
    let op: BinaryOp;
    let level: number;
    let width = 1;
    switch (c) {
      case 43:
        op = "+";
        level = SUM;
        break;
      case 45:
        op = "-";
        level = SUM;
        break;
      case 42:
        op = "*";
        level = TERM;
        break;
      case 47:
        op = "/";
        level = TERM;
        break;
      case 61:
        op = "=";
        level = COMPARE;
        if (r.codeAt(at + 1) === 61) width = 2;
        break;
      case 60: {
        level = COMPARE;
        const next = r.codeAt(at + 1);
        op = next === 61 ? "<=" : next === 62 ? "!=" : "<";
        if (op !== "<") width = 2;
        break;
      }
      case 62:
        level = COMPARE;
        op = r.codeAt(at + 1) === 61 ? ">=" : ">";
        if (op === ">=") width = 2;
        break;
      case 33:
        if (r.codeAt(at + 1) !== 61) r.refuse("syntax", "`!` stands only in `!=`: write `not`");
        op = "!=";
        level = COMPARE;
        width = 2;
        break;
      case 126:
        op = "~";
        level = COMPARE;
        break;
      case 65: // A
      case 97:
      case 79: // O
      case 111: {
        const isAnd = (c | 32) === 97;
        if (!r.isWordAt(isAnd ? "and" : "or", at)) {
          r.height = height;
          return left;
        }
        level = isAnd ? AND : OR;
        if (level < loosest) {
          r.height = height;
          return left;
        }
        r.moveTo(at + (isAnd ? 3 : 2));
        const right = climb(r, level + 1);
        // A chain is as deep as it is long: two terms are two levels, and each further one is one more.
        height = Math.max(height, r.height, 1) + 1;
        r.rise(height);
        if (chain !== undefined && chainOf === level) {
          chain.push(right);
        } else {
          chain = [left, right];
          chainOf = level;
          left = { kind: isAnd ? "and" : "or", of: chain };
        }
        tightest = NOT;
        continue;
      }
      case 72: // H
      case 104:
        if (!r.isWordAt("has", at)) {
          r.height = height;
          return left;
        }
        op = "has";
        level = COMPARE;
        width = 3;
        break;
      case 73: // I
      case 105:
        if (loosest > COMPARE || tightest < COMPARE) {
          r.height = height;
          return left;
        }
        if (r.isWordAt("in", at)) {
          r.moveTo(at + 2);
          left = readIn(r, left, height);
        } else if (r.isWordAt("is", at)) {
          r.moveTo(at + 2);
          const not = r.takeWord("not");
          r.needWord("null");
          left = { kind: "isNull", of: left, not };
          r.height = height;
        } else {
          r.height = height;
          return left;
        }
        height = r.height;
        tightest = NOT;
        continue;
      case 78: // N
      case 110:
        if (loosest <= COMPARE && r.isWordAt("not", at) && r.isWordAt("in", r.behindWord())) {
          r.refuse("syntax", "`x not in [...]` is written `not x in [...]`");
        }
        r.height = height;
        return left;
      default:
        r.height = height;
        return left;
    }
    if (level < loosest || level > tightest) {
      if (level === COMPARE && tightest === NOT && chain === undefined) {
        r.refuse("syntax", "a comparison does not chain: put parentheses around one, or join two with `and`");
      }
      r.height = height;
      return left;
    }
    r.moveTo(at + width);
    const right = climb(r, level + 1);
    if (level === COMPARE) {
      height = Math.max(height, r.height);
      tightest = NOT;
    } else {
      height = Math.max(height, r.height, 1) + 1;
      r.rise(height);
    }
    left = { kind: "binary", op, left, right };
  }
}

function noteOperators(r: Reader, loosest: number, tightest: number): void {
  if (tightest > TERM || loosest > TERM) r.note("an operator");
  if (loosest <= COMPARE && tightest >= COMPARE) {
    r.note("`has`");
    r.note("`in`");
    r.note("`is`");
  }
  if (loosest <= AND) r.note("`and`");
  if (loosest <= OR) r.note("`or`");
}

/** Behind `in`: a list of its own, an inner read, or, in a policy, a claim that is a list. */
function readIn(r: Reader, left: Expr, leftHeight: number): Expr {
  if (r.is(91)) {
    r.enter();
    r.moveTo(r.at + 1);
    let height = leftHeight;
    const list: Expr[] = [];
    while (!r.take(93)) {
      list.push(climb(r, OR));
      if (r.height > height) height = r.height;
      if (!r.take(44)) {
        r.need(93);
        break;
      }
    }
    r.leave();
    r.rise(height + 1);
    return { kind: "in", left, list };
  }
  if (r.dialect.claims && r.is(36)) {
    const claim = readDollar(r);
    r.height = leftHeight;
    return { kind: "in", left, list: [claim] };
  }
  r.note("`[`");
  if (!r.is(40)) r.fail("`(`");
  r.enter();
  r.moveTo(r.at + 1);
  if (r.innerGets >= INNER_GET_LEVELS) {
    r.refuse("limit_passed", `\`in (get ...)\` is nested past ${INNER_GET_LEVELS} levels`);
  }
  r.innerGets++;
  const word = r.peekWord();
  if (word !== "get" && word !== "select") {
    r.note("`get`");
    r.fail("`select`");
  }
  r.moveTo(r.at + word.length);
  const get = readGet(r);
  r.need(41);
  r.innerGets--;
  r.leave();
  r.rise(leftHeight + 1);
  return { kind: "inGet", left, get };
}

function operand(r: Reader, loosest: number): Expr {
  const c = r.code();
  if (c === 45) {
    const next = r.codeAt(r.at + 1);
    if (next >= 48 && next <= 57) {
      r.height = 0;
      return { kind: "const", value: r.number() };
    }
    r.enter();
    r.moveTo(r.at + 1);
    const of = operand(r, UNARY);
    r.leave();
    r.rise(r.height + 1);
    return { kind: "unary", op: "-", of };
  }
  if (c >= 48 && c <= 57) {
    r.height = 0;
    return { kind: "const", value: r.number() };
  }
  switch (c) {
    case 34:
    case 39:
      r.height = 0;
      return { kind: "const", value: r.text() };
    case 36:
      r.height = 0;
      return readDollar(r);
    case 63:
      if (r.dialect.lifted) {
        r.height = 0;
        return readLifted(r);
      }
      break;
    case 40: {
      r.enter();
      r.moveTo(r.at + 1);
      const inner = climb(r, OR);
      const height = r.height;
      r.need(41);
      r.leave();
      r.rise(height + 1);
      return inner;
    }
    case 91:
      return readList(r);
    case 123:
      return readObject(r);
    default:
      break;
  }
  const end = r.fieldEnd();
  if (end === r.at) r.fail("an expression");
  return word(r, end, loosest);
}

/** A name, a path, a call, or one of the words that stand for more. */
function word(r: Reader, end: number, loosest: number): Expr {
  const at = r.at;
  const next = r.codeAt(end);
  if (next === 46) {
    const field = r.checkedField(end);
    const keys = r.pathKeys(end);
    r.height = 0;
    return { kind: "path", field, keys, at } satisfies PathExpr;
  }
  switch ((r.input.charCodeAt(at) | 32) * 8 + (end - at)) {
    case 110 * 8 + 3: // n, 3 letters
      if (r.isWordAt("not", at) && !followsName(r, end)) {
        if (loosest > NOT) r.refuse("syntax", "`not` stands before a condition: put parentheses around it");
        r.enter();
        r.moveTo(end);
        const of = climb(r, NOT);
        r.leave();
        r.rise(r.height + 1);
        return { kind: "unary", op: "not", of };
      }
      break;
    case 110 * 8 + 4:
      if (r.isWordAt("null", at)) {
        r.moveTo(end);
        r.height = 0;
        return NULL;
      }
      break;
    case 116 * 8 + 4:
      if (r.isWordAt("true", at)) {
        r.moveTo(end);
        r.height = 0;
        return TRUE;
      }
      break;
    case 102 * 8 + 5:
      if (r.isWordAt("false", at)) {
        r.moveTo(end);
        r.height = 0;
        return FALSE;
      }
      break;
    case 99 * 8 + 4:
      if (r.isWordAt("case", at) && r.isWordAt("when", r.behindWord())) return readCase(r, end);
      break;
    default:
      break;
  }
  const field = r.checkedField(end);
  r.moveTo(end);
  if (r.is(40)) return readCall(r, field.toLowerCase(), at);
  r.height = 0;
  return { kind: "path", field, keys: NO_KEYS, at } satisfies PathExpr;
}

/** Does what stands behind `not` show that it is a field's name? An operator cannot follow the word `not`. */
function followsName(r: Reader, end: number): boolean {
  const saved = r.at;
  r.moveTo(end);
  const c = r.code();
  r.at = saved;
  switch (c) {
    case -1:
    case 33:
    case 41:
    case 42:
    case 43:
    case 44:
    case 47:
    case 59:
    case 60:
    case 61:
    case 62:
    case 93:
    case 125:
    case 126:
      return true;
    default:
      return false;
  }
}

function readCase(r: Reader, end: number): Expr {
  r.enter();
  r.moveTo(end);
  let height = 0;
  const whens: { when: Expr; then: Expr }[] = [];
  r.needWord("when");
  do {
    const when = climb(r, OR);
    if (r.height > height) height = r.height;
    r.needWord("then");
    const then = climb(r, OR);
    if (r.height > height) height = r.height;
    whens.push({ when, then });
  } while (r.takeWord("when"));
  let otherwise: Expr | null = null;
  if (r.takeWord("else")) {
    otherwise = climb(r, OR);
    if (r.height > height) height = r.height;
  }
  r.needWord("end");
  r.leave();
  r.rise(height + 1);
  return { kind: "case", whens, otherwise };
}

/** From the parenthesis of a call on. */
function readCall(r: Reader, name: string, at: number): CallExpr {
  if (UNSUPPORTED_FUNCTIONS.has(name)) r.refuse("unsupported", `\`${name}\` is not supported`, at);
  r.enter();
  r.moveTo(r.at + 1);
  if (r.take(41)) {
    r.leave();
    r.rise(1);
    return { kind: "call", name, args: NO_ARGS, star: false, distinct: false, by: null, at };
  }
  const args: Expr[] = [];
  let star = false;
  let distinct = false;
  let by: Expr | null = null;
  let height = 0;
  if (name === "count" && r.take(42)) {
    star = true;
  } else {
    if (name === "count" && r.isWord("distinct")) {
      const c = r.codeAt(r.behindWord());
      if (c !== 41 && c !== 44 && c !== 46) {
        distinct = r.takeWord("distinct");
      }
    }
    do {
      args.push(name === "bucket" && args.length === 1 ? readInterval(r) : climb(r, OR));
      if (r.height > height) height = r.height;
      if (args.length === 1 && (name === "first" || name === "last") && r.takeWord("by")) {
        by = climb(r, OR);
        if (r.height > height) height = r.height;
      }
    } while (r.take(44));
  }
  r.need(41);
  r.leave();
  r.rise(height + 1);
  return { kind: "call", name, args, star, distinct, by, at };
}

/** `15m`, or any expression. */
function readInterval(r: Reader): Expr {
  let i = r.at;
  while (r.codeAt(i) >= 48 && r.codeAt(i) <= 57) i++;
  const end = i > r.at ? nameEnd(r.input, i) : i;
  if (end > i) {
    const unit = r.input.slice(i, end);
    const text = r.input.slice(r.at, end);
    if (!DURATION_UNITS.has(unit)) {
      // `1e3` is a number.
      if (scanNumber(r.input, r.at).wrong === undefined) return climb(r, OR);
      r.refuse("syntax", `\`${text}\` is no interval: write digits and one of ms, s, m, h, d, w, mo, y`);
    }
    r.moveTo(end);
    r.height = 0;
    return { kind: "duration", text };
  }
  return climb(r, OR);
}

/** `$1`; in a policy `$jwt.name`. */
export function readDollar(r: Reader): Expr {
  const from = r.at;
  let i = from + 1;
  let number = 0;
  while (r.codeAt(i) >= 48 && r.codeAt(i) <= 57) {
    number = Math.min(number * 10 + (r.codeAt(i) - 48), LIFTED_BASE + 1);
    i++;
  }
  if (i > from + 1) {
    if (r.startsName(i)) r.refuse("syntax", "a parameter is `$` and a number: `$1`");
    if (r.dialect.claims) r.refuse("syntax", "a rule takes no numbered parameters: write `$jwt.` and a claim's name");
    if (number === 0) r.refuse("syntax", "`$0` is no parameter: they are numbered from `$1`");
    if (number > LIFTED_BASE) r.refuse("limit_passed", `a parameter past \`$${LIFTED_BASE}\``);
    r.moveTo(i);
    return { kind: "param", index: number - 1 };
  }
  const end = r.isWordAt("jwt", i) ? i + 3 : i;
  if (end === i || !r.dialect.claims) {
    const words = r.dialect.claims
      ? "a claim is `$jwt.` and its name"
      : end > i
        ? "`$jwt` stands for a token's claim in the rules of a policy alone"
        : "a parameter is `$` and a number: `$1`";
    r.refuse("syntax", words);
  }
  const nameFrom = end + 1;
  const claimEnd = r.codeAt(end) === 46 ? nameEnd(r.input, nameFrom) : nameFrom;
  if (claimEnd === nameFrom || r.codeAt(claimEnd) === 46) r.refuse("syntax", "a claim is `$jwt.` and one name");
  r.moveTo(claimEnd);
  return { kind: "claim", name: r.input.slice(nameFrom, claimEnd) };
}

/** `?3`, where the fourth literal was taken out of the text. */
export function readLifted(r: Reader): { readonly kind: "param"; readonly index: number } {
  let i = r.at + 1;
  let number = 0;
  while (r.codeAt(i) >= 48 && r.codeAt(i) <= 57) {
    number = number * 10 + (r.codeAt(i) - 48);
    i++;
  }
  r.moveTo(i);
  r.lifted++;
  return { kind: "param", index: LIFTED_BASE + number };
}

function readList(r: Reader): Expr {
  r.enterContainer();
  r.moveTo(r.at + 1);
  const items: Expr[] = [];
  let height = 0;
  let constant = true;
  while (!r.take(93)) {
    const item = climb(r, OR);
    if (item.kind !== "const") constant = false;
    items.push(item);
    if (r.height > height) height = r.height;
    if (!r.take(44)) {
      r.need(93);
      break;
    }
  }
  r.leaveContainer();
  r.rise(height + 1);
  return constant ? listConstant(items) : { kind: "list", items };
}

function readObject(r: Reader): Expr {
  r.enterContainer();
  r.moveTo(r.at + 1);
  const entries: { key: string; value: Expr }[] = [];
  let keys: Set<string> | undefined;
  let height = 0;
  let constant = true;
  while (!r.take(125)) {
    const at = r.at;
    const key = readKey(r);
    if (entries.length >= 8) {
      keys ??= new Set(entries.map((entry) => entry.key));
      if (keys.has(key)) twice(r, key, at);
      keys.add(key);
    } else {
      for (const entry of entries) if (entry.key === key) twice(r, key, at);
    }
    r.need(58);
    const value = climb(r, OR);
    if (value.kind !== "const") constant = false;
    entries.push({ key, value });
    if (r.height > height) height = r.height;
    if (!r.take(44)) {
      r.need(125);
      break;
    }
  }
  r.leaveContainer();
  r.rise(height + 1);
  return constant ? objectConstant(entries) : { kind: "object", entries };
}

export function twice(r: Reader, key: string, at: number): never {
  return r.refuse("syntax", `the key \`${key}\` stands twice in one object`, at);
}

/** A key inside a value: a name or a quoted text. */
function readKey(r: Reader): string {
  const c = r.code();
  if (c === 34 || c === 39) return r.text();
  const end = r.fieldEnd();
  if (end === r.at) r.fail("a key");
  if (r.codeAt(end) === 46) r.refuse("syntax", "a key inside an object is one name or a quoted text, not a path");
  const key = r.input.slice(r.at, end);
  r.moveTo(end);
  return key;
}
