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

test("the second to be put is the first to be due, and no other traffic wakes anybody early", async () => {
  await using queue = await startOnTestClock();
  const first = queue.hold("w:1", 1, 30_000, 30_000);
  while ((await queue.server.metric("fenec_held_claims")) !== 1);
  await queue.server.run("put jobs {payload: 1, run_at: now() + 8000, attempts: 0}");
  await queue.server.advance(1_000);
  await queue.server.run("put jobs {payload: 2, run_at: now() + 3000, attempts: 0}");
  await queue.server.advance(2_999);
  expect(first.answered).toBe(false);
  await queue.server.advance(1);
  expect((await jobsFrom(first)).map(({ id }) => id)).toEqual([2]);
  const second = queue.hold("w:2", 1, 30_000, 30_000);
  while ((await queue.server.metric("fenec_held_claims")) !== 1);
  // Moved away from under it: its old time wakes nobody.
  await queue.server.run("set jobs {run_at: now() + 6000} where id = 1");
  await queue.server.advance(5_999);
  expect(second.answered).toBe(false);
  await queue.server.advance(1);
  expect((await jobsFrom(second)).map(({ id }) => id)).toEqual([1]);
});

test("a lease given up early is taken at once, one extended is not taken before its new end", async () => {
  await using queue = await startOnTestClock();
  await queue.put("1");
  await queue.put("2");
  expect((await queue.claim("w1:1", 2, 3_000)).length).toBe(2);
  const held = queue.hold("w2:1", 1, 30_000, 20_000);
  while ((await queue.server.metric("fenec_held_claims")) !== 1);
  expect((await queue.extend(1, "w1:1", 9_000)).status).toBe(200);
  await queue.server.run("set jobs {owner: null, run_at: now()} where id = 2");
  expect((await jobsFrom(held)).map(({ id, attempts }) => [id, attempts])).toEqual([[2, 2]]);
  const next = queue.hold("w2:2", 1, 30_000, 20_000);
  while ((await queue.server.metric("fenec_held_claims")) !== 1);
  await queue.server.advance(8_999);
  expect(next.answered).toBe(false);
  await queue.server.advance(1);
  expect((await jobsFrom(next)).map(({ id, attempts }) => [id, attempts])).toEqual([[1, 2]]);
});

test("twenty thousand jobs due at one moment, and one waits: it has its three by one run", async () => {
  await using queue = await startOnTestClock();
  const at = (await queue.server.now()) + 1_000;
  const rows = Array.from({ length: 5_000 }, () => `{"run_at":${at},"attempts":0}`).join(",");
  for (let put = 0; put < 4; put++) await queue.server.run("put jobs $1", `[[${rows}]]`);
  const held = queue.hold("w:1", 3, 30_000, 30_000);
  while ((await queue.server.metric("fenec_held_claims")) !== 1);
  await queue.server.advance(1_000);
  expect((await jobsFrom(held)).map(({ id }) => id)).toEqual([1, 2, 3]);
  expect(await queue.server.metric("fenec_held_runs_total")).toBe(1);
});

test("on the wall clock, too: never before its time, and at best within 20 ms of it", async () => {
  await using queue = await startInMemory();
  let leastMs = Number.POSITIVE_INFINITY;
  for (let tries = 0; tries < 8; tries += 1) {
    const dueMs = Date.now() + 150;
    await queue.server.run("put jobs {payload: 1, run_at: $1, attempts: 0}", [dueMs]);
    const held = queue.hold(`w:${tries}`, 1, 30_000, 5_000);
    expect((await jobsFrom(held)).length).toBe(1);
    expect(held.answeredAt).toBeGreaterThanOrEqual(dueMs);
    // A machine at work answers late now and then; a sweep would be late every time.
    leastMs = Math.min(leastMs, (held.answeredAt ?? Number.POSITIVE_INFINITY) - dueMs);
  }
  expect(leastMs).toBeLessThanOrEqual(20);
});
