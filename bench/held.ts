/**
 * Waiting claims: how soon a held worker has a job, what waiting costs, and who is nearest among many. `bun run bench/held.ts`,
 * or with the names of some of the parts: `put`, `due`, `idle`, `nearest`, `lines`.
 *
 * Server and clients share the machine, so figures are of several rounds the best, and CPU is the server's own. The
 * reference figures are of another server of this kind on other hardware (an M1), for the eye.
 */

import { type ChildServer, startServer } from "./child_server.ts";
import { Disk } from "./disk.ts";
import { LoadConnection } from "./load_connection.ts";
import { machine, machineWords } from "./machine.ts";
import { residentBytes } from "./processes.ts";
import { writeResults } from "./results.ts";
import { rounded, tableText } from "./table.ts";

const ROUNDS = Number(process.env["FENEC_BENCH_ROUNDS"] ?? 3);
const PUTS = Number(process.env["FENEC_BENCH_PUTS"] ?? 300);
const ORDERS = Number(process.env["FENEC_BENCH_ORDERS"] ?? 1_000);
const IDLE_SECONDS = 10;
const WAIT = "Fenec-Wait: 30000\r\n";
const CLAIM =
  "set jobs {owner: $1, run_at: now() + 30000, attempts: attempts + 1} where run_at <= now() order run_at limit 1 returning id, run_at";
const JOBS = "create collection jobs (payload json, run_at timestamp @sorted, owner text, attempts int, error text)";
const RIDES = "create collection rides (pickup geo @geo, run_at timestamp @sorted, owner text, attempts int)";
const RIDE =
  "set rides {owner: $1, run_at: now() + 30000, attempts: attempts + 1} where run_at <= now() order distance(pickup, $2) limit 1 returning id";
const LINES = "create collection work (kind int, run_at timestamp @sorted, owner text)";
const WORK =
  "set work {owner: $1, run_at: now() + 30000} where kind = $2 and run_at <= now() order run_at limit 1 returning id, kind";

interface Measured {
  readonly name: string;
  readonly p50: number;
  readonly p99: number;
  readonly unit: string;
  readonly reference: string;
  readonly note: string;
}

const measured: Measured[] = [];

function query(text: string, params: readonly unknown[] = []): string {
  return JSON.stringify({ query: text, params });
}

function broken(why: Error): void {
  throw why;
}

function open(server: ChildServer): Promise<LoadConnection> {
  return LoadConnection.open(server.port, broken);
}

async function run(connection: LoadConnection, text: string, params: readonly unknown[] = []): Promise<string> {
  const { status, body } = await connection.ask("/query", query(text, params));
  if (status !== 200) throw new Error(`${status}: ${body}`);
  return body;
}

function hold(connection: LoadConnection, body: string): Promise<string> {
  return new Promise((resolve) => {
    connection.post(
      "/query",
      body,
      (status, answer) => {
        if (status !== 200) throw new Error(`${status}: ${answer}`);
        resolve(answer);
      },
      WAIT,
    );
  });
}

