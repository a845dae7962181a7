/**
 * A place looked at from: how near could anything in a box of degrees be? A walk leaves a box out when its bound is
 * beyond what is asked, so a bound above the true distance would lose rows; one below it only costs time.
 *
 * On a meridian the cosine of the distance from the place is A sin(phi) + B cos(phi) in the latitude phi, with A the
 * sine of the place's latitude and B its cosine times that of the difference in longitude. So the nearest point of a
 * meridian's arc is where phi = atan2(A, B), or the arc's end next to it; and where B is negative, which is beyond a
 * quarter turn, one of the two ends. At any latitude the nearest longitude of a box is its nearer side, so the nearest
 * point of a box that the place is not above or below of lies on that side's arc, poles and antimeridian included.
 */

import { EARTH_RADIUS_METRES } from "./distance.ts";

const RADIANS = Math.PI / 180;

/**
 * What rounding may do to a haversine, here and in `distance` together; about 3 parts in 10^15 at worst, which is where
 * the longitudes differ by nearly a full turn. Half a metre at the far side of the earth, nothing anywhere near.
 */
const ROUNDING = 1e-14;

export class Vantage {
  readonly #lon: number;
  readonly #lat: number;
  readonly #phi: number;
  readonly #sin: number;
  readonly #cos: number;

  /** Degrees. */
  constructor(lon: number, lat: number) {
    this.#lon = lon - 360 * Math.round(lon / 360);
    this.#lat = lat;
    this.#phi = lat * RADIANS;
    this.#sin = Math.sin(this.#phi);
    this.#cos = Math.cos(this.#phi);
  }

  /** Metres; no point of the box is nearer. The box does not cross the antimeridian. */
  bound(west: number, south: number, east: number, north: number): number {
    const lon = this.#lon;
    let haversine: number;
    if (lon >= west && lon <= east) {
      if (this.#lat >= south && this.#lat <= north) return 0;
      const sine = Math.sin(((this.#lat < south ? south : north) * RADIANS - this.#phi) / 2);
      haversine = sine * sine;
    } else {
      const toWest = Math.abs(west - lon);
      const toEast = Math.abs(east - lon);
      const turn = Math.min(toWest, 360 - toWest, toEast, 360 - toEast) * RADIANS;
      const low = south * RADIANS;
      const high = north * RADIANS;
      const half = Math.sin(turn / 2);
      const cosine = this.#cos * Math.cos(turn);
      if (cosine > 0) {
        const nearest = Math.atan2(this.#sin, cosine);
        haversine = this.#haversine(Math.max(low, Math.min(nearest, high)), half);
      } else {
        haversine = Math.min(this.#haversine(low, half), this.#haversine(high, half));
      }
    }
    if (!(haversine > ROUNDING)) return 0;
    return 2 * EARTH_RADIUS_METRES * Math.asin(Math.min(1, Math.sqrt(haversine - ROUNDING))) * (1 - 1e-12);
  }

  #haversine(phi: number, half: number): number {
    const sine = Math.sin((phi - this.#phi) / 2);
    return sine * sine + this.#cos * Math.cos(phi) * half * half;
  }
}
