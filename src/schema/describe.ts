/** A schema as its users are shown it. */

import { typeText } from "../value/types.ts";
import { indexOf, pathText } from "./find.ts";
import type { CollectionSchema, IndexDef } from "./schema.ts";

/**
 * Compact json: `{"name","fields":[{"name","type","index"?,"required"?}],"paths":[{"path","index"}]?}`, the fields in
 * the order they were declared; an index is its bare kind (`sorted`), a ttl one with its duration as written (`ttl(7d)`).
 */
export function describeSchema(schema: CollectionSchema): string {
  const fields = schema.fields.map((field) => {
    const index = indexOf(schema, field.name, []);
    const indexed = index === undefined ? "" : `,"index":${JSON.stringify(indexText(index))}`;
    const required = field.required ? `,"required":true` : "";
    return `{"name":${JSON.stringify(field.name)},"type":${JSON.stringify(typeText(field.type))}${indexed}${required}}`;
  });
  const paths = schema.indexes
    .filter((index) => index.keys.length > 0)
    .map((index) => {
      const path = JSON.stringify(pathText(index.field, index.keys));
      return `{"path":${path},"index":${JSON.stringify(indexText(index))}}`;
    });
  const listed = paths.length === 0 ? "" : `,"paths":[${paths.join(",")}]`;
  return `{"name":${JSON.stringify(schema.name)},"fields":[${fields.join(",")}]${listed}}`;
}

export function indexText(index: IndexDef): string {
  return index.kind === "ttl" ? `ttl(${index.ttlText})` : index.kind;
}
