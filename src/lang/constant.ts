/**
 * Lists and objects written out with constants alone become one constant: a list a list of values, an object its compact
 * json text, with the digits it was written with.
 */

import { assert } from "../base/assert.ts";
import { jsonString, valueToJson } from "../value/json.ts";
import { Json, type Value } from "../value/value.ts";
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
  return `${before.length > 1 ? "," : ""}${jsonString(key)}:${valueToJson(value)}`;
}
