/** Documents and patches: `{field: value, field.path: value, "field": value}`. */

import type { Assignment, Document } from "./ast.ts";
import { twice } from "./container.ts";
import { readExpression } from "./expression.ts";
import type { Reader } from "./reader.ts";

const NO_KEYS: readonly string[] = Object.freeze([]);
/** Above this many keys, a set is quicker than looking through those that were. */
const MANY_KEYS = 16;

/** From the brace on, which the caller has seen. */
export function readAssignments(r: Reader): Assignment[] {
  r.moveTo(r.at + 1);
  const entries: Assignment[] = [];
  let seen: Set<string> | undefined;
  while (!r.take(125)) {
    const at = r.at;
    let field: string;
    let keys = NO_KEYS;
    const c = r.code();
    if (c === 34 || c === 39) {
      field = r.text();
    } else {
      const end = r.fieldEnd();
      if (end === at) r.fail("a field's name");
      field = r.checkedField(end);
      if (r.codeAt(end) === 46) keys = r.pathKeys(end);
      else r.moveTo(end);
    }
    if (entries.length < MANY_KEYS) {
      for (const entry of entries) {
        if (entry.field === field && samePath(entry.keys, keys)) twice(r, r.input.slice(at, r.at).trimEnd(), at);
      }
    } else {
      seen ??= new Set(entries.map(pathIdentity));
      const identity = pathIdentity({ field, keys });
      if (seen.has(identity)) twice(r, field, at);
      seen.add(identity);
    }
    r.need(58);
    const value = readExpression(r);
    entries.push({ field, keys, value, at });
    if (!r.take(44)) {
      r.need(125);
      break;
    }
  }
  return entries;
}

function samePath(a: readonly string[], b: readonly string[]): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

function pathIdentity(path: { readonly field: string; readonly keys: readonly string[] }): string {
  return path.keys.length === 0 ? JSON.stringify(path.field) : JSON.stringify([path.field, path.keys]);
}

/** Documents side by side, or in brackets with commas between. */
export function readDocuments(r: Reader): Document[] {
  const documents: Document[] = [];
  if (r.take(91)) {
    while (!r.take(93)) {
      if (!r.is(123)) r.fail("`{`");
      documents.push({ entries: readAssignments(r) });
      if (!r.take(44)) {
        r.need(93);
        break;
      }
    }
    return documents;
  }
  if (!r.is(123)) r.fail("`{`");
  do documents.push({ entries: readAssignments(r) });
  while (r.is(123));
  r.note("`{`");
  return documents;
}
