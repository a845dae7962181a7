/**
 * A log whose last record was torn by a crash was opened, and new records were written behind the torn one. The reader
 * stopped at it for ever: all that was confirmed since was gone at the second restart.
 * https://github.com/acoustid/acoustid-index/pull/157
 *
 * Right: a start cuts the torn record off before anything is written, so every later start reads all of it, and repeated
 * starts change nothing. Torn bytes in a file that is not the newest are no crash's doing: no start, and words that name
 * the file and the place.
 */

import { afterEach, expect, setDefaultTimeout, test } from "bun:test";
import * as fs from "node:fs";
import { join } from "node:path";
import { WallClock } from "../../src/clock/clock.ts";
import { Database } from "../../src/engine/database.ts";
import { diskToRead, fileDisk } from "../../src/log/disk.ts";
import { FRAME_HEAD_BYTES } from "../../src/log/frame.ts";
import { scanLog } from "../../src/log/scan.ts";
import { PATIENCE_MS, Scratch, startRefused } from "../harness/server.ts";
import { CREATE, idsOf, type Job, startOnDisk } from "./queue.ts";

setDefaultTimeout(PATIENCE_MS);

let scratch: Scratch | undefined;
afterEach(() => {
  scratch?.[Symbol.dispose]();
  scratch = undefined;
});

function directory(): string {
  scratch = new Scratch();
  return join(scratch.path, "data");
}

function segments(path: string): string[] {
  return fs.readdirSync(path).filter((name) => name.startsWith("redo-"));
}

/** The log's last record as it lies in the newest file. */
function lastRecord(path: string): Buffer {
  const disk = diskToRead(path);
  let bytes = 0;
  const { segments: found } = scanLog(
    disk,
    0,
    null,
    (frame) => {
      bytes = FRAME_HEAD_BYTES + frame.payload.length;
    },
    (damage) => {
      throw damage;
    },
  );
  disk.close();
  const newest = found.at(-1)!;
  const file = fs.readFileSync(join(path, newest.name));
  return file.subarray(newest.end.offset - bytes, newest.end.offset);
}

function append(path: string, name: string, tail: Uint8Array): void {
  fs.appendFileSync(join(path, name), tail);
}

/** Every file but the lock, which holds a process id. */
function contents(path: string): Map<string, string> {
  const names = fs.readdirSync(path).filter((name) => name !== "lock");
  return new Map(names.map((name) => [name, fs.readFileSync(join(path, name)).toString("hex")]));
}

const payloads = (jobs: readonly Job[]): unknown[] => jobs.map(({ payload }) => payload);

test("what is put behind a torn record is there after every later start", async () => {
  const path = directory();
  const first = await startOnDisk(path);
  await first.server.run(CREATE);
  await first.put('"A"');
  await first.server.stop();
  const record = lastRecord(path);
  append(path, segments(path).at(-1)!, record.subarray(0, record.length >> 1));

  const second = await startOnDisk(path);
  await second.put('"C"');
  await second.put('"D"');
  await second.server.kill();

  const third = await startOnDisk(path);
  const jobs = await third.all();
  expect(payloads(jobs)).toEqual(["A", "C", "D"]);
  expect(idsOf(jobs)).toEqual([1, 2, 3]);
  await third.server.stop();
  const settled = contents(path);
  for (let start = 0; start < 3; start++) {
    const again = await startOnDisk(path);
    expect(await again.all()).toEqual(jobs);
    if (start === 1) await again.server.kill();
    else await again.server.stop();
    expect(contents(path)).toEqual(settled);
  }
});

const ASKED = { scope: null, idempotencyKey: null, requestHash: "" };

/** Opens the directory, puts these, and answers all payloads there are then. */
async function withPuts(path: string, ...texts: string[]): Promise<string> {
  const database = await Database.open(fileDisk(path), {
    clock: new WallClock(),
    sync: "always",
    readOnly: false,
    maxMemoryBytes: Infinity,
    idempotencyTtlMs: 1_000,
    reserveBytes: 4096,
  });
  const { engine } = database;
  engine.query("create collection if not exists jobs (payload text)", [], ASKED);
  for (const text of texts) engine.query("put jobs {payload: $1}", [text], ASKED);
  await engine.durable();
  const { body } = engine.query("get jobs select id, payload", [], ASKED);
  engine.store.check();
  await database.close();
  return body;
}

function tails(record: Buffer): [string, Uint8Array][] {
  const flipped = Buffer.from(record);
  flipped[0] = flipped[0]! ^ 1;
  const made: [string, Uint8Array][] = [["a whole record whose checksum is off by one bit", flipped]];
  for (const count of [1, 7, 8, 64, 4_096]) {
    made.push(
      [`${count} zeros`, Buffer.alloc(count)],
      [`${count} bytes of 0xff`, Buffer.alloc(count, 0xff)],
      [`${count} random bytes`, crypto.getRandomValues(Buffer.alloc(count))],
    );
  }
  return made;
}

test("so it is with every other tail: zeros, ones, noise, a record that is wrong by a bit", async () => {
  const path = directory();
  await withPuts(path, "A");
  for (const [what, tail] of tails(lastRecord(path))) {
    const one = `${path}-${what.replaceAll(" ", "-")}`;
    fs.cpSync(path, one, { recursive: true });
    append(one, segments(one).at(-1)!, tail);
    await withPuts(one, "C", "D");
    const expected = '[{"id":1,"payload":"A"},{"id":2,"payload":"C"},{"id":3,"payload":"D"}]';
    for (let start = 0; start < 3; start++) {
      const before = start === 0 ? undefined : contents(one);
      expect(await withPuts(one), what).toBe(expected);
      if (before !== undefined) expect(contents(one), what).toEqual(before);
    }
  }
});

test("a torn tail in a file that is not the newest: no start, and its name and place", async () => {
  const path = directory();
  const first = await startOnDisk(path);
  await first.server.run(CREATE);
  await first.put('"A"');
  await first.server.run("compact");
  await first.put('"B"');
  await first.server.stop();
  const [older, newer] = segments(path);
  expect(newer).toBeDefined();
  const size = fs.statSync(join(path, older!)).size;
  const record = lastRecord(path);
  append(path, older!, record.subarray(0, record.length >> 1));
  const before = contents(path);
  const { status, words } = await startRefused({ flags: ["--data", path] });
  expect(status).toBe(1);
  expect(words).toContain(`${older} is damaged at offset ${size}`);
  expect(words).toContain("scripts/check");
  expect(contents(path)).toEqual(before);
});
