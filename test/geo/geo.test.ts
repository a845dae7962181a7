import { describe, expect, test } from "bun:test";
import { AssertionFailure } from "../../src/base/assert.ts";
import { type Box, distance, GeoIndex, type Place, withinBox } from "../../src/geo/geo.ts";
import { TILE_POINTS } from "../../src/geo/tile.ts";
import { Random, withRandom } from "../store/random.ts";
import { LAYOUTS, type Layout, vantageOf } from "./layouts.ts";

/** As the store's: the point is a cell that is replaced, not changed. */
type PlacedRow = [id: number, point: Place];

/** All rows by (metres, id): what a nearest walk must give. */
function byDistance(rows: readonly PlacedRow[], from: Place): { row: PlacedRow; metres: number }[] {
  return rows
    .map((row) => ({ row, metres: distance(row[1].lon, row[1].lat, from.lon, from.lat) }))
    .sort((a, b) => a.metres - b.metres || a.row[0] - b.row[0]);
}

const idsOf = (rows: readonly PlacedRow[]): number[] => rows.map((row) => row[0]).sort((a, b) => a - b);

function compareNearest(random: Random, index: GeoIndex<PlacedRow>, rows: readonly PlacedRow[], from: Place): void {
  const share = random.pick([0, 0.02, 0.5, 1]);
  const passes = random.chance(0.3) ? null : (row: PlacedRow): boolean => (row[0] * 7919) % 1000 < share * 1000;
  const limit = random.pick([1, 10, Infinity]);
  const expected = byDistance(passes === null ? rows : rows.filter(passes), from).slice(0, limit);
  const asked = new Set<number>();
  const found: { row: PlacedRow; metres: number }[] = [];
  const whole = index.nearest(
    from.lon,
    from.lat,
    (row, metres) => {
      found.push({ row, metres });
      return found.length < limit;
    },
    passes &&
      ((row) => {
        expect(asked.has(row[0])).toBe(false);
        asked.add(row[0]);
        return passes(row);
      }),
  );
  expect(whole).toBe(true);
  expect(found.length).toBe(expected.length);
  for (const [i, { row, metres }] of expected.entries()) {
    expect(found[i]?.row).toBe(row);
    expect(found[i]?.metres).toBe(metres);
  }
}

function compareBox(index: GeoIndex<PlacedRow>, rows: readonly PlacedRow[], box: Box): void {
  const expected = idsOf(rows.filter((row) => withinBox(row[1].lon, row[1].lat, box)));
  const found: PlacedRow[] = [];
  index.within(box, (row) => found.push(row) > 0);
  expect(idsOf(found)).toEqual(expected);
  expect(index.countWithin(box)).toBeGreaterThanOrEqual(expected.length);
  expect(index.countWithin(box)).toBeLessThanOrEqual(rows.length);
  if (expected.length > 2) {
    let left = 2;
    index.within(box, () => --left > 0);
    expect(left).toBe(0);
  }
}

function compareRadius(index: GeoIndex<PlacedRow>, rows: readonly PlacedRow[], from: Place, reach: number): void {
  const expected = byDistance(rows, from).filter(({ metres }) => metres <= reach);
  const found: PlacedRow[] = [];
  index.radius(from.lon, from.lat, reach, (row, metres) => {
    expect(metres).toBe(distance(from.lon, from.lat, row[1].lon, row[1].lat));
    return found.push(row) > 0;
  });
  expect(idsOf(found)).toEqual(idsOf(expected.map(({ row }) => row)));
  expect(index.countRadius(from.lon, from.lat, reach)).toBeGreaterThanOrEqual(expected.length);
  if (expected.length > 2) {
    let left = 2;
    index.radius(from.lon, from.lat, reach, () => --left > 0);
    expect(left).toBe(0);
  }
}

function compare(random: Random, index: GeoIndex<PlacedRow>, rows: readonly PlacedRow[], layout: Layout): void {
  expect(index.size).toBe(rows.length);
  const from = vantageOf(random, layout);
  compareNearest(random, index, rows, from);
  const [a, b] = [layout(random), random.chance(0.5) ? layout(random) : vantageOf(random, layout)];
  compareBox(index, rows, [a.lon, Math.min(a.lat, b.lat), b.lon, Math.max(a.lat, b.lat)]);
  const row = rows.length > 0 ? random.pick(rows) : undefined;
  // A radius that ends on a point is where rounding would show.
  const reach = row === undefined ? 1e6 : distance(from.lon, from.lat, row[1].lon, row[1].lat);
  compareRadius(index, rows, from, random.pick([reach, reach, reach * (1 - 1e-15), 0, -1, random.next() * 2.1e7]));
}

const { FENEC_LONG } = process.env;
const LONG = FENEC_LONG === undefined ? 1 : 30;

