/** A `@geo` index: the rows that have a point. What is asked of it goes to the `places` themselves. */

import { assert } from "../base/assert.ts";
import { GeoIndex } from "../geo/geo.ts";
import type { IndexDef } from "../schema/schema.ts";
import type { Pages } from "../tree/pages.ts";
import type { Point, Row } from "../value/value.ts";

export class PlaceIndex {
  readonly def: IndexDef;
  readonly slot: number;
  readonly places: GeoIndex<Row>;

  constructor(def: IndexDef, slot: number, places: GeoIndex<Row> = new GeoIndex()) {
    this.def = def;
    this.slot = slot;
    this.places = places;
  }

  /** The same places under another definition: a renamed field. */
  as(def: IndexDef): PlaceIndex {
    return new PlaceIndex(def, this.slot, this.places);
  }

  get size(): number {
    return this.places.size;
  }

  insert(row: Row): void {
    const point = row[this.slot] as Point | null;
    if (point !== null) this.places.insert(row, point);
  }

  remove(row: Row): void {
    const point = row[this.slot] as Point | null;
    if (point !== null) this.#take(row, point);
  }

  /** Moves a row to where `cells`, about to be written over its own, put it. */
  move(row: Row, cells: Row): void {
    const from = row[this.slot] as Point | null;
    const to = cells[this.slot] as Point | null;
    if (from === to) return;
    if (from !== null && to !== null && from.lon === to.lon && from.lat === to.lat) return;
    if (from !== null) this.#take(row, from);
    if (to !== null) this.places.insert(row, to);
  }

  load(rows: Pages<Row>): void {
    const placed: Row[] = [];
    for (let i = 0; i < rows.length; i++) {
      const row = rows.at(i) as Row;
      if (row[this.slot] !== null) placed.push(row);
    }
    this.places.load(
      placed,
      placed.map((row) => row[this.slot] as Point),
    );
  }

  /** Throws unless the index holds exactly those of the rows that have a point. */
  check(rows: readonly Row[]): void {
    this.places.check();
    const held = new Set<Row>();
    this.places.within([-180, -90, 180, 90], (row) => {
      assert(!held.has(row), `places ${this.def.field}: row ${String(row[0])} is met twice`);
      held.add(row);
      return true;
    });
    let points = 0;
    for (const row of rows) {
      if (row[this.slot] === null) continue;
      points++;
      assert(held.has(row), `places ${this.def.field}: row ${String(row[0])} is missing`);
    }
    assert(held.size === points, `places ${this.def.field}: ${held.size} rows of ${points}`);
    assert(this.places.size === points, `places ${this.def.field}: size ${this.places.size} of ${points}`);
  }

  #take(row: Row, point: Point): void {
    const removed = this.places.remove(row, point);
    assert(removed, `places ${this.def.field} do not hold row ${String(row[0])}`);
  }
}
