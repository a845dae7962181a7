/** SQLite in the worker's own process: no server, no sockets, one connection that all workers share. */

import { Database } from "bun:sqlite";
import { join } from "node:path";
import { payloadOf } from "../load.ts";
import type { Drainer, Peer } from "./peer.ts";

const CREATE = `create table jobs (id integer primary key, payload text, run_at integer, owner text, attempts integer);
create index jobs_run_at on jobs (run_at)`;

const CLAIM = `update jobs set owner = ?1, run_at = ?2 + 30000, attempts = attempts + 1
  where id in (select id from jobs where run_at <= ?2 order by run_at limit ?3) returning id, payload`;

const ACK = "delete from jobs where id = ? and owner = ?";

function connect(directory: string, synchronous: string, page: number): Drainer {
  const database = new Database(join(directory, "jobs.db"), { create: true });
  database.run("pragma journal_mode = wal");
  database.run(`pragma synchronous = ${synchronous}`);
  database.run(CREATE);
  const put = database.prepare("insert into jobs (payload, run_at, attempts) values (?, ?, 0)");
  const claim = database.prepare<{ id: number }, [string, number, number]>(CLAIM);
  const ack = database.prepare(ACK);
  const fill = database.transaction((jobs: number) => {
    const runAt = Date.now() - 1_000;
    for (let job = 0; job < jobs; job++) put.run(payloadOf(job), runAt);
  });
  const ackAll = database.transaction((rows: readonly { id: number }[], owner: string): number => {
    let acked = 0;
    for (const { id } of rows) acked += ack.run(id, owner).changes;
    return acked;
  });
  return {
    fill: async (jobs) => fill(jobs),
    drain: async (jobs) => {
      let acked = 0;
      for (let at = 0; ; at++) {
        const owner = `w:${at}`;
        const rows = claim.all(owner, Date.now(), page);
        if (rows.length === 0) break;
        acked += ackAll(rows, owner);
      }
      if (acked !== jobs) throw new Error(`${acked} of ${jobs} jobs were deleted`);
    },
    close: async () => database.close(),
  };
}

function sqlite(synchronous: "full" | "normal", loses: string): Peer {
  const name = synchronous.toUpperCase();
  return {
    name: `sqlite-${synchronous}`,
    title: `bun:sqlite in process, WAL ${name}`,
    loses,
    configuration: `journal_mode WAL, synchronous ${name}; one process, one connection`,
    way: "prepared statements in process: update ... returning of ten; ten deletes in a transaction",
    share: synchronous === "full" ? 0.2 : 1,
    missing: () => null,
    version: () => `SQLite ${new Database(":memory:").query<{ v: string }, []>("select sqlite_version() v").get()?.v}`,
    start: async (directory) => ({ address: { directory }, pid: null, stop: async () => {} }),
    connect: async ({ directory }, _clients, page) => connect(String(directory), synchronous, page),
  };
}

export const sqliteFull = sqlite("full", "nothing");
export const sqliteNormal = sqlite("normal", "everything since the last checkpoint");
