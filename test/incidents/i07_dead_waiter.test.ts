/**
 * A client that blocked on a list and then died was still served: the next push went to its dead connection, and the
 * element was gone. https://github.com/fppt/jedis-mock/issues/770, https://github.com/aws/aws-sdk-js/issues/2350
 *
 * Right: a waiter whose connection has ended takes nothing. Only where the end could not be seen yet when the job came may
 * the job be leased to it, and then it comes back when the lease ends.
 */

import { expect, setDefaultTimeout, test } from "bun:test";
import { PATIENCE_MS } from "../harness/server.ts";
import type { Exchange } from "../harness/wire.ts";
import { type Queue, startInMemory } from "./queue.ts";

setDefaultTimeout(PATIENCE_MS);

/** Of a race that either side may win, the share the dead may. */
const MAX_LOST_SHARE = 0.05;

/** Comes back when the server holds so many; what the client has sent and closed takes a moment to get there. */
async function untilHeld(queue: Queue, count: number): Promise<void> {
  const end = Date.now() + 10_000;
  while ((await queue.server.metric("fenec_held_claims")) !== count) {
    if (Date.now() > end) throw new Error(`never ${count} claims held`);
  }
}

for (const [how, leave] of [
  ["reset", (held: Exchange) => held.drop()],
  ["ended by a half close", (held: Exchange) => held.halfClose()],
] as const) {
  test(`a waiter whose connection was ${how} takes nothing`, async () => {
    await using queue = await startInMemory();
    const dead = queue.hold("a:1", 1, 30_000, 20_000);
    await untilHeld(queue, 1);
    leave(dead);
    await untilHeld(queue, 0);
    await queue.put('"foo"');
    expect((await queue.claim("b:1", 1, 30_000)).map(({ owner, attempts }) => [owner, attempts])).toEqual([["b:1", 1]]);
  });
}

test("500 dead waiters stand before a live one, and the first job is the live one's", async () => {
  await using queue = await startInMemory();
  const dead = Array.from({ length: 500 }, (_, index) => queue.hold(`a:${index}`, 1, 30_000, 20_000));
  await untilHeld(queue, 500);
  const live = queue.hold("b:1", 1, 30_000, 20_000);
  await untilHeld(queue, 501);
  for (const held of dead) held.drop();
  await untilHeld(queue, 1);
  await queue.put('"foo"');
  expect((await live.answer).body).toContain('"owner":"b:1","attempts":1');
});

test("dropped in the very moment the job is put, it is served to the dead seldom and never lost", async () => {
  await using queue = await startInMemory();
  const rounds = process.env["FENEC_LONG"] === undefined ? 200 : 1_000;
  const leaseMs = 40;
  let lost = 0;
  for (let round = 0; round < rounds; round += 1) {
    const dead = queue.hold("a", 1, leaseMs, 20_000);
    await untilHeld(queue, 1);
    dead.drop();
    await queue.put(String(round));
    // At once, or when the dead one's lease has ended: then it is the second attempt.
    const taken = (await queue.claim("b", 1, 30_000))[0] ?? (await claimLater(queue));
    if (taken?.attempts === 2) lost += 1;
    expect([taken?.owner, taken?.attempts]).toEqual(["b", taken?.attempts === 2 ? 2 : 1]);
    await queue.ack(taken?.id ?? 0, "b");
    await untilHeld(queue, 0);
  }
  expect(lost / rounds).toBeLessThan(MAX_LOST_SHARE);
});

async function claimLater(queue: Queue): Promise<{ id: number; owner: string | null; attempts: number } | undefined> {
  const end = Date.now() + 5_000;
  while (Date.now() < end) {
    const [job] = await queue.claim("b", 1, 30_000);
    if (job !== undefined) return job;
  }
  return undefined;
}
