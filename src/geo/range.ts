/**
 * A part of a tile's KDBush: positions `left` to `right` of its arrays, and the box they are known to lie in. A KDBush
 * is a sorted list read as a tree: the middle of a range divides the rest of it, by longitude and latitude in turn, and
 * a range of no more than a bucket is not divided.
 */

import type KDBush from "kdbush";
import { BUCKET, type Tile } from "./tile.ts";
import { RADIANS, type Vantage } from "./vantage.ts";

export class Range<R extends readonly unknown[]> {
  readonly tile: Tile<R>;
  readonly left: number;
  readonly right: number;
  /** What divides it: 0 longitude, 1 latitude. */
  readonly axis: number;
  readonly west: number;
  readonly south: number;
  readonly east: number;
  readonly north: number;
  /** Cosines of the southern and northern edge. */
  readonly southCosine: number;
  readonly northCosine: number;

  constructor(
    tile: Tile<R>,
    left: number,
    right: number,
    axis: number,
    west: number,
    south: number,
    east: number,
    north: number,
    southCosine: number,
    northCosine: number,
  ) {
    this.tile = tile;
    this.left = left;
    this.right = right;
    this.axis = axis;
    this.west = west;
    this.south = south;
    this.east = east;
    this.north = north;
    this.southCosine = southCosine;
    this.northCosine = northCosine;
  }

  /** Metres; nothing in the range is nearer. */
  bound(vantage: Vantage): number {
    const leastCosine = Math.min(this.southCosine, this.northCosine);
    return vantage.bound(this.west, this.south, this.east, this.north, leastCosine);
  }

  /** The rows that are in no half: all of a range that is not divided, else the middle. False once `visit` was. */
  own(visit: (row: R, lon: number, lat: number) => boolean): boolean {
    const { left, right } = this;
    const { ids, coords } = this.tile.bush as KDBush;
    const { rows } = this.tile;
    const from = this.divided ? (left + right) >> 1 : left;
    const to = this.divided ? from : right;
    for (let i = from; i <= to; i++) {
      const row = rows[ids[i] as number];
      if (row !== undefined && !visit(row, coords[2 * i] as number, coords[2 * i + 1] as number)) return false;
    }
    return true;
  }

  get divided(): boolean {
    return this.right - this.left > BUCKET;
  }

  halves(): [low: Range<R>, high: Range<R>] {
    const { tile, left, right, axis, west, south, east, north, southCosine, northCosine } = this;
    const { coords } = tile.bush as KDBush;
    const middle = (left + right) >> 1;
    if (axis === 0) {
      const lon = coords[2 * middle] as number;
      return [
        new Range<R>(tile, left, middle - 1, 1, west, south, lon, north, southCosine, northCosine),
        new Range<R>(tile, middle + 1, right, 1, lon, south, east, north, southCosine, northCosine),
      ];
    }
    const lat = coords[2 * middle + 1] as number;
    const cosine = Math.cos(lat * RADIANS);
    return [
      new Range<R>(tile, left, middle - 1, 0, west, south, east, lat, southCosine, cosine),
      new Range<R>(tile, middle + 1, right, 0, west, lat, east, north, cosine, northCosine),
    ];
  }
}

/** All of a tile's KDBush. */
export function wholeOf<R extends readonly unknown[]>(tile: Tile<R>, bush: KDBush): Range<R> {
  const { west, south, east, north } = tile;
  const last = bush.ids.length - 1;
  return new Range<R>(tile, 0, last, 0, west, south, east, north, Math.cos(south * RADIANS), Math.cos(north * RADIANS));
}

/** The rows of a range in the parts within `metres`; false once `visit` was. As deep as a tile is divided. */
export function walkRange<R extends readonly unknown[]>(
  range: Range<R>,
  vantage: Vantage,
  metres: number,
  visit: (row: R, lon: number, lat: number) => boolean,
): boolean {
  if (!(range.bound(vantage) <= metres)) return true;
  if (!range.own(visit)) return false;
  if (!range.divided) return true;
  const [low, high] = range.halves();
  return walkRange(low, vantage, metres, visit) && walkRange(high, vantage, metres, visit);
}
