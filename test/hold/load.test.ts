/**
 * Workers that wait and sometimes die, producers whose jobs are partly delayed: every job is acked once, none is claimed
 * before its time, none is held by two, and nobody is held in the end. `FENEC_LOAD=40` is forty times as many jobs.
 */

import { expect, setDefaultTimeout, test } from "bun:test";
import { PATIENCE_MS, Server } from "../harness/server.ts";
import { Random } from "../store/random.ts";

setDefaultTimeout(PATIENCE_MS * 10);

const { FENEC_SEED: given, FENEC_LOAD: load } = process.env;
const seed = given === undefined ? Math.floor(Math.random() * 2 ** 32) : Number(given);
const WORKERS = 12;
const PRODUCERS = 3;
const JOBS_EACH = 150 * Number(load ?? 1);
const JOBS = PRODUCERS * JOBS_EACH;
const LEASE_MS = 150;

const CREATE = "create collection jobs (n int, due timestamp, run_at timestamp @sorted, owner text, attempts int)";
const CLAIM = `set jobs {owner: $1, run_at: now() + ${LEASE_MS}, attempts: attempts + 1} where run_at <= now() order run_at limit 3 returning id, n, due, run_at, attempts`;
const ACK = "del jobs where id = $1 and owner = $2 and run_at > now() require 1";

interface Claimed {
  readonly id: number;
  readonly n: number;
  readonly due: string;
  readonly run_at: string;
  readonly attempts: number;
}

/** By `fetch`, whose connections are kept: a connection for each request is more work than the request. */
class Client {
  readonly #url: string;

  constructor(server: Server) {
    this.#url = `${server.url}/query`;
  }

  async ask(query: string, params: readonly unknown[], waitMs = 0): Promise<{ status: number; body: unknown }> {
    const headers: Record<string, string> = waitMs === 0 ? {} : { "Fenec-Wait": String(waitMs) };
    const answer = await fetch(this.#url, { method: "POST", headers, body: JSON.stringify({ query, params }) });
    return { status: answer.status, body: await answer.json() };
  }
}

test(`every job once, none before its time, nobody held in the end (FENEC_SEED=${seed})`, async () => {
  const random = new Random(seed);
  await using server = disposable(await Server.start({ flags: ["--in-memory"] }));
  const client = new Client(server.value);
  await client.ask(CREATE, []);
  const acked = new Map<number, number>();
  /** Until when whom a job is leased to, by our clock: a second claim before that would be one too many. */
  const leases = new Map<number, { readonly untilMs: number; readonly attempts: number }>();
  let deaths = 0;

  const produce = async (producer: number): Promise<void> => {
    for (let at = 0; at < JOBS_EACH; at++) {
      const delayMs = random.chance(1 / 3) ? random.below(400) : 0;
      const n = producer * JOBS_EACH + at;
      const put = `put jobs {n: $1, due: now() + ${delayMs}, run_at: now() + ${delayMs}, attempts: 0}`;
      expect((await client.ask(put, [n])).status).toBe(200);
    }
  };

  const work = async (worker: number): Promise<void> => {
    for (let round = 1; acked.size < JOBS; round++) {
      const owner = `w${worker}:${round}`;
      const { status, body } = await client.ask(CLAIM, [owner], 500);
      expect(status).toBe(200);
      const jobs = body as Claimed[];
      expect(jobs.length).toBeLessThanOrEqual(3);
      for (const job of jobs) {
        const untilMs = Date.parse(job.run_at);
        const before = leases.get(job.n);
        // It was claimed at the lease's end less its length: not before its time, nor before another's lease was over.
        expect(untilMs - LEASE_MS).toBeGreaterThanOrEqual(Date.parse(job.due));
        if (before !== undefined) expect(untilMs - LEASE_MS).toBeGreaterThanOrEqual(before.untilMs);
        expect(job.attempts).toBe((before?.attempts ?? 0) + 1);
        leases.set(job.n, { untilMs, attempts: job.attempts });
      }
      if (worker % 4 === 0 && round % 5 === 0) {
        deaths += jobs.length;
        continue;
      }
      for (const { id, n } of jobs) {
        const ack = await client.ask(ACK, [id, owner]);
        if (ack.status === 200) acked.set(n, (acked.get(n) ?? 0) + 1);
        // A machine at work may let a lease lapse: then it is refused, and the job comes again.
        else expect(ack.status).toBe(412);
      }
    }
  };

  const producers = Array.from({ length: PRODUCERS }, (_, at) => produce(at));
  const workers = Array.from({ length: WORKERS }, (_, at) => work(at));
  await Promise.all([...producers, ...workers]);
  expect(acked.size).toBe(JOBS);
  expect(new Set(acked.values())).toEqual(new Set([1]));
  expect(deaths).toBeGreaterThan(0);
  const left = await client.ask("get jobs count", []);
  expect(left.body).toEqual([{ count: 0 }]);
  expect(await server.value.metric("fenec_held_claims")).toBe(0);
});

function disposable(value: Server): AsyncDisposable & { readonly value: Server } {
  return { value, [Symbol.asyncDispose]: () => value.kill() };
}
