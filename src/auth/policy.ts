/**
 * The policy file: one rule a line, `#` begins a comment.
 *
 *     line       := collection grants [ "where" filter ] [ "for" role ]
 *                 | collection "append-only"
 *     collection := name | "*"
 *     grants     := grant ("," grant)*          no blanks between; a field list may hold them
 *     grant      := "read" | "insert" | "update" | "delete" | "write" | "expired" | "update(" field ("," field)* ")"
 *     filter     := a condition of the language; `$jwt.claim` where a value goes; `new.field` in rules that only update
 *
 * A file that is not understood whole stops the start: a rule that quietly grants nothing, or too much, is worse.
 */

import { Refusal } from "../base/refusal.ts";
import type { Expr } from "../lang/ast.ts";
import { parsePolicyCondition } from "../lang/parse.ts";
import { nameEnd } from "../lang/reader.ts";
import { everyNode, someNode } from "../lang/walk.ts";

export type Grant = "read" | "insert" | "update" | "delete" | "expired";

export interface Rule {
  /** Of the file, from 1. */
  readonly line: number;
  readonly collection: string;
  readonly grants: ReadonlySet<Grant>;
  /** The fields `update(...)` names; null: every field. */
  readonly fields: ReadonlySet<string> | null;
  readonly where: Expr | null;
  /** As written; empty without one. */
  readonly whereText: string;
  readonly role: string | null;
  /** Its filter reads a row as it would be. */
  readonly readsNew: boolean;
  /** The claims its filter names: a token without one of them is not concerned. */
  readonly claims: readonly string[];
  readonly grantTexts: readonly string[];
}

export interface Policy {
  readonly rules: readonly Rule[];
  readonly appendOnly: ReadonlySet<string>;
}

/** A line that is not understood: what stops the start. */
export class PolicyError extends Error {
  override readonly name = "PolicyError";
}

function wrong(line: number, words: string): PolicyError {
  return new PolicyError(`line ${line}: ${words}`);
}

const GRANTS = "read, insert, update, update(fields), delete, write, expired";

/**
 * @param functions the functions a filter may call
 * @throws PolicyError
 */
export function parsePolicy(text: string, functions: readonly string[]): Policy {
  const rules: (Rule & { readonly namesChange: boolean })[] = [];
  const appendOnly = new Set<string>();
  for (const [at, written] of text
    .replace(/^\ufeff/, "")
    .split(/\r\n|\r|\n/)
    .entries()) {
    const line = at + 1;
    const source = withoutComment(written).trim();
    if (source === "") continue;
    const [collection = "", rest] = cut(source);
    if (collection !== "*" && (!isName(collection) || collection.startsWith("_"))) {
      throw wrong(line, `\`${collection}\` is no collection's name: a name, or * for all`);
    }
    if (/^append-only\b/.test(rest)) {
      if (rest !== "append-only") throw wrong(line, "append-only takes no filter and no role");
      appendOnly.add(collection);
      continue;
    }
    rules.push(parseRule(line, collection, rest, functions));
  }
  for (const rule of rules) {
    if (rule.namesChange && (appendOnly.has(rule.collection) || appendOnly.has("*"))) {
      throw wrong(rule.line, `\`${rule.collection}\` is append-only: no rule updates it or deletes from it`);
    }
  }
  return { rules, appendOnly };
}

function parseRule(
  line: number,
  collection: string,
  text: string,
  functions: readonly string[],
): Rule & { readonly namesChange: boolean } {
  const end = grantsEnd(line, text);
  const grantTexts = splitGrants(line, text.slice(0, end));
  const grants = new Set<Grant>();
  let fields: Set<string> | null = null;
  let wholeUpdate = false;
  let namesChange = false;
  for (const grant of grantTexts) {
    const list = /^update\((.*)\)$/s.exec(grant);
    if (list !== null) {
      fields = new Set([...(fields ?? []), ...fieldList(line, list[1] ?? "")]);
      grants.add("update");
      namesChange = true;
    } else if (grant === "write") {
      for (const each of ["insert", "update", "delete"] as const) grants.add(each);
      wholeUpdate = true;
    } else if (
      grant === "read" ||
      grant === "insert" ||
      grant === "update" ||
      grant === "delete" ||
      grant === "expired"
    ) {
      grants.add(grant);
      if (grant === "update") wholeUpdate = true;
      if (grant === "update" || grant === "delete") namesChange = true;
    } else throw wrong(line, `\`${grant}\` is no grant: there are ${GRANTS}`);
  }
  const { whereText, role } = tailOf(line, text.slice(end).trim());
  const where = whereText === "" ? null : conditionOf(line, whereText, functions);
  const updatesAlone = grants.size === 1 && grants.has("update");
  const transition = where !== null && readsNew(where);
  if (transition && !updatesAlone) {
    throw wrong(line, "new. is what a row would be after an update: it stands in rules that grant update alone");
  }
  return {
    line,
    namesChange,
    collection,
    grants,
    fields: wholeUpdate ? null : fields,
    where,
    whereText,
    role,
    readsNew: transition,
    claims: where === null ? [] : claimsOf(where),
    grantTexts,
  };
}

