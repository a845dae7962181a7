/**
 * Random histories with snapshots under way, ended by a crash at any call or byte, held to the model's rows after each
 * start. FENEC_ROUNDS asks for more of them than the usual run.
 */

import { expect, test } from "bun:test";
import { ByteWriter } from "../../src/base/bytes.ts";
import { Checkpoint } from "../../src/engine/checkpoint.ts";
import { writeChange } from "../../src/engine/payload.ts";
import { type Opened, openStore } from "../../src/engine/recovery.ts";
import { Damage } from "../../src/log/damage.ts";
import { createSchema } from "../../src/schema/declare.ts";
import type { Change, Op } from "../../src/store/change.ts";
import { SimDisk } from "../sim/disk.ts";
import { expectSame } from "../sim/same.ts";
import { randomOp, randomRow } from "../store/chance.ts";
import { Model } from "../store/model.ts";
import { Random } from "../store/random.ts";

const { FENEC_SEED: givenSeed, FENEC_ROUNDS: givenRounds } = process.env;
const seed = givenSeed === undefined ? Math.floor(Math.random() * 2 ** 32) : Number(givenSeed);

const OPTIONS = { segmentBytes: 20_000, reserveBytes: 0 };

const isSnapshot = (name: string): boolean => name.endsWith(".fsnap");

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** The store keeps the rows it is given and writes over them. */
function copyOf(change: Change): Change {
  return change.map((op) => (op.op === "put" ? { ...op, row: [...op.row] } : op));
}

function modelOf(changes: readonly Change[]): Model {
  const model = new Model();
  for (const change of changes) model.apply(change);
  return model;
}

/** Mostly rows; a change of schema now and then. */
function randomChange(random: Random, model: Model, schemaChanges: boolean): Op[] {
  const scratch = model.copy();
  const change: Op[] = [];
  const ops = 1 + random.below(random.chance(0.1) ? 40 : 6);
  for (let i = 0; i < ops; i++) {
    let op = randomOp(random, scratch);
    const isRow = op?.op === "put" || op?.op === "del";
    if (!isRow && !schemaChanges && scratch.tables.size > 0) {
      const table = random.pick([...scratch.tables.values()]);
      op = { op: "put", cid: table.schema.cid, row: randomRow(random, table, table.nextId) };
    }
    if (op === undefined) continue;
    scratch.apply([op]);
    change.push(op);
  }
  return change;
}

async function inRounds(count: number, round: (random: Random) => Promise<void>): Promise<void> {
  for (let i = 0; i < count; i++) {
    try {
      await round(new Random(seed + i));
    } catch (error) {
      console.error(`FENEC_SEED=${seed + i} FENEC_ROUNDS=1 repeats this failure`);
      throw error;
    }
  }
}

async function life(random: Random): Promise<void> {
  let disk = new SimDisk();
  /** All changes so far by position, and how many of them were confirmed. */
  let changes: Change[] = [];
  let confirmed = 0;
  for (let start = 0; start < 4; start++) {
    const { store, log, seq, snapshot } = await openStore(disk, OPTIONS);
    expect(log.appended).toBeGreaterThanOrEqual(confirmed);
    expect(log.appended).toBeLessThanOrEqual(changes.length);
    changes = changes.slice(0, log.appended);
    confirmed = changes.length;
    const model = modelOf(changes);
    expect(seq).toBe(changes.reduce((sum, change) => sum + change.length, 0));
    expectSame(store, model);
    const found = disk.files();
    expect([...found.keys()].filter((name) => name.endsWith(".tmp"))).toEqual([]);
    const twice = SimDisk.of(found);
    expectSame((await openStore(twice, OPTIONS)).store, model);
    expect(twice.files()).toEqual(found);
    const newest = [...found.keys()].findLast(isSnapshot);
    if (newest !== undefined) {
      // The snapshot before it, or the log alone, lead to the same state.
      found.delete(newest);
      const other = await openStore(SimDisk.of(found), OPTIONS);
      expect(other.log.appended).toBe(changes.length);
      expectSame(other.store, model);
    }

    const sliceRows = 1 + random.below(10);
    const checkpoint = new Checkpoint({ disk, log, store, newest: snapshot, sliceRows });
    const w = new ByteWriter();
    const calls = random.chance(0.5);
    if (calls) disk.callsToLive = random.below(400);
    else disk.bytesToLive = random.below(100_000);
    const schemaChanges = random.chance(0.4);
    for (let step = 0; step < 70 && !disk.isOff; step++) {
      const change = randomChange(random, model, schemaChanges);
      if (change.length > 0) {
        w.reset();
        writeChange(w, store, change);
        changes.push(copyOf(change));
        try {
          const position = log.append(w.view(), log.seq + change.length, step, false);
          store.apply(change);
          model.apply(change);
          void log.whenDurable(position)?.then(
            () => {
              confirmed = Math.max(confirmed, position);
            },
            () => {},
          );
        } catch {
          break;
        }
      }
      if (random.chance(0.05)) void checkpoint.take().catch(() => {});
      if (random.chance(0.8)) await turn();
    }
    disk.powerOff();
    for (let turns = 0; turns < 5; turns++) await turn();
    disk = random.chance(0.3) ? disk.afterKill() : SimDisk.of(disk.afterPowerLoss(random));
  }
}

