/**
 * A message that came due, or whose lease ended, while a long poll was waiting was handed out by the next poll only: the
 * waiting one looked again at nothing but sends. https://github.com/softwaremill/elasticmq/issues/65,
 * https://github.com/getmoto/moto/pull/5733
 *
 * Right: the held claim is answered in the millisecond the job comes due, with no other traffic.
 */

import { expect, setDefaultTimeout, test } from "bun:test";
import { readExact } from "../harness/exact_json.ts";
import { PATIENCE_MS } from "../harness/server.ts";
import type { Exchange } from "../harness/wire.ts";
import { type Job, jobsOf, startInMemory, startOnTestClock } from "./queue.ts";

setDefaultTimeout(PATIENCE_MS);

async function jobsFrom(held: Exchange): Promise<readonly Job[]> {
  const { status, body } = await held.answer;
  expect(status).toBe(200);
  return jobsOf(readExact(body));
}

test("a delayed job comes due", async () => {
  await using queue = await startOnTestClock();
  await queue.server.run('put jobs {payload: "m", run_at: now() + 5000, attempts: 0}');
  const held = queue.hold("w:1", 1, 30_000, 12_000);
  await queue.server.advance(4_999);
  expect(held.answered).toBe(false);
  await queue.server.advance(1);
  const [job, ...more] = await jobsFrom(held);
  expect([job?.attempts, job?.owner, more.length]).toEqual([1, "w:1", 0]);
});

test("a lease ends", async () => {
  await using queue = await startOnTestClock();
  await queue.put('"k"');
  expect((await queue.claim("w1:1", 1, 3_000)).length).toBe(1);
  const held = queue.hold("w2:1", 1, 30_000, 20_000);
  await queue.server.advance(2_999);
  expect(held.answered).toBe(false);
  await queue.server.advance(1);
  const [job] = await jobsFrom(held);
  expect([job?.attempts, job?.owner]).toEqual([2, "w2:1"]);
});

test("on the wall clock, too, and within 50 ms", async () => {
  await using queue = await startInMemory();
  const dueMs = Date.now() + 500;
  await queue.server.run('put jobs {payload: "m", run_at: $1, attempts: 0}', [dueMs]);
  const held = queue.hold("w:1", 1, 30_000, 5_000);
  expect((await jobsFrom(held)).length).toBe(1);
  expect(held.answeredAt).toBeGreaterThanOrEqual(dueMs);
  expect(held.answeredAt).toBeLessThanOrEqual(dueMs + 50);
});
