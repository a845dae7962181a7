/**
 * A message was hidden for a millisecond longer than it should be, and a timer that fired a moment early found nothing and
 * armed itself again for no time at all, over and over. https://github.com/arafato/azurite/issues/117
 *
 * Right: due at T means taken at T, not before and not a millisecond after, and a claim held for it looks once.
 */

import { expect, setDefaultTimeout, test } from "bun:test";
import { readExact } from "../harness/exact_json.ts";
import { PATIENCE_MS } from "../harness/server.ts";
import { jobsOf, startInMemory, startOnTestClock } from "./queue.ts";

setDefaultTimeout(PATIENCE_MS);

test("a job is taken at its time, a lease ends at its end", async () => {
  await using queue = await startOnTestClock();
  const dueMs = (await queue.server.now()) + 1;
  await queue.server.run("put jobs {payload: 1, run_at: $1, attempts: 0}", [dueMs]);
  expect(await queue.claim("w:1", 1, 1_000)).toEqual([]);
  await queue.server.advance(1);
  expect((await queue.claim("w:2", 1, 1_000)).length).toBe(1);
  await queue.server.advance(999);
  expect(await queue.claim("w:3", 1, 1_000)).toEqual([]);
  await queue.server.advance(1);
  expect((await queue.claim("w:4", 1, 1_000)).map(({ attempts }) => attempts)).toEqual([2]);
});

test("a held claim runs once, at that time, and looks once", async () => {
  await using queue = await startOnTestClock();
  const dueMs = (await queue.server.now()) + 1_000;
  await queue.server.run("put jobs {payload: 1, run_at: $1, attempts: 0}", [dueMs]);
  const held = queue.hold("w:1", 1, 1_000, 30_000);
  while ((await queue.server.metric("fenec_held_claims")) !== 1);
  const looks = (await queue.server.metric("fenec_held_looks_total")) ?? Number.NaN;
  await queue.server.advance(999);
  expect(held.answered).toBe(false);
  expect(await queue.server.metric("fenec_held_looks_total")).toBe(looks);
  await queue.server.advance(1);
  expect(jobsOf(readExact((await held.answer).body)).map(({ attempts }) => attempts)).toEqual([1]);
  expect(((await queue.server.metric("fenec_held_looks_total")) ?? Number.NaN) - looks).toBeLessThanOrEqual(1);
  expect(await queue.server.metric("fenec_held_runs_total")).toBe(1);
});

test("the moment is the first by every way of asking: at or past, strictly past, an offset, the other way round", async () => {
  await using queue = await startOnTestClock();
  const dueMs = (await queue.server.now()) + 1_000;
  await queue.server.run("put jobs [{run_at: $1}, {run_at: $1}, {run_at: $1}, {run_at: $1}]", [dueMs]);
  const asked = [
    ["id = 1 and run_at <= now()", 1_000],
    ["id = 2 and run_at < now()", 1_001],
    ["id = 3 and now() - 5 >= run_at", 1_005],
    ["id = 4 and not (run_at > 500 + now())", 500],
  ] as const;
  const held = asked.map(([where]) => queue.server.hold(`del jobs where ${where} returning id`, [], 30_000));
  while ((await queue.server.metric("fenec_held_claims")) !== held.length);
  let at = 0;
  for (const next of [499, 500, 999, 1_000, 1_001, 1_004, 1_005]) {
    await queue.server.advance(next - at);
    at = next;
    const due = asked.filter(([, momentMs]) => momentMs <= at).length;
    expect(await queue.server.metric("fenec_held_claims")).toBe(held.length - due);
  }
  for (const { answer } of held) expect((await answer).body).toMatch(/"id":/);
});

test("on the wall clock a claim that waits for a moment does not ask over and over", async () => {
  await using queue = await startInMemory();
  for (let tries = 0; tries < 10; tries += 1) {
    await queue.server.run("put jobs {payload: 1, run_at: now() + 60, attempts: 0}");
    const held = queue.hold(`w:${tries}`, 1, 30_000, 5_000);
    expect(jobsOf(readExact((await held.answer).body)).length).toBe(1);
  }
  expect(await queue.server.metric("fenec_held_runs_total")).toBeLessThanOrEqual(10);
  expect(await queue.server.metric("fenec_held_looks_total")).toBeLessThanOrEqual(20);
});