test("killed or out of power at any moment, every start has what was confirmed", async () => {
  await inRounds(Number(givenRounds ?? 10), life);
}, 600_000);

interface Written {
  readonly files: Map<string, Buffer>;
  readonly changes: readonly Change[];
}

/** A directory with two snapshots and a log behind each, closed in good order. */
async function written(random: Random): Promise<Written> {
  const disk = new SimDisk();
  const { store, log } = await openStore(disk, OPTIONS);
  const checkpoint = new Checkpoint({ disk, log, store, newest: null, sliceRows: 3 });
  const changes: Change[] = [];
  const model = new Model();
  const w = new ByteWriter();
  for (let part = 0; part < 3; part++) {
    let taking: Promise<void> | null = null;
    for (let step = 0; step < 40; step++) {
      const change = randomChange(random, model, step < 5);
      if (change.length === 0) continue;
      w.reset();
      writeChange(w, store, change);
      log.append(w.view(), log.seq + change.length, step, false);
      store.apply(change);
      model.apply(change);
      changes.push(copyOf(change));
      if (step === 30 && part < 2) taking = checkpoint.take();
      await turn();
    }
    await taking;
  }
  await log.close();
  return { files: disk.files(), changes };
}

test("the newest two snapshots are kept, and of the log what the older one needs", async () => {
  const random = new Random(seed);
  const disk = new SimDisk();
  const { store, log } = await openStore(disk, OPTIONS);
  const checkpoint = new Checkpoint({ disk, log, store, newest: null });
  const model = new Model();
  const w = new ByteWriter();
  const ends: number[] = [];
  for (let part = 0; part < 5; part++) {
    for (let step = 0; step < 10; step++) {
      const change = randomChange(random, model, true);
      w.reset();
      writeChange(w, store, change);
      log.append(w.view(), log.seq + change.length, step, false);
      store.apply(change);
      model.apply(change);
    }
    await checkpoint.take();
    ends.push(log.appended);
    const snapshots = [...disk.files().keys()].filter(isSnapshot);
    expect(snapshots.length).toBe(Math.min(2, part + 1));
    expect(log.first).toBe(part === 0 ? 1 : ends[part - 1]! + 1);
    expect(log.bytesSinceSnapshot).toBe(0);
  }
  // Nothing new: no further snapshot.
  const before = disk.files();
  await checkpoint.take();
  expect(disk.files()).toEqual(before);
  expect(checkpoint.taken).toBe(5);
  await log.close();
  expectSame((await openStore(SimDisk.of(disk.files()), OPTIONS)).store, model);
});

test("one flipped bit, wherever it is: the same state, or no start", async () => {
  const random = new Random(seed);
  const { files, changes } = await written(random);
  expect([...files.keys()].filter(isSnapshot).length).toBe(2);
  const model = modelOf(changes);
  const names = [...files.keys()].filter((name) => name !== "reserve");
  let refused = 0;
  let passed = 0;
  for (let run = 0; run < Number(givenRounds ?? 120); run++) {
    const name = random.pick(names);
    const bytes = Buffer.from(files.get(name)!);
    const bit = random.below(bytes.length * 8);
    bytes[bit >> 3] = bytes[bit >> 3]! ^ (1 << (bit & 7));
    const broken = new Map(files).set(name, bytes);
    const disk = SimDisk.of(broken);
    let opened: Opened;
    try {
      opened = await openStore(disk, OPTIONS);
    } catch (error) {
      if (!(error instanceof Damage)) throw error;
      expect(error.file, `seed ${seed}`).toBe(name);
      expect(error.offset).toBeLessThanOrEqual(bit >> 3);
      expect(disk.files()).toEqual(broken);
      refused++;
      continue;
    }
    expect(opened.log.appended).toBe(changes.length);
    expectSame(opened.store, model);
    if (isSnapshot(name) && opened.passedOver.length > 0) passed++;
  }
  if (givenRounds === undefined) {
    expect(refused).toBeGreaterThan(20);
    expect(passed).toBeGreaterThan(5);
  }
});

