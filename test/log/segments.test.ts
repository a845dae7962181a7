import { expect, test } from "bun:test";
import type { Log } from "../../src/log/log.ts";
import { SEAL_BYTES, sealOffset } from "../../src/log/seal.ts";
import { segmentName } from "../../src/log/segment.ts";
import { SimDisk } from "../sim/disk.ts";
import { again, encode, openLog, put, Timers, turn } from "./log_files.ts";

function read(log: Log, from: number, most = Infinity): string[] {
  const found: string[] = [];
  log.read(from, (frame) => {
    found.push(`${frame.position}:${new TextDecoder().decode(frame.payload)}`);
    return found.length < most;
  });
  return found;
}

const redo = (disk: SimDisk): string[] => [...disk.files().keys()].filter((name) => name.startsWith("redo-"));

test("a segment that has grown past its size is followed by another, under each policy", async () => {
  for (const sync of ["always", "off", 0] as const) {
    const { disk, log } = openLog(new SimDisk(), { segmentBytes: 1_000, sync });
    for (let i = 1; i <= 100; i++) {
      log.append(encode(`frame ${i}`), i, 0, false);
      if (i % 5 === 0) for (let turns = 0; turns < 4; turns++) await turn();
    }
    expect(redo(disk).length).toBeGreaterThan(3);
    await log.close();
    expect(again(disk.files()).frames.length).toBe(100);
  }
});

test("under a policy that does not wait, answers do not wait", async () => {
  const off = openLog(new SimDisk(), { sync: "off" });
  expect(off.log.whenDurable(off.log.append(encode("one"), 1, 0, false))).toBeUndefined();
  await turn();
  expect([off.log.durable, off.disk.syncs]).toEqual([0, 1]);
  await off.log.sync();
  expect(off.log.durable).toBe(1);
  off.log.append(encode("two"), 2, 0, false);
  await off.log.close();
  expect(off.log.durable).toBe(2);

  const wall = new Timers();
  const waiting = (): number => wall.waiting.filter(({ delayMs }) => delayMs === 250).length;
  const timed = openLog(new SimDisk(), { sync: 250, wall });
  for (let i = 0; i < 3; i++) expect(timed.log.whenDurable(timed.log.append(encode("x"), i, 0, false))).toBeUndefined();
  await turn();
  expect([timed.log.durable, waiting()]).toEqual([0, 1]);
  wall.fire(250);
  await turn();
  expect([timed.log.durable, waiting()]).toEqual([3, 0]);
  timed.log.append(encode("x"), 4, 0, false);
  expect(waiting()).toBe(1);
  await timed.log.sync();
  expect(timed.log.durable).toBe(4);
});

test("reads from any position what is on disk, and no more", async () => {
  const { disk, log } = openLog(new SimDisk(), { segmentBytes: 700 });
  const all: string[] = [];
  for (let i = 1; i <= 60; i++) {
    await put(log, `${i}`);
    all.push(`${i}:${i}`);
  }
  expect(redo(disk).length).toBeGreaterThan(3);
  log.append(encode("not yet"), 61, 0, false);
  for (let from = 1; from <= 62; from++) expect(read(log, from)).toEqual(all.slice(from - 1));
  expect(read(log, 10, 3)).toEqual(all.slice(9, 12));
  await log.close();
});

test("a change number is found near enough, and never behind the frame looked for", async () => {
  const { disk, log } = openLog(new SimDisk(), { segmentBytes: 300_000 });
  for (let i = 1; i <= 500; i++) {
    log.append(encode(`${i}`.padEnd(2_000)), i * 3, 0, false);
    if (i % 50 === 0) await log.sync();
  }
  await log.close();
  const second = again(disk.files());
  for (const one of [log, second.log]) {
    for (let seq = 0; seq <= 1_500; seq += 7) {
      const near = one.positionNear(seq);
      const first = Math.floor(seq / 3) + 1;
      expect(near).toBeLessThanOrEqual(first);
      expect(first - near).toBeLessThanOrEqual(40);
    }
  }
});

test("segments a snapshot covers are removed, the newest never", async () => {
  const { disk, log } = openLog(new SimDisk());
  for (const text of ["one", "two", "three"]) {
    await put(log, text);
    await log.rotate();
  }
  expect(redo(disk)).toEqual([1, 2, 3, 4].map(segmentName));
  log.removeUpTo(0);
  expect(redo(disk).length).toBe(4);
  log.removeUpTo(2);
  expect(redo(disk)).toEqual([3, 4].map(segmentName));
  expect(log.first).toBe(3);
  log.removeUpTo(99);
  expect(redo(disk)).toEqual([segmentName(4)]);
  await put(log, "four");
  const second = again(disk.files(), { after: 3 });
  expect(second.frames).toEqual(["4:four"]);
});

test("bytes since the last snapshot are counted, also across a start", async () => {
  const { disk, log } = openLog(new SimDisk());
  await put(log, "one");
  const one = log.bytesSinceSnapshot;
  expect(one).toBe(43);
  await log.rotate();
  await put(log, "two");
  expect(log.bytesSinceSnapshot).toBe(86);
  log.snapshotTaken(1);
  expect(log.bytesSinceSnapshot).toBe(43);
  expect(again(disk.files()).log.bytesSinceSnapshot).toBe(86);
  expect(again(disk.files(), { after: 1 }).log.bytesSinceSnapshot).toBe(43);
  expect(again(disk.files(), { after: 2 }).log.bytesSinceSnapshot).toBe(0);
});

test("zeros taken in advance never reach the reader, and a clean stop leaves none", async () => {
  const { disk, log } = openLog(new SimDisk());
  let bytes = 64;
  for (let i = 1; i <= 200; i++) {
    await put(log, "x".repeat(300));
    bytes += 340;
  }
  const killed = disk.files().get(segmentName(1))!;
  expect(killed.length).toBeGreaterThan(bytes);
  expect(killed.length).toBeLessThanOrEqual(bytes * 1.26);
  const second = again(disk.files());
  expect(second.frames.length).toBe(200);
  expect(second.log.tornTail).toBeNull();
  await log.close();
  expect(disk.files().get(segmentName(1))!.length).toBe(sealOffset(bytes) + SEAL_BYTES);
});
