/**
 * What being safe costs: single puts that are on disk, pages of a thousand, opening a data directory, its size, the
 * longest stall while a snapshot is written, and the log under claims and releases. `bun run bench:durability`, or with
 * the names of some of the parts: `single`, `page`, `open`, `growth`.
 *
 * The disk's own append and fdatasync stand beside, and PostgreSQL in the same run where it is installed: a cluster of
 * its own in a temporary directory, synchronous_commit on. Clients share the machine with what they ask. FENEC_BENCH_JOBS
 * is a list of how many jobs `open` is measured over; the stall is that of the last.
 */

import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { type ChildServer, startServer } from "./child_server.ts";
import { Disk } from "./disk.ts";
import { CREATE, payloadOf } from "./load.ts";
import { LoadConnection } from "./load_connection.ts";
import { machine, machineWords } from "./machine.ts";
import { openPg, type PgClient, postgresMissing, postgresVersion, startPostgres } from "./peers/postgres.ts";
import { scratchDirectory } from "./processes.ts";
import { writeResults } from "./results.ts";
import { roundsElsewhere } from "./rounds.ts";
import { rounded, tableText } from "./table.ts";

const SECONDS = Number(process.env["FENEC_BENCH_SECONDS"] ?? 8);
const ROUNDS = Number(process.env["FENEC_BENCH_ROUNDS"] ?? 2);
const JOBS = (process.env["FENEC_BENCH_JOBS"] ?? "1000000,5000000").split(",").map(Number);
const CONNECTIONS = [1, 16, 128];
const PAGE_ROWS = 1_000;
/** Of the jobs of `open`, those that can be claimed. */
const READY_JOBS = 10_000;
const LOAD_CLIENTS = 8;
const GROWTH_ROUNDS = 100_000;
/** Neither by size nor by time. */
const NO_SNAPSHOTS = ["--snapshot-bytes", "1000gb", "--snapshot-seconds", "86400"];

type Call = () => Promise<unknown>;

interface Measured {
  readonly name: string;
  readonly figure: number;
  readonly unit: string;
  /** PostgreSQL's, of the same run; null: not measured. */
  readonly postgres: number | null;
  readonly note: string;
}

const measured: Measured[] = [];

function note(row: Measured): void {
  measured.push(row);
  console.log(`${row.name}: ${rounded(row.figure)} ${row.unit}${row.note === "" ? "" : `, ${row.note}`}`);
}

function broken(why: Error): void {
  throw why;
}

async function run(connection: LoadConnection, query: string, params: readonly unknown[] = []): Promise<string> {
  return await ask(connection, JSON.stringify({ query, params }));
}

const CREATE_TABLE = `create table jobs (
  id bigserial primary key, payload json, run_at timestamptz, owner text, attempts int, error text);
create index jobs_run_at on jobs (run_at)`;

/** Its code for "the database system is starting up". */
const PG_STARTING = "57P03";

/** Calls a second of clients that ask again as soon as they are answered. */
async function rate(calls: readonly Call[], seconds: number): Promise<number> {
  const startedMs = performance.now();
  const end = startedMs + seconds * 1_000;
  let done = 0;
  await Promise.all(
    calls.map(async (call) => {
      while (performance.now() < end) {
        await call();
        done++;
      }
    }),
  );
  return (done * 1_000) / (performance.now() - startedMs);
}

/** Of each the best of some rounds, after one to warm up; turn by turn, so that the disk's moods are shared. */
async function bestRates(sides: readonly (readonly Call[])[]): Promise<number[]> {
  for (const calls of sides) await rate(calls, SECONDS / 4);
  const best = sides.map(() => 0);
  for (let round = 0; round < ROUNDS; round++) {
    for (const [at, calls] of sides.entries()) best[at] = Math.max(best[at] ?? 0, await rate(calls, SECONDS / ROUNDS));
  }
  return best;
}

/** It listens before it takes clients. */
async function firstPg(url: string): Promise<PgClient> {
  for (;;) {
    try {
      return await openPg(url);
    } catch (error) {
      if ((error as { code?: unknown }).code !== PG_STARTING) throw error;
      await Bun.sleep(20);
    }
  }
}

/** PostgreSQL over an empty table; `url` is null where it is not installed, which is said. */
async function withPostgres(work: (url: string | null) => Promise<void>): Promise<void> {
  const missing = postgresMissing();
  if (missing !== null) {
    console.log(`PostgreSQL is left out: ${missing}`);
    await work(null);
    return;
  }
  const scratch = scratchDirectory();
  const postgres = await startPostgres(scratch.path, "on");
  try {
    const url = String(postgres.address["url"]);
    const client = await firstPg(url);
    await client.query(CREATE_TABLE);
    await client.end();
    await work(url);
  } finally {
    await postgres.stop();
    scratch.remove();
  }
}

/** A POST that has to succeed. */
async function ask(connection: LoadConnection, body: string): Promise<string> {
  const { status, body: answer } = await connection.ask("/query", body);
  if (status !== 200) throw new Error(`${status}: ${answer}`);
  return answer;
}