test("no whole snapshot and a log that does not begin at the beginning: no start", async () => {
  const { files } = await written(new Random(seed));
  const broken = new Map(files);
  for (const name of [...files.keys()].filter(isSnapshot)) broken.set(name, files.get(name)!.subarray(0, 100));
  const newest = [...files.keys()].filter(isSnapshot).at(-1)!;
  expect(openStore(SimDisk.of(broken), OPTIONS)).rejects.toThrow(`${newest} is damaged at offset`);
  for (const name of broken.keys()) if (name.startsWith("redo-")) broken.delete(name);
  expect(openStore(SimDisk.of(broken), OPTIONS)).rejects.toThrow(`${newest} is damaged at offset`);
});

test("a snapshot that fails at any call leaves everything as it was, and the next one stands", async () => {
  const random = new Random(seed);
  for (const call of ["create", "write", "sync", "rename", "sync directory", "remove"]) {
    const disk = new SimDisk();
    const { store, log } = await openStore(disk, OPTIONS);
    const failures: unknown[] = [];
    const checkpoint = new Checkpoint({ disk, log, store, newest: null, onFailed: (why) => failures.push(why) });
    const model = new Model();
    const w = new ByteWriter();
    const write = async (): Promise<void> => {
      for (let step = 0; step < 5; step++) {
        const change = randomChange(random, model, true);
        w.reset();
        writeChange(w, store, change);
        log.append(w.view(), log.seq + change.length, step, false);
        store.apply(change);
        model.apply(change);
      }
      await log.sync();
    };
    for (let part = 0; part < 2; part++) {
      await write();
      await checkpoint.take();
    }
    await write();
    await log.rotate();
    const name = call === "sync directory" ? /^$/ : /^snapshot/;
    disk.failsCall = { call, name };
    await checkpoint.take().catch(() => {});
    expect(failures.length, call).toBe(1);
    expect(log.failure).toBeNull();
    for (const left of [disk.files(), disk.afterPowerLoss(random)]) {
      const next = SimDisk.of(left);
      const opened = await openStore(next, OPTIONS);
      expectSame(opened.store, model);
      expect([...next.files().keys()].filter((file) => file.endsWith(".tmp"))).toEqual([]);
    }
    disk.failsCall = null;
    await write();
    await checkpoint.take();
    expect([...disk.files().keys()].filter((file) => file.startsWith("snapshot")).length).toBe(2);
    expectSame((await openStore(SimDisk.of(disk.files()), OPTIONS)).store, model);
  }
});

test("a full disk ends the snapshot, not the log", async () => {
  const random = new Random(seed);
  const disk = new SimDisk();
  const { store, log } = await openStore(disk, OPTIONS);
  const checkpoint = new Checkpoint({ disk, log, store, newest: null });
  const model = new Model();
  const w = new ByteWriter();
  const write = (): void => {
    const change = randomChange(random, model, true);
    w.reset();
    writeChange(w, store, change);
    log.append(w.view(), log.seq + change.length, 0, false);
    store.apply(change);
    model.apply(change);
  };
  for (let step = 0; step < 30; step++) write();
  await log.rotate();
  const used = [...disk.files().values()].reduce((sum, bytes) => sum + bytes.length, 0);
  // Room for its head, and not for what it says of the collections.
  disk.capacityBytes = used + 70;
  await expect(checkpoint.take()).rejects.toThrow("no space");
  await checkpoint.stop();
  expect([...disk.files().keys()].filter((file) => file.startsWith("snapshot"))).toEqual([]);
  disk.capacityBytes = Infinity;
  write();
  await log.sync();
  expectSame((await openStore(SimDisk.of(disk.files()), OPTIONS)).store, model);
});

