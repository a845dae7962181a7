/**
 * A worker extended a lease that had ended already, and the message, free for everyone, was hidden from them again.
 * https://github.com/floci-io/floci/issues/902
 *
 * Right: `owner` alone does not tell that a lease still runs, as it stays in the row until the next claim. With the guard
 * `run_at > now()`, which docs/queues.md shows as the normal form, a late extension is refused and changes nothing.
 */

import { expect, setDefaultTimeout, test } from "bun:test";
import { PATIENCE_MS } from "../harness/server.ts";
import { type Queue, startOnTestClock } from "./queue.ts";

setDefaultTimeout(PATIENCE_MS);

const GUARD = "and run_at > now()";

/** One job, leased by `w1:1` for two seconds that ended two seconds ago; nobody has taken it since. */
async function lapsed(): Promise<Queue> {
  const queue = await startOnTestClock();
  await queue.put('"hello"');
  expect((await queue.claim("w1:1", 1, 2_000)).length).toBe(1);
  await queue.server.advance(4_000);
  return queue;
}

test("guarded, a late extension is refused and the job stays free", async () => {
  await using queue = await lapsed();
  const before = (await queue.server.query("get jobs")).body;
  expect((await queue.extend(1, "w1:1", 30_000, GUARD)).status).toBe(412);
  expect((await queue.server.query("get jobs")).body).toBe(before);
  expect((await queue.claim("w2:1", 1, 30_000)).map(({ id, attempts }) => [id, attempts])).toEqual([[1, 2]]);
});

test("without the guard it succeeds, and hides the job", async () => {
  await using queue = await lapsed();
  expect((await queue.extend(1, "w1:1", 30_000)).body).toBe('{"affected":1}');
  expect(await queue.claim("w2:1", 1, 30_000)).toEqual([]);
});

test("guarded, a late ack is refused; without, it succeeds", async () => {
  await using queue = await lapsed();
  expect((await queue.ack(1, "w1:1", GUARD)).status).toBe(412);
  expect((await queue.all()).length).toBe(1);
  expect((await queue.ack(1, "w1:1")).body).toBe('{"affected":1}');
  expect(await queue.all()).toEqual([]);
});

test("the guard holds to the millisecond: up to the end of the lease, not at it", async () => {
  await using queue = await startOnTestClock();
  await queue.put('"hello"');
  await queue.claim("w1:1", 1, 2_000);
  await queue.server.advance(1_999);
  expect((await queue.extend(1, "w1:1", 2_000, GUARD)).status).toBe(200);
  await queue.server.advance(2_000);
  expect((await queue.extend(1, "w1:1", 2_000, GUARD)).status).toBe(412);
  expect((await queue.ack(1, "w1:1", GUARD)).status).toBe(412);
});
