/**
 * A place looked at from: how far is a point, and how near could anything in a box of degrees be?
 *
 * A walk leaves a box out when its bound is beyond what is asked, so a bound above a distance would lose rows, and one
 * below only costs time. The haversine of a point is a sum of sin²(dlat/2) and cos(lat1) cos(lat2) sin²(dlon/2); over a
 * box each factor has a least value of its own (the differences are least at the box's nearer edge, the cosine at the
 * latitude further from the equator), and what they give together is below every point's. In a small box it is hardly
 * below; and it holds at the poles, where the cosine is 0, and over the antimeridian, the difference being taken the
 * shorter way round.
 */

import { assert } from "../base/assert.ts";
import { EARTH_RADIUS_METRES } from "./distance.ts";

export const RADIANS = Math.PI / 180;

/**
 * What rounding can do to a haversine, here and in a distance together: about 4 parts in 10^15 at worst, where the
 * longitudes differ by nearly a full turn. It makes the bound a metre's neighbourhood zero, and is nothing further out.
 */
const ROUNDING = 1e-14;
/** And to what comes of it. */
const SHORTEN = 1 - 1e-12;

export class Vantage {
  readonly #lon: number;
  readonly #lat: number;
  readonly #phi: number;
  readonly #cosine: number;

  /** Degrees. */
  constructor(lon: number, lat: number) {
    assert(lon >= -180 && lon <= 180 && lat >= -90 && lat <= 90, "a vantage lies on the earth");
    this.#lon = lon;
    this.#lat = lat;
    this.#phi = lat * RADIANS;
    this.#cosine = Math.cos(this.#phi);
  }

  /** Metres; to the last bit what `distance` gives, without its work on this end. */
  distance(lon: number, lat: number): number {
    const phi = lat * RADIANS;
    const north = Math.sin((phi - this.#phi) / 2);
    const east = Math.sin(((lon - this.#lon) * RADIANS) / 2);
    const h = north * north + this.#cosine * Math.cos(phi) * (east * east);
    return 2 * EARTH_RADIUS_METRES * Math.asin(Math.min(1, Math.sqrt(h)));
  }

  /**
   * Metres; no point of the box is nearer. The box does not cross the antimeridian; `leastCosine` is the least cosine of
   * its latitudes, that of its southern or of its northern edge.
   */
  bound(west: number, south: number, east: number, north: number, leastCosine: number): number {
    const lat = this.#lat;
    const up = Math.max(south - lat, lat - north, 0);
    let haversine = 0;
    if (up > 0) {
      const sine = Math.sin((up * RADIANS) / 2);
      haversine = sine * sine;
    }
    const lon = this.#lon;
    if (lon < west || lon > east) {
      const toWest = Math.abs(west - lon);
      const toEast = Math.abs(east - lon);
      const aside = Math.min(toWest, 360 - toWest, toEast, 360 - toEast);
      const sine = Math.sin((aside * RADIANS) / 2);
      haversine += this.#cosine * leastCosine * (sine * sine);
    }
    // The arc is no shorter than its chord, which spares an arcsine.
    return haversine > ROUNDING ? 2 * EARTH_RADIUS_METRES * Math.sqrt(haversine - ROUNDING) * SHORTEN : 0;
  }
}
