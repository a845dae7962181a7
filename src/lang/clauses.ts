/**
 * What statements share behind their head: `where`, `order`, `limit`, `require`, `returning`, in any order and each once.
 * Here are the single clauses; who may take which is told where the statements are.
 */

import type { CountExpr, Expr, OrderKey, Returning, SelectItem } from "./ast.ts";
import { readExpression } from "./expression.ts";
import { readDollar, readLifted } from "./parameter.ts";
import { printExpr } from "./print.ts";
import type { Reader } from "./reader.ts";

/** Clauses of the language this server leaves out. */
const UNSUPPORTED_CLAUSES = new Set(["match", "rerank", "fuse", "facet", "lookup"]);

/** Refuses a clause that stands where clauses may, but not here. */
export function refuseClause(r: Reader, word: string, statement: string, foreign: ReadonlySet<string>): void {
  if (UNSUPPORTED_CLAUSES.has(word)) r.refuse("unsupported", `\`${word}\` is not supported`);
  if (foreign.has(word)) r.refuse("bad_clause", `\`${word}\` does not go with \`${statement}\``);
}

export function once(r: Reader, word: string, isFirst: boolean): void {
  if (!isFirst) r.refuse("bad_clause", `\`${word}\` stands twice: each clause stands once`);
}

/** Behind `order`. */
export function readOrder(r: Reader): OrderKey[] {
  takeNoise(r, "by");
  const keys: OrderKey[] = [];
  do {
    const expr = readExpression(r);
    refuseCollation(r);
    const desc = r.takeWord("desc");
    if (!desc) r.takeWord("asc");
    keys.push({ expr, desc });
  } while (r.take(44));
  return keys;
}

export function refuseCollation(r: Reader): void {
  if (r.isWord("collate")) r.refuse("unsupported", "`collate` is not supported: text is ordered by its bytes");
}

/** Behind `group`. */
export function readGroup(r: Reader): Expr[] {
  takeNoise(r, "by");
  const keys: Expr[] = [];
  do keys.push(readExpression(r));
  while (r.take(44));
  return keys;
}

/**
 * Takes a word that may be left out (`by`, `from`, `into`, `field`), unless it can only be a name: a name is what such a
 * word stands before.
 */
export function takeNoise(r: Reader, word: string): void {
  if (!r.isWord(word)) return;
  const behind = r.behindWord();
  const c = r.codeAt(behind);
  if (word === "by") {
    // A field called `by`: nothing that starts an expression follows, or a whole clause does.
    const starts = r.startsName(behind) ? !startsClause(r, behind) : STARTS_EXPRESSION.has(c);
    if (!starts || r.codeAt(r.at + 2) === 46) return;
  } else if (!r.startsName(behind)) return;
  r.moveTo(r.at + word.length);
}

/** `(`, `[`, `{`, quotes, `$`, `?`, `-` and digits. */
const STARTS_EXPRESSION = new Set([..."([{\"'$?-0123456789"].map((character) => character.charCodeAt(0)));

/** Does the word at `index` open a clause, by what stands behind it? As a field's name it would be followed otherwise. */
function startsClause(r: Reader, index: number): boolean {
  const behind = r.tokenBehind(index);
  const c = r.codeAt(behind);
  switch (r.wordAt(index)) {
    case "limit":
    case "offset":
    case "require":
      return c === 36 || c === 63 || (c >= 48 && c <= 57);
    case "where":
    case "having":
      return STARTS_EXPRESSION.has(c) ? c !== 45 : r.startsName(behind) && !ENDS_NAME.has(r.wordAt(behind));
    case "returning": {
      if (c !== 42) return r.startsName(behind) && !ENDS_NAME.has(r.wordAt(behind));
      const next = r.tokenBehind(behind + 1);
      return !STARTS_EXPRESSION.has(r.codeAt(next)) && (!r.startsName(next) || ENDS_NAME.has(r.wordAt(next)));
    }
    default:
      return false;
  }
}

/** Words that follow a field used as a value, and so show that the word before is one. */
const ENDS_NAME = new Set(
  "and or is in has asc desc limit offset require returning where order count select group having near".split(" "),
);

/** `N` behind `limit` or `offset`: a whole number, or a parameter. */
export function readCount(r: Reader, clause: string): CountExpr {
  const c = r.code();
  if (c === 36) {
    const param = readDollar(r);
    if (param.kind === "param") return param;
  }
  if (c === 63 && r.dialect.lifted) return readLifted(r);
  if (c < 48 || c > 57) r.fail(`a whole number or a parameter behind \`${clause}\``);
  return { kind: "const", value: readWhole(r, clause) };
}

/** `N` behind `require`. */
export function readRequire(r: Reader): number {
  const c = r.code();
  if (c < 48 || c > 57) r.fail("a whole number behind `require`");
  return readWhole(r, "require");
}

function readWhole(r: Reader, clause: string): number {
  const at = r.at;
  const value = r.number();
  if (typeof value === "number") return value;
  // More rows than a collection can hold are all of them.
  if (typeof value === "bigint") return Number.MAX_SAFE_INTEGER;
  return r.refuse("syntax", `\`${clause}\` takes a whole number`, at);
}

/** A list of columns: `*`, or expressions, each with its `as` name or its own text. */
export function readItems(r: Reader): SelectItem[] {
  const items: SelectItem[] = [];
  do {
    if (r.take(42)) {
      items.push({ kind: "star" });
      continue;
    }
    const lifted = r.lifted;
    const expr = readExpression(r);
    const as = r.takeWord("as") ? r.name("a column's name") : null;
    // The text of a column without a name is its name, and a literal was part of it.
    if (as === null && r.lifted > lifted) r.fail("a text with its literals in it");
    items.push({ kind: "item", expr, as, text: as ?? columnText(expr) });
  } while (r.take(44));
  return items;
}

/** The name of a column that was given none. */
export function columnText(expr: Expr): string {
  if (expr.kind === "path" && expr.keys.length === 0) return expr.field;
  if (expr.kind === "call" && expr.name === "count" && expr.star) return "count";
  return printExpr(expr);
}

/** Behind `returning`. */
export function readReturning(r: Reader): Returning {
  const at = r.at;
  const items: (SelectItem & { kind: "item" })[] = [];
  let star = false;
  for (const item of readItems(r)) {
    if (item.kind === "star") star = true;
    else items.push(item);
  }
  if (star) {
    if (items.length > 0) r.refuse("bad_clause", "`returning *` answers every field: it takes no further names", at);
    return { kind: "all" };
  }
  for (const item of items) {
    if (item.as === null && item.expr.kind !== "path") {
      r.refuse("bad_clause", `\`returning\` takes fields and paths; an expression needs \`as\` and a name`, at);
    }
  }
  return { kind: "list", items };
}
