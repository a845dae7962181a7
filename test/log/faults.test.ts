import { expect, test } from "bun:test";
import { FRAME_HEAD_BYTES } from "../../src/log/frame.ts";
import { SEAL_BYTES } from "../../src/log/seal.ts";
import { codeOf, codeOfPromise } from "../harness/code_of.ts";
import { SimDisk } from "../sim/disk.ts";
import { Random } from "../store/random.ts";
import { again, encode, FIRST, openLog, put, turn } from "./log_files.ts";

const { FENEC_SEED: givenSeed } = process.env;
const seed = givenSeed === undefined ? Math.floor(Math.random() * 2 ** 32) : Number(givenSeed);

const RESERVE_BYTES = 64 * 1024;

function used(disk: SimDisk): number {
  return [...disk.files().values()].reduce((sum, bytes) => sum + bytes.length, 0);
}

test("a full disk refuses, leaves whole frames, and works again when there is space", async () => {
  const { disk, log } = openLog(new SimDisk());
  await put(log, "one");
  // Room for a part of the next frame.
  disk.capacityBytes = used(disk) + FRAME_HEAD_BYTES + 2;
  const before = disk.files();
  expect(codeOf(() => log.append(encode("two"), 2, 0, false))).toBe("disk_full");
  expect(disk.files()).toEqual(before);
  expect([log.appended, log.seq, log.failure]).toEqual([1, 1, null]);
  expect(log.full).toContain("no space");
  expect(log.trouble).toContain("no space");
  expect(disk.files()).toEqual(before);
  await put(log, "2");
  expect(codeOf(() => log.append(encode("three"), 3, 0, false))).toBe("disk_full");
  disk.capacityBytes = Infinity;
  await put(log, "three");
  expect(log.full).toBeNull();
  await log.close();
  expect(again(disk.files()).frames).toEqual(["1:one", "2:2", "3:three"]);
});

test("essential frames use the reserve, others wait until it is whole again", async () => {
  const { disk, log } = openLog(new SimDisk(), { reserveBytes: RESERVE_BYTES });
  await put(log, "one");
  disk.capacityBytes = used(disk);
  expect(codeOf(() => log.append(encode("two"), 2, 0, false))).toBe("disk_full");
  await put(log, "delete", true);
  expect(disk.files().get("reserve")!.length).toBe(0);
  // There is room now, but it is the reserve's.
  expect(codeOf(() => log.append(encode("three"), 3, 0, false))).toBe("disk_full");
  expect(log.trouble).toContain("no space");
  for (let i = 0; i < 100; i++) await put(log, "delete", true);
  disk.capacityBytes += 3 * RESERVE_BYTES;
  expect(log.trouble).toBeNull();
  await put(log, "four");
  expect(disk.files().get("reserve")!.length).toBe(RESERVE_BYTES);
  expect(again(disk.files()).frames.length).toBe(103);
});

test("a reserve used up refuses essential frames too, and nothing breaks", async () => {
  const { disk, log } = openLog(new SimDisk(), { reserveBytes: RESERVE_BYTES });
  disk.capacityBytes = used(disk);
  let written = 0;
  let refused = false;
  while (!refused) {
    refused = codeOf(() => log.append(encode("d".repeat(1_000)), 1, 0, true)) === "disk_full";
    if (!refused) written++;
  }
  await turn();
  await log.whenDurable(log.appended);
  expect(written).toBeGreaterThan(50);
  expect(again(disk.files()).frames.length).toBe(written);
  await log.close();
});

test("space taken in advance is given back before anything is refused for want of space", async () => {
  const { disk, log } = openLog(new SimDisk());
  disk.capacityBytes = 100_000;
  let count = 0;
  while (codeOf(() => log.append(encode("x".repeat(200)), 1, 0, false)) === "none") {
    count++;
    if (count % 20 === 0) await turn();
  }
  expect(used(disk)).toBeGreaterThan(100_000 - 300);
  await log.close();
  expect(again(disk.files()).frames.length).toBe(count);
});

