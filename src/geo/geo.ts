/**
 * Rows by place: which are nearest, which are in a box or within a distance.
 *
 * The points are cut into tiles of a thousand along a Hilbert curve, by (place on the curve, id), so that a point's tile
 * is found by a binary search however many points share its place. Each tile keeps its points in a KDBush with a short
 * list beside it and rebuilds that alone, so a write never waits for more than a tile's build: one KDBush over all
 * points takes 100 ms at 100 000 of them, and a second thread to do it in would be a second copy of the truth.
 *
 * Above the tiles lie boxes: each tile's, and of every eight boxes the one around them, and so on up. They are a list
 * of numbers a level, made anew when the list of tiles changes.
 *
 * Answers are those of a scan with `distance` and `withinBox`, row for row.
 */

import type KDBush from "kdbush";
import { assert } from "../base/assert.ts";
import { placeOnCurve } from "./curve.ts";
import { type Box, distance } from "./distance.ts";
import { Frontier } from "./frontier.ts";
import { BUCKET, TILE_POINTS, Tile } from "./tile.ts";
import { Vantage } from "./vantage.ts";

export { type Box, distance, withinBox } from "./distance.ts";

/** Degrees. */
export interface Place {
  readonly lon: number;
  readonly lat: number;
}

/** A row of any shape whose first cell is its id, a number. */
export type Keyed = readonly unknown[];

/** Boxes under one box. */
const GROUP = 8;

/** Some of the boxes of a level: those under box `index` of the level above. */
class Group {
  readonly level: number;
  readonly index: number;

  constructor(level: number, index: number) {
    this.level = level;
    this.index = index;
  }
}

/** A part of a tile's KDBush, and the box it is known to lie in. */
class Range<R extends Keyed> {
  readonly tile: Tile<R>;
  readonly left: number;
  readonly right: number;
  /** What divides it: 0 longitude, 1 latitude. */
  readonly axis: number;
  readonly west: number;
  readonly south: number;
  readonly east: number;
  readonly north: number;

  constructor(
    tile: Tile<R>,
    left: number,
    right: number,
    axis: number,
    west: number,
    south: number,
    east: number,
    north: number,
  ) {
    this.tile = tile;
    this.left = left;
    this.right = right;
    this.axis = axis;
    this.west = west;
    this.south = south;
    this.east = east;
    this.north = north;
  }
}

type Region<R extends Keyed> = Group | Tile<R> | Range<R>;

export class GeoIndex<R extends Keyed> {
  /** Never empty; in the order of the curve, the first beginning before all places. */
  #tiles: Tile<R>[] = [new Tile<R>(-1, Number.NEGATIVE_INFINITY)];
  /** West, south, east, north of each box; level 0 has the tiles', the last at most eight. */
  #levels: Float64Array[] = [];
  #size = 0;
  #changes = 0;
  /** Frontiers not in use: a walk may start another. */
  readonly #idle: Frontier<Region<R>, R>[] = [];

  constructor() {
    this.#raise();
  }

  /** Rows held. */
  get size(): number {
    return this.#size;
  }

  /** Tiles the rows are kept in; 1 when empty. */
  get tiles(): number {
    return this.#tiles.length;
  }

  /** Adds a row at a point. It must not be held already. */
  insert(row: R, point: Place): void {
    const { lon, lat } = point;
    assert(lon >= -180 && lon <= 180 && lat >= -90 && lat <= 90, "a point lies on the earth");
    this.#changes++;
    this.#size++;
    const index = this.#tileOf(placeOnCurve(lon, lat), row[0] as number);
    const tile = this.#tiles[index] as Tile<R>;
    const grown = tile.insert(row, lon, lat);
    if (tile.restless) this.#settle(index);
    else if (grown) this.#enclose(index);
  }

