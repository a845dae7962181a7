/**
 * Lists and objects written out with constants alone become one constant: a list a list of values, an object its compact
 * json text, with the digits it was written with.
 */

import { assert } from "../base/assert.ts";
import { Float, Json, type Value } from "../value/value.ts";
import type { ConstExpr, Expr } from "./ast.ts";

function constantOf(expr: Expr): Value {
  assert(expr.kind === "const", "a constant");
  return expr.value;
}

export function listConstant(items: readonly Expr[]): ConstExpr {
  return { kind: "const", value: items.map(constantOf) };
}

export function objectConstant(entries: readonly { readonly key: string; readonly value: Expr }[]): ConstExpr {
  let text = "{";
  for (const { key, value } of entries) text += entryJson(text, key, constantOf(value));
  return { kind: "const", value: new Json(`${text}}`) };
}

export function objectValue(keys: readonly string[], values: readonly Value[]): Value {
  let text = "{";
  for (let i = 0; i < keys.length; i++) text += entryJson(text, keys[i] as string, values[i] as Value);
  return new Json(`${text}}`);
}

function entryJson(before: string, key: string, value: Value): string {
  return `${before.length > 1 ? "," : ""}${JSON.stringify(key)}:${constantJson(value)}`;
}

/** The json text of what a literal can be. */
export function constantJson(value: Value): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (value === null || typeof value !== "object") return String(value);
  if (value instanceof Json) return value.text;
  if (value instanceof Float) return value.text ?? String(value.n);
  assert(Array.isArray(value), "a literal is a scalar, a list or an object");
  let text = "[";
  for (let i = 0; i < value.length; i++) {
    if (i > 0) text += ",";
    text += constantJson(value[i] as Value);
  }
  return `${text}]`;
}
