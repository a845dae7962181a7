/**
 * Claims and releases one job at a time, from so many clients, until so many rounds are done or the process is told to
 * end (SIGTERM): the load behind a benchmark of something else, in a process of its own.
 *
 * `bun bench/rounds.ts '<RoundsOptions as json>'` prints a `RoundsResult` as json.
 */

import { LoadConnection } from "./load_connection.ts";
import { endWithUs } from "./processes.ts";

export interface RoundsOptions {
  readonly port: number;
  readonly clients: number;
  /** Null: until told to end. */
  readonly rounds: number | null;
}

export interface RoundsResult {
  readonly rounds: number;
  readonly seconds: number;
}

const CLAIM =
  "set jobs {owner: $1, run_at: now() + 30000, attempts: attempts + 1} where run_at <= now() order run_at limit 1 returning id";
const RELEASE = "set jobs {owner: null, run_at: now()} where id = $1 and owner = $2 require 1";

async function rounds({ port, clients, rounds: most }: RoundsOptions): Promise<RoundsResult> {
  let left = most ?? Number.POSITIVE_INFINITY;
  let done = 0;
  process.on("SIGTERM", () => {
    left = 0;
  });
  const client = async (name: string): Promise<void> => {
    const connection = await LoadConnection.open(port, (why) => {
      throw why;
    });
    const run = async (query: string, params: readonly unknown[]): Promise<string> => {
      const { status, body } = await connection.ask("/query", JSON.stringify({ query, params }));
      if (status !== 200) throw new Error(`${status}: ${body}`);
      return body;
    };
    while (left > 0) {
      left--;
      const id = /"id":(\d+)/.exec(await run(CLAIM, [name]))?.[1];
      if (id === undefined) throw new Error("there was no job to claim");
      await run(RELEASE, [Number(id), name]);
      done++;
    }
    connection.close();
  };
  const startedMs = performance.now();
  await Promise.all(Array.from({ length: clients }, (_, at) => client(`w:${at}`)));
  return { rounds: done, seconds: (performance.now() - startedMs) / 1_000 };
}

/** Runs them in a process of their own. */
export function roundsElsewhere(options: RoundsOptions): { readonly result: Promise<RoundsResult>; end(): void } {
  const child = Bun.spawn([process.execPath, import.meta.path, JSON.stringify(options)], {
    stdout: "pipe",
    stderr: "inherit",
  });
  endWithUs(child);
  const result = (async (): Promise<RoundsResult> => {
    const text = await new Response(child.stdout).text();
    if ((await child.exited) !== 0) throw new Error("the rounds failed");
    return JSON.parse(text) as RoundsResult;
  })();
  return { result, end: () => child.kill("SIGTERM") };
}

if (import.meta.main) {
  const result = await rounds(JSON.parse(process.argv[2] ?? "{}") as RoundsOptions);
  process.stdout.write(`${JSON.stringify(result)}\n`);
}
