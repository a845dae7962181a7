/**
 * Rows by place: which are nearest, which are in a box or within a distance.
 *
 * The points are cut into tiles of a few hundred along a Hilbert curve, by (place on the curve, id), so that a point's
 * tile is found by a binary search however many points share its place. Each tile keeps its points in a KDBush with a
 * short list beside it and rebuilds that alone, so a write never waits for more than a tile's build, 0.1 ms: one KDBush
 * over all points takes 100 ms at 100 000 of them, and a thread to build it in would need the points twice and a third
 * place for what is written meanwhile.
 *
 * Answers are those of a scan with `distance` and `withinBox`, row for row.
 */

import { assert } from "../base/assert.ts";
import { Boxes, meeting, reaching } from "./boxes.ts";
import { placeOnCurve } from "./curve.ts";
import type { Box } from "./distance.ts";
import { Frontier } from "./frontier.ts";
import { Range, walkRange, wholeOf } from "./range.ts";
import { TILE_POINTS, Tile } from "./tile.ts";
import { Vantage } from "./vantage.ts";

export { type Box, distance, withinBox } from "./distance.ts";

/** Degrees. */
export interface Place {
  readonly lon: number;
  readonly lat: number;
}

/** A row of any shape whose first cell is its id, a number. */
export type Keyed = readonly unknown[];

/** Some of the boxes of a level: those under box `index` of the level above. */
class Group {
  readonly level: number;
  readonly index: number;

  constructor(level: number, index: number) {
    this.level = level;
    this.index = index;
  }
}

type Region<R extends Keyed> = Group | Tile<R> | Range<R>;

export class GeoIndex<R extends Keyed> {
  /** Never empty; in the order of the curve, the first beginning before all places. */
  #tiles: Tile<R>[] = [new Tile<R>(-1, Number.NEGATIVE_INFINITY)];
  readonly #boxes = new Boxes();
  #size = 0;
  #changes = 0;
  /** Frontiers not in use: a walk may start another. */
  readonly #idle: Frontier<Region<R>, R>[] = [];

  constructor() {
    this.#boxes.raise(this.#tiles);
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
    else if (grown) this.#boxes.enclose(this.#tiles, index);
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
    const lons = new Float64Array(rows.length);
    const lats = new Float64Array(rows.length);
    for (let i = 0; i < rows.length; i++) {
      const { lon, lat } = places[i] as Place;
      assert(lon >= -180 && lon <= 180 && lat >= -90 && lat <= 90, "a point lies on the earth");
      lons[i] = lon;
      lats[i] = lat;
    }
    this.#changes++;
    this.#size = rows.length;
    this.#tiles = this.#cut(rows, lons, lats, Math.ceil(rows.length / (TILE_POINTS * 0.75)));
    const first = this.#tiles[0] as Tile<R>;
    first.along = -1;
    first.id = Number.NEGATIVE_INFINITY;
    this.#boxes.raise(this.#tiles);
  }

  /**
   * Every row by (metres, id) ascending, until `visit` answers false.
   *
   * Rows that fail `passes` are left out. It is asked of a row when its turn comes, but once it has refused a few it is
   * asked of every row that comes in sight, in no particular order and also of some that are never visited, so that what
   * a filter refuses need not be put in order first: with a filter that refuses all, the walk over 100 000 rows takes
   * 6 ms for 30. It is asked once of a row, and at most `most` times. Answers false if that was too few, and what was
   * visited by then is in order but not all; else true.
   */
  nearest(
    lon: number,
    lat: number,
    visit: (row: R, metres: number) => boolean,
    passes: ((row: R) => boolean) | null = null,
    most = Infinity,
  ): boolean {
    const changes = this.#changes;
    const walk = new NearestWalk<R>(new Vantage(lon, lat), this.#idle.pop() ?? new Frontier(), passes, most);
    const { frontier } = walk;
    this.#lookAt(walk, this.#boxes.top, 0);
    while (frontier.size > 0 && walk.left >= 0) {
      const { metres } = frontier;
      const sight = frontier.pop();
      if (isRow(sight)) {
        if (!walk.passesInTurn(sight)) continue;
        if (!visit(sight, metres)) break;
        assert(changes === this.#changes, "a geo index is not changed while it is walked");
      } else if (sight instanceof Range) {
        walk.lookInto(sight);
      } else if (sight instanceof Tile) {
        walk.lookAround(sight);
      } else {
        this.#lookAt(walk, sight.level, sight.index);
      }
    }
    frontier.clear();
    this.#idle.push(frontier);
    return walk.left >= 0;
  }

  /** The rows inside the box or on its edge, in no particular order, until `visit` answers false. */
  within(box: Box, visit: (row: R) => boolean): void {
    const changes = this.#changes;
    const each = (row: R): boolean => {
      if (!visit(row)) return false;
      assert(changes === this.#changes, "a geo index is not changed while it is walked");
      return true;
    };
    for (const [west, south, east, north] of partsOf(box)) {
      const goesOn = this.#boxes.walk(meeting(west, south, east, north), (index) => {
        const tile = this.#tiles[index] as Tile<R>;
        for (let i = 0; i < tile.waiting.length; i++) {
          const lon = tile.waitingLons[i] as number;
          const lat = tile.waitingLats[i] as number;
          if (lon < west || lon > east || lat < south || lat > north) continue;
          if (!each(tile.waiting[i] as R)) return false;
        }
        if (tile.bush === null) return true;
        for (const place of tile.bush.range(west, south, east, north)) {
          const row = tile.rows[place];
          if (row !== undefined && !each(row)) return false;
        }
        return true;
      });
      if (!goesOn) return;
    }
  }

  /** The rows at most `metres` away, in no particular order, until `visit` answers false. */
  radius(lon: number, lat: number, metres: number, visit: (row: R, metres: number) => boolean): void {
    const changes = this.#changes;
    const vantage = new Vantage(lon, lat);
    const each = (row: R, x: number, y: number): boolean => {
      const away = vantage.distance(x, y);
      if (!(away <= metres)) return true;
      if (!visit(row, away)) return false;
      assert(changes === this.#changes, "a geo index is not changed while it is walked");
      return true;
    };
    this.#boxes.walk(reaching(vantage, metres), (index) => {
      const tile = this.#tiles[index] as Tile<R>;
      for (let i = 0; i < tile.waiting.length; i++) {
        if (!each(tile.waiting[i] as R, tile.waitingLons[i] as number, tile.waitingLats[i] as number)) return false;
      }
      return tile.bush === null || walkRange(wholeOf(tile, tile.bush), vantage, metres, each);
    });
  }

