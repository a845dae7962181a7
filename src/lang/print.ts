/**
 * Nodes back to text, in one canonical spelling: keywords in lower case, clauses in a fixed order, parentheses only where
 * the tree needs them. The text parses back to the same tree, positions aside.
 */

import { assert, unreachable } from "../base/assert.ts";
import { type FieldType, Float, Json, type Value } from "../value/value.ts";
import type {
  Assignment,
  BinaryOp,
  DelStatement,
  Expr,
  FieldClause,
  GetStatement,
  IndexClause,
  OrderKey,
  PutStatement,
  Returning,
  SelectItem,
  SetStatement,
  Statement,
} from "./ast.ts";
import { LIFTED_BASE } from "./lifted.ts";

// How tight an expression binds; a part that binds looser than its place asks for gets parentheses.
const OR = 1;
const AND = 2;
const NOT = 3;
const COMPARE = 4;
const SUM = 5;
const TERM = 6;
const UNARY = 7;
const PRIMARY = 8;

const LEVEL: Readonly<Record<BinaryOp, number>> = {
  "=": COMPARE,
  "!=": COMPARE,
  "<": COMPARE,
  "<=": COMPARE,
  ">": COMPARE,
  ">=": COMPARE,
  "~": COMPARE,
  has: COMPARE,
  "+": SUM,
  "-": SUM,
  "*": TERM,
  "/": TERM,
};

export function printExpr(expr: Expr): string {
  return print(expr, OR);
}

function levelOf(expr: Expr): number {
  switch (expr.kind) {
    case "or":
      return OR;
    case "and":
      return AND;
    case "unary":
      return expr.op === "not" ? NOT : UNARY;
    case "binary":
      return LEVEL[expr.op];
    case "in":
    case "inGet":
    case "isNull":
      return COMPARE;
    default:
      return PRIMARY;
  }
}

/** `loosest` is how loose the place lets an expression bind without parentheses. */
function print(expr: Expr, loosest: number): string {
  const text = bare(expr);
  return levelOf(expr) < loosest ? `(${text})` : text;
}

function bare(expr: Expr): string {
  switch (expr.kind) {
    case "const":
      return printValue(expr.value);
    case "param":
      return expr.index >= LIFTED_BASE ? `?${expr.index - LIFTED_BASE}` : `$${expr.index + 1}`;
    case "claim":
      return `$jwt.${expr.name}`;
    case "path":
      return printPath(expr.field, expr.keys);
    case "unary":
      return printUnary(expr.op, expr.of);
    case "binary": {
      const level = LEVEL[expr.op];
      // Arithmetic leans left; a comparison takes none on either side.
      const left = print(expr.left, level === COMPARE ? SUM : level);
      return `${left} ${expr.op} ${print(expr.right, level + 1)}`;
    }
    case "and":
      return expr.of.map((part) => print(part, NOT)).join(" and ");
    case "or":
      return expr.of.map((part) => print(part, AND)).join(" or ");
    case "in": {
      const only = expr.list[0];
      const left = print(expr.left, SUM);
      if (expr.list.length === 1 && only?.kind === "claim") return `${left} in ${bare(only)}`;
      return `${left} in [${expr.list.map(printExpr).join(", ")}]`;
    }
    case "inGet":
      return `${print(expr.left, SUM)} in (${printGet(expr.get)})`;
    case "isNull":
      return `${print(expr.of, SUM)} is ${expr.not ? "not " : ""}null`;
    case "call": {
      if (expr.star) return `${expr.name}(*)`;
      const by = expr.by === null ? "" : ` by ${printExpr(expr.by)}`;
      return `${expr.name}(${expr.distinct ? "distinct " : ""}${expr.args.map(printExpr).join(", ")}${by})`;
    }
    case "case": {
      let text = "case";
      for (const { when, then } of expr.whens) text += ` when ${printExpr(when)} then ${printExpr(then)}`;
      if (expr.otherwise !== null) text += ` else ${printExpr(expr.otherwise)}`;
      return `${text} end`;
    }
    case "list":
      return `[${expr.items.map(printExpr).join(", ")}]`;
    case "object":
      return `{${expr.entries.map(({ key, value }) => `${printKey(key)}: ${printExpr(value)}`).join(", ")}}`;
    case "duration":
      return expr.text;
    default:
      return unreachable(expr);
  }
}

function printUnary(op: "-" | "not", of: Expr): string {
  if (op === "not") return `not ${print(of, NOT)}`;
  const text = print(of, UNARY);
  // `-5` is one literal, and `--` would start a comment.
  return /^[-0-9]/.test(text) ? `- ${text}` : `-${text}`;
}

function printPath(field: string, keys: readonly string[]): string {
  return keys.length === 0 ? field : `${field}.${keys.join(".")}`;
}

const NAME = /^[\p{L}_][\p{L}\p{M}\p{Nd}_]*$/u;

function printKey(key: string): string {
  return NAME.test(key) ? key : printText(key);
}

function printText(text: string): string {
  const escaped = text.replace(/["\\\n\r\t\0]/g, (character) => {
    switch (character) {
      case "\n":
        return "\\n";
      case "\r":
        return "\\r";
      case "\t":
        return "\\t";
      case "\0":
        return "\\0";
      default:
        return `\\${character}`;
    }
  });
  return `"${escaped}"`;
}

/** A literal. */
function printValue(value: Value): string {
  if (typeof value === "string") return printText(value);
  if (value === null || typeof value !== "object") return String(value);
  if (value instanceof Float) {
    const digits = value.text ?? String(value.n);
    return /^-?\d+$/.test(digits) ? `${digits}.0` : digits;
  }
  if (value instanceof Json) return printJson(value.text);
  assert(Array.isArray(value), "a literal is a scalar, a list or an object");
  return `[${value.map(printValue).join(", ")}]`;
}

