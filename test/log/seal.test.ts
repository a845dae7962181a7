import { expect, test } from "bun:test";
import { Damage } from "../../src/log/damage.ts";
import { FRAME_HEAD_BYTES } from "../../src/log/frame.ts";
import { SEAL_BYTES, SECTOR_BYTES, sealOffset } from "../../src/log/seal.ts";
import { SEGMENT_HEAD_BYTES } from "../../src/log/segment.ts";
import { SimDisk } from "../sim/disk.ts";
import { Random } from "../store/random.ts";
import { again, closedFilesOf, FIRST, filesOf, openLog, put, REST_MS, Timers, turn } from "./log_files.ts";

const { FENEC_SEED: givenSeed } = process.env;
const seed = givenSeed === undefined ? Math.floor(Math.random() * 2 ** 32) : Number(givenSeed);

function flipped(files: ReadonlyMap<string, Buffer>, bit: number): Map<string, Buffer> {
  const bytes = Buffer.from(files.get(FIRST)!);
  bytes[bit >> 3] = bytes[bit >> 3]! ^ (1 << (bit & 7));
  return new Map(files).set(FIRST, bytes);
}

/** Frames of a start, or where the damage is that stops it. */
function framesOrDamage(files: ReadonlyMap<string, Buffer>): string[] | number {
  try {
    return again(files).frames;
  } catch (error) {
    if (!(error instanceof Damage)) throw error;
    return error.offset;
  }
}

test("a log at rest: any flipped bit stops the start, or changes nothing", async () => {
  const payloads = ["one", "two", "three"];
  const frames = payloads.map((text, index) => `${index + 1}:${text}`);
  for (const files of [await closedFilesOf(...payloads), again(await filesOf(...payloads)).disk.files()]) {
    const bytes = files.get(FIRST)!;
    const end = SEGMENT_HEAD_BYTES + payloads.reduce((sum, text) => sum + FRAME_HEAD_BYTES + text.length, 0);
    expect(bytes.length).toBe(end + SEAL_BYTES);
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const found = framesOrDamage(flipped(files, bit));
      if (bit >> 3 >= end) expect(found).toEqual(frames);
      else expect(found, `bit ${bit}`).toBeNumber();
    }
  }
});

test("a log that has been still for a while is sealed, and goes on", async () => {
  const wall = new Timers();
  const { disk, log } = openLog(new SimDisk(), { wall, standStillMs: 0 });
  await put(log, "one");
  await put(log, "two");
  wall.fire(REST_MS);
  const files = disk.files();
  const last = SEGMENT_HEAD_BYTES + FRAME_HEAD_BYTES + 3;
  expect(framesOrDamage(flipped(files, (last + 41) * 8))).toBe(last);
  expect(framesOrDamage(files)).toEqual(["1:one", "2:two"]);
  await put(log, "three");
  expect(framesOrDamage(disk.files())).toEqual(["1:one", "2:two", "3:three"]);
  // Not while a frame is on its way to the disk.
  disk.holdsSyncs = true;
  void put(log, "four");
  await turn();
  wall.fire(REST_MS);
  expect(disk.files().get(FIRST)!.indexOf(Buffer.alloc(4, 0xff), SEGMENT_HEAD_BYTES)).toBe(-1);
});

test("what follows a seal and is no frame is cut off, a copy of the file's last bytes too", async () => {
  const files = await closedFilesOf("one", "two");
  const bytes = files.get(FIRST)!;
  for (const count of [1, 7, 12, 24, 40, 67, 100]) {
    for (const tail of [bytes.subarray(bytes.length - count), Buffer.alloc(count, 0xff), Buffer.alloc(count)]) {
      const second = again(new Map([[FIRST, Buffer.concat([bytes, tail])]]));
      expect(second.frames).toEqual(["1:one", "2:two"]);
      await put(second.log, "three");
      expect(again(second.disk.files()).frames).toEqual(["1:one", "2:two", "3:three"]);
    }
  }
});

test("a seal lies within one sector, and the next frame covers it, however short", async () => {
  for (let length = 0; length < SECTOR_BYTES; length += 7) {
    const wall = new Timers();
    const { disk, log } = openLog(new SimDisk(), { wall });
    await put(log, "x".repeat(length));
    const end = SEGMENT_HEAD_BYTES + FRAME_HEAD_BYTES + length;
    wall.fire(REST_MS);
    const sealed = disk.files().get(FIRST)!;
    const at = sealOffset(end);
    expect(sealed.length).toBe(at + SEAL_BYTES);
    expect(Math.floor(at / SECTOR_BYTES)).toBe(Math.floor((at + SEAL_BYTES - 1) / SECTOR_BYTES));
    await put(log, "");
    const left = disk
      .files()
      .get(FIRST)!
      .subarray(end + FRAME_HEAD_BYTES);
    expect(left.every((byte) => byte === 0)).toBe(true);
    const second = again(disk.files());
    expect([second.frames.length, second.log.tornTail]).toEqual([2, null]);
  }
});

test("a seal that a power loss leaves in front of later frames of one moment is no damage", async () => {
  const random = new Random(seed);
  let lost = 0;
  for (let round = 0; round < 400; round++) {
    const wall = new Timers();
    const { disk, log } = openLog(new SimDisk(), { wall });
    await put(log, "x".repeat(random.below(900)));
    wall.fire(REST_MS);
    // The seal reaches the disk, or not, on its own.
    const parts = 1 + random.below(4);
    for (let i = 0; i < parts; i++) log.append(new Uint8Array(random.below(700)).fill(120), i, 0, false);
    const left = disk.afterPowerLoss(random);
    const frames = framesOrDamage(left);
    expect(Array.isArray(frames), `seed ${seed}, round ${round}`).toBe(true);
    if ((frames as string[]).length < parts + 1) lost++;
  }
  expect(lost).toBeGreaterThan(50);
});

test("a full disk has room for a seal in the log's reserve", async () => {
  const wall = new Timers();
  const { disk, log } = openLog(new SimDisk(), { wall, reserveBytes: 64 * 1024 });
  await put(log, "one");
  disk.capacityBytes = [...disk.files().values()].reduce((sum, bytes) => sum + bytes.length, 0);
  expect(() => log.append(new Uint8Array(100), 2, 0, false)).toThrow("the disk is full");
  await log.close();
  const files = disk.files();
  expect(files.get(FIRST)!.length).toBe(SEGMENT_HEAD_BYTES + FRAME_HEAD_BYTES + 3 + SEAL_BYTES);
  expect(framesOrDamage(flipped(files, (SEGMENT_HEAD_BYTES + 41) * 8))).toBe(SEGMENT_HEAD_BYTES);
});