async function metric(connection: LoadConnection, port: number, name: string): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${port}/_metrics`)).text();
  void connection;
  return Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1]);
}

async function untilHeld(server: ChildServer, connection: LoadConnection, count: number): Promise<void> {
  while ((await metric(connection, server.port, "fenec_held_claims")) !== count) await Bun.sleep(1);
}

function quantiles(list: number[]): { p50: number; p99: number } {
  list.sort((a, b) => a - b);
  const at = (share: number): number => list[Math.min(list.length - 1, Math.floor(list.length * share))] ?? Number.NaN;
  return { p50: at(0.5), p99: at(0.99) };
}

/** Of several rounds the one with the best median. */
async function best(round: () => Promise<{ p50: number; p99: number }>): Promise<{ p50: number; p99: number }> {
  let least = { p50: Number.POSITIVE_INFINITY, p99: Number.POSITIVE_INFINITY };
  for (let at = 0; at < ROUNDS; at++) {
    const found = await round();
    if (found.p50 < least.p50) least = found;
  }
  return least;
}

function note(row: Measured): void {
  measured.push(row);
  console.log(`${row.name}: ${rounded(row.p50)} / ${rounded(row.p99)} ${row.unit}`);
}

function epochMs(): number {
  return performance.timeOrigin + performance.now();
}

/** From the sending of a put until the worker that waited has the job. */
async function putToHeld(sync: string, name: string, reference: string): Promise<void> {
  const server = await startServer({ sync });
  const producer = await open(server);
  const worker = await open(server);
  await run(producer, JOBS);
  const disk = new Disk(server.directory);
  let overMs = Number.POSITIVE_INFINITY;
  const round = async (): Promise<{ p50: number; p99: number }> => {
    const took: number[] = [];
    for (let at = 0; at < PUTS; at++) {
      if (sync === "always") disk.sync();
      const taken = hold(worker, query(CLAIM, [`w:${at}`]));
      await untilHeld(server, producer, 1);
      const startedMs = performance.now();
      const put = run(producer, 'put jobs {payload: {"n": 1}, run_at: now(), attempts: 0}');
      await taken;
      took.push(performance.now() - startedMs);
      await put;
      await run(producer, "del jobs");
    }
    const found = quantiles(took);
    if (sync === "always") overMs = Math.min(overMs, found.p50 - disk.p50());
    return found;
  };
  await round();
  const { p50, p99 } = await best(round);
  const over = sync === "always" ? `, ${overMs.toFixed(2)} ms over the disk's own write and fdatasync` : "";
  note({ name, p50, p99, unit: "ms", reference, note: `--sync ${sync}${over}` });
  disk.close();
  producer.close();
  worker.close();
  await server.stop();
}

/** The same with a worker that asks again and again. */
async function putToPolling(everyMs: number, reference: string): Promise<void> {
  const server = await startServer({ sync: "250" });
  const producer = await open(server);
  const worker = await open(server);
  await run(producer, JOBS);
  const took: number[] = [];
  for (let at = 0; at < Math.min(PUTS, 100); at++) {
    let startedMs = 0;
    const taken = (async (): Promise<void> => {
      while ((await run(worker, CLAIM, [`w:${at}`])) === "[]") await Bun.sleep(everyMs);
      took.push(performance.now() - startedMs);
    })();
    await Bun.sleep(everyMs * Math.random() * 2);
    startedMs = performance.now();
    await run(producer, 'put jobs {payload: {"n": 1}, run_at: now(), attempts: 0}');
    await taken;
    await run(producer, "del jobs");
  }
  const { p50, p99 } = quantiles(took);
  note({ name: `put → worker asking every ${everyMs} ms`, p50, p99, unit: "ms", reference, note: "" });
  producer.close();
  worker.close();
  await server.stop();
}

/** How long after its time a delayed job is with the worker that waits for it. */
async function dueToHeld(): Promise<void> {
  const server = await startServer({ sync: "250" });
  const producer = await open(server);
  const worker = await open(server);
  await run(producer, JOBS);
  const round = async (): Promise<{ p50: number; p99: number }> => {
    const late: number[] = [];
    for (let at = 0; at < Math.min(PUTS, 150); at++) {
      const dueMs = Date.now() + 20 + Math.floor(Math.random() * 30);
      await run(producer, "put jobs {payload: 1, run_at: $1, attempts: 0}", [dueMs]);
      await hold(worker, query(CLAIM, [`w:${at}`]));
      late.push(epochMs() - dueMs);
      await run(producer, "del jobs");
    }
    return quantiles(late);
  };
  await round();
  const { p50, p99 } = await best(round);
  note({
    name: "a delayed job after its time",
    p50,
    p99,
    unit: "ms",
    reference: "0.04 / 1.9",
    note: "the way to the client included",
  });
  producer.close();
  worker.close();
  await server.stop();
}

