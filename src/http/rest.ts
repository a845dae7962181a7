/**
 * The routes of a collection as statements: a query string becomes clauses, its values parameters, so that there is one
 * way through the server. Names are checked to be names before they stand in a text; a value never does.
 *
 * `field=op.value` is a condition; `select`, `order`, `limit`, `offset`, `count`, `where` and `group` are the clauses of
 * those names. Conditions are joined by `and`.
 */

import { BODY_DEPTH } from "../base/limits.ts";
import { Refusal } from "../base/refusal.ts";
import type { BatchRequest } from "../engine/contract.ts";
import type { Statement } from "../lang/ast.ts";
import { nearestWord } from "../lang/nearest_word.ts";
import { parseCondition, parseStatement } from "../lang/parse.ts";
import { nameEnd } from "../lang/reader.ts";
import { fieldOf } from "../schema/find.ts";
import type { CollectionSchema } from "../schema/schema.ts";
import { parseMembers, readJson } from "../value/json.ts";
import { type FieldType, Json, type Value } from "../value/value.ts";
import type { Pair } from "./query_string.ts";
import { listOf, typedValue } from "./rest_value.ts";

export interface RestRead extends BatchRequest {
  /** The answer is `{"count":n}`, not rows. */
  readonly count: boolean;
}

const CLAUSES = new Set(["select", "order", "limit", "offset", "count", "where", "group"]);
const UNSUPPORTED = new Set(["lookup", "facet", "match"]);
/** Clauses of the language that are not asked for in a query string. */
const STATEMENTS_ONLY = new Set(["having", "near"]);
/** What does not go with `count`. */
const PAGE = ["select", "order", "limit", "offset"];
/** What stands in a clause that must not be empty. */
const FILLED = new Map([
  ["select", "it names fields, as in select=id,n"],
  ["order", "it names fields, as in order=n.desc,id"],
  ["group", "it names fields, as in group=n"],
  ["where", "it is a condition, as in where=n > 1"],
]);
const COUNTS = new Set(["", "true", "1", "yes", "exact"]);

const COMPARISONS = new Map([
  ["eq", "="],
  ["neq", "!="],
  ["lt", "<"],
  ["lte", "<="],
  ["gt", ">"],
  ["gte", ">="],
  ["like", "~"],
  ["has", "has"],
]);

/** `GET /<c>`. */
export function readOf(schema: CollectionSchema, pairs: readonly Pair[]): RestRead {
  const shape = new Shape(schema, pairs);
  const { clauses, params } = shape;
  const count = clauses.get("count");
  if (count !== undefined && !COUNTS.has(count)) {
    throw new Refusal("bad_clause", `count is bare or true, not ${JSON.stringify(count)}`);
  }
  const page = PAGE.find((clause) => clauses.has(clause));
  if (count !== undefined && page !== undefined) throw new Refusal("bad_clause", `count does not go with ${page}`);

  let text = `get ${schema.name}`;
  const select = clauses.get("select");
  if (select !== undefined) text += ` select ${selectText(select)}\n`;
  text += shape.where();
  const group = clauses.get("group");
  if (group !== undefined) text += ` group ${group.split(",").map(pathText).join(", ")}`;
  const order = clauses.get("order");
  if (order !== undefined) {
    text += ` order ${order
      .split(",")
      .map((item) => orderText(schema, item))
      .join(", ")}`;
  }
  for (const clause of ["limit", "offset"]) {
    const sent = clauses.get(clause);
    if (sent !== undefined) text += ` ${clause} $${params.push(wholeNumber(clause, sent))}`;
  }
  if (count !== undefined) text += " count";
  return { text, params, count: count !== undefined };
}

/** The rows a change stream follows, and which of their fields it tells: a filter and a `select`, no window. */
export interface StreamShape {
  /** A condition with its parameters; empty for every row. */
  readonly where: string;
  readonly params: readonly Value[];
  /** The filter is `false`: it holds no row. */
  readonly isEmpty: boolean;
  /** Fields and paths, `id` first; `*` for every field. */
  readonly select: string;
  readonly since: number | undefined;
}

/** `GET /<c>/changes`. */
export function streamOf(schema: CollectionSchema, pairs: readonly Pair[]): StreamShape {
  const since = pairs.find((pair) => pair.name === "since")?.value;
  const shape = new Shape(
    schema,
    pairs.filter((pair) => pair.name !== "since"),
  );
  for (const clause of shape.clauses.keys()) {
    if (clause !== "select" && clause !== "where") {
      throw new Refusal("bad_clause", `a change stream follows every row of its filter; ${clause} does not go with it`);
    }
  }
  const fields = (shape.clauses.get("select") ?? "*").split(",").map((item) => item.trim());
  const select = fields.includes("*")
    ? "*"
    : ["id", ...fields.filter((field) => field !== "id").map(pathText)].join(", ");
  const isEmpty = shape.clauses.get("where")?.trim().toLowerCase() === "false" && shape.params.length === 0;
  return {
    where: shape.condition(),
    params: shape.params,
    isEmpty,
    select,
    since: since === undefined ? undefined : wholeNumber("since", since),
  };
}

