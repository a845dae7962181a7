import { expect, test } from "bun:test";
import { Damage } from "../../src/log/damage.ts";
import { FRAME_HEAD_BYTES } from "../../src/log/frame.ts";
import { SEGMENT_HEAD_BYTES, segmentName } from "../../src/log/segment.ts";
import { SimDisk } from "../sim/disk.ts";
import { Random } from "../store/random.ts";
import { again, FIRST, filesOf, openLog, put, REST_MS, Timers, turn } from "./log_files.ts";

const { FENEC_SEED: givenSeed } = process.env;
const seed = givenSeed === undefined ? Math.floor(Math.random() * 2 ** 32) : Number(givenSeed);

function damageOf(files: ReadonlyMap<string, Buffer>, after = 0): Damage {
  const before = new Map([...files].map(([name, bytes]) => [name, Buffer.from(bytes)]));
  const disk = SimDisk.of(files);
  try {
    openLog(disk, { after });
  } catch (error) {
    if (!(error instanceof Damage)) throw error;
    expect(disk.files()).toEqual(before);
    return error;
  }
  throw new Error("it started");
}

function withTail(files: ReadonlyMap<string, Buffer>, tail: Uint8Array, name = FIRST): Map<string, Buffer> {
  return new Map(files).set(name, Buffer.concat([files.get(name)!, tail]));
}

function flipped(bytes: Buffer, bit: number): Buffer {
  const copy = Buffer.from(bytes);
  copy[bit >> 3] = copy[bit >> 3]! ^ (1 << (bit & 7));
  return copy;
}

const frameBytes = (payload: string): number => FRAME_HEAD_BYTES + payload.length;

test("what is written behind a torn tail is there after the next starts", async () => {
  const files = await filesOf("A", "B");
  const log = files.get(FIRST)!;
  const last = log.subarray(log.length - frameBytes("B"));
  const random = new Random(seed);
  const noise = (count: number): Buffer => Buffer.from(Array.from({ length: count }, () => random.below(256)));
  const tails: Buffer[] = [
    last.subarray(0, last.length >> 1),
    last,
    flipped(last, 8),
    flipped(last, last.length * 8 - 1),
  ];
  for (const count of [1, 7, 8, 64, 4096, 100_000]) {
    tails.push(
      Buffer.alloc(count),
      Buffer.alloc(count, 0xff),
      noise(count),
      Buffer.concat([last.subarray(0, 17), noise(count)]),
    );
  }
  for (const [index, tail] of tails.entries()) {
    const second = again(withTail(files, tail));
    expect(second.frames, `tail ${index}, seed ${seed}`).toEqual(["1:A", "2:B"]);
    await put(second.log, "C");
    await put(second.log, "D");
    // Killed: nothing is closed.
    // The first start behind the kill seals the log, the later ones change no byte.
    let found = again(second.disk.files()).disk.files();
    for (let start = 0; start < 4; start++) {
      const third = again(found);
      expect(third.frames).toEqual(["1:A", "2:B", "3:C", "4:D"]);
      expect(third.log.tornTail).toBeNull();
      expect(third.disk.files()).toEqual(found);
      await third.log.close();
      expect(third.disk.files()).toEqual(found);
      found = third.disk.files();
    }
  }
});

test("cut at any byte, it starts with the frames before the cut", async () => {
  const payloads = ["one", "", "three", "and the fourth one"];
  const files = await filesOf(...payloads);
  const whole = files.get(FIRST)!;
  const ends = payloads.map(
    (_, index) => SEGMENT_HEAD_BYTES + payloads.slice(0, index + 1).reduce((sum, text) => sum + frameBytes(text), 0),
  );
  expect(ends[3]).toBe(whole.length);
  for (let length = 0; length <= whole.length; length++) {
    const expected = payloads.filter((_, index) => ends[index]! <= length).map((text, index) => `${index + 1}:${text}`);
    const second = again(new Map([[FIRST, whole.subarray(0, length)]]));
    expect(second.frames).toEqual(expected);
    const end = ends.findLast((at) => at <= length) ?? SEGMENT_HEAD_BYTES;
    // Zeros are no tear: a frame's first bytes can be some.
    const torn = length >= SEGMENT_HEAD_BYTES && whole.subarray(end, length).some((byte) => byte !== 0);
    expect(second.log.tornTail).toEqual(torn ? { file: FIRST, offset: end, bytes: length - end } : null);
    await put(second.log, "next");
    expect(again(second.disk.files()).frames).toEqual([...expected, `${expected.length + 1}:next`]);
  }
});