function isName(text: string): boolean {
  return text !== "" && nameEnd(text, 0) === text.length;
}

/** The first word, and what follows it. */
function cut(text: string): [string, string] {
  const at = text.search(/\s/);
  return at === -1 ? [text, ""] : [text.slice(0, at), text.slice(at).trim()];
}

/** Where the grants end: the first blank outside a field list. */
function grantsEnd(line: number, text: string): number {
  if (text === "") throw wrong(line, `a rule grants something: ${GRANTS}`);
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const c = text[at] as string;
    if (c === "(") {
      depth++;
      if (depth > 1) throw wrong(line, "a field list holds names alone: update(owner, run_at)");
    } else if (c === ")") {
      depth--;
      if (depth < 0) throw wrong(line, "a field list is closed that was not opened");
    } else if (depth === 0 && /\s/.test(c)) return at;
  }
  if (depth > 0) throw wrong(line, "a field list is not closed: update(owner, run_at)");
  return text.length;
}

function splitGrants(line: number, text: string): string[] {
  const grants = text.split(/,(?![^(]*\))/);
  if (grants.some((grant) => grant === "")) {
    throw wrong(line, `grants stand side by side with commas and no blanks: read,insert`);
  }
  return grants;
}

function fieldList(line: number, text: string): string[] {
  const names = text.split(",").map((name) => name.trim());
  if (text.trim() === "") throw wrong(line, "update() names no field: update(owner, run_at), or update for all");
  for (const name of names) {
    if (name === "id") throw wrong(line, "an id never changes: it is not among the fields of update(...)");
    if (!isName(name)) throw wrong(line, `\`${name}\` is no field's name`);
  }
  return names;
}

/** `where filter for role`, both optional. */
function tailOf(line: number, text: string): { whereText: string; role: string | null } {
  const named = /(?:^|\s)for\s+([\p{L}\p{N}_.:/@-]+)$/iu.exec(text);
  const role = named?.[1] ?? null;
  const rest = named === null ? text : text.slice(0, named.index).trim();
  if (rest === "") return { whereText: "", role };
  const [word, whereText] = cut(rest);
  if (word.toLowerCase() !== "where") {
    throw wrong(line, `\`${word}\` is not understood: after the grants stands where, or for; grants take commas`);
  }
  if (whereText === "") throw wrong(line, "where is followed by a condition");
  return { whereText, role };
}

function conditionOf(line: number, text: string, functions: readonly string[]): Expr {
  let where: Expr;
  try {
    where = parsePolicyCondition(text);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const { column } = error.data;
    const where = column === undefined ? "" : `in the filter, at character ${String(column)}: `;
    throw wrong(line, where + error.message.replace(/^line \d+, column \d+: /, ""));
  }
  for (const expr of everyNode(where)) {
    if (expr.kind === "inGet") throw wrong(line, "a rule reads its own row: in (get ...) is not for rules");
    if (expr.kind === "call" && expr.name === "expired") {
      throw wrong(line, "expired() is not for rules: grant expired");
    }
    if (expr.kind === "call" && !functions.includes(expr.name)) {
      const known = functions.filter((name) => name !== "expired");
      throw wrong(line, `a rule has no function \`${expr.name}\`: known are ${known.join(", ")}`);
    }
  }
  return where;
}

/** Whether a filter reads the row as it would be. */
export function readsNew(root: Expr): boolean {
  return someNode(root, (expr) => expr.kind === "path" && expr.field === "new" && expr.keys.length > 0);
}

function claimsOf(root: Expr): string[] {
  const names = new Set<string>();
  for (const expr of everyNode(root)) if (expr.kind === "claim") names.add(expr.name);
  return [...names];
}

/** A `#` outside quotes begins a comment. */
function withoutComment(line: string): string {
  let quote = "";
  for (let at = 0; at < line.length; at++) {
    const c = line[at] as string;
    if (quote !== "") {
      if (c === "\\") at++;
      else if (c === quote) quote = "";
    } else if (c === '"' || c === "'") quote = c;
    else if (c === "#") return line.slice(0, at);
  }
  return line;
}