describe("random histories against all rows looked at", () => {
  for (const [name, layout] of Object.entries(LAYOUTS)) {
    test(
      name,
      () => {
        withRandom((random) => {
          for (let round = 0; round < LONG; round++) {
            const index = new GeoIndex<PlacedRow>();
            const rows: PlacedRow[] = [];
            let nextId = 0;
            if (random.chance(0.5)) {
              const count = random.pick([1, 30, 500, 1500]);
              for (let i = 0; i < count; i++) rows.push([nextId++, layout(random)]);
              rows.sort(() => random.next() - 0.5);
              index.load(
                rows,
                rows.map((row) => row[1]),
              );
              index.check();
              compare(random, index, rows, layout);
            }
            let growing = true;
            for (let step = 0; step < 8_000; step++) {
              if (rows.length > 2_500) growing = false;
              else if (rows.length === 0) growing = true;
              else if (random.chance(0.0005)) growing = !growing;
              const at = random.below(rows.length);
              if (rows.length > 0 && random.chance(0.2)) {
                const row = rows[at] as PlacedRow;
                expect(index.remove(row, row[1])).toBe(true);
                row[1] = layout(random);
                index.insert(row, row[1]);
              } else if (rows.length === 0 || random.chance(growing ? 0.8 : 0.2)) {
                const row: PlacedRow = [nextId++, layout(random)];
                index.insert(row, row[1]);
                rows.push(row);
              } else {
                const row = rows[at] as PlacedRow;
                rows[at] = rows.at(-1) as PlacedRow;
                rows.pop();
                expect(index.remove(row, row[1])).toBe(true);
                expect(index.remove(row, row[1])).toBe(false);
              }
              if (step % 400 === 0) {
                index.check();
                compare(random, index, rows, layout);
              }
            }
            compare(random, index, rows, layout);
            while (rows.length > 0) {
              const row = rows.pop() as PlacedRow;
              expect(index.remove(row, row[1])).toBe(true);
              if (rows.length % 97 === 0) index.check();
            }
            index.check();
            expect(index.tiles).toBe(1);
            compare(random, index, rows, layout);
          }
        });
      },
      LONG * 20_000,
    );
  }
});

function scattered(count: number, layout: Layout, seed = 1): { index: GeoIndex<PlacedRow>; rows: PlacedRow[] } {
  const random = new Random(seed);
  const index = new GeoIndex<PlacedRow>();
  const rows = Array.from({ length: count }, (_, id): PlacedRow => [id, layout(random)]);
  for (const row of rows) index.insert(row, row[1]);
  return { index, rows };
}

const city = LAYOUTS["a city"] as Layout;

describe("what a walk costs", () => {
  const { index, rows } = scattered(20_000, city);

  test("a filter that refuses most is asked of little more than what is nearer, however the rows came", () => {
    const sorted = new GeoIndex<PlacedRow>();
    for (const row of [...rows].sort((a, b) => a[1].lon - b[1].lon)) sorted.insert(row, row[1]);
    for (const each of [index, sorted]) {
      each.check();
      const random = new Random(2);
      let asked = 0;
      let nearer = 0;
      for (let i = 0; i < 20; i++) {
        const { lon, lat } = city(random);
        let reach = 0;
        const take = (_: PlacedRow, metres: number): boolean => {
          reach = metres;
          return false;
        };
        each.nearest(lon, lat, take, (row) => {
          asked++;
          return row[0] % 1000 === 0;
        });
        each.radius(lon, lat, reach, () => ++nearer > 0);
      }
      expect(asked).toBeGreaterThan(nearer);
      expect(asked / nearer).toBeLessThan(1.6);
    }
  });

  test("a budget ends it, with what was visited in order", () => {
    const expected = byDistance(rows, { lon: 29, lat: 41.05 });
    for (const most of [0, 1, 5, 16, 17, 300]) {
      let asked = 0;
      const visited: number[] = [];
      const whole = index.nearest(
        29,
        41.05,
        (row) => visited.push(row[0]) > 0,
        (row) => {
          asked++;
          return row[0] % 2 === 0;
        },
        most,
      );
      expect(whole).toBe(false);
      expect(asked).toBe(most);
      const even = expected.filter(({ row }) => row[0] % 2 === 0).slice(0, visited.length);
      expect(visited).toEqual(even.map(({ row }) => row[0]));
    }
    let asked = 0;
    const all = (): boolean => ++asked > 0;
    expect(index.nearest(29, 41.05, () => true, all, rows.length)).toBe(true);
    expect(asked).toBe(rows.length);
  });

  test("counts look no further than tiles that may matter, nor than enough", () => {
    const near = index.countRadius(29, 41.05, 500);
    expect(near).toBeGreaterThan(0);
    expect(near).toBeLessThan(rows.length / 8);
    expect(index.countWithin([29, 41.05, 29.005, 41.055])).toBeLessThan(rows.length / 8);
    expect(index.countRadius(29, 41.05, Infinity)).toBe(rows.length);
    expect(index.countRadius(29, 41.05, Infinity, 100)).toBeLessThan(100 + 2 * TILE_POINTS);
    expect(index.countWithin([-180, -90, 180, 90], 100)).toBeLessThan(100 + 2 * TILE_POINTS);
    expect(index.countWithin([30, 41, 31, 42])).toBe(0);
  });

  test("tiles are neither many nor few", () => {
    expect(index.tiles).toBeGreaterThan(rows.length / TILE_POINTS - 1);
    expect(index.tiles).toBeLessThan((rows.length / TILE_POINTS) * 2.5);
  });

  test("the tiles of a line of points that came in order are as many", () => {
    const line = new GeoIndex<PlacedRow>();
    for (let id = 0; id < 10_000; id++) line.insert([id, { lon: 0, lat: 0 }], { lon: id / 1000, lat: 0 });
    line.check();
    expect(line.tiles).toBeLessThan((10_000 / TILE_POINTS) * 2.5);
  });
});

