/** PostgreSQL with SKIP LOCKED: the queue most people write themselves. A cluster of its own, ended with the benchmark. */

import { readdirSync } from "node:fs";
import { join } from "node:path";
import { payloadOf } from "../load.ts";
import { freePort, listening, programOf, startChild, unprivileged, versionOf } from "../processes.ts";
import { type Drainer, loadPackage, PACKAGES, type Peer, packageVersion, type Running } from "./peer.ts";

const FILL_PAGE = 1_000;

export interface PgClient {
  connect(): Promise<void>;
  query(query: string | { name: string; text: string; values: readonly unknown[] }): Promise<{
    rows: { id: string }[];
    rowCount: number | null;
  }>;
  end(): Promise<void>;
}

export interface Pg {
  readonly default: { readonly Client: new (options: { connectionString: string }) => PgClient };
}

const CREATE = `create table jobs (
  id bigserial primary key, payload json, run_at timestamptz, owner text, attempts int not null default 0);
create index jobs_run_at on jobs (run_at)`;

const CLAIM = `update jobs set owner = $1, run_at = now() + interval '30 seconds', attempts = attempts + 1
  where id in (select id from jobs where run_at <= now() order by run_at limit $2 for update skip locked)
  returning id, payload`;

const ACK = "delete from jobs where id = any($1) and owner = $2";

function places(): string[] {
  try {
    const root = "/usr/lib/postgresql";
    return readdirSync(root).map((version) => join(root, version, "bin"));
  } catch {
    return [];
  }
}

export function postgresProgram(name: string): string | null {
  return programOf(name, places());
}

export function postgresMissing(): string | null {
  if (postgresProgram("initdb") === null || postgresProgram("postgres") === null) return "apt-get install postgresql";
  return packageVersion("pg") === null ? PACKAGES : null;
}

export function postgresVersion(): string {
  const words = versionOf(postgresProgram("postgres") ?? "postgres", "--version");
  return `PostgreSQL ${/(\d[\d.]*)/.exec(words)?.[1] ?? words}`;
}

export async function startPostgres(directory: string, synchronousCommit: "on" | "off"): Promise<Running> {
  const port = freePort();
  const cluster = join(directory, "cluster");
  const asUser = unprivileged(directory);
  const initdb = postgresProgram("initdb") ?? "initdb";
  const made = Bun.spawnSync(
    [...asUser, initdb, "-D", cluster, "-U", "bench", "-A", "trust", "--no-sync", "-E", "UTF8"],
    {
      cwd: "/",
    },
  );
  if (made.exitCode !== 0) throw new Error(String(made.stderr));
  const settings = [
    `port=${port}`,
    "listen_addresses=127.0.0.1",
    `unix_socket_directories=${cluster}`,
    `synchronous_commit=${synchronousCommit}`,
    "max_connections=200",
    "shared_buffers=512MB",
    "max_wal_size=4GB",
  ];
  const server = postgresProgram("postgres") ?? "postgres";
  const child = startChild([...asUser, server, "-D", cluster, ...settings.flatMap((each) => ["-c", each])], directory);
  await listening(port);
  const address = { url: `postgres://bench@127.0.0.1:${port}/postgres` };
  return { address, pid: child.pid, stop: () => child.end("SIGINT") };
}

export async function openPg(url: string): Promise<PgClient> {
  const { default: pg } = await loadPackage<Pg>("pg");
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return client;
}

async function connect(url: string, clients: number, page: number): Promise<Drainer> {
  const all: PgClient[] = [];
  for (let at = 0; at < clients; at++) all.push(await openPg(url));
  const filler = await openPg(url);
  await filler.query(CREATE);
  return {
    fill: async (jobs) => {
      await filler.query("truncate jobs");
      for (let from = 0; from < jobs; from += FILL_PAGE) {
        const payloads: string[] = [];
        for (let job = from; job < Math.min(jobs, from + FILL_PAGE); job++) payloads.push(payloadOf(job));
        const text = "insert into jobs (payload, run_at) select p::json, now() from unnest($1::text[]) p";
        await filler.query({ name: "fill", text, values: [payloads] });
      }
      await filler.query("vacuum analyze jobs");
    },
    drain: async (jobs) => {
      const acked = await Promise.all(all.map((client, at) => work(client, `w${at}`, page)));
      const sum = acked.reduce((a, b) => a + b, 0);
      if (sum !== jobs) throw new Error(`${sum} of ${jobs} jobs were deleted`);
    },
    close: async () => {
      for (const client of [...all, filler]) await client.end();
    },
  };
}

async function work(client: PgClient, name: string, page: number): Promise<number> {
  let acked = 0;
  for (let claim = 0; ; claim++) {
    const owner = `${name}:${claim}`;
    const { rows } = await client.query({ name: "claim", text: CLAIM, values: [owner, page] });
    if (rows.length === 0) return acked;
    const ids = rows.map((row) => row.id);
    const { rowCount } = await client.query({ name: "ack", text: ACK, values: [ids, owner] });
    if (rowCount !== ids.length) throw new Error("an ack found another number of jobs");
    acked += ids.length;
  }
}

function postgres(synchronousCommit: "on" | "off", loses: string): Peer {
  return {
    name: `postgres-${synchronousCommit}`,
    title: `PostgreSQL SKIP LOCKED, synchronous_commit ${synchronousCommit}`,
    loses,
    configuration: `synchronous_commit ${synchronousCommit}, shared_buffers 512MB, max_wal_size 4GB; emptied and vacuumed before each drain`,
    way: "prepared statements: update ... where id in (select ... for update skip locked) returning; one delete of ten ids",
    share: 1,
    missing: postgresMissing,
    version: () => `${postgresVersion()}, pg ${packageVersion("pg")}`,
    start: (directory) => startPostgres(directory, synchronousCommit),
    connect: ({ url }, clients, page) => connect(String(url), clients, page),
  };
}

export const postgresOn = postgres("on", "nothing");
export const postgresOff = postgres("off", "up to three times wal_writer_delay, 0.6 s");