test("a flipped bit anywhere but in the last frame stops the start and names the place", async () => {
  const files = await filesOf("one", "two", "three");
  const whole = files.get(FIRST)!;
  const lastAt = whole.length - frameBytes("three");
  for (let bit = 0; bit < whole.length * 8; bit++) {
    const broken = new Map([[FIRST, flipped(whole, bit)]]);
    if (bit >= lastAt * 8) {
      expect(again(broken).frames).toEqual(["1:one", "2:two"]);
      continue;
    }
    const at = bit >> 3;
    const damage = damageOf(broken);
    expect(damage.file).toBe(FIRST);
    expect(damage.offset).toBeLessThanOrEqual(at);
    const begins = [0, SEGMENT_HEAD_BYTES, SEGMENT_HEAD_BYTES + frameBytes("one")];
    expect(begins).toContain(damage.offset);
  }
});

test("frames of one unsynced moment: a flipped bit in the first is damage, a page that was never written is not", async () => {
  const { disk, log } = openLog(new SimDisk());
  await put(log, "confirmed");
  const from = disk.files().get(FIRST)!.length;
  const long = "x".repeat(1_000);
  for (let i = 0; i < 5; i++) log.append(new TextEncoder().encode(`${i}${long}`), i, 0, false);
  const whole = disk.files().get(FIRST)!;
  expect(damageOf(new Map([[FIRST, flipped(whole, (from + 100) * 8)]])).offset).toBe(from);

  const unwritten = Buffer.from(whole);
  unwritten.fill(0, 512, 1024);
  const second = again(new Map([[FIRST, unwritten]]));
  expect(second.frames).toEqual(["1:confirmed"]);
  expect(second.log.tornTail).toEqual({ file: FIRST, offset: from, bytes: whole.length - from });
  await put(second.log, "next");
  expect(again(second.disk.files()).frames).toEqual(["1:confirmed", "2:next"]);

  // The same zeros where a later frame vouches for what was there.
  await turn();
  await log.whenDurable(6);
  await put(log, "after");
  const settled = disk.files().get(FIRST)!;
  settled.fill(0, 512, 1024);
  expect(damageOf(new Map([[FIRST, settled]])).offset).toBe(from);
});

test("a torn tail in a segment that is not the newest stops the start", async () => {
  const { disk, log } = openLog(new SimDisk());
  await put(log, "one");
  await log.rotate();
  await put(log, "two");
  await log.close();
  const files = disk.files();
  expect([...files.keys()].filter((name) => name.startsWith("redo-"))).toEqual([FIRST, segmentName(2)]);
  expect(again(files).frames).toEqual(["1:one", "2:two"]);
  const size = files.get(FIRST)!.length;
  for (const tail of [Buffer.alloc(1), Buffer.alloc(64), Buffer.alloc(7, 0xff), files.get(FIRST)!.subarray(64, 90)]) {
    const damage = damageOf(withTail(files, tail));
    expect([damage.file, damage.offset]).toEqual([FIRST, size]);
    expect(damage.message).toContain(`${FIRST} is damaged at offset ${size}`);
    // Also when a snapshot has all of it: whoever needs the older snapshot one day needs this file whole.
    expect(damageOf(withTail(files, tail), 1).file).toBe(FIRST);
  }
  const short = new Map(files).set(FIRST, files.get(FIRST)!.subarray(0, size - 1));
  expect(damageOf(short).file).toBe(FIRST);
  expect(again(withTail(files, Buffer.alloc(30, 1), segmentName(2))).frames).toEqual(["1:one", "2:two"]);
});

test("a segment missing in the middle or at the front stops the start", async () => {
  const { disk, log } = openLog(new SimDisk());
  for (const text of ["one", "two", "three"]) {
    await log.rotate();
    await put(log, text);
  }
  await log.close();
  const files = disk.files();
  const without = (first: number): Map<string, Buffer> => {
    const rest = new Map(files);
    rest.delete(segmentName(first));
    return rest;
  };
  expect(again(files).frames).toEqual(["1:one", "2:two", "3:three"]);
  expect(damageOf(without(2)).message).toContain("positions 2 to 2 are missing");
  expect(damageOf(without(1)).message).toContain("positions 1 to 1 are missing");
  expect(again(without(1), { after: 1 }).frames).toEqual(["2:two", "3:three"]);
  expect(damageOf(without(2), 1).message).toContain("positions 2 to 2 are missing");
  expect(again(without(2), { after: 2 }).frames).toEqual(["3:three"]);
  const renamed = new Map<string, Buffer>(without(3)).set(segmentName(7), files.get(segmentName(3))!);
  expect(damageOf(renamed).message).toContain("its name says 7");
});

test("a segment of another directory stops the start", async () => {
  const files = await filesOf("one", "two");
  const { disk, log } = openLog(new SimDisk());
  await put(log, "other");
  await put(log, "other");
  await log.rotate();
  await put(log, "third");
  await log.close();
  const mixed = new Map(files).set(segmentName(3), disk.files().get(segmentName(3))!);
  expect(damageOf(mixed).message).toContain("another data directory");
});

