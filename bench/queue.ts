/**
 * `bun run bench:queue`: what a queue of a million jobs costs, beside the figures the original gives for its own bench on
 * an M1 Air. In process there is one thread, so sixteen workers are sixteen states whose statements take turns in an
 * order drawn at random; over HTTP they are sixteen connections of another process.
 *
 * `--jobs 1000000`, `--http-jobs 1000000` (what the HTTP clients drain), `--seed 1`, `--no-held`.
 */

import { existsSync } from "node:fs";
import { parseArgs } from "node:util";
import { WallClock } from "../src/clock/clock.ts";
import type { RequestContext } from "../src/engine/contract.ts";
import { Engine } from "../src/engine/engine.ts";
import { KeptAnswers } from "../src/engine/idempotency.ts";
import { MemoryJournal } from "../src/engine/journal.ts";
import { Store } from "../src/store/store.ts";
import { Json, type Value } from "../src/value/value.ts";
import { startServer } from "./child_server.ts";
import {
  ACK,
  CLAIM,
  CREATE,
  type DrainOptions,
  type DrainResult,
  drainElsewhere,
  fill,
  payloadOf,
  percentiles,
  READ_PAGE,
  readBack,
  takePage,
} from "./load.ts";
import { LoadConnection } from "./load_connection.ts";
import { machine, machineWords } from "./machine.ts";
import { writeResults } from "./results.ts";
import { rounded, tableText } from "./table.ts";

const { values } = parseArgs({
  options: {
    jobs: { type: "string", default: "1000000" },
    "http-jobs": { type: "string", default: "1000000" },
    seed: { type: "string", default: "1" },
    "no-held": { type: "boolean", default: false },
  },
});
const JOBS = Number(values.jobs);
const HTTP_JOBS = Number(values["http-jobs"]);
const WORKERS = 16;
const PAGE = 10;
const CONTEXT: RequestContext = { scope: null, idempotencyKey: null, requestHash: "" };

interface Row {
  readonly what: string;
  readonly figure: string;
  /** What the original says of itself. */
  readonly reference: string;
}

const rows: Row[] = [];

function add(what: string, figure: string, reference: string): void {
  rows.push({ what, figure, reference });
  console.error(`${what}: ${figure} (reference ${reference})`);
}

function filled(create: string, jobs: number): Engine {
  const engine = new Engine({
    store: new Store(),
    journal: new MemoryJournal(),
    clock: new WallClock(),
    seq: 0,
    readOnly: false,
    maxMemoryBytes: Number.POSITIVE_INFINITY,
    answers: new KeptAnswers(1_000),
    compact: () => {},
  });
  engine.query(create, [], CONTEXT);
  for (let from = 0; from < jobs; from += 1_000) {
    const runAt = Date.now() - 1_000;
    const documents: string[] = [];
    for (let job = from; job < Math.min(jobs, from + 1_000); job++) {
      documents.push(`{"payload":${payloadOf(job)},"run_at":${runAt},"attempts":0}`);
    }
    engine.query("put jobs $1", [new Json(`[${documents.join(",")}]`)], CONTEXT);
  }
  return engine;
}

/** Claims one behind the other; microseconds of each, the first tenth of them left out: code is compiled meanwhile. */
function claimTimes(engine: Engine, claims: number): { p50: number; p99: number } {
  const micros: number[] = [];
  for (let at = 0; at < claims; at++) {
    const startedMs = performance.now();
    engine.query(CLAIM, [`w1:${at}`, PAGE], CONTEXT);
    if (at * 10 >= claims) micros.push((performance.now() - startedMs) * 1_000);
  }
  return percentiles(micros);
}

/** One of the workers that take turns: each step is one statement, or one batch of acks. */
class Worker {
  readonly #engine: Engine;
  readonly #name: string;
  readonly #take: DrainOptions["take"];
  #claims = 0;
  #owner = "";
  #read: number[] = [];
  #won: number[] = [];
  #next: "take" | "set" | "read back" | "ack" | "done" = "take";
  acked = 0;
  read = 0;
  lost = 0;

  constructor(engine: Engine, name: string, take: DrainOptions["take"]) {
    this.#engine = engine;
    this.#name = name;
    this.#take = take;
  }

  get done(): boolean {
    return this.#next === "done";
  }

  step(): void {
    switch (this.#next) {
      case "take":
        this.#owner = `${this.#name}:${++this.#claims}`;
        if (this.#take === "claim") {
          this.#won = this.#ids(CLAIM, [this.#owner, PAGE]);
          this.#took(this.#won.length);
        } else {
          this.#read = this.#ids(READ_PAGE, [PAGE]);
          this.#next = this.#read.length === 0 ? "done" : "set";
        }
        return;
      case "set":
        this.#engine.query(takePage(this.#read.length), [this.#owner, ...this.#read], CONTEXT);
        this.#next = "read back";
        return;
      case "read back":
        this.#won = this.#ids(readBack(this.#read.length), [this.#owner, ...this.#read]);
        this.#took(this.#read.length);
        return;
      case "ack": {
        const acks = this.#won.map((id) => ({ text: ACK, params: [id, this.#owner] }));
        this.acked += this.#engine.batch(acks, CONTEXT).wrote;
        this.#next = "take";
        return;
      }
      case "done":
        return;
    }
  }