/** `POST /<c>`: one document or a list of them. */
export function insertOf(schema: CollectionSchema, pairs: readonly Pair[], body: string): BatchRequest {
  if (pairs.length > 0) throw new Refusal("bad_request", `POST /${schema.name} takes no query string`);
  const documents = readJson(body, BODY_DEPTH);
  if (!(documents instanceof Json)) {
    throw new Refusal("bad_request", "the body is a document, {...}, or a list of documents, [{...}, ...]");
  }
  return { text: `insert ${schema.name} $1`, params: [documents] };
}

/** `PATCH /<c>` and `PUT`; with `all` of `/<c>/all`. */
export function updateOf(schema: CollectionSchema, pairs: readonly Pair[], body: string, all: boolean): BatchRequest {
  const where = writeShape("PATCH", schema, pairs, all);
  const params = where.params;
  const assignments: string[] = [];
  for (const [key, value] of parseMembers(body)) assignments.push(`${pathText(key)}: $${params.push(value)}`);
  if (assignments.length === 0) throw new Refusal("bad_request", "the body names no field to change");
  return { text: `set ${schema.name} {${assignments.join(", ")}}${where.where()}`, params };
}

/** `DELETE /<c>`; with `all` of `/<c>/all`. */
export function deleteOf(schema: CollectionSchema, pairs: readonly Pair[], all: boolean): BatchRequest {
  const where = writeShape("DELETE", schema, pairs, all);
  return { text: `del ${schema.name}${where.where()}`, params: where.params };
}

function writeShape(method: string, schema: CollectionSchema, pairs: readonly Pair[], all: boolean): Shape {
  const { name } = schema;
  if (all && pairs.length > 0) {
    throw new Refusal("bad_request", `/${name}/all is every row and takes no filter; ${method} /${name} takes one`);
  }
  const shape = new Shape(schema, pairs);
  for (const clause of shape.clauses.keys()) {
    if (clause !== "where") throw new Refusal("bad_clause", `${method} takes a filter and no ${clause}`);
  }
  if (!all && shape.condition() === "") {
    throw new Refusal("bad_request", `${method} /${name} needs a filter; for every row it is ${method} /${name}/all`);
  }
  return shape;
}

/** A query string taken apart: conditions, with their values as parameters, and the clauses as they were sent. */
class Shape {
  readonly clauses = new Map<string, string>();
  readonly params: Value[] = [];
  readonly #conditions: string[] = [];

  constructor(schema: CollectionSchema, pairs: readonly Pair[]) {
    for (const { name, value } of pairs) {
      if (UNSUPPORTED.has(name)) throw new Refusal("unsupported", `${name} is not supported`);
      if (STATEMENTS_ONLY.has(name))
        throw new Refusal("unsupported", `${name} is not asked for here, but by POST /query`);
      if (!CLAUSES.has(name)) this.#conditions.push(this.#condition(schema, name, value));
      else if (this.clauses.has(name)) throw new Refusal("bad_clause", `${name} is given twice`);
      else if (FILLED.has(name) && value.trim() === "") {
        throw new Refusal("bad_clause", `${name} is empty: ${FILLED.get(name)}`);
      } else this.clauses.set(name, value);
    }
    const where = this.clauses.get("where");
    if (where !== undefined) {
      refuseParameters(parseCondition(where), "where");
      // On a line of its own end, as it may close with a comment.
      this.#conditions.push(`(${where}\n)`);
    }
  }

  /** All conditions as one, empty when there is none. */
  condition(): string {
    return this.#conditions.join(" and ");
  }

  where(): string {
    return this.#conditions.length === 0 ? "" : ` where ${this.condition()}`;
  }

  #condition(schema: CollectionSchema, name: string, sent: string): string {
    const path = pathText(name);
    const type = typeOfPath(schema, path);
    let rest = sent;
    let negated = false;
    if (rest.startsWith("not.") && operatorOf(rest.slice(4)) !== undefined) {
      negated = true;
      rest = rest.slice(4);
    }
    const operator = operatorOf(rest) ?? "";
    const operand = operator === "" ? rest : rest.slice(operator.length + 1);
    const condition = this.#test(path, type, operator, operand);
    return negated ? `not (${condition})` : condition;
  }

  #test(path: string, type: FieldType, operator: string, operand: string): string {
    if (operator === "is") {
      if (operand !== "null") throw new Refusal("bad_value", `${path}=is.${operand}: the one test of is is is.null`);
      return `${path} is null`;
    }
    if (operator === "in") {
      const values = listOf(operand, path).map((item) => `$${this.params.push(typedValue(type, item, path))}`);
      return `${path} in [${values.join(", ")}]`;
    }
    const asked = operator === "has" ? elementOf(type) : type;
    const value = operator === "like" ? operand : typedValue(asked, operand, path);
    return `${path} ${COMPARISONS.get(operator) ?? "="} $${this.params.push(value)}`;
  }
}

