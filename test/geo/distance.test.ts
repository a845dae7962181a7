import { describe, expect, test } from "bun:test";
import { placeOnCurve } from "../../src/geo/curve.ts";
import { type Box, distance, EARTH_RADIUS_METRES, withinBox } from "../../src/geo/distance.ts";
import { RADIANS, Vantage } from "../../src/geo/vantage.ts";
import { type Random, withRandom } from "../store/random.ts";
import { LAYOUTS, vantageOf } from "./layouts.ts";

/** The angle between two unit vectors: another way to the same number. */
function angleMetres(lon1: number, lat1: number, lon2: number, lat2: number): number {
  const vector = (lon: number, lat: number): [number, number, number] => {
    const [lambda, phi] = [(lon * Math.PI) / 180, (lat * Math.PI) / 180];
    return [Math.cos(phi) * Math.cos(lambda), Math.cos(phi) * Math.sin(lambda), Math.sin(phi)];
  };
  const [ax, ay, az] = vector(lon1, lat1);
  const [bx, by, bz] = vector(lon2, lat2);
  const across = Math.hypot(ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx);
  return EARTH_RADIUS_METRES * Math.atan2(across, ax * bx + ay * by + az * bz);
}

describe("distance", () => {
  test("the reference pair, to the last digit, from either end", () => {
    expect(distance(13.361389, 38.115556, 15.087269, 37.502669)).toBe(166274.2577914073);
    expect(distance(15.087269, 37.502669, 13.361389, 38.115556)).toBe(166274.2577914073);
  });

  test("no way at all, half way round, and from pole to pole", () => {
    expect(distance(29.01, 41.04, 29.01, 41.04)).toBe(0);
    const half = Math.PI * EARTH_RADIUS_METRES;
    expect(distance(0, 0, 180, 0)).toBeCloseTo(half, 0);
    expect(distance(30, 90, -110, -90)).toBeCloseTo(half, 0);
    expect(distance(10, 20, -170, -20)).toBeCloseTo(half, 0);
  });

  test("the antimeridian and the poles are places like any other", () => {
    expect(distance(180, 10, -180, 10)).toBeLessThan(1e-6);
    expect(distance(179.999, 0, -179.999, 0)).toBeCloseTo(distance(-0.001, 0, 0.001, 0), 5);
    expect(distance(-77, 90, 145, 90)).toBeLessThan(1e-6);
  });

  test("agrees with the angle between vectors, is symmetric, and a vantage gives the same digits", () => {
    withRandom((random) => {
      for (const layout of Object.values(LAYOUTS)) {
        for (let i = 0; i < 500; i++) {
          const a = layout(random);
          const b = vantageOf(random, layout);
          const metres = distance(a.lon, a.lat, b.lon, b.lat);
          // Near the far side of the earth an arcsine near 1 loses half the digits.
          expect(Math.abs(metres - angleMetres(a.lon, a.lat, b.lon, b.lat))).toBeLessThan(0.5);
          expect(distance(b.lon, b.lat, a.lon, a.lat)).toBe(metres);
          expect(new Vantage(a.lon, a.lat).distance(b.lon, b.lat)).toBe(metres);
        }
      }
    });
  });
});

describe("a box", () => {
  const box: Box = [10, -5, 20, 5];
  const across: Box = [170, -5, -170, 5];

  test("holds its edges and nothing beyond them", () => {
    for (const [lon, lat] of [
      [10, -5],
      [20, 5],
      [15, 0],
    ] as const) {
      expect(withinBox(lon, lat, box)).toBe(true);
    }
    for (const [lon, lat] of [
      [9.999, 0],
      [20.001, 0],
      [15, 5.001],
      [15, -5.001],
    ] as const) {
      expect(withinBox(lon, lat, box)).toBe(false);
    }
  });

  test("with its west east of its east it crosses the antimeridian", () => {
    for (const lon of [170, 175, 180, -180, -175, -170]) expect(withinBox(lon, 0, across)).toBe(true);
    for (const lon of [169.999, 0, -169.999]) expect(withinBox(lon, 0, across)).toBe(false);
    expect(withinBox(180, 6, across)).toBe(false);
  });
});

