/** Where a sync is done: on the event loop for a few who wait for a quick disk, else in the thread pool. */

import { expect, test } from "bun:test";
import type { Log, LogOptions } from "../../src/log/log.ts";
import { codeOfPromise } from "../harness/code_of.ts";
import { SimDisk } from "../sim/disk.ts";
import { encode, openLog, Timers, turn } from "./log_files.ts";

/** A disk on which syncs off the event loop wait until they are released, and those on it take `tookMs`. */
function opened(options: LogOptions = {}) {
  const wall = new Timers();
  const disk = new SimDisk();
  const at = { tookMs: 0 };
  const { log } = openLog(disk, { wall, ...options });
  const sync = disk.syncFile.bind(disk);
  disk.syncFile = (name, contents) => {
    wall.nowMs += at.tookMs;
    sync(name, contents);
  };
  disk.holdsSyncs = true;
  return { wall, disk, log, at };
}

function append(log: Log, frames = 1): number {
  for (let left = frames; left > 1; left--) log.append(encode("x"), log.seq + 1, 1_000, false);
  return log.append(encode("x"), log.seq + 1, 1_000, false);
}

/** Where the sync of one frame is done. */
async function place(disk: SimDisk, log: Log): Promise<"loop" | "pool"> {
  const durable = log.whenDurable(append(log));
  await turn();
  const held = disk.heldSyncs;
  if (held > 0) disk.releaseSync();
  await durable;
  return held > 0 ? "pool" : "loop";
}

test("a few frames are synced on the event loop, at the end of the first turn that brings no more", async () => {
  const { disk, log } = opened();
  const before = disk.syncs;
  append(log);
  // The turn's end looks at what came after the first one.
  append(log);
  await turn();
  expect([log.durable, disk.syncs - before]).toEqual([0, 0]);
  append(log, 3);
  await turn();
  expect([log.durable, disk.syncs - before]).toEqual([0, 0]);
  await turn();
  expect([log.durable, disk.syncs - before, disk.heldSyncs]).toEqual([5, 1, 0]);
});

test("many frames, or large ones, go to the pool, and who comes meanwhile shares the next sync", async () => {
  const { disk, log } = opened();
  append(log, 33);
  await turn();
  expect([log.durable, disk.heldSyncs]).toEqual([0, 1]);
  const later = log.whenDurable(append(log, 2));
  disk.releaseSync();
  expect(log.durable).toBe(33);
  await later;
  expect([log.durable, disk.heldSyncs, log.counters.syncs]).toEqual([35, 0, 2]);
  // A large one at once, whether its space is taken in advance (as behind the first it is) or not.
  for (const bytes of [600_000, 33_000]) {
    const large = log.append(new Uint8Array(bytes), log.seq + 1, 0, false);
    expect([log.durable, disk.heldSyncs]).toEqual([large - 1, 1]);
    disk.releaseSync();
    expect(log.durable).toBe(large);
  }
  for (let frame = 0; frame < 2; frame++) log.append(new Uint8Array(20_000), log.seq + 1, 0, false);
  await turn();
  await turn();
  expect([log.durable, disk.heldSyncs]).toEqual([37, 1]);
});

test("a slow sync is followed by a time in which all go to the pool, twice as long after each further slow one", async () => {
  const { wall, disk, log, at } = opened();
  at.tookMs = 2;
  expect(await place(disk, log)).toBe("loop");
  expect(await place(disk, log)).toBe("loop");
  at.tookMs = 10;
  for (const restMs of [80, 160, 320]) {
    expect(await place(disk, log)).toBe("loop");
    expect(await place(disk, log)).toBe("pool");
    wall.nowMs += restMs - 1;
    expect(await place(disk, log)).toBe("pool");
    wall.nowMs += 1;
  }
  for (let slow = 0; slow < 20; slow++) {
    expect(await place(disk, log)).toBe("loop");
    wall.nowMs += 10_240;
  }
  at.tookMs = 1;
  expect(await place(disk, log)).toBe("loop");
  at.tookMs = 10;
  expect(await place(disk, log)).toBe("loop");
  wall.nowMs += 79;
  expect(await place(disk, log)).toBe("pool");
  wall.nowMs += 1;
  expect(await place(disk, log)).toBe("loop");
});

test("none is done on the event loop while others write much to the disk, and for a second more", async () => {
  const { wall, disk, log } = opened();
  const first = log.crowd();
  const second = log.crowd();
  expect(await place(disk, log)).toBe("pool");
  first();
  first();
  expect(await place(disk, log)).toBe("pool");
  second();
  wall.nowMs += 999;
  expect(await place(disk, log)).toBe("pool");
  wall.nowMs += 1;
  expect(await place(disk, log)).toBe("loop");
});

test("none is done on the event loop where nobody waits for it, or where that is asked for", async () => {
  const never = opened({ standStillMs: 0 });
  expect(await place(never.disk, never.log)).toBe("pool");
  const timed = opened({ sync: 50 });
  append(timed.log);
  timed.wall.fire(50);
  expect([timed.log.durable, timed.disk.heldSyncs]).toEqual([0, 1]);
});

test("one that fails on the event loop: nothing it was for is confirmed, nor anything later", async () => {
  const { disk, log } = opened();
  expect(await place(disk, log)).toBe("loop");
  disk.failsSync = /^redo/;
  const second = codeOfPromise(log.whenDurable(append(log)));
  expect(await second).toBe("disk_failed");
  disk.failsSync = null;
  expect(() => append(log)).toThrow("the disk failed");
  expect([log.durable, log.failure]).toEqual([1, "a sync failed: EIO: fdatasync redo-0000000000000001.log"]);
  await log.close();
});
