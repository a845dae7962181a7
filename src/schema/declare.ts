/**
 * A collection declared: every rule on names, types and indexes, each with the words of its refusal. What passes here
 * is held to be sound by every other room.
 *
 * The clauses are asked for by shape alone, so that whoever has them (the language's nodes do) hands them over as they
 * are.
 */

import { FIELDS, LIST_LEVELS, NAME_LENGTH, PATH_KEYS } from "../base/limits.ts";
import { Refusal } from "../base/refusal.ts";
import { typeText } from "../value/types.ts";
import type { FieldType, ScalarKind } from "../value/value.ts";
import { pathText } from "./find.ts";
import type { CollectionSchema, Field, IndexDef, IndexKind } from "./schema.ts";

export interface IndexClause {
  readonly kind: IndexKind;
  /** For `ttl`: milliseconds, and the duration as written. */
  readonly ttlMs: number;
  readonly ttlText: string;
}

export interface FieldClause {
  readonly name: string;
  readonly type: FieldType;
  readonly required: boolean;
  readonly index: IndexClause | null;
}

/**
 * Which types an index of a kind is for. Equality needs values that are the same or not (`hash`, `unique`); an order
 * that a range of values means something in is asked of `sorted`, so not bools and bytes, whose order is only a rule.
 */
const INDEXED_TYPES: Record<IndexKind, readonly ScalarKind[]> = {
  hash: ["bool", "int", "float", "text", "bytes", "timestamp"],
  unique: ["bool", "int", "float", "text", "bytes", "timestamp"],
  sorted: ["int", "float", "text", "timestamp"],
  geo: ["geo"],
  ttl: ["timestamp"],
};

const PATH_INDEXES: readonly IndexKind[] = ["hash", "unique", "sorted"];

/**
 * The schema of a new collection.
 *
 * @throws Refusal `bad_schema` or `limit_passed` (both 400)
 */
export function createSchema(cid: number, name: string, clauses: readonly FieldClause[]): CollectionSchema {
  checkCollectionName(name);
  if (clauses.length === 0) throw new Refusal("bad_schema", `collection \`${name}\` needs at least one field`);
  const fields: Field[] = [];
  const indexes: IndexDef[] = [];
  const names = new Set<string>();
  for (const clause of clauses) {
    checkFieldName(clause.name);
    if (names.has(clause.name)) throw new Refusal("bad_schema", `field \`${clause.name}\` is declared twice`);
    names.add(clause.name);
    const field = fieldFrom(clause, fields.length + 1);
    fields.push(field);
    checkFieldCount(fields.length);
    if (clause.index !== null) indexes.push(checkedIndex(field, [], clause.index, indexes));
  }
  return { cid, name, fields, indexes };
}

export function checkCollectionName(name: string): void {
  if (name.startsWith("_")) {
    throw new Refusal("bad_schema", `a collection's name may not begin with \`_\`, and \`${name}\` does`);
  }
  checkNameLength("collection", name);
}

/** @throws Refusal where a field may not be called so; whether the name is free is asked elsewhere. */
export function checkFieldName(name: string): void {
  if (name === "id") throw new Refusal("bad_schema", "`id` is every row's own field and cannot be declared");
  if (/^(true|false|null)$/i.test(name)) {
    throw new Refusal("bad_schema", `a field may not be called \`${name}\`: where it stands, it is the value`);
  }
  checkNameLength("field", name);
}

export function checkFieldCount(count: number): void {
  if (count > FIELDS) throw new Refusal("limit_passed", `a collection has at most ${FIELDS} fields`, { limit: FIELDS });
}

export function fieldFrom(clause: FieldClause, slot: number): Field {
  checkType(clause.name, clause.type);
  return { name: clause.name, type: clause.type, required: clause.required, slot };
}

/**
 * The index a clause declares over a field, or over a path into it.
 *
 * @param others the collection's other indexes: only one of them may be a `ttl`
 * @throws Refusal `bad_schema`
 */
export function checkedIndex(
  field: Field,
  keys: readonly string[],
  clause: IndexClause,
  others: readonly IndexDef[],
): IndexDef {
  const what = pathText(field.name, keys);
  if (keys.length > 0) checkPath(field, keys, clause.kind);
  else checkIndexedType(field, clause.kind);
  if (clause.kind !== "ttl") return { field: field.name, keys, kind: clause.kind, ttlMs: 0, ttlText: "" };
  if (!(clause.ttlMs > 0)) {
    throw new Refusal("bad_schema", `\`@ttl\` on \`${what}\` needs a duration past zero, such as \`30s\` or \`7d\``);
  }
  const other = others.find((index) => index.kind === "ttl");
  if (other !== undefined) {
    throw new Refusal("bad_schema", `a collection has one \`@ttl\` field, and \`${other.field}\` is it already`);
  }
  return { field: field.name, keys, kind: "ttl", ttlMs: clause.ttlMs, ttlText: clause.ttlText };
}

function checkIndexedType(field: Field, kind: IndexKind): void {
  const type = field.type;
  if (type.kind !== "list" && INDEXED_TYPES[kind].includes(type.kind)) return;
  const said = `\`@${kind}\` cannot be on \`${field.name}\`, a field of \`${typeText(type)}\``;
  if (type.kind === "geo") throw new Refusal("bad_schema", `${said}; a point takes \`@geo\` alone`);
  if (type.kind === "json" && PATH_INDEXES.includes(kind)) {
    throw new Refusal(
      "bad_schema",
      `${said}; index a path into it: \`create index on ... (${field.name}.key) @${kind}\``,
    );
  }
  throw new Refusal("bad_schema", `${said}; it is for ${INDEXED_TYPES[kind].join(", ")}`);
}

function checkPath(field: Field, keys: readonly string[], kind: IndexKind): void {
  const path = pathText(field.name, keys);
  if (field.type.kind !== "json") {
    throw new Refusal("bad_schema", `\`${path}\` is no path: \`${field.name}\` is ${typeText(field.type)}, not json`);
  }
  if (keys.length > PATH_KEYS) {
    throw new Refusal("limit_passed", `a path has at most ${PATH_KEYS} keys after its field`, { limit: PATH_KEYS });
  }
  if (!PATH_INDEXES.includes(kind)) {
    throw new Refusal("bad_schema", `\`@${kind}\` cannot be on \`${path}\`: a path takes @hash, @unique or @sorted`);
  }
}

function checkType(name: string, type: FieldType): void {
  let inner = type;
  let levels = 0;
  while (inner.kind === "list") {
    levels++;
    if (levels > LIST_LEVELS) {
      throw new Refusal("limit_passed", `\`${name}\`: lists nest at most ${LIST_LEVELS} deep`, { limit: LIST_LEVELS });
    }
    inner = inner.of;
  }
  if (levels > 0 && inner.kind === "json") {
    throw new Refusal("bad_schema", `\`${name}\`: a list of json cannot be declared; a json field holds lists itself`);
  }
}

function checkNameLength(what: string, name: string): void {
  // Code points never outnumber UTF-16 units, so a short name is not counted.
  if (name.length <= NAME_LENGTH) return;
  let codePoints = 0;
  for (const _ of name) codePoints++;
  if (codePoints > NAME_LENGTH) {
    throw new Refusal(
      "limit_passed",
      `a ${what}'s name has at most ${NAME_LENGTH} characters, this one ${codePoints}`,
      {
        limit: NAME_LENGTH,
      },
    );
  }
}
