/**
 * What a `.cpuprofile` says of whose code the time went to: self time summed by place. `src/` is this project's own,
 * the rest is the runtime's and the packages'.
 *
 * `bun run bench/profile.ts <file.cpuprofile> [lines]`
 */

import { readFileSync } from "node:fs";

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

export function sharesOf(file: string): Shares {
  const profile = JSON.parse(readFileSync(file, "utf8")) as Profile;
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
  const byPlace = new Map<string, number>();
  const byFunction = new Map<string, number>();
  let busy = 0;
  let own = 0;
  for (const [at, id] of profile.samples.entries()) {
    const frame = nodes.get(id)?.callFrame;
    const micros = profile.timeDeltas[at] ?? 0;
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

if (import.meta.main) {
  const [file = "", lines = "40"] = process.argv.slice(2);
  const { own, busySeconds, byPlace, byFunction } = sharesOf(file);
  console.log(`busy ${busySeconds.toFixed(2)} s, src/ ${(own * 100).toFixed(1)} %`);
  for (const map of [byPlace, byFunction]) {
    console.log();
    const sorted = [...map].sort((a, b) => b[1] - a[1]).slice(0, Number(lines));
    for (const [name, micros] of sorted)
      console.log(`${((micros / busySeconds) * 1e-4).toFixed(1).padStart(5)} %  ${name}`);
  }
}
