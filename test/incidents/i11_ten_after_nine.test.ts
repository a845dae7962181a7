/**
 * Jobs of one priority and one time came out as 1, 10, 11, 2, …: their ids were compared as texts.
 * https://github.com/OptimalBits/bull/issues/183
 *
 * Right: jobs that are equal in the claim's order come by their ids as numbers, rising, whether the order itself rises or
 * falls, and still so after a crash and from a snapshot.
 */

import { afterAll, beforeAll, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { PATIENCE_MS, Scratch } from "../harness/server.ts";
import { CREATE, idsOf, jobsOf, type Queue, startOnDisk, startOnTestClock } from "./queue.ts";

setDefaultTimeout(PATIENCE_MS);

const PRIO = "create collection prio (n int, priority int @sorted, run_at timestamp @sorted, owner text, attempts int)";
const PAST = '"2020-01-01T00:00:00Z"';
const TWELVE = Array.from({ length: 12 }, (_, index) => index + 1);

let queue: Queue;
beforeAll(async () => {
  queue = await startOnTestClock();
});
beforeEach(() => queue.renew());
afterAll(() => queue.server.kill());

async function putTwelve(queue: Queue, collection: string, document: string): Promise<void> {
  for (const _ of [1, 2]) await queue.server.run(`put ${collection} [${new Array(6).fill(document)}]`);
}

async function claimOneByOne(queue: Queue, collection: string, order: string): Promise<readonly number[]> {
  const ids: number[] = [];
  const text = `set ${collection} {owner: "w", run_at: now() + 60000, attempts: 1} where run_at <= now() ${order} limit 1 returning *`;
  for (const _ of TWELVE) ids.push(...idsOf(jobsOf(await queue.server.run(text))));
  return ids;
}

test("by time", async () => {
  await putTwelve(queue, "jobs", `{run_at: ${PAST}, attempts: 0}`);
  expect(await claimOneByOne(queue, "jobs", "order run_at")).toEqual(TWELVE);
});

for (const order of ["order run_at desc", "", "order attempts", "order attempts - 1 desc"]) {
  test(`by ${order === "" ? "no order" : order.slice("order ".length)}`, async () => {
    await putTwelve(queue, "jobs", `{run_at: ${PAST}, attempts: 1}`);
    expect(await claimOneByOne(queue, "jobs", order)).toEqual(TWELVE);
  });
}

for (const order of ["order priority", "order priority desc", "order priority desc, run_at"]) {
  test(`by ${order.slice("order ".length)}`, async () => {
    await queue.server.run(PRIO);
    await putTwelve(queue, "prio", `{priority: 5, run_at: ${PAST}, attempts: 0}`);
    expect(await claimOneByOne(queue, "prio", order)).toEqual(TWELVE);
  });
}

for (const [how, before] of [
  ["a crash", []],
  ["a snapshot and a crash", ["compact"]],
] as const) {
  test(`after ${how}`, async () => {
    using scratch = new Scratch();
    {
      await using stored = await startOnDisk(scratch.path);
      await stored.server.run(CREATE);
      await putTwelve(stored, "jobs", `{run_at: ${PAST}, attempts: 0}`);
      for (const statement of before) await stored.server.run(statement);
    }
    await using stored = await startOnDisk(scratch.path);
    expect(await claimOneByOne(stored, "jobs", "order run_at")).toEqual(TWELVE);
  });
}

test("a thousand by sevens", async () => {
  const documents = new Array(1_000).fill(`{run_at: ${PAST}, attempts: 0}`);
  await queue.server.run(`put jobs [${documents}]`);
  const ids: number[] = [];
  for (
    let claimed = await queue.claim("w", 7, 60_000);
    claimed.length > 0;
    claimed = await queue.claim("w", 7, 60_000)
  ) {
    ids.push(...idsOf(claimed));
  }
  expect(ids).toEqual(Array.from({ length: 1_000 }, (_, index) => index + 1));
});