/** Many held with nothing due: what the server spends on them, and what each takes. */
async function idle(count: number, reference: string): Promise<void> {
  const server = await startServer({ sync: "250", args: ["--max-connections", "0"] });
  const producer = await open(server);
  await run(producer, JOBS);
  await run(producer, "put jobs {payload: 1, run_at: now() + 3600000, attempts: 0}");
  const before = residentBytes(server.pid);
  const workers = await Promise.all(Array.from({ length: count }, () => open(server)));
  for (const [at, worker] of workers.entries()) void hold(worker, query(CLAIM, [`w:${at}`])).catch(() => {});
  await untilHeld(server, producer, count);
  await Bun.sleep(2_000);
  const kiB = (residentBytes(server.pid) - before) / 1024 / count;
  const cpuBefore = server.cpuSeconds();
  await Bun.sleep(IDLE_SECONDS * 1_000);
  const cpuMs = (server.cpuSeconds() - cpuBefore) * 1_000;
  note({
    name: `${count === 0 ? "nobody" : rounded(count)} held for ${IDLE_SECONDS} s, nothing due`,
    p50: cpuMs,
    p99: cpuMs,
    unit: "ms CPU",
    reference,
    note: count === 0 ? "" : `${kiB.toFixed(1)} KiB resident each, connection included`,
  });
  for (const worker of workers) worker.close();
  producer.close();
  await server.stop();
}

/** A city some 10 km across. */
function somewhere(): [number, number] {
  return [28.95 + Math.random() * 0.12, 41 + Math.random() * 0.09];
}

/** One order at a time to couriers that wait: from the put until the nearest has it. */
async function nearest(count: number, reference: string): Promise<void> {
  const server = await startServer({ sync: "250", args: ["--max-connections", "0"] });
  const producer = await open(server);
  await run(producer, RIDES);
  const couriers = await Promise.all(Array.from({ length: count }, () => open(server)));
  let taken: ((at: number) => void) | undefined;
  const wait = (at: number): void => {
    const courier = couriers[at] as LoadConnection;
    void hold(courier, query(RIDE, [`c:${at}`, somewhere()])).then(() => taken?.(at));
  };
  for (let at = 0; at < count; at++) wait(at);
  await untilHeld(server, producer, count);
  let cpu = Number.POSITIVE_INFINITY;
  const round = async (): Promise<{ p50: number; p99: number }> => {
    const took: number[] = [];
    const runsBefore = await metric(producer, server.port, "fenec_held_runs_total");
    const cpuBefore = server.cpuSeconds();
    for (let order = 0; order < ORDERS; order++) {
      const winner = new Promise<number>((resolve) => {
        taken = resolve;
      });
      const startedMs = performance.now();
      const put = run(producer, "put rides {pickup: $1, run_at: now(), attempts: 0}", [somewhere()]);
      const at = await winner;
      took.push(performance.now() - startedMs);
      await put;
      await run(producer, "del rides");
      wait(at);
    }
    cpu = Math.min(cpu, ((server.cpuSeconds() - cpuBefore) * 1_000) / ORDERS);
    const runs = (await metric(producer, server.port, "fenec_held_runs_total")) - runsBefore;
    if (runs !== ORDERS) throw new Error(`${runs} runs for ${ORDERS} orders`);
    await untilHeld(server, producer, count);
    return quantiles(took);
  };
  await round();
  const { p50, p99 } = await best(round);
  note({
    name: `nearest of ${rounded(count)} couriers, put → taken`,
    p50,
    p99,
    unit: "ms",
    reference,
    note: `${cpu.toFixed(2)} ms CPU an order (put, claim, ack, and the next wait), one run an order`,
  });
  for (const courier of couriers) courier.close();
  producer.close();
  await server.stop();
}

