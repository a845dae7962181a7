/** Questions to a schema. A collection has few fields, so a walk over them beats a map that would have to be kept. */

import type { FieldType } from "../value/value.ts";
import type { CollectionSchema, Field, IndexDef } from "./schema.ts";

export function fieldOf(schema: CollectionSchema, name: string): Field | undefined {
  for (const field of schema.fields) if (field.name === name) return field;
  return undefined;
}

/** The index of a field (no keys), or of a path into it. */
export function indexOf(schema: CollectionSchema, field: string, keys: readonly string[]): IndexDef | undefined {
  for (const index of schema.indexes) if (index.field === field && sameKeys(index.keys, keys)) return index;
  return undefined;
}

/** The index whose rows expire, of which a collection has at most one. */
export function ttlIndexOf(schema: CollectionSchema): IndexDef | undefined {
  for (const index of schema.indexes) if (index.kind === "ttl") return index;
  return undefined;
}

/** `types[i]` is the type of slot `i + 1`: what the encoding of a row asks for. */
export function typesOf(schema: CollectionSchema): FieldType[] {
  return schema.fields.map((field) => field.type);
}

export function sameKeys(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((key, i) => key === b[i]);
}

/** A path as it is written: `payload.to`; a field alone is its name. */
export function pathText(field: string, keys: readonly string[]): string {
  return keys.length === 0 ? field : `${field}.${keys.join(".")}`;
}