test("after another write error nothing is written or confirmed, and a restart has what was confirmed", async () => {
  const { disk, log } = openLog(new SimDisk());
  await put(log, "one");
  disk.failsWrite = /^redo/;
  expect(codeOf(() => log.append(encode("two"), 2, 0, false))).toBe("disk_failed");
  expect(log.failure).toContain("EIO");
  disk.failsWrite = null;
  expect(codeOf(() => log.append(encode("three"), 3, 0, true))).toBe("disk_failed");
  expect(await codeOfPromise(log.sync())).toBe("disk_failed");
  await log.close();
  expect(again(disk.files()).frames).toEqual(["1:one"]);
});

test("after a failed sync nothing is confirmed, neither what waited nor what came meanwhile nor what comes", async () => {
  const { disk, log } = openLog(new SimDisk(), { standStillMs: 0 });
  await put(log, "one");
  disk.holdsSyncs = true;
  const second = codeOfPromise(log.whenDurable(log.append(encode("two"), 2, 0, false)));
  await turn();
  expect(disk.heldSyncs).toBe(1);
  const third = codeOfPromise(log.whenDurable(log.append(encode("three"), 3, 0, false)));
  disk.failsSync = /^redo/;
  disk.releaseSync();
  expect(await second).toBe("disk_failed");
  expect(await third).toBe("disk_failed");
  // The disk says that it works again; what it dropped it has dropped.
  disk.failsSync = null;
  disk.holdsSyncs = false;
  expect(codeOf(() => log.append(encode("four"), 4, 0, false))).toBe("disk_failed");
  expect(await codeOfPromise(log.whenDurable(3))).toBe("disk_failed");
  expect(log.whenDurable(1)).toBeUndefined();
  expect([log.durable, log.failure]).toEqual([1, "a sync failed: EIO: fdatasync redo-0000000000000001.log"]);
  await log.close();
});

test("frames whose sync nobody vouches for are written again at the next start", async () => {
  const { disk, log } = openLog(new SimDisk());
  await put(log, "one");
  disk.failsSync = /^redo/;
  expect(await codeOfPromise(log.whenDurable(log.append(encode("two"), 2, 0, false)))).toBe("disk_failed");
  const next = SimDisk.of(disk.files());
  const writes: [number, number][] = [];
  const write = next.write.bind(next);
  next.write = (name, contents, bytes, offset) => {
    if (name === FIRST) writes.push([offset, bytes.length]);
    write(name, contents, bytes, offset);
  };
  expect(openLog(next).frames).toEqual(["1:one", "2:two"]);
  // The second frame says that the first was on disk; the seal comes when both are.
  const end = 64 + 2 * (FRAME_HEAD_BYTES + 3);
  expect(writes).toEqual([
    [64 + FRAME_HEAD_BYTES + 3, FRAME_HEAD_BYTES + 3],
    [end, SEAL_BYTES],
  ]);
});

test("a sync that fails while a new segment is begun stops the writing", async () => {
  const { disk, log } = openLog(new SimDisk());
  await put(log, "one");
  disk.failsCall = { call: "sync directory", name: /^$/ };
  expect(await codeOfPromise(log.rotate())).toBe("disk_failed");
  expect(codeOf(() => log.append(encode("two"), 2, 0, false))).toBe("disk_failed");
  await log.close();
  disk.failsCall = null;
  expect(again(disk.files()).frames).toEqual(["1:one"]);
});

test("no room for a new segment: the old one goes on", async () => {
  const { disk, log } = openLog(new SimDisk());
  await put(log, "one");
  disk.capacityBytes = used(disk) + 60;
  await log.rotate();
  expect(log.segments.length).toBe(1);
  await put(log, "two");
  disk.capacityBytes = Infinity;
  await log.rotate();
  expect(log.segments.length).toBe(2);
  await put(log, "three");
  expect(again(disk.files()).frames).toEqual(["1:one", "2:two", "3:three"]);
});

test("a segment that found no room does not come back after a power loss, to make the old one's torn end damage", async () => {
  const { disk, log } = openLog(new SimDisk());
  await put(log, "one");
  disk.capacityBytes = used(disk) + 60;
  await log.rotate();
  disk.capacityBytes = Infinity;
  log.append(encode("two, that no sync was over for"), 2, 0, false);
  disk.holdsSyncs = true;
  await turn();
  for (let round = 0; round < 300; round++) {
    const { frames } = again(disk.afterPowerLoss(new Random(seed + round)));
    expect(["1:one", "1:one,2:two, that no sync was over for"], `FENEC_SEED=${seed + round}`).toContain(`${frames}`);
  }
});
