/**
 * What stays of a backlog in memory: jobs are put, all are deleted, a snapshot is written, a minute goes by.
 * `bun run bench/backlog.ts`, or with jobs and bytes of payload: `bun run bench/backlog.ts 1000000 40`.
 */

import { type ChildServer, startServer } from "./child_server.ts";
import { CREATE } from "./load.ts";
import { LoadConnection } from "./load_connection.ts";
import { machine, machineWords } from "./machine.ts";
import { residentBytes } from "./processes.ts";
import { tableText } from "./table.ts";

const PAGE_ROWS = 1_000;
const REST_MS = 60_000;
const CASES: readonly (readonly [jobs: number, payloadBytes: number])[] = [
  [5_000_000, 500],
  [5_000_000, 40],
  [1_000_000, 40],
];

async function ask(connection: LoadConnection, query: string, params = ""): Promise<void> {
  const { status, body } = await connection.ask("/query", `{"query":${JSON.stringify(query)},"params":[${params}]}`);
  if (status !== 200) throw new Error(`${status}: ${body}`);
}

async function fillAndEmpty(server: ChildServer, jobs: number, payloadBytes: number): Promise<number> {
  const connection = await LoadConnection.open(server.port, (why) => {
    throw why;
  });
  await ask(connection, CREATE);
  let peak = 0;
  for (let from = 0; from < jobs; from += PAGE_ROWS) {
    const runAt = Date.now() + 86_400_000;
    const rows = Array.from({ length: PAGE_ROWS }, (_, row) => {
      const text = String(from + row).padStart(payloadBytes - '{"n":""}'.length, "x");
      return `{"payload":{"n":"${text}"},"run_at":${runAt},"attempts":0}`;
    });
    await ask(connection, "put jobs $1", `[${rows.join(",")}]`);
  }
  peak = Math.max(peak, residentBytes(server.pid));
  for (let from = 0; from <= jobs; from += PAGE_ROWS) {
    await ask(connection, `del jobs where id >= ${from} and id < ${from + PAGE_ROWS}`);
  }
  peak = Math.max(peak, residentBytes(server.pid));
  await ask(connection, "compact");
  connection.close();
  return peak;
}

const [jobs, payloadBytes] = process.argv.slice(2).map(Number);
const cases = jobs === undefined || payloadBytes === undefined ? CASES : ([[jobs, payloadBytes]] as const);
console.log(machineWords(machine()));
const mib = (bytes: number): string => (bytes / 2 ** 20).toFixed(0);
const rows: string[][] = [];
for (const [count, bytes] of cases) {
  const server = await startServer({ sync: "off" });
  const empty = residentBytes(server.pid);
  const peak = await fillAndEmpty(server, count, bytes);
  await Bun.sleep(REST_MS);
  const after = residentBytes(server.pid);
  await server.stop();
  rows.push([`${count} jobs of ${bytes} bytes`, mib(empty), mib(peak), mib(after), ((100 * after) / peak).toFixed(0)]);
}
console.log(`\n${tableText(["resident", "empty MiB", "peak MiB", "a minute later MiB", "%"], rows)}`);
process.exit(0);