/** Json text as a literal of the language: its strings know fewer escapes. */
function printJson(json: string): string {
  return json.replace(/"(?:[^"\\]|\\.)*"|[,:]/g, (token) => {
    if (token === ",") return ", ";
    if (token === ":") return ": ";
    return printText(JSON.parse(token) as string);
  });
}

export function printStatement(statement: Statement): string {
  switch (statement.kind) {
    case "get":
      return printGet(statement);
    case "put":
      return printPut(statement);
    case "set":
      return printSet(statement);
    case "del":
      return printDel(statement);
    case "create":
      return `create collection ${statement.ifNotExists ? "if not exists " : ""}${statement.collection} (${statement.fields
        .map(printField)
        .join(", ")})`;
    case "drop":
      return `drop collection ${statement.ifExists ? "if exists " : ""}${statement.collection}`;
    case "createIndex": {
      const path = printPath(statement.field, statement.keys);
      const head = `create index ${statement.ifNotExists ? "if not exists " : ""}on ${statement.collection}`;
      return `${head} (${path}) ${printIndex(statement.index)}`;
    }
    case "alter": {
      const head = `alter collection ${statement.collection}`;
      const { action } = statement;
      switch (action.kind) {
        case "add":
          return `${head} add field ${printField(action.field)}`;
        case "drop":
          return `${head} drop field ${action.field}`;
        case "rename":
          return `${head} rename field ${action.field} to ${action.to}`;
        case "index":
          return `${head} alter field ${action.field} ${printIndex(action.index)}`;
        default:
          return unreachable(action);
      }
    }
    case "explain":
      return `explain ${printStatement(statement.of)}`;
    case "collections":
      return "collections";
    case "describe":
      return `describe ${statement.collection}`;
    case "compact":
      return statement.collection === null ? "compact" : `compact ${statement.collection}`;
    default:
      return unreachable(statement);
  }
}

/** A collection's name behind a word that may be left out, written where the name alone would be taken for the word. */
function behind(word: string, collection: string): string {
  return collection.toLowerCase() === word ? `${word} ${collection}` : collection;
}

function printGet(get: GetStatement): string {
  let text = `get ${behind("from", get.collection)}`;
  if (get.select.length > 0) text += ` select ${printItems(get.select)}`;
  if (get.where !== null) text += ` where ${printExpr(get.where)}`;
  if (get.near !== null) text += ` near ${get.near.field} ${print(get.near.point, SUM)}`;
  if (get.group.length > 0) text += ` group by ${get.group.map(printExpr).join(", ")}`;
  if (get.having !== null) text += ` having ${printExpr(get.having)}`;
  text += printOrder(get.order);
  if (get.limit !== null) text += ` limit ${printExpr(get.limit)}`;
  if (get.offset !== null) text += ` offset ${printExpr(get.offset)}`;
  if (get.count) text += " count";
  return text + printRequire(get.require);
}

function printItems(items: readonly SelectItem[]): string {
  return items
    .map((item) => {
      if (item.kind === "star") return "*";
      return item.as === null ? printExpr(item.expr) : `${printExpr(item.expr)} as ${item.as}`;
    })
    .join(", ");
}

function printOrder(keys: readonly OrderKey[]): string {
  if (keys.length === 0) return "";
  return ` order by ${keys.map(({ expr, desc }) => printExpr(expr) + (desc ? " desc" : "")).join(", ")}`;
}

function printRequire(require: number | null): string {
  return require === null ? "" : ` require ${require}`;
}

function printReturning(returning: Returning | null): string {
  if (returning === null) return "";
  return ` returning ${returning.kind === "all" ? "*" : printItems(returning.items)}`;
}

function printObject(entries: readonly Assignment[]): string {
  return `{${entries
    .map(({ field, keys, value }) => {
      const key = keys.length === 0 ? printKey(field) : printPath(field, keys);
      return `${key}: ${printExpr(value)}`;
    })
    .join(", ")}}`;
}

function printPut(put: PutStatement): string {
  let text = `${put.insert ? "insert" : "put"} ${behind("into", put.collection)} `;
  if ("kind" in put.documents) text += bare(put.documents);
  else {
    const documents = put.documents.map(({ entries }) => printObject(entries));
    text += documents.length === 1 ? documents[0] : `[${documents.join(", ")}]`;
  }
  if (put.ifAbsent) text += " if absent";
  if (put.elseSet !== null) text += ` else set ${printObject(put.elseSet)}`;
  return text + printRequire(put.require);
}

function printSet(set: SetStatement): string {
  return `set ${set.collection} ${printObject(set.patch)}${printPick(set)}`;
}

function printDel(del: DelStatement): string {
  return `del ${behind("from", del.collection)}${printPick(del)}`;
}

function printPick(statement: SetStatement | DelStatement): string {
  const where = statement.where === null ? "" : ` where ${printExpr(statement.where)}`;
  const limit = statement.limit === null ? "" : ` limit ${printExpr(statement.limit)}`;
  const tail = printReturning(statement.returning) + printRequire(statement.require);
  return where + printOrder(statement.order) + limit + tail;
}

function printField(field: FieldClause): string {
  const required = field.required ? " required" : "";
  const index = field.index === null ? "" : ` ${printIndex(field.index)}`;
  return `${field.name} ${printType(field.type)}${required}${index}`;
}

function printType(type: FieldType): string {
  return type.kind === "list" ? `[${printType(type.of)}]` : type.kind;
}

function printIndex(index: IndexClause): string {
  return index.kind === "ttl" ? `@ttl(${index.ttlText})` : `@${index.kind}`;
}
