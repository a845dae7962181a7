/**
 * Random histories: workers over one queue whose answers are lost, late or refused, that stop and start, whose handlers
 * fail and dawdle. Whatever happens, no job is lost or settled twice, and no worker believes in a lease that another
 * worker's claim has ended. `FENEC_SEED` repeats one; `FENEC_HISTORIES` sets how many.
 */

import { expect, test } from "bun:test";
import { connect, type JobContext, JobError, type Worker, worker } from "../../src/client/index.ts";
import { FakeQueue, type FakeRow, type Fault } from "./fake_queue.ts";
import { ManualClock, settled } from "./manual_clock.ts";

const LEASE_MS = 3_000;
const MOST_DELAY_MS = 700;
const ATTEMPTS = 4;

class Random {
  #state: number;
  constructor(seed: number) {
    this.#state = seed | 1;
  }
  below(n: number): number {
    this.#state = (Math.imul(this.#state, 1664525) + 1013904223) >>> 0;
    return Math.floor((this.#state / 2 ** 32) * n);
  }
  chance(part: number): boolean {
    return this.below(1_000) < part * 1_000;
  }
}

async function history(seed: number): Promise<void> {
  const random = new Random(seed);
  const clock = new ManualClock();
  const queue = new FakeQueue(clock);
  const jobs = connect("http://queue.test", { fetch: queue.fetch }).from("jobs");
  const running = new Set<{ readonly id: number; readonly context: JobContext }>();
  const ended = new Map<number, string[]>();
  const wrong: string[] = [];
  let faulty = true;
  /** Claims told, by job and token, with how they ended. */
  const claims = new Map<string, string[]>();
  /** Told as lost, so what was last said of them may have been written all the same. */
  const lost = new Set<number>();

  queue.onTake = (row) => {
    for (const { id, context } of running) {
      const sinceMs = clock.now() - Number(row.run_at);
      if (id === row.id && !context.signal.aborted && sinceMs > MOST_DELAY_MS) {
        wrong.push(`job ${id} was taken ${sinceMs} ms after its lease, and its worker still believed in it`);
      }
    }
  };

  const handler = async (
    job: { readonly id: number; readonly payload: unknown },
    context: JobContext,
  ): Promise<void> => {
    const run = { id: job.id, context };
    running.add(run);
    const takesMs = random.chance(0.1) ? random.below(9_000) : random.below(400);
    const ignores = random.chance(0.3);
    await new Promise<void>((resolve, reject) => {
      const cancel = clock.after(takesMs, resolve);
      context.signal.addEventListener("abort", () => {
        if (ignores) return;
        cancel();
        reject(context.signal.reason);
      });
    }).finally(() => running.delete(run));
    if (!faulty) return;
    if (random.chance(0.05)) throw new JobError("hopeless", { dead: true });
    if (random.chance(0.15)) throw new Error("failed");
    if (random.chance(0.1)) context.enqueue(jobs, random.chance(0.2) ? "bad" : `after ${job.id}`);
  };

  const start = (): Worker => {
    const options = {
      clock,
      leaseMs: LEASE_MS,
      concurrency: 1 + random.below(4),
      prefetch: random.below(4),
      batch: 1 + random.below(5),
      waitMs: random.chance(0.8) ? 5_000 : 0,
      attempts: ATTEMPTS,
      backoff: () => random.below(2_000),
    };
    const one: Worker = worker(jobs, handler, options);
    for (const event of ["done", "dead"] as const) {
      one.on(event, ({ id }: { readonly id: number }) => ended.set(id, [...(ended.get(id) ?? []), event]));
    }
    one.on("claimed", (taken) => {
      for (const { id, owner } of taken) claims.set(`${id} by ${owner}`, []);
    });
    for (const event of ["done", "failed", "dead", "lost", "released"] as const) {
      one.on(event, ({ id, owner }: { readonly id: number; readonly owner: unknown }) => {
        claims.get(`${id} by ${owner}`)?.push(event);
        if (event === "lost") lost.add(id);
      });
    }
    one.on("error", () => undefined);
    return one;
  };

  const workers = [start(), start()];
  const stopping: Promise<void>[] = [];
  const faults: readonly (() => Fault)[] = [
    () => "lose the answer",
    () => "swallow",
    () => ({ status: 503, code: "overloaded" }),
    () => ({ delayMs: random.below(MOST_DELAY_MS) }),
  ];
  // The first claims pass: a refused one would end its worker, as it should.
  await settled();
  let put = 0;
  for (let step = 0; step < 60; step++) {
    if (random.chance(0.5)) queue.put(++put, { run_at: clock.now() + (random.chance(0.3) ? random.below(4_000) : 0) });
    if (random.chance(0.3)) queue.faults.push((faults[random.below(faults.length)] as () => Fault)());
    if (random.chance(0.05)) queue.down = !queue.down;
    if (random.chance(0.05)) {
      const at = random.below(workers.length);
      stopping.push((workers[at] as Worker).stop({ graceMs: random.below(2_000) }));
      workers[at] = start();
    }
    await clock.advance(random.below(600));
  }

  queue.down = false;
  queue.faults.length = 0;
  faulty = false;
  await clock.advance(120_000);
  for (const one of workers) stopping.push(one.stop());
  await clock.advance(60_000);
  await Promise.all(stopping);

  const left = new Map<number, FakeRow>(queue.rows.map((row) => [row.id, row]));
  for (const row of left.values()) {
    if (row.run_at !== null || row.owner !== null) wrong.push(`job ${row.id} was left behind: ${JSON.stringify(row)}`);
  }
  for (const [id, events] of ended) {
    if (events.length > 1) wrong.push(`job ${id} ended as ${events.join(" and ")}`);
    if (left.has(id) !== (events[0] === "dead")) wrong.push(`job ${id} was told ${events[0]}`);
  }
  for (const [claim, events] of claims) {
    if (events.length !== 1) wrong.push(`job ${claim} ended as ${events.join(" and ") || "nothing"}`);
  }
  for (let id = 1; id <= queue.jobs; id++) {
    if (!ended.has(id) && !lost.has(id)) wrong.push(`nobody was told how job ${id} ended`);
  }
  if (queue.held !== 0) wrong.push(`${queue.held} claims are still held`);
  if (running.size !== 0) wrong.push(`${running.size} handlers still run`);
  if (clock.timers !== 0) wrong.push(`${clock.timers} timers are left`);
  expect({ seed, wrong }).toEqual({ seed, wrong: [] });
}

test("random histories", async () => {
  const first = Number(process.env["FENEC_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
  const count = Number(process.env["FENEC_HISTORIES"] ?? (process.env["FENEC_SEED"] === undefined ? 20 : 1));
  for (let n = 0; n < count; n++) await history(first + n);
}, 600_000);
