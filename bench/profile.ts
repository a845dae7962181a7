/**
 * What a `.cpuprofile` says of whose code the time went to: self time summed by place. `src/` is this project's own,
 * the rest is the runtime's and the packages'.
 *
 * `bun run bench:profile` profiles a server while 16 clients drain a queue, and keeps the file it names: `--jobs 200000`,
 * `--sync always`, `--lines 40`. `bun run bench:profile <file.cpuprofile>` reads one that is there.
 */

import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startServer } from "./child_server.ts";
import { CREATE, type DrainResult, drainElsewhere, fill } from "./load.ts";
import { LoadConnection } from "./load_connection.ts";

interface ProfileNode {
  readonly id: number;
  readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
  readonly children?: readonly number[];
}

interface Profile {
  readonly nodes: readonly ProfileNode[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

export interface Shares {
  /** Share of the busy time, from 0 to 1. */
  readonly own: number;
  readonly busySeconds: number;
  readonly byPlace: ReadonlyMap<string, number>;
  readonly byFunction: ReadonlyMap<string, number>;
}

/** @param lastSeconds leaves out what lies further before the profile's end */
export function sharesOf(file: string, lastSeconds = Number.POSITIVE_INFINITY): Shares {
  const profile = JSON.parse(readFileSync(file, "utf8")) as Profile;
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
  const byPlace = new Map<string, number>();
  const byFunction = new Map<string, number>();
  let busy = 0;
  let own = 0;
  let left = profile.timeDeltas.reduce((sum, micros) => sum + micros, 0);
  for (const [at, id] of profile.samples.entries()) {
    const frame = nodes.get(id)?.callFrame;
    const micros = profile.timeDeltas[at] ?? 0;
    left -= micros;
    if (left > lastSeconds * 1e6) continue;
    if (frame === undefined || frame.functionName === "(idle)") continue;
    const place = placeOf(frame.url);
    busy += micros;
    if (place.startsWith("src/")) own += micros;
    add(byPlace, place, micros);
    add(byFunction, `${frame.functionName || "(anonymous)"} ${place}:${frame.lineNumber + 1}`, micros);
  }
  return { own: own / busy, busySeconds: busy / 1e6, byPlace, byFunction };
}

function placeOf(url: string): string {
  const own = /\/(src\/.*)$/.exec(url)?.[1];
  if (own !== undefined && !url.includes("node_modules")) return own;
  const pack = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1];
  return pack ?? (url === "" ? "(runtime)" : url);
}

function add(map: Map<string, number>, key: string, micros: number): void {
  map.set(key, (map.get(key) ?? 0) + micros);
}

/** Drains a queue of a server that is profiled, after a drain that warms it up, and tells what a request costs. */
async function profileDrain(jobs: number, sync: string): Promise<{ file: string; seconds: number }> {
  const place = mkdtempSync(join(tmpdir(), "fenec-profile-"));
  const server = await startServer({ sync, runtime: ["--cpu-prof", `--cpu-prof-dir=${place}`] });
  const broken = (why: Error): never => {
    throw why;
  };
  const connection = await LoadConnection.open(server.port, broken);
  await connection.ask("/query", JSON.stringify({ query: CREATE }));
  const options = { port: server.port, clients: 16, page: 10, jobs, take: "claim", ack: "batch" } as const;
  let spent = 0;
  let drained: DrainResult | undefined;
  for (const firstId of [1, jobs + 1]) {
    await fill(connection, jobs);
    const before = server.cpuSeconds();
    drained = await drainElsewhere({ ...options, firstId });
    spent = server.cpuSeconds() - before;
  }
  connection.close();
  await server.stop();
  const { requests = 0, seconds = 0 } = drained ?? {};
  const micros = (spent * 1e6) / requests;
  console.log(
    `--sync ${sync}: ${requests} requests drained ${jobs} jobs, ${micros.toFixed(1)} us of CPU each, all threads`,
  );
  const name = readdirSync(place).find((each) => each.endsWith(".cpuprofile")) ?? "";
  return { file: join(place, name), seconds };
}

if (import.meta.main) {
  const { values, positionals } = parseArgs({
    options: {
      jobs: { type: "string", default: "200000" },
      sync: { type: "string", default: "always" },
      lines: { type: "string", default: "40" },
    },
    allowPositionals: true,
  });
  const [given] = positionals;
  const { file, seconds } =
    given === undefined ? await profileDrain(Number(values.jobs), values.sync) : { file: given, seconds: undefined };
  const { own, busySeconds, byPlace, byFunction } = sharesOf(file, seconds);
  console.log(`${file}\nbusy ${busySeconds.toFixed(2)} s, src/ ${(own * 100).toFixed(1)} %`);
  for (const map of [byPlace, byFunction]) {
    console.log();
    const sorted = [...map].sort((a, b) => b[1] - a[1]).slice(0, Number(values.lines));
    for (const [name, micros] of sorted)
      console.log(`${((micros / busySeconds) * 1e-4).toFixed(1).padStart(5)} %  ${name}`);
  }
}
