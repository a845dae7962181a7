/**
 * The age of a queue counted from when the oldest job was written, also while it was not due: a job put for the next morning
 * raised the alarm all night. https://github.com/zoolutions/pgbus/issues/389
 *
 * Right: only a job that could be taken has an age, and it counts from its `run_at`. A job whose lease ended ages from the end
 * of the lease. A job without a time never counts.
 */

import { expect, setDefaultTimeout, test } from "bun:test";
import { PATIENCE_MS } from "../harness/server.ts";
import { type Queue, startOnTestClock } from "./queue.ts";

setDefaultTimeout(PATIENCE_MS);

const DAY_MS = 86_400_000;

function age(queue: Queue): Promise<number | undefined> {
  return queue.server.metric("fenec_queue_oldest_ready_seconds", '{collection="jobs"}');
}

test("the oldest ready job's age", async () => {
  await using queue = await startOnTestClock();
  const { server } = queue;
  // 01:45 of a day after the test clock's.
  const midnightMs = (Math.floor((await server.now()) / DAY_MS) + 1) * DAY_MS;
  const at = (time: string): string => `${new Date(midnightMs).toISOString().slice(0, 10)}T${time}Z`;
  await server.setClock(at("01:45:00"));
  expect(await age(queue)).toBe(0);

  await server.run(`put jobs {payload: 1, run_at: "${at("11:45:00")}", attempts: 0}`);
  await server.setClock(at("06:29:05"));
  expect(await age(queue)).toBe(0);

  await queue.put("2");
  await server.advance(3_000);
  expect(await age(queue)).toBe(3);
  expect((await queue.claim("w:1", 1, 10_000)).length).toBe(1);
  expect(await age(queue)).toBe(0);
  await server.advance(14_000);
  expect(await age(queue)).toBe(4);

  expect((await queue.claim("w:2", 1, 10_000)).length).toBe(1);
  await server.run("set jobs {run_at: null, owner: null} where id = 2 require 1");
  await server.advance(60_000);
  expect(await age(queue)).toBe(0);
  await server.setClock(at("11:45:00"));
  await server.advance(7_000);
  expect(await age(queue)).toBe(7);
});