/** The same query again and again, from so many clients of each. */
async function beside(
  url: string | null,
  connections: number,
  body: string,
  query: Parameters<PgClient["query"]>[0],
): Promise<{ ours: number; theirs: number | null; syncMs: number }> {
  const server = await startServer({ sync: "always" });
  const disk = new Disk(server.directory);
  const ours = await Promise.all(Array.from({ length: connections }, () => LoadConnection.open(server.port, broken)));
  const theirs: PgClient[] = [];
  if (url !== null) for (let at = 0; at < connections; at++) theirs.push(await openPg(url));
  const [first] = ours;
  if (first === undefined) throw new Error("no connection");
  await run(first, CREATE);
  const sides: Call[][] = [ours.map((connection) => () => ask(connection, body))];
  if (url !== null) sides.push(theirs.map((client) => () => client.query(query)));
  for (let at = 0; at < 200; at++) disk.sync();
  const [best, postgres] = await bestRates(sides);
  for (let at = 0; at < 200; at++) disk.sync();
  const syncMs = disk.p50();
  disk.close();
  for (const client of theirs) await client.end();
  for (const connection of ours) connection.close();
  await server.stop();
  return { ours: best ?? Number.NaN, theirs: postgres ?? null, syncMs };
}

function timesWords(ours: number, theirs: number | null): string {
  return theirs === null ? "" : `, ${(ours / theirs).toFixed(1)} times PostgreSQL`;
}

async function single(): Promise<void> {
  const body = `{"query":"put jobs {payload: $1, run_at: now(), attempts: 0}","params":[${payloadOf(1)}]}`;
  const text = "insert into jobs (payload, run_at, attempts) values ($1, now(), 0)";
  await withPostgres(async (url) => {
    for (const connections of CONNECTIONS) {
      const query = { name: "insert", text, values: [payloadOf(1)] };
      const { ours, theirs, syncMs } = await beside(url, connections, body, query);
      note({
        name: `durable puts of one, ${connections} connections`,
        figure: ours,
        unit: "/s",
        postgres: theirs,
        note: `--sync always, the disk's own ${syncMs.toFixed(2)} ms${timesWords(ours, theirs)}`,
      });
    }
  });
}

/** Jobs that are ready, or due in a day: all at one time, or a millisecond apart. */
function pageBody(ready: boolean, apartMs: 0 | 1): string {
  const runAt = Date.now() + (ready ? -1_000 : 86_400_000);
  const rows = Array.from(
    { length: PAGE_ROWS },
    (_, row) => `{"payload":${payloadOf(row)},"run_at":${runAt + row * apartMs},"attempts":0}`,
  );
  return `{"query":"put jobs $1","params":[[${rows.join(",")}]]}`;
}

async function page(): Promise<void> {
  const payloads = Array.from({ length: PAGE_ROWS }, (_, row) => payloadOf(row));
  const text =
    "insert into jobs (payload, run_at, attempts) select p::json, now() + interval '1 day', 0 from unnest($1::text[]) p";
  await withPostgres(async (url) => {
    const query = { name: "page", text, values: [payloads] };
    // PostgreSQL gives all rows of a page one time, and so do we; the second line is of pages whose rows go everywhere.
    for (const apartMs of [0, 1] as const) {
      const { ours, theirs, syncMs } = await beside(apartMs === 0 ? url : null, 1, pageBody(false, apartMs), query);
      note({
        name: `rows in puts of 1 000, one connection, ${apartMs === 0 ? "due at one time" : "each at a time of its own"}`,
        figure: ours * PAGE_ROWS,
        unit: "rows/s",
        postgres: theirs === null ? null : theirs * PAGE_ROWS,
        note: `--sync always, the disk's own ${syncMs.toFixed(2)} ms${timesWords(ours, theirs)}${theirs === null ? "" : " by unnest"}`,
      });
    }
  });
}

/** All jobs ahead in time but for `READY_JOBS`, a thousand a statement. */
async function fill(server: ChildServer, jobs: number): Promise<void> {
  const connection = await LoadConnection.open(server.port, broken);
  await run(connection, CREATE);
  for (let row = 0; row < jobs; row += PAGE_ROWS) {
    await ask(connection, pageBody(row < READY_JOBS, 1));
  }
  connection.close();
}

function bytesOf(directory: string, suffix: string): number {
  const names = readdirSync(directory).filter((name) => name.endsWith(suffix));
  return names.reduce((sum, name) => sum + (statSync(join(directory, name), { throwIfNoEntry: false })?.size ?? 0), 0);
}

/** From the start of the process to its start line, the best of the rounds. */
async function opens(directory: string, jobs: number): Promise<number> {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS; round++) {
    const server = await startServer({ directory, args: NO_SNAPSHOTS });
    const connection = await LoadConnection.open(server.port, broken);
    const count = await run(connection, "get jobs count");
    if (count !== `[{"count":${jobs}}]`) throw new Error(`of ${jobs} jobs there are ${count}`);
    connection.close();
    await server.stop();
    best = Math.min(best, server.startMs);
  }
  return best;
}

