/**
 * What rows weigh in memory, for the ceiling on it and for the metrics: an estimate kept with every write, since asking
 * the runtime costs a walk of its heap. The constants are fitted to live heaps of a million rows; the process takes about
 * a third more, room that its collector keeps. A text is taken at one byte a UTF-16 unit, as the runtime keeps those it
 * can.
 */

import type { CollectionSchema, IndexKind } from "../schema/schema.ts";
import { type Cell, Point, type Row } from "../value/value.ts";

/** A row's array and its place in the tree of ids. */
const ROW_BYTES = 52;
const CELL_BYTES = 8;
const TEXT_BYTES = 40;
const BIGINT_BYTES = 32;
const POINT_BYTES = 32;
const BYTES_BYTES = 96;
const LIST_BYTES = 40;
/** An entry of an index; a path's keys are values of their own beside it. */
const ENTRY_BYTES = 26;
const PLACE_BYTES = 120;
const PATH_KEY_BYTES = 48;

/** What a cell holds beyond its own 8 bytes. */
export function cellBytes(cell: Cell): number {
  if (typeof cell === "string") return TEXT_BYTES + cell.length;
  if (typeof cell === "bigint") return BIGINT_BYTES;
  if (cell === null || typeof cell !== "object") return 0;
  if (cell instanceof Uint8Array) return BYTES_BYTES + cell.length;
  if (cell instanceof Point) return POINT_BYTES;
  let bytes = LIST_BYTES;
  // Lists nest as deep as their field's type says, which is bounded.
  for (const item of cell) bytes += CELL_BYTES + cellBytes(item);
  return bytes;
}

/** What a row's cells hold; the row itself is in `fixedBytes`. */
export function contentBytes(row: Row): number {
  let bytes = 0;
  for (let slot = 1; slot < row.length; slot++) bytes += cellBytes(row[slot] as Cell);
  return bytes;
}

/** What every row of a collection takes beside its contents: its array, and its entries in the trees. */
export function fixedBytes(schema: CollectionSchema): number {
  let bytes = ROW_BYTES + CELL_BYTES * (schema.fields.length + 1);
  for (const index of schema.indexes) bytes += entryBytes(index.kind, index.keys.length > 0);
  return bytes;
}

function entryBytes(kind: IndexKind, path: boolean): number {
  if (kind === "geo") return PLACE_BYTES;
  return path ? ENTRY_BYTES + PATH_KEY_BYTES : ENTRY_BYTES;
}