test("drained along the curve, either way, it is one empty tile again", () => {
  for (const backwards of [false, true]) {
    const { index, rows } = scattered(6 * TILE_POINTS, LAYOUTS["one place"] as Layout);
    if (backwards) rows.reverse();
    for (const [i, row] of rows.entries()) {
      expect(index.remove(row, row[1])).toBe(true);
      if (i % 101 === 0 || i > rows.length - 40) index.check();
    }
    expect(index.tiles).toBe(1);
    index.insert([1, { lon: -180, lat: -90 }], { lon: -180, lat: -90 });
    index.check();
    const found: number[] = [];
    index.nearest(0, 0, (row) => found.push(row[0]) > 0);
    expect(found).toEqual([1]);
  }
});

describe("a walk", () => {
  const { index, rows } = scattered(1_000, city);

  test("may hold others within it", () => {
    const pairs: [number, number][] = [];
    index.nearest(29, 41, (outer) => {
      index.nearest(outer[1].lon, outer[1].lat, (inner) => {
        if (inner === outer) return true;
        pairs.push([outer[0], inner[0]]);
        return false;
      });
      return pairs.length < 20;
    });
    const outers = byDistance(rows, { lon: 29, lat: 41 }).slice(0, 20);
    expect(pairs).toEqual(
      outers.map(({ row }) => [row[0], byDistance(rows, row[1]).find((other) => other.row !== row)?.row[0] as number]),
    );
  });

  test("that a visitor breaks off by throwing leaves the index as it was", () => {
    for (let i = 0; i < 3; i++) {
      expect(() =>
        index.nearest(29, 41, () => {
          throw new RangeError("enough");
        }),
      ).toThrow(RangeError);
    }
    compareNearest(new Random(1), index, rows, { lon: 29, lat: 41 });
  });

  test("is not changed under", () => {
    const other = scattered(300, city);
    const meddle = (row: PlacedRow): boolean => {
      if (row[0] === 100) other.index.insert([1_000, row[1]], row[1]);
      return true;
    };
    const failing = [
      () => other.index.nearest(29, 41, meddle),
      () => other.index.within([28, 40, 30, 42], meddle),
      () => other.index.radius(29, 41, 1e6, meddle),
    ];
    for (const fails of failing) expect(fails).toThrow(AssertionFailure);
  });
});

describe("broken assumptions", () => {
  test("a point or a vantage off the earth", () => {
    const index = new GeoIndex<PlacedRow>();
    for (const [lon, lat] of [
      [181, 0],
      [0, -90.1],
      [Number.NaN, 0],
      [0, Number.NaN],
      [Infinity, 0],
    ] as const) {
      expect(() => index.insert([1, { lon, lat }], { lon, lat })).toThrow(AssertionFailure);
      expect(() => index.load([[1, { lon, lat }]], [{ lon, lat }])).toThrow(AssertionFailure);
      expect(() => index.nearest(lon, lat, () => true)).toThrow(AssertionFailure);
    }
    expect(index.size).toBe(0);
    index.check();
  });

  test("a row is not where it is said to be", () => {
    const { index, rows } = scattered(500, city);
    const row = rows[42] as PlacedRow;
    expect(index.remove(row, { lon: row[1].lon + 1e-9, lat: row[1].lat })).toBe(false);
    expect(index.remove([42, row[1]], row[1])).toBe(false);
    expect(index.size).toBe(500);
    expect(index.remove(row, row[1])).toBe(true);
  });

  test("the check sees a row twice and an id that changed", () => {
    const { index, rows } = scattered(500, city);
    const row = rows[42] as PlacedRow;
    index.insert(row, row[1]);
    expect(() => index.check()).toThrow(AssertionFailure);
    const same = scattered(TILE_POINTS * 2, LAYOUTS["one place"] as Layout);
    same.index.check();
    (same.rows[42] as PlacedRow)[0] = 1e6;
    expect(() => same.index.check()).toThrow(AssertionFailure);
  });

  test("a load over rows", () => {
    const { index } = scattered(1, city);
    expect(() => index.load([[5, { lon: 0, lat: 0 }]], [{ lon: 0, lat: 0 }])).toThrow(AssertionFailure);
  });
});