/** The longest answer to a request that reads nothing and waits for nothing, while `work` is under way. */
async function longestAnswer(server: ChildServer, work: () => Promise<void>): Promise<number> {
  const connection = await LoadConnection.open(server.port, broken);
  let longestMs = 0;
  let working = true;
  const probing = (async (): Promise<void> => {
    while (working) {
      const startedMs = performance.now();
      await new Promise<void>((resolve) => connection.get("/_health", () => resolve()));
      longestMs = Math.max(longestMs, performance.now() - startedMs);
      await Bun.sleep(1);
    }
  })();
  await work();
  working = false;
  await probing;
  connection.close();
  return longestMs;
}

async function stall(directory: string, jobs: number): Promise<void> {
  const server = await startServer({ directory, args: NO_SNAPSHOTS });
  const admin = await LoadConnection.open(server.port, broken);
  const load = roundsElsewhere({ port: server.port, clients: LOAD_CLIENTS, rounds: null });
  await longestAnswer(server, () => Bun.sleep(1_000));
  const quietMs = await longestAnswer(server, () => Bun.sleep(5_000));
  let tookMs = 0;
  const longestMs = await longestAnswer(server, async () => {
    const startedMs = performance.now();
    await run(admin, "compact");
    tookMs = performance.now() - startedMs;
  });
  load.end();
  const { rounds, seconds } = await load.result;
  note({
    name: `longest answer while a snapshot of ${rounded(jobs)} jobs is written`,
    figure: longestMs,
    unit: "ms",
    postgres: null,
    note: `under ${rounded((rounds * 2) / seconds)} writes/s; without a snapshot ${quietMs.toFixed(1)} ms; it took ${(tookMs / 1_000).toFixed(1)} s`,
  });
  admin.close();
  await server.stop();
}

async function open(): Promise<void> {
  for (const jobs of JOBS) {
    const scratch = scratchDirectory();
    const directory = scratch.path;
    try {
      const filled = await startServer({ directory, sync: "off", args: NO_SNAPSHOTS });
      await fill(filled, jobs);
      await filled.stop();
      const logBytes = bytesOf(directory, ".log");
      note({
        name: `open ${rounded(jobs)} jobs from the log alone`,
        figure: await opens(directory, jobs),
        unit: "ms",
        postgres: null,
        note: `${(logBytes / jobs).toFixed(1)} bytes of log a job`,
      });
      // Twice: the log behind the older of two snapshots is all that is kept, as in a directory that has run for a while.
      const written = await startServer({ directory, args: NO_SNAPSHOTS });
      const connection = await LoadConnection.open(written.port, broken);
      for (let twice = 0; twice < 2; twice++) {
        await run(connection, "set jobs {attempts: 0} where id = 1");
        await run(connection, "compact");
      }
      connection.close();
      await written.stop();
      const snapshotBytes = bytesOf(directory, ".fsnap") / 2;
      note({
        name: `open ${rounded(jobs)} jobs from a snapshot`,
        figure: await opens(directory, jobs),
        unit: "ms",
        postgres: null,
        note: "the start of the process included",
      });
      note({
        name: `a snapshot of ${rounded(jobs)} jobs, a job`,
        figure: snapshotBytes / jobs,
        unit: "bytes",
        postgres: null,
        note: `two of them are kept; the payload is ${payloadOf(1).length} bytes`,
      });
      if (jobs === JOBS.at(-1)) await stall(directory, jobs);
    } finally {
      scratch.remove();
    }
  }
}

/** Claims and releases leave as many rows as there were; the log must not tell how many there have been. */
async function growth(): Promise<void> {
  const server = await startServer({ args: ["--snapshot-bytes", "4mb"] });
  const connection = await LoadConnection.open(server.port, broken);
  await run(connection, CREATE);
  await ask(connection, pageBody(true, 1));
  let most = 0;
  const sampler = setInterval(() => {
    most = Math.max(most, bytesOf(server.directory, ".log"));
  }, 50);
  const { rounds, seconds } = await roundsElsewhere({ port: server.port, clients: 16, rounds: GROWTH_ROUNDS }).result;
  clearInterval(sampler);
  note({
    name: `log after ${rounded(rounds)} claims and releases, at its largest`,
    figure: most / 2 ** 20,
    unit: "MiB",
    postgres: null,
    note: `--snapshot-bytes 4mb; ${rounded((rounds * 2) / seconds)} durable writes/s`,
  });
  connection.close();
  await server.stop();
}

const PARTS: Readonly<Record<string, () => Promise<void>>> = { single, page, open, growth };

const asked = process.argv.slice(2);
const where = machine();
console.log(machineWords(where));
if (postgresMissing() === null) console.log(postgresVersion());
for (const [name, part] of Object.entries(PARTS)) {
  if (asked.length === 0 || asked.includes(name)) await part();
}
const table = tableText(
  ["", "fenec", "unit", "PostgreSQL", "note"],
  measured.map(({ name, figure, unit, postgres, note: words }) => [
    name,
    rounded(figure),
    unit,
    postgres === null ? "" : rounded(postgres),
    words,
  ]),
);
console.log(`\n${table}`);
if (asked.length === 0) console.log(writeResults("durability", { machine: where, measured }));
process.exit(0);
