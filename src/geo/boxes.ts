/**
 * Boxes around the tiles of a geo index: each tile's own, around every eight of those another, and so on up to at most
 * eight. A level is a flat list of numbers, box after box, so that a look at eight of them touches little memory; all
 * are made anew when the list of tiles changes, which takes microseconds at a million points.
 */

import { assert } from "../base/assert.ts";
import { RADIANS, type Vantage } from "./vantage.ts";

/** Degrees; nothing at all when west is Infinity. */
export interface Bounded {
  readonly west: number;
  readonly south: number;
  readonly east: number;
  readonly north: number;
}

/** Boxes under one box. */
const GROUP = 8;
/** Numbers of a box: west, south, east, north, and the least cosine of a latitude in it. */
const WIDTH = 5;

/** Whether to look into the box whose numbers start at `at`. */
export type Passes = (level: Float64Array, at: number) => boolean;

export class Boxes {
  /** Level 0 has the tiles' boxes, the last at most eight. */
  #levels: Float64Array[] = [];

  /** The level of the uppermost boxes, which are all under group 0. */
  get top(): number {
    return this.#levels.length - 1;
  }

  /** Makes all boxes anew. */
  raise(tiles: readonly Bounded[]): void {
    this.#levels = [];
    let count = tiles.length;
    for (;;) {
      this.#levels.push(new Float64Array(count * WIDTH));
      for (let box = 0; box < count; box++) this.#fit(tiles, this.top, box);
      if (count <= GROUP) return;
      count = Math.ceil(count / GROUP);
    }
  }

  /** Makes the boxes around one tile anew. */
  enclose(tiles: readonly Bounded[], index: number): void {
    let at = index;
    for (let level = 0; level <= this.top; level++) {
      this.#fit(tiles, level, at);
      at = Math.floor(at / GROUP);
    }
  }

  /** The boxes of a level that are under box `group` of the level above, each with its bound in metres. */
  look(level: number, group: number, vantage: Vantage, see: (metres: number, box: number) => void): void {
    const boxes = this.#levels[level] as Float64Array;
    const end = Math.min(boxes.length, (group + 1) * GROUP * WIDTH);
    for (let at = group * GROUP * WIDTH; at < end; at += WIDTH) see(boundAt(vantage, boxes, at), at / WIDTH);
  }

  /** The tiles whose box passes, and all the boxes around it; false once `visit` answered so. */
  walk(passes: Passes, visit: (tile: number) => boolean, level = this.top, group = 0): boolean {
    const boxes = this.#levels[level] as Float64Array;
    const end = Math.min(boxes.length, (group + 1) * GROUP * WIDTH);
    for (let at = group * GROUP * WIDTH; at < end; at += WIDTH) {
      if (!passes(boxes, at)) continue;
      const box = at / WIDTH;
      if (!(level === 0 ? visit(box) : this.walk(passes, visit, level - 1, box))) return false;
    }
    return true;
  }

  /** Throws unless the boxes around each tile hold it. */
  check(tiles: readonly Bounded[]): void {
    assert(this.#levels[0]?.length === tiles.length * WIDTH, "boxes: one for each tile");
    for (const [index, tile] of tiles.entries()) {
      let at = index;
      for (const level of this.#levels) {
        const [west, south, east, north, cosine] = level.subarray(at * WIDTH, (at + 1) * WIDTH);
        assert((west as number) <= tile.west && (south as number) <= tile.south, "boxes: one too small");
        assert((east as number) >= tile.east && (north as number) >= tile.north, "boxes: one too small");
        const least = Math.min(Math.cos(tile.south * RADIANS), Math.cos(tile.north * RADIANS));
        assert(tile.west === Infinity || (cosine as number) <= least, "boxes: a cosine too great");
        at = Math.floor(at / GROUP);
      }
      assert(at === 0, "boxes: a tile under no box of the top");
    }
  }

  #fit(tiles: readonly Bounded[], level: number, box: number): void {
    let west = Infinity;
    let south = Infinity;
    let east = -Infinity;
    let north = -Infinity;
    let leastCosine = Infinity;
    if (level === 0) {
      ({ west, south, east, north } = tiles[box] as Bounded);
      leastCosine = Math.min(Math.cos(south * RADIANS), Math.cos(north * RADIANS));
    } else {
      const below = this.#levels[level - 1] as Float64Array;
      const end = Math.min(below.length, (box + 1) * GROUP * WIDTH);
      for (let i = box * GROUP * WIDTH; i < end; i += WIDTH) {
        west = Math.min(west, below[i] as number);
        south = Math.min(south, below[i + 1] as number);
        east = Math.max(east, below[i + 2] as number);
        north = Math.max(north, below[i + 3] as number);
        leastCosine = Math.min(leastCosine, below[i + 4] as number);
      }
    }
    const boxes = this.#levels[level] as Float64Array;
    boxes[box * WIDTH] = west;
    boxes[box * WIDTH + 1] = south;
    boxes[box * WIDTH + 2] = east;
    boxes[box * WIDTH + 3] = north;
    boxes[box * WIDTH + 4] = leastCosine;
  }
}

/** Boxes that share a place with this one; it does not cross the antimeridian. */
export function meeting(west: number, south: number, east: number, north: number): Passes {
  return (level, at) =>
    (level[at] as number) <= east &&
    (level[at + 2] as number) >= west &&
    (level[at + 1] as number) <= north &&
    (level[at + 3] as number) >= south;
}

/** Boxes that may hold a point at most `metres` away. */
export function reaching(vantage: Vantage, metres: number): Passes {
  return (level, at) => boundAt(vantage, level, at) <= metres;
}

function boundAt(vantage: Vantage, level: Float64Array, at: number): number {
  const west = level[at] as number;
  if (west === Infinity) return Infinity;
  const south = level[at + 1] as number;
  const east = level[at + 2] as number;
  const north = level[at + 3] as number;
  return vantage.bound(west, south, east, north, level[at + 4] as number);
}