  /** Takes a row out; the point is the one it was inserted at. False when it is not held there. */
  remove(row: R, point: Place): boolean {
    const { lon, lat } = point;
    const index = this.#tileOf(placeOnCurve(lon, lat), row[0] as number);
    const tile = this.#tiles[index] as Tile<R>;
    if (!tile.remove(row, lon, lat)) return false;
    this.#changes++;
    this.#size--;
    const sparse = tile.size <= TILE_POINTS / 8 && this.#tiles.length > 1;
    if (!(sparse && this.#join(index)) && tile.restless) this.#settle(index);
    return true;
  }

  /** Fills an empty index; `places[i]` is the point of `rows[i]`. Any order. */
  load(rows: readonly R[], places: readonly Place[]): void {
    assert(this.#size === 0, "only an empty geo index is loaded");
    assert(rows.length === places.length, "as many places as rows");
    if (rows.length === 0) return;
    this.#changes++;
    this.#size = rows.length;
    const lons = new Float64Array(rows.length);
    const lats = new Float64Array(rows.length);
    for (let i = 0; i < rows.length; i++) {
      const { lon, lat } = places[i] as Place;
      assert(lon >= -180 && lon <= 180 && lat >= -90 && lat <= 90, "a point lies on the earth");
      lons[i] = lon;
      lats[i] = lat;
    }
    this.#tiles = this.#cut(rows, lons, lats, Math.ceil(rows.length / (TILE_POINTS * 0.75)));
    const first = this.#tiles[0] as Tile<R>;
    first.along = -1;
    first.id = Number.NEGATIVE_INFINITY;
    this.#raise();
  }

  /** Every row by (metres, id) ascending, until `visit` answers false. */
  nearest(lon: number, lat: number, visit: (row: R, metres: number) => boolean): void {
    const changes = this.#changes;
    const vantage = new Vantage(lon, lat);
    const frontier = this.#idle.pop() ?? new Frontier<Region<R>, R>();
    const top = this.#levels.length - 1;
    this.#sightGroup(frontier, vantage, top, 0);
    while (frontier.size > 0) {
      const { metres } = frontier;
      const sight = frontier.pop();
      if (isRow(sight)) {
        if (!visit(sight, metres)) break;
        assert(changes === this.#changes, "a geo index is not changed while it is walked");
      } else if (sight instanceof Range) {
        this.#sightRange(frontier, vantage, lon, lat, sight);
      } else if (sight instanceof Tile) {
        const { waiting, waitingLons, waitingLats, bush } = sight;
        for (let i = 0; i < waiting.length; i++) {
          frontier.push(distance(lon, lat, waitingLons[i] as number, waitingLats[i] as number), waiting[i] as R);
        }
        if (bush === null) continue;
        const { west, south, east, north } = sight;
        const whole = new Range<R>(sight, 0, bush.ids.length - 1, 0, west, south, east, north);
        this.#sightRange(frontier, vantage, lon, lat, whole);
      } else {
        this.#sightGroup(frontier, vantage, sight.level, sight.index);
      }
    }
    frontier.clear();
    this.#idle.push(frontier);
  }

  /** The rows inside the box or on its edge, in no particular order, until `visit` answers false. */
  within(box: Box, visit: (row: R) => boolean): void {
    const [west, south, east, north] = box;
    const changes = this.#changes;
    const each = (row: R): boolean => {
      if (!visit(row)) return false;
      assert(changes === this.#changes, "a geo index is not changed while it is walked");
      return true;
    };
    if (west <= east) this.#within(west, south, east, north, each);
    else if (this.#within(west, south, Infinity, north, each)) this.#within(-Infinity, south, east, north, each);
  }

  /** The rows at most `metres` away, in no particular order, until `visit` answers false. */
  radius(lon: number, lat: number, metres: number, visit: (row: R, metres: number) => boolean): void {
    const changes = this.#changes;
    const vantage = new Vantage(lon, lat);
    const each = (row: R, x: number, y: number): boolean => {
      const away = distance(lon, lat, x, y);
      if (!(away <= metres)) return true;
      if (!visit(row, away)) return false;
      assert(changes === this.#changes, "a geo index is not changed while it is walked");
      return true;
    };
    const reaches = (west: number, south: number, east: number, north: number): boolean =>
      vantage.bound(west, south, east, north) <= metres;
    this.#eachTile(reaches, (tile) => {
      for (let i = 0; i < tile.waiting.length; i++) {
        if (!each(tile.waiting[i] as R, tile.waitingLons[i] as number, tile.waitingLats[i] as number)) return false;
      }
      return tile.bush === null || walkRanges(tile, tile.bush, reaches, each);
    });
  }

  /** Throws unless every tile, its place on the curve, and every box above it is right. */
  check(): void {
    let size = 0;
    const seen = new Set<number>();
    for (let index = 0; index < this.#tiles.length; index++) {
      const tile = this.#tiles[index] as Tile<R>;
      tile.check();
      size += tile.size;
      assert(tile.size > 0 || this.#tiles.length === 1, "geo index: an empty tile");
      assert(tile.size <= TILE_POINTS, "geo index: a tile too full");
      assert(!tile.restless, "geo index: a tile that should have settled");
      tile.forEach((row, lon, lat) => {
        const id = row[0] as number;
        assert(!seen.has(id), `geo index: row ${id} twice`);
        seen.add(id);
        assert(this.#tileOf(placeOnCurve(lon, lat), id) === index, `geo index: row ${id} in another's tile`);
      });
      let at = index;
      for (const level of this.#levels) {
        const box = at * 4;
        assert((level[box] as number) <= tile.west, "geo index: a box too small");
        assert((level[box + 1] as number) <= tile.south, "geo index: a box too small");
        assert((level[box + 2] as number) >= tile.east, "geo index: a box too small");
        assert((level[box + 3] as number) >= tile.north, "geo index: a box too small");
        at = Math.floor(at / GROUP);
      }
    }
    assert(size === this.#size, "geo index: its size");
  }

  /** The tile (along, id) belongs in. */
  #tileOf(along: number, id: number): number {
    let low = 1;
    let high = this.#tiles.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const tile = this.#tiles[middle] as Tile<R>;
      if (tile.along < along || (tile.along === along && tile.id <= id)) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  /** Has the tile settle, in two if it has grown too full. */
  #settle(index: number): void {
    const tile = this.#tiles[index] as Tile<R>;
    const { rows, lons, lats } = pointsOf([tile]);
    if (rows.length <= TILE_POINTS) {
      tile.settle(rows, lons, lats);
      this.#enclose(index);
      return;
    }
    const parts = this.#cut(rows, lons, lats, 2);
    const first = parts[0] as Tile<R>;
    first.along = tile.along;
    first.id = tile.id;
    this.#tiles.splice(index, 1, ...parts);
    this.#raise();
  }

  /** Makes one tile of a sparse one and a neighbour that has the room; drops an empty one. False if neither can be. */
  #join(index: number): boolean {
    for (const left of [index - 1, index]) {
      const a = this.#tiles[left];
      const b = this.#tiles[left + 1];
      if (a === undefined || b === undefined) continue;
      if (a.size + b.size > TILE_POINTS / 2 && a.size > 0 && b.size > 0) continue;
      if (a.size === 0) {
        b.along = a.along;
        b.id = a.id;
        this.#tiles.splice(left, 1);
      } else {
        if (b.size > 0) {
          const { rows, lons, lats } = pointsOf([a, b]);
          a.settle(rows, lons, lats);
        }
        this.#tiles.splice(left + 1, 1);
      }
      this.#raise();
      return true;
    }
    return false;
  }

  /** Tiles of about equal size, in the order of the curve. */
  #cut(rows: readonly R[], lons: ArrayLike<number>, lats: ArrayLike<number>, count: number): Tile<R>[] {
    const along = new Float64Array(rows.length);
    const order = new Uint32Array(rows.length);
    for (let i = 0; i < rows.length; i++) {
      along[i] = placeOnCurve(lons[i] as number, lats[i] as number);
      order[i] = i;
    }
    const idOf = (i: number): number => (rows[i] as R)[0] as number;
    order.sort((a, b) => (along[a] as number) - (along[b] as number) || idOf(a) - idOf(b));
    const tiles: Tile<R>[] = [];
    let from = 0;
    for (let part = 1; part <= count; part++) {
      const to = Math.floor((part * rows.length) / count);
      const first = order[from] as number;
      const tile = new Tile<R>(along[first] as number, idOf(first));
      const some = order.subarray(from, to);
      const tileRows = new Array<R>(some.length);
      for (let i = 0; i < some.length; i++) tileRows[i] = rows[some[i] as number] as R;
      tile.settle(
        tileRows,
        Float64Array.from(some, (i) => lons[i] as number),
        Float64Array.from(some, (i) => lats[i] as number),
      );
      tiles.push(tile);
      from = to;
    }
    return tiles;
  }

  /** Makes all boxes anew. */
  #raise(): void {
    this.#levels = [];
    let count = this.#tiles.length;
    for (;;) {
      const level = new Float64Array(count * 4);
      this.#levels.push(level);
      for (let box = 0; box < count; box++) this.#fit(this.#levels.length - 1, box);
      if (count <= GROUP) return;
      count = Math.ceil(count / GROUP);
    }
  }

  /** Makes the boxes around one tile anew. */
  #enclose(index: number): void {
    let at = index;
    for (let level = 0; level < this.#levels.length; level++) {
      this.#fit(level, at);
      at = Math.floor(at / GROUP);
    }
  }

  #fit(level: number, box: number): void {
    const boxes = this.#levels[level] as Float64Array;
    let west = Infinity;
    let south = Infinity;
    let east = -Infinity;
    let north = -Infinity;
    if (level === 0) {
      ({ west, south, east, north } = this.#tiles[box] as Tile<R>);
    } else {
      const below = this.#levels[level - 1] as Float64Array;
      const end = Math.min(below.length, (box + 1) * GROUP * 4);
      for (let i = box * GROUP * 4; i < end; i += 4) {
        west = Math.min(west, below[i] as number);
        south = Math.min(south, below[i + 1] as number);
        east = Math.max(east, below[i + 2] as number);
        north = Math.max(north, below[i + 3] as number);
      }
    }
    boxes[box * 4] = west;
    boxes[box * 4 + 1] = south;
    boxes[box * 4 + 2] = east;
    boxes[box * 4 + 3] = north;
  }

  #sightGroup(frontier: Frontier<Region<R>, R>, vantage: Vantage, level: number, group: number): void {
    const boxes = this.#levels[level] as Float64Array;
    const end = Math.min(boxes.length >> 2, (group + 1) * GROUP);
    for (let box = group * GROUP; box < end; box++) {
      const west = boxes[box * 4] as number;
      // The one tile of an empty index has no box.
      if (west === Infinity) continue;
      const south = boxes[box * 4 + 1] as number;
      const east = boxes[box * 4 + 2] as number;
      const north = boxes[box * 4 + 3] as number;
      const sight = level === 0 ? (this.#tiles[box] as Tile<R>) : new Group(level - 1, box);
      frontier.push(vantage.bound(west, south, east, north), sight);
    }
  }

  #sightRange(frontier: Frontier<Region<R>, R>, vantage: Vantage, lon: number, lat: number, range: Range<R>): void {
    const { tile, left, right, axis, west, south, east, north } = range;
    const { ids, coords } = tile.bush as KDBush;
    const { rows } = tile;
    if (right - left <= BUCKET) {
      for (let i = left; i <= right; i++) {
        const row = rows[ids[i] as number];
        if (row === undefined) continue;
        frontier.push(distance(lon, lat, coords[2 * i] as number, coords[2 * i + 1] as number), row);
      }
      return;
    }
    const middle = (left + right) >> 1;
    const x = coords[2 * middle] as number;
    const y = coords[2 * middle + 1] as number;
    const row = rows[ids[middle] as number];
    if (row !== undefined) frontier.push(distance(lon, lat, x, y), row);
    const low =
      axis === 0
        ? new Range<R>(tile, left, middle - 1, 1, west, south, x, north)
        : new Range<R>(tile, left, middle - 1, 0, west, south, east, y);
    const high =
      axis === 0
        ? new Range<R>(tile, middle + 1, right, 1, x, south, east, north)
        : new Range<R>(tile, middle + 1, right, 0, west, y, east, north);
    frontier.push(vantage.bound(low.west, low.south, low.east, low.north), low);
    frontier.push(vantage.bound(high.west, high.south, high.east, high.north), high);
  }

  /** True when no visit answered false. */
  #within(west: number, south: number, east: number, north: number, visit: (row: R) => boolean): boolean {
    const meets = (w: number, s: number, e: number, n: number): boolean =>
      w <= east && e >= west && s <= north && n >= south;
    return this.#eachTile(meets, (tile) => {
      for (let i = 0; i < tile.waiting.length; i++) {
        const lon = tile.waitingLons[i] as number;
        const lat = tile.waitingLats[i] as number;
        if (lon < west || lon > east || lat < south || lat > north) continue;
        if (!visit(tile.waiting[i] as R)) return false;
      }
      if (tile.bush === null) return true;
      for (const place of tile.bush.range(west, south, east, north)) {
        const row = tile.rows[place];
        if (row !== undefined && !visit(row)) return false;
      }
      return true;
    });
  }

  /** The tiles whose box passes, and the boxes around it; false once `visit` did. */
  #eachTile(
    passes: (west: number, south: number, east: number, north: number) => boolean,
    visit: (tile: Tile<R>) => boolean,
  ): boolean {
    const walk = (level: number, group: number): boolean => {
      const boxes = this.#levels[level] as Float64Array;
      const end = Math.min(boxes.length >> 2, (group + 1) * GROUP);
      for (let box = group * GROUP; box < end; box++) {
        const at = box * 4;
        const west = boxes[at] as number;
        if (west === Infinity) continue;
        if (!passes(west, boxes[at + 1] as number, boxes[at + 2] as number, boxes[at + 3] as number)) continue;
        if (!(level === 0 ? visit(this.#tiles[box] as Tile<R>) : walk(level - 1, box))) return false;
      }
      return true;
    };
    return walk(this.#levels.length - 1, 0);
  }
}

function isRow<R extends Keyed>(sight: Region<R> | R): sight is R {
  return Array.isArray(sight);
}

function pointsOf<R extends Keyed>(tiles: readonly Tile<R>[]): { rows: R[]; lons: number[]; lats: number[] } {
  const rows: R[] = [];
  const lons: number[] = [];
  const lats: number[] = [];
  for (const tile of tiles) {
    tile.forEach((row, lon, lat) => {
      rows.push(row);
      lons.push(lon);
      lats.push(lat);
    });
  }
  return { rows, lons, lats };
}

/** The points of a tile's KDBush in the parts whose box passes; false once `visit` did. */
function walkRanges<R extends Keyed>(
  tile: Tile<R>,
  bush: KDBush,
  passes: (west: number, south: number, east: number, north: number) => boolean,
  visit: (row: R, lon: number, lat: number) => boolean,
): boolean {
  const { ids, coords } = bush;
  const point = (i: number): boolean => {
    const row = tile.rows[ids[i] as number];
    return row === undefined || visit(row, coords[2 * i] as number, coords[2 * i + 1] as number);
  };
  // As deep as a tile is divided: six levels.
  const walk = (left: number, right: number, axis: number, w: number, s: number, e: number, n: number): boolean => {
    if (!passes(w, s, e, n)) return true;
    if (right - left <= BUCKET) {
      for (let i = left; i <= right; i++) if (!point(i)) return false;
      return true;
    }
    const middle = (left + right) >> 1;
    if (!point(middle)) return false;
    const x = coords[2 * middle] as number;
    const y = coords[2 * middle + 1] as number;
    return axis === 0
      ? walk(left, middle - 1, 1, w, s, x, n) && walk(middle + 1, right, 1, x, s, e, n)
      : walk(left, middle - 1, 0, w, s, e, y) && walk(middle + 1, right, 0, w, y, e, n);
  };
  return walk(0, ids.length - 1, 0, tile.west, tile.south, tile.east, tile.north);
}
