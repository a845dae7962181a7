/** Ways points can lie, the awkward ones among them: the poles, the antimeridian, one place, one line, a grid of ties. */

import type { Place } from "../../src/geo/geo.ts";
import type { Random } from "../store/random.ts";

export type Layout = (random: Random) => Place;

const onEarth: Layout = (random) => ({ lon: random.next() * 360 - 180, lat: random.next() * 180 - 90 });
const sign = (random: Random): number => (random.chance(0.5) ? 1 : -1);

export const LAYOUTS: Readonly<Record<string, Layout>> = {
  "all over": onEarth,
  "a city": (random) => ({ lon: 28.9 + random.next() * 0.2, lat: 41 + random.next() * 0.1 }),
  "clusters of metres": (random) => ({
    lon: random.below(6) * 59 - 150 + random.next() * 1e-5,
    lat: random.below(3) * 60 - 60 + random.next() * 1e-5,
  }),
  "one place": () => ({ lon: 29.01, lat: 41.04 }),
  "few places": (random) => ({ lon: random.below(3) * 1e-9, lat: random.below(3) * 1e-9 }),
  "a coarse grid to the edges": (random) => ({ lon: random.below(9) * 45 - 180, lat: random.below(5) * 45 - 90 }),
  "along a meridian": (random) => ({ lon: 10, lat: random.next() * 10 }),
  "along the equator": (random) => ({ lon: random.next() * 360 - 180, lat: 0 }),
  "along a slope": (random) => {
    const along = random.below(1000) / 1000;
    return { lon: along * 20, lat: along * 10 };
  },
  "around the poles": (random) => ({
    lon: random.chance(0.2) ? random.pick([-180, 0, 180]) : random.next() * 360 - 180,
    lat: sign(random) * (90 - random.pick([0, 1e-9, 1e-3, 1]) * random.next()),
  }),
  "around the antimeridian": (random) => ({
    lon: sign(random) * (180 - random.pick([0, 1e-9, 1e-3, 1]) * random.next()),
    lat: random.pick([0, 60, 89]) + random.next() * 0.5,
  }),
  "both corners": (random) => ({
    lon: sign(random) * (180 - random.below(3) * 1e-4),
    lat: sign(random) * (90 - random.below(3) * 1e-4),
  }),
};

/** Where one looks from: mostly among the points, sometimes from the far side of them. */
export function vantageOf(random: Random, layout: Layout): Place {
  const dice = random.below(4);
  if (dice === 0) return onEarth(random);
  if (dice === 1) return { lon: random.pick([-180, 0, 180]), lat: random.pick([-90, 0, 90]) };
  const { lon, lat } = layout(random);
  if (dice === 2) return { lon, lat };
  return { lon: lon > 0 ? lon - 180 : lon + 180, lat: -lat };
}