  /**
   * How many rows `within` would visit at the most: all those of the tiles the box meets. Counting stops once it is past
   * `enough`.
   */
  countWithin(box: Box, enough = Infinity): number {
    let count = 0;
    for (const [west, south, east, north] of partsOf(box)) {
      this.#boxes.walk(meeting(west, south, east, north), (index) => {
        count += (this.#tiles[index] as Tile<R>).size;
        return count <= enough;
      });
    }
    return Math.min(count, this.#size);
  }

  /** As `countWithin`, for `radius`. */
  countRadius(lon: number, lat: number, metres: number, enough = Infinity): number {
    let count = 0;
    this.#boxes.walk(reaching(new Vantage(lon, lat), metres), (index) => {
      count += (this.#tiles[index] as Tile<R>).size;
      return count <= enough;
    });
    return count;
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
      assert(tile.rows.length <= TILE_POINTS, "geo index: a tile too full");
      assert(!tile.restless, "geo index: a tile that should have settled");
      tile.forEach((row, lon, lat) => {
        const id = row[0] as number;
        assert(!seen.has(id), `geo index: row ${id} twice`);
        seen.add(id);
        assert(this.#tileOf(placeOnCurve(lon, lat), id) === index, `geo index: row ${id} in another's tile`);
      });
    }
    assert(size === this.#size, "geo index: its size");
    this.#boxes.check(this.#tiles);
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
      this.#boxes.enclose(this.#tiles, index);
      return;
    }
    const parts = this.#cut(rows, lons, lats, 2);
    const first = parts[0] as Tile<R>;
    first.along = tile.along;
    first.id = tile.id;
    this.#tiles.splice(index, 1, ...parts);
    this.#boxes.raise(this.#tiles);
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
      this.#boxes.raise(this.#tiles);
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

  /** Brings the boxes of a level under one box of the level above, or the tiles, in sight. */
  #lookAt({ frontier, vantage }: NearestWalk<R>, level: number, group: number): void {
    this.#boxes.look(level, group, vantage, (metres, box) => {
      frontier.push(metres, level === 0 ? (this.#tiles[box] as Tile<R>) : new Group(level - 1, box));
    });
  }
}

/** Rows refused in their turn before rows are tested as soon as they come in sight. */
const PATIENCE = 16;

/** A nearest walk under way. */
class NearestWalk<R extends Keyed> {
  readonly vantage: Vantage;
  readonly frontier: Frontier<Region<R>, R>;
  readonly #passes: ((row: R) => boolean) | null;
  /** How many rows may still be tested; -1 when one more was to be. */
  left: number;
  #refused = 0;
  readonly #see: (row: R, lon: number, lat: number) => boolean;

  constructor(vantage: Vantage, frontier: Frontier<Region<R>, R>, passes: ((row: R) => boolean) | null, most: number) {
    this.vantage = vantage;
    this.frontier = frontier;
    this.#passes = passes;
    this.left = most;
    this.#see = (row, lon, lat) => {
      if (this.#refused >= PATIENCE && !this.#test(row)) return this.left >= 0;
      frontier.push(vantage.distance(lon, lat), row);
      return true;
    };
  }

  passesInTurn(row: R): boolean {
    if (this.#passes === null || this.#refused >= PATIENCE || this.#test(row)) return true;
    this.#refused++;
    if (this.#refused === PATIENCE) this.frontier.keep((sight) => !isRow(sight) || this.#test(sight));
    return false;
  }

  #test(row: R): boolean {
    if (this.left <= 0) {
      this.left = -1;
      return false;
    }
    this.left--;
    return (this.#passes as (row: R) => boolean)(row);
  }

  lookAround(tile: Tile<R>): void {
    const { waiting, waitingLons, waitingLats, bush } = tile;
    for (let i = 0; i < waiting.length; i++) {
      if (!this.#see(waiting[i] as R, waitingLons[i] as number, waitingLats[i] as number)) return;
    }
    if (bush !== null) this.lookInto(wholeOf(tile, bush));
  }

  lookInto(range: Range<R>): void {
    if (!range.own(this.#see) || !range.divided) return;
    const [low, high] = range.halves();
    this.frontier.push(low.bound(this.vantage), low);
    this.frontier.push(high.bound(this.vantage), high);
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

/** A box that crosses the antimeridian as the two it is made of. */
function partsOf([west, south, east, north]: Box): Box[] {
  if (west <= east) return [[west, south, east, north]];
  return [
    [west, south, Infinity, north],
    [-Infinity, south, east, north],
  ];
}