  #took(read: number): void {
    this.read += read;
    this.lost += read - this.#won.length;
    if (read === 0) this.#next = "done";
    else this.#next = this.#won.length === 0 ? "take" : "ack";
  }

  #ids(text: string, params: Value[]): number[] {
    const { body } = this.#engine.query(text, params, CONTEXT);
    return (JSON.parse(body) as { id: number }[]).map(({ id }) => id);
  }
}

/** Drawn at random, the same for one seed. */
function orderOf(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    // mulberry32
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

function taking(take: DrainOptions["take"], jobs: number): { perSecond: number; lost: number } {
  const engine = filled(CREATE, jobs);
  const workers = Array.from({ length: WORKERS }, (_, at) => new Worker(engine, `w${at}`, take));
  const draw = orderOf(Number(values.seed));
  const running = [...workers];
  const startedMs = performance.now();
  while (running.length > 0) {
    const at = draw(running.length);
    const worker = running[at];
    worker?.step();
    if (worker?.done === true) running.splice(at, 1);
  }
  const seconds = (performance.now() - startedMs) / 1_000;
  const sum = (of: (worker: Worker) => number): number => workers.reduce((total, worker) => total + of(worker), 0);
  if (sum(({ acked }) => acked) !== jobs) throw new Error("not every job was acked");
  return { perSecond: jobs / seconds, lost: sum(({ lost }) => lost) / sum(({ read }) => read) };
}

async function overHttp(sync: string, take: DrainOptions["take"], ack: DrainOptions["ack"]): Promise<DrainResult> {
  const server = await startServer({ sync });
  try {
    const connection = await LoadConnection.open(server.port, (why) => {
      throw why;
    });
    await connection.ask("/query", JSON.stringify({ query: CREATE }));
    await fill(connection, HTTP_JOBS);
    connection.close();
    const { port } = server;
    return await drainElsewhere({ port, clients: WORKERS, page: PAGE, jobs: HTTP_JOBS, firstId: 1, take, ack });
  } finally {
    await server.stop();
  }
}

function perSecond({ jobs, seconds }: DrainResult): string {
  return `${rounded(jobs / seconds)} jobs/s`;
}

const percent = (share: number): string => `${(share * 100).toFixed(0)} %`;
const micros = ({ p50, p99 }: { p50: number; p99: number }): string =>
  `${p50.toFixed(1)} us p50, ${p99.toFixed(1)} p99`;

const here = machine();
console.log(machineWords(here));
console.log(`${JOBS} jobs in process, ${HTTP_JOBS} over HTTP, ${WORKERS} workers, ${PAGE} jobs a claim\n`);

const sorted = filled(CREATE, JOBS);
add(
  "claim of 10, one worker, in process",
  micros(claimTimes(sorted, Math.min(20_000, JOBS / PAGE / 2))),
  "18.7 us p50, 25.8 p99",
);
const plain = filled(CREATE.replace(" @sorted", ""), JOBS);
const scan = claimTimes(plain, 20);
add("the same without an index", `${(scan.p50 / 1_000).toFixed(0)} ms`, "133 ms");

const claims = taking("claim", JOBS);
add("16 workers claim and ack, in process", `${rounded(claims.perSecond)} jobs/s`, "185 800 jobs/s");
const three = taking("read-set-read", Math.ceil(JOBS / 10));
add("16 workers read, set, read back, ack, in process", `${rounded(three.perSecond)} jobs/s`, "93 800 jobs/s");
add("jobs lost to another worker by then", percent(three.lost), "43 %");

for (const sync of ["always", "250"]) {
  const claim = await overHttp(sync, "claim", "batch");
  add(`16 HTTP clients claim and ack, --sync ${sync}`, perSecond(claim), "138 500 jobs/s");
  const reads = await overHttp(sync, "read-set-read", "batch");
  add(`16 HTTP clients read, set, read back, ack, --sync ${sync}`, perSecond(reads), "48 200 jobs/s");
  add("jobs lost to another client by then", percent(reads.lost / reads.read), "77 %");
}
const list = await overHttp("always", "claim", "list");
add("16 HTTP clients, ten acks in one statement, --sync always", perSecond(list), "-");

console.log(
  `\n${tableText(
    ["case", "here", "reference (M1 Air)"],
    rows.map(({ what, figure, reference }) => [what, figure, reference]),
  )}`,
);
console.log(`\nwritten to ${writeResults("queue", { machine: here, jobs: JOBS, httpJobs: HTTP_JOBS, rows })}`);

const held = `${import.meta.dir}/held.ts`;
if (!values["no-held"] && existsSync(held)) {
  console.log("\nHeld claims:\n");
  await Bun.spawn([process.execPath, held], { stdout: "inherit", stderr: "inherit" }).exited;
}
