/**
 * Some points that lie together: those settled in a KDBush, which cannot be changed, and beside it what came and went
 * since. A point that came waits in a short list that is looked through whole; one that went leaves a hole. When either
 * has grown, the tile settles: it builds its KDBush anew, which at this size takes some 50 microseconds.
 */

import KDBush from "kdbush";
import { assert } from "../base/assert.ts";

/** Points of a tile; more and it is split. */
export const TILE_POINTS = 512;
/** Points that may wait; more and the tile settles. */
const WAITING = 32;
/** Points the KDBush does not divide further. */
export const BUCKET = 16;

export class Tile<R extends readonly unknown[]> {
  /** The lowest place on the curve, and there the lowest id, that belongs here. */
  along: number;
  id: number;
  /** Degrees; holds every point of the tile, and no more when it has just settled. */
  west = Infinity;
  south = Infinity;
  east = -Infinity;
  north = -Infinity;
  /** Rows of the tile. */
  size = 0;

  /** What has settled; `rows[bush.ids[i]]` is the row at `bush.coords[2 * i]`, `[2 * i + 1]`, undefined when it went. */
  bush: KDBush | null = null;
  rows: (R | undefined)[] = [];
  #holes = 0;

  readonly waiting: R[] = [];
  readonly waitingLons: number[] = [];
  readonly waitingLats: number[] = [];

  constructor(along: number, id: number) {
    this.along = along;
    this.id = id;
  }

  get restless(): boolean {
    return this.waiting.length > WAITING || this.#holes > Math.max(WAITING, this.rows.length >> 1);
  }

  /** True when the tile's box has grown. */
  insert(row: R, lon: number, lat: number): boolean {
    this.waiting.push(row);
    this.waitingLons.push(lon);
    this.waitingLats.push(lat);
    this.size++;
    return this.#cover(lon, lat);
  }

  remove(row: R, lon: number, lat: number): boolean {
    const at = this.waiting.indexOf(row);
    if (at >= 0) {
      if (this.waitingLons[at] !== lon || this.waitingLats[at] !== lat) return false;
      this.waiting[at] = this.waiting.at(-1) as R;
      this.waitingLons[at] = this.waitingLons.at(-1) as number;
      this.waitingLats[at] = this.waitingLats.at(-1) as number;
      this.waiting.pop();
      this.waitingLons.pop();
      this.waitingLats.pop();
      this.size--;
      return true;
    }
    if (this.bush === null) return false;
    for (const place of this.bush.range(lon, lat, lon, lat)) {
      if (this.rows[place] !== row) continue;
      this.rows[place] = undefined;
      this.#holes++;
      this.size--;
      return true;
    }
    return false;
  }

  /** Hands every point to `each`. */
  forEach(each: (row: R, lon: number, lat: number) => void): void {
    if (this.bush !== null) {
      const { ids, coords } = this.bush;
      for (let i = 0; i < ids.length; i++) {
        const row = this.rows[ids[i] as number];
        if (row !== undefined) each(row, coords[2 * i] as number, coords[2 * i + 1] as number);
      }
    }
    for (let i = 0; i < this.waiting.length; i++) {
      each(this.waiting[i] as R, this.waitingLons[i] as number, this.waitingLats[i] as number);
    }
  }

  /** Builds the KDBush from these points, which become all there are. */
  settle(rows: R[], lons: ArrayLike<number>, lats: ArrayLike<number>): void {
    this.waiting.length = 0;
    this.waitingLons.length = 0;
    this.waitingLats.length = 0;
    this.west = this.south = Infinity;
    this.east = this.north = -Infinity;
    this.rows = rows;
    this.size = rows.length;
    this.#holes = 0;
    this.bush = null;
    if (rows.length === 0) return;
    const bush = new KDBush(rows.length, BUCKET, Float64Array);
    for (let i = 0; i < rows.length; i++) {
      bush.add(lons[i] as number, lats[i] as number);
      this.#cover(lons[i] as number, lats[i] as number);
    }
    this.bush = bush.finish();
  }

  #cover(lon: number, lat: number): boolean {
    if (lon >= this.west && lon <= this.east && lat >= this.south && lat <= this.north) return false;
    this.west = Math.min(this.west, lon);
    this.east = Math.max(this.east, lon);
    this.south = Math.min(this.south, lat);
    this.north = Math.max(this.north, lat);
    return true;
  }

  /** Throws unless its counts and box are right. */
  check(): void {
    let size = 0;
    this.forEach((_, lon, lat) => {
      size++;
      assert(lon >= this.west && lon <= this.east, "tile: a point outside its box");
      assert(lat >= this.south && lat <= this.north, "tile: a point outside its box");
    });
    assert(size === this.size, "tile: its size");
    const held = this.rows.reduce((count, row) => count + (row === undefined ? 0 : 1), 0);
    assert(this.rows.length - held === this.#holes, "tile: its holes");
  }
}
