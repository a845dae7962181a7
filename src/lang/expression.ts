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
import { readList, readObject } from "./container.ts";
import { readGet } from "./get.ts";
import { scanNumber } from "./literal.ts";
import { readDollar, readLifted } from "./parameter.ts";
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

interface Operator {
  readonly op: BinaryOp | "and" | "or" | "in" | "is";
  readonly level: number;
  /** Characters it is written with. */
  readonly width: number;
}

const operator = (op: Operator["op"], level: number, width: number = op.length): Operator => ({ op, level, width });

const PLUS = operator("+", SUM);
const MINUS = operator("-", SUM);
const TIMES = operator("*", TERM);
const OVER = operator("/", TERM);
const EQUAL = operator("=", COMPARE);
const EQUAL_TWICE = operator("=", COMPARE, 2);
const UNEQUAL = operator("!=", COMPARE);
const LESS = operator("<", COMPARE);
const AT_MOST = operator("<=", COMPARE);
const MORE = operator(">", COMPARE);
const AT_LEAST = operator(">=", COMPARE);
const LIKE = operator("~", COMPARE);
const HAS = operator("has", COMPARE);
const IN = operator("in", COMPARE);
const IS = operator("is", COMPARE);
const BOTH = operator("and", AND);
const EITHER = operator("or", OR);

/** The operator that is next. */
function nextOperator(r: Reader): Operator | undefined {
  const at = r.at;
  switch (r.code()) {
    case 43:
      return PLUS;
    case 45:
      return MINUS;
    case 42:
      return TIMES;
    case 47:
      return OVER;
    case 61:
      return r.codeAt(at + 1) === 61 ? EQUAL_TWICE : EQUAL;
    case 60: {
      const next = r.codeAt(at + 1);
      return next === 61 ? AT_MOST : next === 62 ? UNEQUAL : LESS;
    }
    case 62:
      return r.codeAt(at + 1) === 61 ? AT_LEAST : MORE;
    case 33:
      if (r.codeAt(at + 1) !== 61) r.refuse("syntax", "`!` stands only in `!=`: write `not`");
      return UNEQUAL;
    case 126:
      return LIKE;
    case 65: // A
    case 97:
      return r.isWordAt("and", at) ? BOTH : undefined;
    case 79: // O
    case 111:
      return r.isWordAt("or", at) ? EITHER : undefined;
    case 72: // H
    case 104:
      return r.isWordAt("has", at) ? HAS : undefined;
    case 73: // I
    case 105:
      return r.isWordAt("in", at) ? IN : r.isWordAt("is", at) ? IS : undefined;
    case 78: // N
    case 110:
      if (r.isWordAt("not", at) && r.isWordAt("in", r.behindWord())) {
        r.refuse("syntax", "`x not in [...]` is written `not x in [...]`");
      }
      return undefined;
    case 66: // B
    case 98:
      if (r.isWordAt("between", at)) r.refuse("syntax", "`x between a and b` is written `x >= a and x <= b`");
      return undefined;
    case 76: // L
    case 108:
      if (r.isWordAt("like", at))
        r.refuse("syntax", '`x like a` is written `x ~ "a"`: x contains a, whatever the case');
      return undefined;
    default:
      return undefined;
  }
}

/** The operand that is next and all that binds at least as tight as `loosest`. */
function climb(r: Reader, loosest: number): Expr {
  const isBracketed = r.is(40);
  let left = operand(r, loosest);
  let height = r.height;
  let chain: Expr[] | undefined;
  let chainLevel = 0;
  // What may follow: no comparison behind a comparison, and behind `not x`, which has taken all that binds tighter, `and`
  // and `or` alone.
  let tightest = left.kind === "unary" && left.op === "not" && !isBracketed ? NOT : UNARY;
  for (;;) {
    if (r.dialect.recording) noteOperators(r, loosest, tightest);
    const next = nextOperator(r);
    if (next === undefined || next.level < loosest) break;
    const { op, level } = next;
    if (level > tightest) {
      if (level === COMPARE) {
        r.refuse("syntax", "a comparison does not chain: put parentheses around one, or join two with `and`");
      }
      break;
    }
    r.moveTo(r.at + next.width);
    if (op === "in") {
      left = readIn(r, left, height);
      height = r.height;
      tightest = NOT;
    } else if (op === "is") {
      const not = r.takeWord("not");
      r.needWord("null");
      left = { kind: "isNull", of: left, not };
      tightest = NOT;
    } else if (level === COMPARE) {
      const right = climb(r, SUM);
      height = Math.max(height, r.height);
      left = { kind: "binary", op: op as BinaryOp, left, right };
      tightest = NOT;
    } else {
      const right = climb(r, level + 1);
      // A chain is as deep as it is long: two terms are two levels, and each further one is one more.
      height = Math.max(height, r.height, 1) + 1;
      r.rise(height);
      if (op !== "and" && op !== "or") {
        left = { kind: "binary", op, left, right };
      } else if (chain !== undefined && chainLevel === level) {
        chain.push(right);
      } else {
        chain = [left, right];
        chainLevel = level;
        left = { kind: op, of: chain };
        tightest = NOT;
      }
    }
  }
  r.height = height;
  return left;
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
  if (word === "" && r.at < r.length) {
    r.refuse("syntax", "a list stands in square brackets, `in [1, 2]`, and a read in round ones, `in (get ...)`");
  }
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
