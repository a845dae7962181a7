/**
 * Rows by place.
 */

import { assert } from "../base/assert.ts";
import type { Box } from "./distance.ts";
import { distance, withinBox } from "./distance.ts";

export type { Box } from "./distance.ts";
export { distance, withinBox } from "./distance.ts";

/** Degrees. */
export interface Place {
  readonly lon: number;
  readonly lat: number;
}

/** A row of any shape whose first cell is its id. */
export type Keyed = readonly unknown[];

interface Entry<R extends Keyed> {
  readonly row: R;
  readonly lon: number;
  readonly lat: number;
}

export class GeoIndex<R extends Keyed> {
  readonly #entries = new Map<number, Entry<R>>();

  /** Rows held. */
  get size(): number {
    return this.#entries.size;
  }

  /** Adds a row at a point. The row's id must not be held already. */
  insert(row: R, point: Place): void {
    const id = row[0] as number;
    assert(!this.#entries.has(id), `geo index holds row ${id} already`);
    this.#entries.set(id, { row, lon: point.lon, lat: point.lat });
  }

  /** Takes a row out; the point must be the one it was inserted at. */
  remove(row: R, point: Place): boolean {
    const entry = this.#entries.get(row[0] as number);
    if (entry === undefined || entry.lon !== point.lon || entry.lat !== point.lat) return false;
    return this.#entries.delete(row[0] as number);
  }

  /** Adds many rows at once; `places[i]` is the point of `rows[i]`. */
  load(rows: readonly R[], places: readonly Place[]): void {
    for (let i = 0; i < rows.length; i++) this.insert(rows[i] as R, places[i] as Place);
  }

  /** Every row by (metres, id) ascending until `visit` answers false. */
  nearest(lon: number, lat: number, visit: (row: R, metres: number) => boolean): void {
    const found = [...this.#entries.values()].map((e) => ({ row: e.row, metres: distance(lon, lat, e.lon, e.lat) }));
    found.sort((a, b) => a.metres - b.metres || (a.row[0] as number) - (b.row[0] as number));
    for (const { row, metres } of found) if (!visit(row, metres)) return;
  }

  /** The rows inside the box or on its edge, in no particular order, until `visit` answers false. */
  within(box: Box, visit: (row: R) => boolean): void {
    for (const e of this.#entries.values()) if (withinBox(e.lon, e.lat, box) && !visit(e.row)) return;
  }

  /** The rows at most `metres` away, in no particular order, until `visit` answers false. */
  radius(lon: number, lat: number, metres: number, visit: (row: R, metres: number) => boolean): void {
    for (const e of this.#entries.values()) {
      const away = distance(lon, lat, e.lon, e.lat);
      if (away <= metres && !visit(e.row, away)) return;
    }
  }

  /** Proves the whole structure; throws an assertion failure. */
  check(): void {
    for (const [id, e] of this.#entries) assert(e.row[0] === id, `geo index: row ${id} changed its id`);
  }
}
