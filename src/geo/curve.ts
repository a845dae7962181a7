/**
 * The Hilbert curve: places as numbers, near numbers being near places. It only decides which points are kept together,
 * never an answer.
 */

/** Bits of each coordinate: two of them fill the whole numbers a double holds, cells of about half a metre. */
const BITS = 26;
const CELLS = 2 ** BITS;

/** How far along the curve a place in degrees lies: a whole number from 0 to below 2^52. */
export function placeOnCurve(lon: number, lat: number): number {
  let x = Math.min(CELLS - 1, Math.floor(((lon + 180) / 360) * CELLS));
  let y = Math.min(CELLS - 1, Math.floor(((lat + 90) / 180) * CELLS));
  let along = 0;
  for (let side = CELLS >>> 1; side > 0; side >>>= 1) {
    const east = (x & side) === 0 ? 0 : 1;
    const north = (y & side) === 0 ? 0 : 1;
    along = along * 4 + ((3 * east) ^ north);
    // A quadrant's curve is the whole one, turned so that the ends meet.
    if (north === 0) {
      if (east === 1) {
        x = CELLS - 1 - x;
        y = CELLS - 1 - y;
      }
      const turned = x;
      x = y;
      y = turned;
    }
  }
  return along;
}