function randomBox(random: Random, a: { lon: number; lat: number }, b: { lon: number; lat: number }): Box {
  if (random.chance(0.5)) {
    return [Math.min(a.lon, b.lon), Math.min(a.lat, b.lat), Math.max(a.lon, b.lon), Math.max(a.lat, b.lat)];
  }
  const side = random.pick([0, 1e-9, 1e-4, 0.1, 10]);
  return [a.lon, a.lat, Math.min(180, a.lon + side * random.next()), Math.min(90, a.lat + side * random.next())];
}

function boundOf(from: { lon: number; lat: number }, [west, south, east, north]: Box): number {
  const leastCosine = Math.min(Math.cos(south * RADIANS), Math.cos(north * RADIANS));
  return new Vantage(from.lon, from.lat).bound(west, south, east, north, leastCosine);
}

describe("the bound of a box", () => {
  test("is above the distance of no point of it", () => {
    withRandom((random) => {
      for (const layout of Object.values(LAYOUTS)) {
        for (let i = 0; i < 300; i++) {
          const box = randomBox(random, layout(random), layout(random));
          const [west, south, east, north] = box;
          const from = vantageOf(random, layout);
          const bound = boundOf(from, box);
          const lons = [west, east, Math.max(west, Math.min(from.lon, east)), west + random.next() * (east - west)];
          const lats = [
            south,
            north,
            Math.max(south, Math.min(from.lat, north)),
            south + random.next() * (north - south),
          ];
          for (const lon of lons) {
            for (const lat of lats) expect(bound).toBeLessThanOrEqual(distance(from.lon, from.lat, lon, lat));
          }
        }
      }
    });
  });

  test("is close to the nearest point's distance when the box is small", () => {
    withRandom((random) => {
      for (let i = 0; i < 500; i++) {
        const from = { lon: random.next() * 358 - 179, lat: random.next() * 160 - 80 };
        const west = from.lon + random.next() - 0.5;
        const south = from.lat + random.next() - 0.5;
        const box: Box = [west, south, west + 0.01, south + 0.01];
        const nearest = distance(
          from.lon,
          from.lat,
          Math.max(west, Math.min(from.lon, west + 0.01)),
          Math.max(south, Math.min(from.lat, south + 0.01)),
        );
        expect(boundOf(from, box)).toBeGreaterThanOrEqual(nearest * 0.99 - 0.1);
      }
    });
  });

  test("goes the short way over the antimeridian", () => {
    const metres = boundOf({ lon: 179.9, lat: 10 }, [-179.9, 9.99, -179.8, 10.01]);
    expect(metres).toBeGreaterThan(21_000);
    expect(metres).toBeLessThan(distance(179.9, 10, -179.9, 10));
    expect(boundOf({ lon: -179.9, lat: 10 }, [179.8, 9.99, 179.9, 10.01])).toBeCloseTo(metres, 3);
  });
});

describe("the curve", () => {
  test("passes from cell to neighbouring cell and through each of a grid once", () => {
    const side = 64;
    const cells: { x: number; y: number; along: number }[] = [];
    for (let x = 0; x < side; x++) {
      for (let y = 0; y < side; y++) {
        const along = placeOnCurve(((x + 0.5) / side) * 360 - 180, ((y + 0.5) / side) * 180 - 90);
        expect(Number.isSafeInteger(along) && along >= 0 && along < 2 ** 52).toBe(true);
        cells.push({ x, y, along: Math.floor(along / (2 ** 52 / side ** 2)) });
      }
    }
    cells.sort((a, b) => a.along - b.along);
    expect(cells.map((cell) => cell.along)).toEqual(cells.map((_, i) => i));
    for (let i = 1; i < cells.length; i++) {
      const [a, b] = [cells[i - 1], cells[i]] as [(typeof cells)[0], (typeof cells)[0]];
      expect(Math.abs(a.x - b.x) + Math.abs(a.y - b.y)).toBe(1);
    }
  });

  test("takes every corner of the earth, and tells half metres apart", () => {
    for (const lon of [-180, 180, 0, -0]) {
      for (const lat of [-90, 90, 0, -0]) {
        const along = placeOnCurve(lon, lat);
        expect(Number.isSafeInteger(along) && along >= 0 && along < 2 ** 52).toBe(true);
      }
    }
    expect(placeOnCurve(-0, -0)).toBe(placeOnCurve(0, 0));
    expect(placeOnCurve(29.01, 41.04)).not.toBe(placeOnCurve(29.01001, 41.04));
  });
});
