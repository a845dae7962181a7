/**
 * A schema changed: each change gives the schema as it will be and `from`, which says where each slot's cells come from
 * (`from[slot]` the old slot, -1 for null), the two halves of an alter as the store applies it.
 */

import { Refusal } from "../base/refusal.ts";
import {
  checkedIndex,
  checkFieldCount,
  checkFieldName,
  type FieldClause,
  fieldFrom,
  type IndexClause,
} from "./declare.ts";
import { fieldOf, indexOf, pathText } from "./find.ts";
import type { CollectionSchema, Field, IndexDef } from "./schema.ts";

export interface Alteration {
  readonly schema: CollectionSchema;
  readonly from: readonly number[];
}

/**
 * A further field, the last one, null in the rows there are.
 *
 * @throws Refusal `bad_schema`, `limit_passed`
 */
export function addField(schema: CollectionSchema, clause: FieldClause): Alteration {
  checkFreeName(schema, clause.name);
  if (clause.required) {
    throw new Refusal(
      "bad_schema",
      `\`${clause.name}\` cannot be added as required: the rows there are hold null in it`,
    );
  }
  const field = fieldFrom(clause, schema.fields.length + 1);
  const fields = [...schema.fields, field];
  checkFieldCount(fields.length);
  const indexes =
    clause.index === null ? schema.indexes : [...schema.indexes, checkedIndex(field, [], clause.index, schema.indexes)];
  return { schema: { ...schema, fields, indexes }, from: [...untouched(schema), -1] };
}

/**
 * A field taken out with its cells, its index and those of its paths.
 *
 * @throws Refusal `unknown_field`; `bad_schema` for the last one
 */
export function dropField(schema: CollectionSchema, name: string): Alteration {
  const dropped = knownField(schema, name);
  if (schema.fields.length === 1) {
    throw new Refusal("bad_schema", `\`${name}\` is the last field of \`${schema.name}\`; drop the collection instead`);
  }
  const fields: Field[] = [];
  const from = [0];
  for (const field of schema.fields) {
    if (field === dropped) continue;
    fields.push({ ...field, slot: fields.length + 1 });
    from.push(field.slot);
  }
  const indexes = schema.indexes.filter((index) => index.field !== name);
  return { schema: { ...schema, fields, indexes }, from };
}

/**
 * Another name for a field; its index and those of its paths go along.
 *
 * @throws Refusal `unknown_field`; `bad_schema` where the new name is taken or none a field may have
 */
export function renameField(schema: CollectionSchema, name: string, to: string): Alteration {
  const renamed = knownField(schema, name);
  checkFreeName(schema, to);
  const fields = schema.fields.map((field) => (field === renamed ? { ...field, name: to } : field));
  const indexes = schema.indexes.map((index) => (index.field === name ? { ...index, field: to } : index));
  return { schema: { ...schema, fields, indexes }, from: untouched(schema) };
}

/**
 * An index over a field (no keys) or over a path into it. Whether the rows allow a unique one, and `if not exists`, are
 * the caller's to look at: `indexOf` tells whether there is one.
 *
 * @throws Refusal `unknown_field`, `bad_schema`
 */
export function addIndex(
  schema: CollectionSchema,
  name: string,
  keys: readonly string[],
  clause: IndexClause,
): Alteration {
  const field = knownField(schema, name);
  const held = indexOf(schema, name, keys);
  if (held !== undefined) {
    throw new Refusal("bad_schema", `\`${pathText(name, keys)}\` has its one index already, \`@${held.kind}\``);
  }
  const index = checkedIndex(field, keys, clause, schema.indexes);
  return { schema: { ...schema, indexes: [...schema.indexes, index] }, from: untouched(schema) };
}

/**
 * Turns a field's ordered index into `@ttl` of a duration (also another one), or back into `@sorted`.
 *
 * @throws Refusal `unknown_field`, `bad_schema`
 */
export function changeIndex(schema: CollectionSchema, name: string, clause: IndexClause): Alteration {
  const field = knownField(schema, name);
  const held = indexOf(schema, name, []);
  if (clause.kind !== "ttl" && clause.kind !== "sorted") {
    throw new Refusal(
      "bad_schema",
      `an index changes to \`@ttl(...)\` or \`@sorted\` only, not to \`@${clause.kind}\``,
    );
  }
  if (held === undefined || (held.kind !== "sorted" && held.kind !== "ttl")) {
    const said = held === undefined ? "has no index" : `has \`@${held.kind}\``;
    throw new Refusal("bad_schema", `only an ordered index changes, and \`${name}\` ${said}`);
  }
  const others = schema.indexes.filter((index) => index !== held);
  const changed = checkedIndex(field, [], clause, others);
  const indexes: IndexDef[] = schema.indexes.map((index) => (index === held ? changed : index));
  return { schema: { ...schema, indexes }, from: untouched(schema) };
}

function untouched(schema: CollectionSchema): number[] {
  return Array.from({ length: schema.fields.length + 1 }, (_, slot) => slot);
}

function checkFreeName(schema: CollectionSchema, name: string): void {
  checkFieldName(name);
  if (fieldOf(schema, name) !== undefined) {
    throw new Refusal("bad_schema", `\`${schema.name}\` has a field \`${name}\` already`);
  }
}

function knownField(schema: CollectionSchema, name: string): Field {
  if (name === "id") throw new Refusal("bad_schema", "`id` is in every collection, indexed, and is not changed");
  const field = fieldOf(schema, name);
  if (field === undefined) throw new Refusal("unknown_field", `\`${schema.name}\` has no field \`${name}\``);
  return field;
}
