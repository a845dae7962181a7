/**
 * The whole store as bytes, in pieces: what a snapshot is made of. One head, then slices of rows, each good by itself,
 * so whoever writes a snapshot lets statements run between two slices and only remembers where it is.
 *
 * | piece | bytes |
 * | ----- | ----- |
 * | head  | varint next cid, varint count of tables, for each: schema, f64 next id |
 * | slice | u32 cid, u32 count of rows, the rows by ascending id |
 *
 * A table's slices come one behind the other, ascending. Rows written while slices were taken may be in them or not; the
 * changes logged since the head bring either to the same state, through `Store.replay`. A change of schema in between
 * makes rows of two shapes, so a snapshot under way when `schemaVersion` rises is begun anew.
 */

import { assert } from "../base/assert.ts";
import type { ByteReader, ByteWriter } from "../base/bytes.ts";
import type { Steps } from "../base/steps.ts";
import type { CollectionSchema } from "../schema/schema.ts";
import { decodeRow, encodeRow } from "../value/encoding.ts";
import { Catalog, decodeSchema, encodeSchema } from "./encoding.ts";
import { RowPages } from "./row_pages.ts";
import type { Store } from "./store.ts";

/** Where a walk over all rows stands: behind row `id` of table `cid`. */
export interface Place {
  readonly cid: number;
  readonly id: number;
}

export const START: Place = { cid: 0, id: -Infinity };

export function encodeHead(w: ByteWriter, store: Store): void {
  const tables = store.tables();
  w.varint(store.nextCid);
  w.varint(tables.length);
  for (const table of tables) {
    encodeSchema(w, table.schema);
    w.f64(table.nextId);
  }
}

/**
 * Writes the next slice behind `place`: rows of one table, at most `maxRows`, and none further once `maxBytes` are
 * written.
 *
 * @returns where the walk stands then; undefined, with nothing written, once there is nothing more
 */
export function encodeSlice(
  w: ByteWriter,
  store: Store,
  place: Place,
  maxRows: number,
  maxBytes: number,
): Place | undefined {
  for (const table of store.tables()) {
    if (table.cid < place.cid || table.count === 0) continue;
    const from = w.length;
    const behind = table.cid === place.cid ? place.id : -Infinity;
    let count = 0;
    let last = behind;
    table.scan(behind, (row) => {
      if (row[0] === behind) return true;
      if (count === 0) {
        w.u32(table.cid);
        w.u32(0);
      }
      encodeRow(w, table.types, row);
      last = row[0] as number;
      count++;
      return count < maxRows && w.length - from < maxBytes;
    });
    if (count === 0) continue;
    w.setU32(from + 4, count);
    return { cid: table.cid, id: last };
  }
  return undefined;
}

/** Takes the pieces of a state as they are read, and in the end builds the tables with all their indexes at once. */
export class StateLoader {
  #nextCid = 1;
  readonly #catalog = new Catalog();
  readonly #parts: { schema: CollectionSchema; nextId: number; rows: RowPages }[] = [];
  readonly #byCid = new Map<number, RowPages>();

  head(r: ByteReader): void {
    this.#nextCid = r.varint();
    for (let left = r.varint(); left > 0; left--) {
      const schema = decodeSchema(r);
      const rows = new RowPages();
      this.#catalog.set(schema);
      this.#parts.push({ schema, nextId: r.f64(), rows });
      this.#byCid.set(schema.cid, rows);
    }
  }

  slice(r: ByteReader): void {
    const cid = r.u32();
    const types = this.#catalog.types(cid);
    const rows = this.#byCid.get(cid);
    assert(types !== undefined && rows !== undefined, `a slice of table ${cid}, which the head has not`);
    for (let left = r.u32(); left > 0; left--) rows.push(decodeRow(r, types));
  }

  /** Fills an empty store. */
  *finish(store: Store): Steps<void> {
    assert(store.tables().length === 0, "a state is loaded over tables");
    for (const part of this.#parts) yield* store.bulkLoad(part.schema, part.nextId, part.rows);
    store.nextCid = Math.max(store.nextCid, this.#nextCid);
  }
}
