/** Rows as json text, straight from their cells: a claim's answer is written, not built and then turned into text. */

import { Refusal } from "../base/refusal.ts";
import type { Expr, SelectItem } from "../lang/ast.ts";
import { printExpr } from "../lang/print.ts";
import { partsOf } from "../lang/walk.ts";
import type { Env } from "../plan/env.ts";
import { type Compiled, type ExpressionCompiler, type FieldRef, fieldRef, isAggregate } from "../plan/expression.ts";
import type { Table } from "../store/table.ts";
import { jsonPathText, jsonString, valueToJson } from "../value/json.ts";
import { cellJson } from "../value/render.ts";
import { formatTime } from "../value/time.ts";
import type { Cell, FieldType, Row, Value } from "../value/value.ts";

export type CellWriter = (row: Row, env: Env) => string;

export interface Column {
  readonly name: string;
  readonly json: CellWriter;
  /** The column as a value: what `in (get ...)` takes. */
  readonly value: (row: Row, env: Env) => Value;
}

export class RowWriter {
  readonly columns: readonly Column[];
  readonly #prefixes: readonly string[];

  constructor(columns: readonly Column[]) {
    this.columns = columns;
    this.#prefixes = columns.map((column, at) => `${at === 0 ? "{" : ","}${jsonString(column.name)}:`);
  }

  row(row: Row, env: Env): string {
    return `${this.#members("", row, env)}}`;
  }

  /** `[{...},{...}]`. */
  rows(rows: readonly Row[], env: Env): string {
    let text = "[";
    for (let at = 0; at < rows.length; at++) {
      if (at > 0) text += ",";
      text = `${this.#members(text, rows[at] as Row, env)}}`;
    }
    return `${text}]`;
  }

  /** Two columns at a step: a text made of many pieces at once takes half the time of one made piece by piece. */
  #members(before: string, row: Row, env: Env): string {
    const { columns } = this;
    const prefixes = this.#prefixes;
    let text = before;
    let at = 1;
    for (; at < columns.length; at += 2) {
      const first = (columns[at - 1] as Column).json(row, env);
      text = `${text}${prefixes[at - 1]}${first}${prefixes[at]}${(columns[at] as Column).json(row, env)}`;
    }
    return at > columns.length ? text : `${text}${prefixes[at - 1]}${(columns[at - 1] as Column).json(row, env)}`;
  }
}

/** `id` and every field in the order they were declared. */
export function everyColumn(table: Table): Column[] {
  const names = ["id", ...table.schema.fields.map((field) => field.name)];
  return names.map((name) => fieldColumn(fieldRef(table, name, []), name));
}

/** The columns of a list: `*` is every one; the same thing said twice is one, two things of one name are refused. */
export function columnsOf(table: Table, items: readonly SelectItem[], compiler: ExpressionCompiler): Column[] {
  if (items.length === 0) return everyColumn(table);
  const columns = new Map<string, Column>();
  const texts = new Map<string, string>();
  for (const item of items) {
    if (item.kind === "star") {
      for (const column of everyColumn(table)) {
        if (!columns.has(column.name)) columns.set(column.name, column);
        texts.set(column.name, column.name);
      }
      continue;
    }
    const name = nameOf(item);
    const text = printExpr(item.expr);
    const before = texts.get(name);
    if (before !== undefined && before !== text) {
      throw new Refusal("bad_clause", `two columns are called \`${name}\`: give one another name by \`as\``);
    }
    texts.set(name, text);
    if (before === undefined) columns.set(name, columnOf(name, compiler.compile(item.expr)));
  }
  return [...columns.values()];
}

/** A field, a path and an aggregate of one are called by their text; anything else has to be given a name. */
export function nameOf(item: SelectItem & { readonly kind: "item" }): string {
  if (item.as !== null || namesItself(item.expr)) return item.text;
  throw new Refusal("bad_clause", `the column \`${item.text}\` is an expression: give it a name by \`as\``);
}

function namesItself(expr: Expr): boolean {
  if (expr.kind === "path") return true;
  return isAggregate(expr) && partsOf(expr).every((part) => part.kind === "path");
}

export function columnOf(name: string, compiled: Compiled): Column {
  if (compiled.field !== null) return { ...fieldColumn(compiled.field, name), value: compiled.eval };
  return { name, json: (row, env) => valueToJson(compiled.eval(row, env)), value: compiled.eval };
}

function fieldColumn(ref: FieldRef, name: string): Column {
  const { slot, keys } = ref;
  const value = (row: Row): Value => row[slot] as Value;
  if (keys.length === 0) return { name, json: cellWriter(ref.type, slot), value };
  return {
    name,
    json: (row) => {
      const cell = row[slot] as string | null;
      return cell === null ? "null" : (jsonPathText(cell, keys) ?? "null");
    },
    value,
  };
}

/** Texts up to this long are looked through for what json has to escape, which is quicker than asking the runtime. */
const SHORT_LENGTH = 48;

function textJson(text: string): string {
  if (text.length > SHORT_LENGTH) return jsonString(text);
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    // A quote, a backslash, a control character; or what may be half of a surrogate pair.
    if (unit < 0x20 || unit === 0x22 || unit === 0x5c || unit >= 0xd800) return jsonString(text);
  }
  return `"${text}"`;
}

function cellWriter(type: FieldType, slot: number): CellWriter {
  switch (type.kind) {
    case "json":
      return (row) => (row[slot] as string | null) ?? "null";
    case "int":
    case "bool":
      return (row) => `${row[slot] as number | null}`;
    case "text":
      return (row) => {
        const cell = row[slot] as string | null;
        return cell === null ? "null" : textJson(cell);
      };
    case "timestamp":
      return (row) => {
        const cell = row[slot] as number | null;
        return cell === null ? "null" : `"${formatTime(cell)}"`;
      };
    default:
      return (row) => cellJson(type, row[slot] as Cell);
  }
}
