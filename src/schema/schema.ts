/** Collections, fields and indexes as data. Nothing here reads rows. */

import type { FieldType } from "../value/value.ts";

export type IndexKind = "hash" | "unique" | "sorted" | "geo" | "ttl";

export interface Field {
  readonly name: string;
  readonly type: FieldType;
  readonly required: boolean;
  /** Position in a row; 0 is the id, so the first field has slot 1. */
  readonly slot: number;
}

export interface IndexDef {
  /** The field, and the keys of a path into it when the field is json (none: the field itself). */
  readonly field: string;
  readonly keys: readonly string[];
  readonly kind: IndexKind;
  /** For `ttl`: milliseconds a row lives past the field's time. Else 0. */
  readonly ttlMs: number;
  /** The duration as it was written (`7d`), for `describe`. Empty unless `ttl`. */
  readonly ttlText: string;
}

export interface CollectionSchema {
  /** Never given twice in the life of a data directory. */
  readonly cid: number;
  readonly name: string;
  readonly fields: readonly Field[];
  readonly indexes: readonly IndexDef[];
}
