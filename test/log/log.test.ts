import { afterEach, expect, test } from "bun:test";
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileDisk } from "../../src/log/disk.ts";
import { Log, type LogOptions } from "../../src/log/log.ts";

const directories: string[] = [];

function directory(): string {
  const path = fs.mkdtempSync(join(tmpdir(), "fenec-log-"));
  directories.push(path);
  return path;
}

afterEach(() => {
  for (const path of directories.splice(0)) fs.rmSync(path, { recursive: true, force: true });
});

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

interface Opened {
  readonly log: Log;
  readonly frames: string[];
  close(): Promise<void>;
}

function open(path: string, options: LogOptions = {}): Opened {
  const disk = fileDisk(path);
  const frames: string[] = [];
  const log = Log.open(disk, options, (frame) =>
    frames.push(`${frame.position} ${frame.seq} ${frame.atMs} ${new TextDecoder().decode(frame.payload)}`),
  );
  return {
    log,
    frames,
    close: async () => {
      await log.close();
      disk.close();
    },
  };
}

test("frames come back in order with their positions, times and counters", async () => {
  const path = directory();
  const first = open(path);
  expect(first.frames).toEqual([]);
  expect(first.log.append(bytes("a"), 3, 1000, false)).toBe(1);
  expect(first.log.append(bytes(""), 4, 1001, false)).toBe(2);
  await first.log.whenDurable(2);
  expect(first.log.durable).toBe(2);
  expect(first.log.counters.fileBytes).toBe(
    fs.readdirSync(path).reduce((sum, name) => sum + fs.statSync(join(path, name)).size, 0),
  );
  expect(first.log.counters.fileBytes).toBeGreaterThanOrEqual(first.log.counters.bytes);
  await first.close();

  const second = open(path);
  expect(second.frames).toEqual(["1 3 1000 a", "2 4 1001 "]);
  expect(second.log.append(bytes("c"), 5, 1002, false)).toBe(3);
  await second.close();

  const third = open(path);
  expect(third.frames).toEqual(["1 3 1000 a", "2 4 1001 ", "3 5 1002 c"]);
  await third.close();
});

test("frames of one turn share a sync, and those appended while one runs share the next", async () => {
  const { log, close } = open(directory(), { standStillMs: 0 });
  for (let i = 1; i <= 10; i++) log.append(bytes(`${i}`), i, 0, false);
  expect(log.whenDurable(3)).toBe(log.whenDurable(10)!);
  expect(log.durable).toBe(0);
  await new Promise((resolve) => setImmediate(resolve));
  // The sync is under way: these wait for the next.
  log.append(bytes("11"), 11, 0, false);
  log.append(bytes("12"), 12, 0, false);
  const later = log.whenDurable(11);
  expect(later).not.toBe(log.whenDurable(10)!);
  await later;
  expect(log.durable).toBe(12);
  expect(log.counters.syncs).toBe(2);
  expect(log.whenDurable(12)).toBeUndefined();
  await close();
});