test("a crash while a new segment is made leaves nothing that matters", async () => {
  const { disk, log } = openLog(new SimDisk());
  await put(log, "one");
  await log.rotate();
  const files = disk.files();
  const fresh = files.get(segmentName(2))!;
  expect(fresh.length).toBe(SEGMENT_HEAD_BYTES);
  const heads: Buffer[] = [Buffer.alloc(SEGMENT_HEAD_BYTES), Buffer.alloc(4096), Buffer.alloc(10, 0xff)];
  for (let length = 0; length < SEGMENT_HEAD_BYTES; length++) heads.push(fresh.subarray(0, length));
  for (const head of heads) {
    const second = again(new Map(files).set(segmentName(2), head));
    expect(second.frames).toEqual(["1:one"]);
    expect(second.log.unfinished).toBe(segmentName(2));
    await put(second.log, "two");
    expect(again(second.disk.files()).frames).toEqual(["1:one", "2:two"]);
  }
  const third = again(files);
  await put(third.log, "two");
  const broken = third.disk.files();
  broken.set(segmentName(2), flipped(broken.get(segmentName(2))!, 100));
  expect(damageOf(broken).file).toBe(segmentName(2));
});

test("a log cut behind what its snapshot holds goes on after the snapshot", async () => {
  const files = await filesOf("one", "two", "three");
  const whole = files.get(FIRST)!;
  const second = again(new Map([[FIRST, whole.subarray(0, whole.length - 1)]]), { after: 3, afterSeq: 33 });
  expect(second.frames).toEqual([]);
  expect([second.log.appended, second.log.seq]).toEqual([3, 33]);
  await put(second.log, "four");
  const third = again(second.disk.files(), { after: 3 });
  expect(third.frames).toEqual(["4:four"]);
  // The older snapshot no longer leads there.
  expect(damageOf(third.disk.files(), 1).message).toContain("positions 3 to 3 are missing");
});

test("killed or out of power at any moment, all that was confirmed is there, in order, and nothing else", async () => {
  const { FENEC_ROUNDS: given = "300" } = process.env;
  const rounds = Number(given);
  for (let round = 0; round < rounds; round++) {
    const roundSeed = seed + round;
    try {
      await life(new Random(roundSeed));
    } catch (error) {
      console.error(`FENEC_SEED=${roundSeed} FENEC_ROUNDS=1 repeats this failure`);
      throw error;
    }
  }
}, 60_000);

/** Several starts on one directory, each ended by a crash. */
async function life(random: Random): Promise<void> {
  let disk = new SimDisk();
  /** What the next start must give: all confirmed, then perhaps some of the others, in order. */
  let confirmed: string[] = [];
  let written: string[] = [];
  for (let start = 0; start < 4; start++) {
    const wall = new Timers();
    const { log, frames } = openLog(disk, { segmentBytes: 2_000, wall });
    const found = frames.map((frame) => frame.slice(frame.indexOf(":") + 1));
    expect(found.slice(0, confirmed.length)).toEqual(confirmed);
    expect(found).toEqual(written.slice(0, found.length));
    expect(frames.map((frame) => Number(frame.split(":")[0]))).toEqual(found.map((_, index) => index + 1));
    const same = again(disk.files(), { segmentBytes: 2_000 });
    expect(same.frames).toEqual(frames);
    expect(same.disk.files()).toEqual(disk.files());
    written = [...found];
    confirmed = [...found];
    if (random.chance(0.5)) disk.bytesToLive = random.below(8_000);
    else disk.callsToLive = random.below(60);
    for (let step = 0; step < 60 && !disk.isOff; step++) {
      const burst = random.chance(0.3) ? random.below(12) : 1;
      for (let i = 0; i < burst && !disk.isOff; i++) {
        const text = `${written.length}-${"p".repeat(random.chance(0.1) ? random.below(5_000) : random.below(200))}`;
        written.push(text);
        try {
          const count = log.append(new TextEncoder().encode(text), written.length, step, false);
          expect(count).toBe(written.length);
          void log.whenDurable(count)?.then(
            () => {
              if (confirmed.length < count) confirmed = written.slice(0, count);
            },
            () => {},
          );
        } catch {
          expect(disk.isOff || log.failure !== null).toBe(true);
        }
      }
      if (random.chance(0.1) && !disk.isOff) void log.rotate().catch(() => {});
      if (random.chance(0.1)) wall.fire(REST_MS);
      if (random.chance(0.7)) await turn();
    }
    disk.powerOff();
    await turn();
    disk = random.chance(0.3) ? disk.afterKill() : SimDisk.of(disk.afterPowerLoss(random));
  }
}
