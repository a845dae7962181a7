/** A claim is one write that takes the job and says who has it: there is no moment in which a job is nobody's. */

import { expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { PATIENCE_MS, Scratch } from "../harness/server.ts";
import { CREATE, idsOf, startOnDisk, startOnTestClock } from "../incidents/queue.ts";

setDefaultTimeout(PATIENCE_MS);

const LEASE_MS = 1_500;

test("killed when the last of a hundred was claimed: all hundred are there, and come again when their leases end", async () => {
  using scratch = new Scratch();
  const path = join(scratch.path, "data");
  const first = await startOnDisk(path);
  await first.server.run(CREATE);
  const rows = Array.from({ length: 100 }, (_, n) => ({ payload: { n }, run_at: 1, attempts: 0 }));
  await first.server.run("put jobs $1", [rows]);
  const taken = await Promise.all(Array.from({ length: 10 }, (_, n) => first.claim(`w${n}`, 10, LEASE_MS)));
  await first.server.kill();
  expect(new Set(taken.flatMap(idsOf)).size).toBe(100);

  const second = await startOnDisk(path);
  const all = await second.all();
  expect(all.map(({ attempts }) => attempts)).toEqual(new Array(100).fill(1));
  const again: number[] = [];
  while (again.length < 100) {
    const answer = second.hold("w", 100, 60_000, 30_000);
    const jobs = JSON.parse((await answer.answer).body) as { id: number; attempts: number }[];
    for (const { id, attempts } of jobs) {
      expect(attempts).toBe(2);
      again.push(id);
    }
  }
  expect(again.toSorted((a, b) => a - b)).toEqual(all.map(({ id }) => id));
  await second.server.kill();
});

test("a claim whose answer cannot be made has taken nothing", async () => {
  await using queue = await startOnTestClock();
  await queue.put("1");
  const text = `set jobs {owner: "w", run_at: now() + 1000, attempts: attempts + 1}
    where run_at <= now() limit 1 returning id, 9223372036854775807 + attempts as sum`;
  expect((await queue.server.query(text)).status).toBe(400);
  expect((await queue.all()).map(({ owner, attempts }) => [owner, attempts])).toEqual([[null, 0]]);
  expect((await queue.claim("w", 1, 1_000)).length).toBe(1);
});

test("who comes back after its lease has gone to another is told so, and changes nothing", async () => {
  await using queue = await startOnTestClock();
  await queue.put("1");
  expect(idsOf(await queue.claim("w1", 1, 1_000))).toEqual([1]);
  await queue.server.advance(1_200);
  expect(idsOf(await queue.claim("w2", 1, 5_000))).toEqual([1]);
  const before = (await queue.server.query("get jobs")).body;
  expect((await queue.ack(1, "w1")).status).toBe(412);
  expect((await queue.extend(1, "w1", 1_000)).status).toBe(412);
  const fail = 'set jobs {owner: null, run_at: now() + 1000, error: "late"} where id = 1 and owner = "w1" require 1';
  expect((await queue.server.query(fail)).status).toBe(412);
  expect((await queue.server.query("get jobs")).body).toBe(before);
  expect((await queue.ack(1, "w2")).status).toBe(200);
});