test("changes of schema put a snapshot off, but not for ever", async () => {
  const random = new Random(seed);
  const disk = new SimDisk();
  const { store, log } = await openStore(disk, OPTIONS);
  const checkpoint = new Checkpoint({ disk, log, store, newest: null, sliceRows: 1 });
  const model = new Model();
  const w = new ByteWriter();
  const write = (change: Op[]): void => {
    w.reset();
    writeChange(w, store, change);
    log.append(w.view(), log.seq + change.length, 0, false);
    store.apply(change);
    model.apply(change);
  };
  for (let step = 0; step < 60; step++) write(randomChange(random, model, step < 10));
  let standing = false;
  const taking = checkpoint.take().then(() => {
    standing = true;
  });
  for (let step = 0; !standing && step < 1_000; step++) {
    const table = random.pick([...model.tables.values()]);
    write([{ op: "alter", schema: { ...table.schema }, from: [0, ...table.schema.fields.map(({ slot }) => slot)] }]);
    await turn();
  }
  expect(standing).toBe(true);
  await taking;
  await log.sync();
  expectSame((await openStore(SimDisk.of(disk.files()), OPTIONS)).store, model);
});

test("a snapshot is due by bytes, or by time when anything was written, and not again at once when one failed", async () => {
  const disk = new SimDisk();
  const { store, log } = await openStore(disk, OPTIONS);
  const timers: (() => void)[] = [];
  let nowMs = 0;
  const wall = {
    now: () => nowMs,
    at: () => ({ cancel: () => {} }),
    after: (_delayMs: number, run: () => void) => {
      timers.push(run);
      return { cancel: () => {} };
    },
  };
  let done = 0;
  const settled = (): void => {
    done++;
  };
  const options = { disk, log, store, newest: null, wall, logBytes: 1_000, intervalMs: 100_000 };
  const checkpoint = new Checkpoint({ ...options, onTaken: settled, onFailed: settled });
  checkpoint.start();
  const look = async (afterMs: number, expectsOne: boolean): Promise<void> => {
    nowMs += afterMs;
    const before = done;
    timers.shift()!();
    expect(timers.length).toBe(1);
    for (let turns = 0; expectsOne && done === before && turns < 1_000; turns++) await turn();
    await turn();
    expect(done - before).toBe(expectsOne ? 1 : 0);
  };
  const w = new ByteWriter();
  const model = new Model();
  const random = new Random(seed);
  const write = (least: number): void => {
    while (log.bytesSinceSnapshot < least) {
      const change = randomChange(random, model, false);
      w.reset();
      writeChange(w, store, change);
      log.append(w.view(), log.seq + change.length, 0, false);
      store.apply(change);
      model.apply(change);
    }
  };
  await look(1_000_000, false);
  write(1_000);
  await look(1_000, true);
  await look(1_000_000, false);
  write(1);
  await look(1_000, true);
  write(1);
  await look(50_000, false);
  await look(50_000, true);
  disk.failsCall = { call: "rename", name: /^snapshot/ };
  write(20_000);
  await look(1_000, true);
  disk.failsCall = null;
  await look(1_000, false);
  await look(60_000, true);
  expect(checkpoint.taken).toBe(4);
  await checkpoint.stop();
});

test("one old row pins no log: the directory stays small however much is written", async () => {
  const disk = new SimDisk();
  const { store, log } = await openStore(disk, { segmentBytes: 64_000, reserveBytes: 0 });
  const checkpoint = new Checkpoint({ disk, log, store, newest: null });
  const w = new ByteWriter();
  const write = (change: Change): void => {
    w.reset();
    writeChange(w, store, change);
    log.append(w.view(), log.seq + change.length, 0, false);
    store.apply(change);
  };
  const schema = createSchema(1, "jobs", [{ name: "text", type: { kind: "text" }, required: false, index: null }]);
  write([{ op: "create", schema }]);
  write([{ op: "put", cid: 1, row: [1, "due in a year"] }]);
  let written = 0;
  let most = 0;
  for (let round = 0; round < 60; round++) {
    while (log.bytesSinceSnapshot < 32_000) {
      const id = store.tableById(1)!.nextId;
      write([{ op: "put", cid: 1, row: [id, "x".repeat(500)] }]);
      write([{ op: "del", cid: 1, id }]);
      await turn();
    }
    written += log.bytesSinceSnapshot;
    await checkpoint.take();
    const bytes = [...disk.files().values()].reduce((sum, file) => sum + file.length, 0);
    most = Math.max(most, bytes);
  }
  expect(written).toBeGreaterThan(1_800_000);
  expect(most).toBeLessThan(100_000);
  const next = await openStore(SimDisk.of(disk.files()), OPTIONS);
  expect(next.store.tableById(1)!.count).toBe(1);
});
