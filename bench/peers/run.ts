/**
 * `bun run bench:peers`: this server beside what people use today, in one run, on the same jobs and the same disk. A round
 * starts each queue anew, warms it up with a drain that is not counted, and measures one; the median of the rounds stands.
 *
 * Options: `--jobs 100000 --rounds 3 --clients 16 --page 10 --only name,name`.
 */

import { parseArgs } from "node:util";
import { machine, machineWords } from "../machine.ts";
import { cpuSeconds, scratchDirectory } from "../processes.ts";
import { writeResults } from "../results.ts";
import { median, rounded, tableText } from "../table.ts";
import { PEERS } from "./all.ts";
import type { ClientLine, ClientPlan } from "./client.ts";
import { fenecAlways } from "./fenec.ts";
import type { Peer } from "./peer.ts";

const { values } = parseArgs({
  options: {
    jobs: { type: "string", default: "100000" },
    rounds: { type: "string", default: "3" },
    clients: { type: "string", default: "16" },
    page: { type: "string", default: "10" },
    only: { type: "string" },
  },
});
const jobs = Number(values.jobs);
const rounds = Number(values.rounds);
const clients = Number(values.clients);
const page = Number(values.page);

interface Measured {
  readonly jobsPerSecond: number;
  readonly serverMicros: number | null;
  readonly clientMicros: number;
}

/** One start of one peer: a drain to warm up, and one that counts. */
async function measure(peer: Peer): Promise<Measured> {
  const count = Math.max(page * clients, Math.round(jobs * peer.share));
  const scratch = scratchDirectory();
  const running = await peer.start(scratch.path);
  try {
    const plan: ClientPlan = { peer: peer.name, address: running.address, clients, page, drains: [count, count] };
    const child = Bun.spawn([process.execPath, `${import.meta.dir}/client.ts`, JSON.stringify(plan)], {
      cwd: import.meta.dir,
      stdout: "pipe",
      stderr: "inherit",
    });
    let cpu = 0;
    let last: ClientLine | undefined;
    let serverSeconds = 0;
    for await (const line of linesOf(child.stdout)) {
      if (line === "filled") {
        cpu = running.pid === null ? 0 : cpuSeconds(running.pid);
        continue;
      }
      last = JSON.parse(line) as ClientLine;
      serverSeconds = running.pid === null ? 0 : cpuSeconds(running.pid) - cpu;
    }
    if ((await child.exited) !== 0 || last === undefined) throw new Error(`the client of ${peer.name} failed`);
    return {
      jobsPerSecond: count / last.seconds,
      serverMicros: running.pid === null ? null : (serverSeconds * 1e6) / count,
      clientMicros: (last.cpuSeconds * 1e6) / count,
    };
  } finally {
    await running.stop();
    scratch.remove();
  }
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of stream) {
    text += decoder.decode(chunk, { stream: true });
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n")) {
      yield text.slice(0, end);
      text = text.slice(end + 1);
    }
  }
}

const wanted = values.only?.split(",");
const asked = PEERS.filter(({ name }) => wanted === undefined || wanted.includes(name));
if (asked.length === 0) throw new Error(`--only takes of ${PEERS.map(({ name }) => name).join(", ")}`);
const left = asked.flatMap((peer) => {
  const missing = peer.missing();
  return missing === null ? [] : [{ title: peer.title, missing }];
});
const peers = asked.filter((peer) => peer.missing() === null);
const here = machine();
console.log(machineWords(here));
console.log(`${jobs} jobs of about 40 bytes, ${clients} clients, ${page} jobs a claim, ${rounds} rounds\n`);

const measured = new Map<Peer, Measured[]>(peers.map((peer) => [peer, []]));
for (let round = 1; round <= rounds; round++) {
  for (const peer of peers) {
    const one = await measure(peer);
    measured.get(peer)?.push(one);
    console.error(`round ${round}: ${peer.title}: ${rounded(one.jobsPerSecond)} jobs/s`);
  }
}

const rows = [...measured].map(([peer, all]) => ({
  name: peer.name,
  title: peer.title,
  version: peer.version(),
  configuration: peer.configuration,
  way: peer.way,
  loses: peer.loses,
  share: peer.share,
  jobsPerSecond: median(all.map((one) => one.jobsPerSecond)),
  least: Math.min(...all.map((one) => one.jobsPerSecond)),
  most: Math.max(...all.map((one) => one.jobsPerSecond)),
  serverMicros: all[0]?.serverMicros === null ? null : median(all.map((one) => one.serverMicros ?? 0)),
  clientMicros: median(all.map((one) => one.clientMicros)),
}));
const own = rows.find(({ name }) => name === fenecAlways.name)?.jobsPerSecond;
const table = tableText(
  ["queue", "jobs/s", "least - most", "fenec is", "server us/job", "client us/job", "a power cut takes back"],
  rows.map((row) => [
    row.title,
    rounded(row.jobsPerSecond),
    `${rounded(row.least)} - ${rounded(row.most)}`,
    own === undefined ? "-" : `${(own / row.jobsPerSecond).toFixed(2)} x`,
    row.serverMicros === null ? "in process" : row.serverMicros.toFixed(1),
    row.clientMicros.toFixed(1),
    row.loses,
  ]),
);
console.log(`\n${table}\n`);
for (const row of rows) console.log(`${row.title}: ${row.version}; ${row.configuration}; ${row.way}`);
for (const { title, missing } of left) console.log(`left out: ${title}, not installed: ${missing}`);
console.log(`\nwritten to ${writeResults("peers", { machine: here, jobs, clients, page, rounds, rows, left })}`);