/** Ten thousand held on five hundred lines, two thousand puts a second. */
async function lines(): Promise<void> {
  const held = 10_000;
  const kinds = 500;
  const perSecond = 2_000;
  const seconds = 5;
  const server = await startServer({ sync: "250", args: ["--max-connections", "0"] });
  const producer = await open(server);
  await run(producer, LINES);
  const workers = await Promise.all(Array.from({ length: held }, () => open(server)));
  const seen = new Map<number, number>();
  const putMs = new Map<number, number>();
  const took: number[] = [];
  let open_ = true;
  const wait = (at: number): void => {
    const worker = workers[at] as LoadConnection;
    void hold(worker, query(WORK, [`w:${at}`, at % kinds])).then((body) => {
      for (const { id } of JSON.parse(body) as { id: number }[]) {
        seen.set(id, (seen.get(id) ?? 0) + 1);
        const startedMs = putMs.get(id);
        if (startedMs !== undefined) took.push(performance.now() - startedMs);
      }
      if (open_) wait(at);
    });
  };
  for (let at = 0; at < held; at++) wait(at);
  await untilHeld(server, producer, held);
  const cpuBefore = server.cpuSeconds();
  const startedMs = performance.now();
  let puts = 0;
  const everyMs = 5;
  const batch = (perSecond * everyMs) / 1_000;
  while (puts < perSecond * seconds) {
    const now = performance.now();
    const ids = Array.from({ length: batch }, (_, at) => puts + at + 1);
    for (const id of ids) putMs.set(id, now);
    const rows = ids.map((id) => ({ id, kind: (id * 7) % kinds, run_at: 1 }));
    await run(producer, "put work $1", [rows]);
    puts += batch;
    const ahead = startedMs + (puts / perSecond) * 1_000 - performance.now();
    if (ahead > 0) await Bun.sleep(ahead);
  }
  while (seen.size < puts) await Bun.sleep(5);
  const elapsed = (performance.now() - startedMs) / 1_000;
  const cpu = server.cpuSeconds() - cpuBefore;
  open_ = false;
  for (const [id, times] of seen) if (times !== 1) throw new Error(`job ${id} went to ${times}`);
  const { p50, p99 } = quantiles(took);
  note({
    name: "10 000 held on 500 lines, 2 000 puts a second",
    p50,
    p99,
    unit: "ms",
    reference: "-",
    note: `${rounded(puts / elapsed)} jobs/s, each to one worker; ${Math.round((cpu / elapsed) * 100)} % of a core`,
  });
  for (const worker of workers) worker.close();
  producer.close();
  await server.stop();
}

const PARTS: Readonly<Record<string, () => Promise<void>>> = {
  put: async () => {
    await putToHeld("250", "put → held worker has it", "0.38 / 0.76");
    await putToHeld("always", "put → held worker has it, on disk", "-");
    await putToPolling(10, "0.83 / 10.1");
    await putToPolling(100, "15.5 / 85.8");
  },
  due: dueToHeld,
  idle: async () => {
    await idle(0, "-");
    await idle(1_000, "none measurable, 46 KB");
    await idle(10_000, "-");
  },
  nearest: async () => {
    await nearest(10, "0.18 (0.2 CPU)");
    await nearest(100, "0.31 (0.4 CPU)");
    await nearest(1_000, "1.7 (3.1 CPU)");
    await nearest(10_000, "-");
  },
  lines,
};

const asked = process.argv.slice(2);
const where = machine();
console.log(machineWords(where));
for (const [name, part] of Object.entries(PARTS)) {
  if (asked.length === 0 || asked.includes(name)) await part();
}
const table = tableText(
  ["", "p50", "p99", "unit", "reference p50 / p99", "note"],
  measured.map((row) => [row.name, rounded(row.p50), rounded(row.p99), row.unit, row.reference, row.note]),
);
console.log(`\n${table}`);
if (asked.length === 0) console.log(writeResults("held", { machine: where, measured }));
process.exit(0);
