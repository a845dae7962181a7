/** Lists and objects written out as values. */

import type { Expr } from "./ast.ts";
import { listConstant, objectConstant } from "./constant.ts";
import { readExpression } from "./expression.ts";
import type { Reader } from "./reader.ts";

export function readList(r: Reader): Expr {
  r.enterContainer();
  r.moveTo(r.at + 1);
  const items: Expr[] = [];
  let height = 0;
  let constant = true;
  while (!r.take(93)) {
    const item = readExpression(r);
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

export function readObject(r: Reader): Expr {
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
    const value = readExpression(r);
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
