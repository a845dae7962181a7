/** The engine over a disk that is full or fails: what is refused, what goes on, what is there after the next start. */

import { expect, test } from "bun:test";
import { TestClock } from "../../src/clock/clock.ts";
import { Checkpoint } from "../../src/engine/checkpoint.ts";
import { Engine } from "../../src/engine/engine.ts";
import { KeptAnswers } from "../../src/engine/idempotency.ts";
import { openStore } from "../../src/engine/recovery.ts";
import { Sweeper } from "../../src/engine/sweeper.ts";
import { codeOf, codeOfPromise } from "../harness/code_of.ts";
import { SimDisk } from "../sim/disk.ts";

const CONTEXT = { scope: null, idempotencyKey: null, requestHash: "" };
const START_MS = Date.UTC(2026, 4, 1);

async function engineOn(disk: SimDisk): Promise<{ engine: Engine; clock: TestClock }> {
  const clock = new TestClock(START_MS);
  const { store, log, seq } = await openStore(disk, { reserveBytes: 64 * 1024 });
  const engine = new Engine({
    store,
    journal: log,
    clock,
    seq,
    readOnly: false,
    maxMemoryBytes: Infinity,
    answers: new KeptAnswers(86_400_000),
    compact: () => {},
  });
  return { engine, clock };
}

const run = (engine: Engine, text: string): string => engine.query(text, [], CONTEXT).body;

async function write(engine: Engine, text: string): Promise<void> {
  run(engine, text);
  await engine.durable();
}

function used(disk: SimDisk): number {
  return [...disk.files().values()].reduce((sum, bytes) => sum + bytes.length, 0);
}

test("a full disk: puts are refused and leave nothing, reads and deletes go on, and with space puts do again", async () => {
  const disk = new SimDisk();
  const { engine } = await engineOn(disk);
  await write(engine, "create collection jobs (n int, gone timestamp @ttl(1s))");
  for (let n = 1; n <= 5; n++) await write(engine, `put jobs {n: ${n}}`);
  disk.capacityBytes = used(disk) + 20;
  expect(codeOf(() => run(engine, "put jobs {n: 6}"))).toBe("disk_full");
  expect(
    codeOf(() =>
      engine.batch(
        [
          { text: "put jobs {n: 7}", params: [] },
          { text: "del jobs where n = 1", params: [] },
        ],
        CONTEXT,
      ),
    ),
  ).toBe("disk_full");
  expect(run(engine, "get jobs select n")).toBe('[{"n":1},{"n":2},{"n":3},{"n":4},{"n":5}]');
  expect(engine.health()).toMatchObject({ ok: false, code: "disk_full" });
  await write(engine, "del jobs where n = 2");
  expect(run(engine, "get jobs select n")).toBe('[{"n":1},{"n":3},{"n":4},{"n":5}]');
  expect(codeOf(() => run(engine, "put jobs {n: 8}"))).toBe("disk_full");
  disk.capacityBytes = Infinity;
  expect(engine.health()).toEqual({ ok: true });
  await write(engine, "put jobs {n: 9}");
  const next = await engineOn(SimDisk.of(disk.files()));
  expect(run(next.engine, "get jobs select n")).toBe('[{"n":1},{"n":3},{"n":4},{"n":5},{"n":9}]');
  next.engine.store.check();
  expect(next.engine.seq).toBe(engine.seq);
});

test("a sync that failed: its write and all later ones are refused, reads go on, a start has what was confirmed", async () => {
  const disk = new SimDisk();
  const { engine, clock } = await engineOn(disk);
  await write(engine, "create collection jobs (n int, gone timestamp @ttl(1s))");
  await write(engine, "put jobs {n: 1, gone: now()}");
  disk.failsSync = /^redo/;
  run(engine, "put jobs {n: 2}");
  const reads = engine.durable(true);
  expect(await codeOfPromise(engine.durable())).toBe("disk_failed");
  expect(await codeOfPromise(reads)).toBe("disk_failed");
  disk.failsSync = null;
  expect(codeOf(() => run(engine, "put jobs {n: 3}"))).toBe("disk_failed");
  expect(codeOf(() => run(engine, "del jobs where n = 1"))).toBe("disk_failed");
  expect(engine.health()).toMatchObject({ ok: false, code: "disk_failed" });
  expect(run(engine, "get jobs where n = 1 count")).toBe('[{"count":1}]');
  expect(engine.durable(true)).toBeUndefined();
  expect(await codeOfPromise(engine.durable())).toBe("disk_failed");
  // Nobody waits for the sweeper, so nobody would hear of its refusal.
  const sweeper = new Sweeper(engine, clock);
  await clock.advance(3_600_000);
  sweeper.sweep();
  await engine.close();
  const { engine: next } = await engineOn(SimDisk.of(disk.files()));
  expect(run(next, "get jobs where n = 1 count")).toBe('[{"count":1}]');
});

test("a compact is answered when its snapshot stands, or refused", async () => {
  const disk = new SimDisk();
  const { store, log, seq } = await openStore(disk, { reserveBytes: 0 });
  const checkpoint = new Checkpoint({ disk, log, store, newest: null });
  const engine = new Engine({
    store,
    journal: log,
    clock: new TestClock(START_MS),
    seq,
    readOnly: false,
    maxMemoryBytes: Infinity,
    answers: new KeptAnswers(86_400_000),
    compact: () => checkpoint.take(),
  });
  await write(engine, "create collection jobs (n int)");
  const snapshots = (): string[] => [...disk.files().keys()].filter((name) => name.endsWith(".fsnap"));
  await write(engine, "compact");
  expect(snapshots().length).toBe(1);
  await write(engine, "put jobs {n: 1}");
  expect(snapshots().length).toBe(1);
  disk.failsCall = { call: "rename", name: /^snapshot/ };
  run(engine, "compact");
  expect(await codeOfPromise(engine.durable())).toBe("disk_failed");
  disk.failsCall = null;
  await write(engine, "put jobs {n: 2}");
  disk.capacityBytes = used(disk) + 80;
  run(engine, "compact");
  expect(await codeOfPromise(engine.durable())).toBe("disk_full");
  disk.capacityBytes = Infinity;
  await write(engine, "compact");
  expect(snapshots().length).toBe(2);
});
