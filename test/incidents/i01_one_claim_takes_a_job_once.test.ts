/**
 * A queue with a visibility of zero filled one receive with the same message again and again: taking it made it visible at
 * once, and the loop found it anew. https://github.com/localstack/localstack/issues/7397
 *
 * Right: a claim chooses all its rows before it writes the first, so whatever the lease is no job is twice in one answer.
 */

import { afterAll, beforeAll, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { PATIENCE_MS } from "../harness/server.ts";
import { idsOf, jobsOf, type Queue, startOnTestClock } from "./queue.ts";

setDefaultTimeout(PATIENCE_MS);

const LIMITS = [1, 2, 4, 100, 9_999];
const LEASES_MS = [0, -1_000];

let queue: Queue;
beforeAll(async () => {
  queue = await startOnTestClock();
});
beforeEach(() => queue.renew());
afterAll(() => queue.server.kill());

async function claimTwice(limit: number, leaseMs: number): Promise<void> {
  const attempts = new Map<number, number>();
  for (const round of [1, 2]) {
    const claimed = await queue.claim(`w:${round}`, limit, leaseMs);
    expect(claimed.length).toBe(Math.min(limit, 3));
    expect(new Set(idsOf(claimed)).size).toBe(claimed.length);
    for (const job of claimed) {
      expect(job.attempts).toBe((attempts.get(job.id) ?? 0) + 1);
      attempts.set(job.id, job.attempts);
    }
  }
  for (const job of await queue.all()) expect(job.attempts).toBe(attempts.get(job.id) ?? 0);
}

for (const limit of LIMITS) {
  for (const leaseMs of LEASES_MS) {
    test(`limit ${limit}, a lease of ${leaseMs} ms`, async () => {
      for (const payload of ['"a"', '"b"', '"c"']) await queue.put(payload);
      await claimTwice(limit, leaseMs);
    });
  }
}

test("a row that moves ahead of the walk within its own index is not met again", async () => {
  for (const payload of ['"a"', '"b"', '"c"']) await queue.put(payload);
  const set = "set jobs {attempts: attempts + 1, run_at: run_at + 1} order run_at limit 9 returning *";
  expect(jobsOf(await queue.server.run(set)).map(({ id, attempts }) => [id, attempts])).toEqual([
    [1, 1],
    [2, 1],
    [3, 1],
  ]);
  const back = "set jobs {attempts: attempts + 1, run_at: run_at - 5} order run_at desc limit 9 returning *";
  expect(jobsOf(await queue.server.run(back)).map(({ id, attempts }) => [id, attempts])).toEqual([
    [1, 2],
    [2, 2],
    [3, 2],
  ]);
});