/** The operator a value begins with: `gte` of `gte.5`. */
function operatorOf(value: string): string | undefined {
  const dot = value.indexOf(".");
  if (dot === -1) return undefined;
  const word = value.slice(0, dot);
  return word === "in" || word === "is" || COMPARISONS.has(word) ? word : undefined;
}

const INT: FieldType = { kind: "int" };
const JSON_TYPE: FieldType = { kind: "json" };
const TEXT: FieldType = { kind: "text" };

/** How the values of a condition on it are read: by the field's type, behind a path as json. */
function typeOfPath(schema: CollectionSchema, path: string): FieldType {
  const dot = path.indexOf(".");
  const name = dot === -1 ? path : path.slice(0, dot);
  if (path === "id") return INT;
  const field = fieldOf(schema, name);
  if (field === undefined) {
    const near = nearestWord(name, CLAUSES);
    const hint = near === undefined ? "" : `; did you mean the clause ${near}?`;
    throw new Refusal("unknown_field", `${schema.name} has no field ${JSON.stringify(name)}${hint}`);
  }
  return dot === -1 ? field.type : JSON_TYPE;
}

function elementOf(type: FieldType): FieldType {
  if (type.kind === "list") return type.of;
  return type.kind === "json" ? type : TEXT;
}

/** A name, or names joined by dots; anything else is no field of any collection. */
function pathText(sent: string): string {
  const path = sent.trim();
  if (path === "") throw new Refusal("unknown_field", "a field's name is missing");
  if (!isPath(path)) throw new Refusal("unknown_field", `${JSON.stringify(sent)} names no field`);
  return path;
}

function orderText(schema: CollectionSchema, item: string): string {
  const words = item.trim().split(".");
  const last = words.at(-1);
  const direction = words.length > 1 && (last === "asc" || last === "desc") ? last : undefined;
  if (direction !== undefined) words.pop();
  const collation = words.length > 1 ? words.at(-1) : undefined;
  if (collation === "tr" || collation === "und") {
    throw new Refusal(
      "unsupported",
      `order: text is ordered by its bytes; the collation ${collation} is not supported`,
    );
  }
  const said = `order=${item.trim()}`;
  if (words.length > 1 && /^nulls(first|last)$/i.test(last ?? "")) {
    throw new Refusal("unsupported", `${said}: nulls come first, and last with desc; nothing else can be asked for`);
  }
  const spaced = /^\s*(\S+)\s+(asc|desc)\s*$/i.exec(item);
  if (spaced !== null) {
    const [, field = "", way = ""] = spaced;
    throw new Refusal("unknown_field", `${said}: the direction stands behind a dot, ${field}.${way.toLowerCase()}`);
  }
  const [name = ""] = words;
  const type = fieldOf(schema, name.trim())?.type;
  if (words.length > 1 && type !== undefined && type.kind !== "json") {
    throw new Refusal("bad_clause", `${said}: behind a field stands asc or desc, as in ${name}.desc`);
  }
  return `${pathText(words.join("."))}${direction === "desc" ? " desc" : ""}`;
}

/** Fields and paths stand as they were sent; a list with anything else in it must be a select list and nothing more. */
function selectText(list: string): string {
  const items = list.split(",").map((item) => item.trim());
  if (items.every((item) => item === "*" || isPath(item))) return items.join(", ");
  const statement = statementOf(list);
  const bare =
    statement.kind === "get" &&
    statement.collection === "c" &&
    statement.where === null &&
    statement.near === null &&
    statement.order.length === 0 &&
    statement.limit === null &&
    statement.offset === null &&
    !statement.count &&
    statement.group.length === 0 &&
    statement.having === null &&
    statement.require === null;
  if (!bare) throw new Refusal("bad_clause", "select is a list of fields and expressions, and no other clause");
  refuseParameters(statement.select, "select");
  return list;
}

/** Places in it would be those of a text that nobody sent. */
function statementOf(list: string): Statement {
  try {
    return parseStatement(`get c select ${list}\n`);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    throw new Refusal(error.code, `select: ${error.message.replace(/^line \d+, column \d+: /, "")}`);
  }
}

function isPath(text: string): boolean {
  let from = 0;
  for (;;) {
    const end = nameEnd(text, from);
    if (end === from) return false;
    if (end === text.length) return true;
    if (text[end] !== ".") return false;
    from = end + 1;
  }
}

function wholeNumber(clause: string, sent: string): number {
  const number = /^\d+$/.test(sent) ? Number(sent) : Number.NaN;
  if (Number.isSafeInteger(number)) return number;
  throw new Refusal("bad_clause", `${clause} is a whole number from 0, not ${JSON.stringify(sent)}`);
}

/** A piece of a statement sent here has no parameters of its own; `$1` in it would read one of ours. */
function refuseParameters(piece: unknown, clause: string): void {
  const left: unknown[] = [piece];
  while (left.length > 0) {
    const node = left.pop();
    if (typeof node !== "object" || node === null) continue;
    if ((node as { readonly kind?: unknown }).kind === "param") {
      throw new Refusal("bad_parameter", `${clause} takes no parameters: a query string sends none`);
    }
    for (const part of Array.isArray(node) ? node : Object.values(node)) left.push(part);
  }
}
