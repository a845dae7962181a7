/**
 * A change: all a statement does to the store, as data. Statements are run once; changes are what is logged, applied and
 * replayed, so replay needs no clock and no expression.
 */

import type { CollectionSchema } from "../schema/schema.ts";
import type { Row } from "../value/value.ts";

/** Write a row (insert or replace, by `row[0]`), whole. */
export interface PutOp {
  readonly op: "put";
  readonly cid: number;
  readonly row: Row;
}

export interface DelOp {
  readonly op: "del";
  readonly cid: number;
  readonly id: number;
}

export interface CreateOp {
  readonly op: "create";
  readonly schema: CollectionSchema;
}

export interface DropOp {
  readonly op: "drop";
  readonly cid: number;
}

/**
 * A collection's new schema. `from[slot]` is the old slot whose cell moves to the new `slot`, or -1 for null; `from[0]`
 * is 0. Index changes and renames leave every slot where it is.
 */
export interface AlterOp {
  readonly op: "alter";
  readonly schema: CollectionSchema;
  readonly from: readonly number[];
}

export type Op = PutOp | DelOp | CreateOp | DropOp | AlterOp;
export type Change = readonly Op[];
