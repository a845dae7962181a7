/**
 * Distance and boxes on the sphere. Every answer about places, indexed or not, comes from these two functions, so an
 * index can only agree with a scan.
 */

/** Metres. The radius is part of the language: distances are compared and answered digit for digit. */
export const EARTH_RADIUS_METRES = 6_372_797.560856;

const RADIANS = Math.PI / 180;

/**
 * Great-circle distance in metres between two places in degrees, by the haversine formula. Symmetric to the last bit:
 * the operands only ever meet in sums, products and squares.
 *
 * Latitudes are turned into radians before they are subtracted and longitudes after: that order of rounding is the one
 * that gives the reference pair of the language to its last digit.
 */
export function distance(lon1: number, lat1: number, lon2: number, lat2: number): number {
  const phi1 = lat1 * RADIANS;
  const phi2 = lat2 * RADIANS;
  const north = Math.sin((phi2 - phi1) / 2);
  const east = Math.sin(((lon2 - lon1) * RADIANS) / 2);
  const h = north * north + Math.cos(phi1) * Math.cos(phi2) * (east * east);
  return 2 * EARTH_RADIUS_METRES * Math.asin(Math.min(1, Math.sqrt(h)));
}

/** West, south, east, north in degrees; west > east crosses the antimeridian. */
export type Box = readonly [west: number, south: number, east: number, north: number];

/** Inside the box or on its edge. */
export function withinBox(lon: number, lat: number, [west, south, east, north]: Box): boolean {
  if (lat < south || lat > north) return false;
  return west <= east ? lon >= west && lon <= east : lon >= west || lon <= east;
}
