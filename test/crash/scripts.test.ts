import { afterEach, expect, test } from "bun:test";
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { backup } from "../../scripts/data/backup.ts";
import { check } from "../../scripts/data/check.ts";
import { repair } from "../../scripts/data/repair.ts";
import { restore, targetOf } from "../../scripts/data/restore.ts";
import { ByteWriter } from "../../src/base/bytes.ts";
import { Checkpoint } from "../../src/engine/checkpoint.ts";
import { writeChange } from "../../src/engine/payload.ts";
import { openStore } from "../../src/engine/recovery.ts";
import { Damage } from "../../src/log/damage.ts";
import { fileDisk } from "../../src/log/disk.ts";
import { DirectoryTaken } from "../../src/log/lock.ts";
import { SEAL_BYTES } from "../../src/log/seal.ts";
import { createSchema } from "../../src/schema/declare.ts";
import type { Change } from "../../src/store/change.ts";

const roots: string[] = [];

function directory(): string {
  const root = fs.mkdtempSync(join(tmpdir(), "fenec-scripts-"));
  roots.push(root);
  return join(root, "data");
}

afterEach(() => {
  for (const root of roots.splice(0)) fs.rmSync(root, { recursive: true, force: true });
});

const START_MS = Date.UTC(2026, 4, 1);
const OPTIONS = { reserveBytes: 64 * 1024 };
const CREATE: Change = [
  {
    op: "create",
    schema: createSchema(1, "jobs", [{ name: "n", type: { kind: "int" }, required: false, index: null }]),
  },
];

interface Running {
  put(n: number): Promise<void>;
  snapshot(): Promise<void>;
  rotate(): Promise<void>;
  close(): Promise<void>;
}

/** A directory being written to: position p is the put of p - 2, a second after the one before. */
async function running(path: string): Promise<Running> {
  const disk = fileDisk(path);
  const { store, log, snapshot } = await openStore(disk, OPTIONS);
  const checkpoint = new Checkpoint({ disk, log, store, newest: snapshot });
  const w = new ByteWriter();
  const write = async (change: Change): Promise<void> => {
    w.reset();
    writeChange(w, store, change);
    const position = log.append(w.view(), log.seq + 1, START_MS + log.appended * 1_000, false);
    store.apply(change);
    await log.whenDurable(position);
  };
  if (store.tables().length === 0) await write(CREATE);
  return {
    put: (n) => write([{ op: "put", cid: 1, row: [n + 1, n] }]),
    snapshot: () => checkpoint.take(),
    rotate: () => log.rotate(),
    close: async () => {
      await log.close();
      disk.close();
    },
  };
}

/** Two snapshots, at positions 6 and 11, and a log from 7 to 16 in two segments more. */
async function written(path: string): Promise<void> {
  const server = await running(path);
  for (let n = 0; n < 15; n++) {
    await server.put(n);
    if (n === 4 || n === 9) await server.snapshot();
    if (n === 12) await server.rotate();
  }
  await server.close();
}

async function numbersOf(path: string): Promise<number[]> {
  const disk = fileDisk(path);
  try {
    const { store, log } = await openStore(disk, OPTIONS);
    const numbers: number[] = [];
    store.table("jobs")?.scan(-Infinity, (row) => numbers.push(row[1] as number) > 0);
    await log.close();
    return numbers;
  } finally {
    disk.close();
  }
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n);

function contentsOf(path: string): Map<string, Buffer> {
  const names = fs
    .readdirSync(path, { withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== "lock");
  return new Map(names.map(({ name }) => [name, fs.readFileSync(join(path, name))]));
}

function flip(path: string, offset: number): void {
  const bytes = fs.readFileSync(path);
  bytes[offset] = bytes[offset]! ^ 1;
  fs.writeFileSync(path, bytes);
}

const SILENT = (): void => {};
const redo = (path: string): string[] =>
  fs
    .readdirSync(path)
    .filter((name) => name.startsWith("redo-"))
    .sort();
const snapshots = (path: string): string[] =>
  fs
    .readdirSync(path)
    .filter((name) => name.endsWith(".fsnap"))
    .sort();

test("check finds nothing in a sound directory, and every damage in a broken one, and changes neither", async () => {
  const path = directory();
  await written(path);
  expect(redo(path).length).toBe(3);
  expect(snapshots(path).length).toBe(2);
  const before = contentsOf(path);
  const lines: string[] = [];
  expect(check(path, (line) => lines.push(line))).toEqual([]);
  expect(lines.at(-1)).toBe("no damage");
  expect(lines.at(-2)).toBe("state: 15 rows in 1 collections");
  expect(contentsOf(path)).toEqual(before);

  const [first, second] = redo(path);
  flip(join(path, first!), 70);
  flip(join(path, second!), 130);
  flip(join(path, snapshots(path)[0]!), 100);
  const broken = contentsOf(path);
  const found = check(path, SILENT);
  expect(found.length).toBe(3);
  expect(found[0]).toContain(`${snapshots(path)[0]} at offset`);
  expect(found[1]).toContain(`${first} at offset 64:`);
  expect(found[2]).toContain(`${second} at offset`);
  expect(contentsOf(path)).toEqual(broken);
});

test("a directory or a link in a file's place stops the start, and the scripts say so", async () => {
  const path = directory();
  await written(path);
  const whole = contentsOf(path);
  for (const name of [redo(path).at(-1)!, snapshots(path).at(-1)!, "reserve"]) {
    for (const make of [(at: string) => fs.mkdirSync(at), (at: string) => fs.symlinkSync(`${at}.away`, at)]) {
      const at = join(path, name);
      fs.renameSync(at, `${at}.away`);
      make(at);
      const disk = fileDisk(path);
      await expect(openStore(disk, OPTIONS)).rejects.toThrow(`${name} is damaged at offset 0: it is no plain file`);
      disk.close();
      expect(check(path, SILENT)[0]).toContain(`${name} at offset 0: it is no plain file`);
      await expect(repair(path, true, SILENT)).rejects.toThrow("put it out of the way first");
      fs.rmSync(at, { recursive: true });
      fs.renameSync(`${at}.away`, at);
    }
  }
  expect(contentsOf(path)).toEqual(whole);
});

test("check notes that the older snapshot leads nowhere without the log behind it", async () => {
  const path = directory();
  await written(path);
  fs.rmSync(join(path, redo(path)[0]!));
  const lines: string[] = [];
  expect(check(path, (line) => lines.push(line))).toEqual([]);
  expect(lines.filter((line) => line.startsWith(`note: ${snapshots(path)[0]} could not stand in`))).toHaveLength(1);
});

test("a torn end is no damage", async () => {
  const path = directory();
  await written(path);
  fs.appendFileSync(join(path, redo(path).at(-1)!), Buffer.alloc(33, 7));
  const lines: string[] = [];
  expect(check(path, (line) => lines.push(line))).toEqual([]);
  expect(lines.some((line) => line.includes(`${SEAL_BYTES + 33} bytes from offset`))).toBe(true);
});

test("repair says what it would lose, changes nothing until told, and copies aside what it cuts", async () => {
  const path = directory();
  await written(path);
  const [, second] = redo(path);
  // The second frame of the segment behind the newer snapshot.
  const segment = fs.readFileSync(join(path, second!));
  flip(join(path, second!), segment.length - 5);
  expect(numbersOf(path)).rejects.toThrow(Damage);
  const before = contentsOf(path);
  const lines: string[] = [];
  expect(await repair(path, false, (line) => lines.push(line))).toBe(false);
  expect(contentsOf(path)).toEqual(before);
  expect(lines.some((line) => line.startsWith("keeps: 2 frames, positions 12 to 13"))).toBe(true);
  expect(lines.some((line) => line.startsWith("loses: 2 frames, positions 15 to 16"))).toBe(true);

  expect(await repair(path, true, SILENT)).toBe(true);
  expect(await numbersOf(path)).toEqual(upTo(12));
  expect(check(path, SILENT)).toEqual([]);
  const aside = fs.readdirSync(path).find((name) => name.startsWith("damaged-"))!;
  const kept = contentsOf(join(path, aside));
  before.delete("reserve");
  expect(kept).toEqual(before);
  const server = await running(path);
  await server.put(99);
  await server.close();
  expect(await numbersOf(path)).toEqual([...upTo(12), 99]);
  expect(await repair(path, true, SILENT)).toBe(true);
});

test("damage the newest snapshot covers loses nothing", async () => {
  const path = directory();
  await written(path);
  flip(join(path, redo(path)[0]!), 70);
  expect(await repair(path, true, SILENT)).toBe(true);
  expect(await numbersOf(path)).toEqual(upTo(15));
});

test("a repair cut short keeps the server from starting until it is finished", async () => {
  const path = directory();
  await written(path);
  flip(join(path, redo(path)[1]!), 130);
  expect(await repair(path, true, SILENT)).toBe(true);
  const after = contentsOf(path);
  const names = [...after.keys()].filter((name) => name !== "reserve");
  // As if it had ended in the middle of moving the new files in.
  fs.mkdirSync(join(path, "repaired-x"));
  fs.renameSync(join(path, names[0]!), join(path, "repaired-x", names[0]!));
  fs.writeFileSync(join(path, "repair"), JSON.stringify({ stage: "moving", fresh: "repaired-x" }));
  expect(numbersOf(path)).rejects.toThrow("--cut` finishes it");
  expect(await repair(path, false, SILENT)).toBe(false);
  expect(await repair(path, true, SILENT)).toBe(true);
  expect(contentsOf(path)).toEqual(after);
});

test("nothing to build from: repair refuses and changes nothing", async () => {
  const path = directory();
  await written(path);
  for (const name of snapshots(path)) flip(join(path, name), 100);
  const before = contentsOf(path);
  expect(repair(path, true, SILENT)).rejects.toThrow("restore a backup");
  expect(contentsOf(path)).toEqual(before);
});

test("repair wants the server stopped", async () => {
  const path = directory();
  const server = await running(path);
  expect(repair(path, true, SILENT)).rejects.toThrow(DirectoryTaken);
  await server.close();
});

test("a backup beside a running server is whole and restores to any moment it reaches", async () => {
  const path = directory();
  const server = await running(path);
  for (let n = 0; n < 15; n++) {
    await server.put(n);
    if (n === 4 || n === 9) await server.snapshot();
  }
  const copy = directory();
  expect(backup(path, copy).position).toBe(16);
  await server.put(15);
  await server.close();
  expect(check(copy, SILENT)).toEqual([]);

  const all = directory();
  expect(await restore(copy, all, null)).toEqual({ rows: 15, position: 16 });
  expect(await numbersOf(all)).toEqual(upTo(15));
  for (let position = 6; position <= 16; position++) {
    const one = directory();
    expect(await restore(copy, one, { position })).toEqual({ rows: position - 1, position });
    expect(await numbersOf(one)).toEqual(upTo(position - 1));
    const other = directory();
    await restore(copy, other, { atMs: START_MS + (position - 1) * 1_000 + 500 });
    expect(await numbersOf(other)).toEqual(upTo(position - 1));
  }
  expect(restore(copy, directory(), { atMs: START_MS + 4_500 })).rejects.toThrow(
    "reaches back to position 6, 2026-05-01T00:00:05.000Z",
  );
  expect(restore(copy, directory(), { position: 5 })).rejects.toThrow("reaches back to position 6");
  expect(restore(copy, directory(), { position: 17 })).rejects.toThrow("ends at position 16");
  expect(restore(copy, all, null)).rejects.toThrow("is not empty");
  expect(backup(path, directory()).position).toBe(17);
  expect(() => backup(path, copy)).toThrow("is not empty");
});

test("a restored directory goes on by itself, and the backup's files are not its own", async () => {
  const path = directory();
  await written(path);
  const one = directory();
  await restore(path, one, targetOf("9"));
  const server = await running(one);
  await server.put(50);
  await server.snapshot();
  await server.close();
  expect(await numbersOf(one)).toEqual([...upTo(8), 50]);
  // A segment of the old life in the new one's place is seen.
  const [last] = redo(path).slice(-1);
  fs.copyFileSync(join(path, last!), join(one, last!));
  expect(numbersOf(one)).rejects.toThrow(Damage);
});

test("what lies before the first change is refused, and makes no directory", async () => {
  const path = directory();
  const server = await running(path);
  await server.put(0);
  await server.close();
  for (const target of [{ position: 0 }, { atMs: START_MS - 1 }]) {
    const made = directory();
    expect(restore(path, made, target)).rejects.toThrow(
      "the backup reaches back to position 1, 2026-05-01T00:00:00.000Z: name that or a later one",
    );
    expect(fs.existsSync(made)).toBe(false);
  }
  const made = directory();
  expect(await restore(path, made, { atMs: START_MS })).toEqual({ rows: 0, position: 1 });
});

test("a folder that is no data directory is refused by every script; one with a lock alone is an empty one", async () => {
  const path = directory();
  fs.mkdirSync(path);
  fs.writeFileSync(join(path, "notes.txt"), "mine");
  const words = `${path} is no data directory`;
  expect(() => check(path, SILENT)).toThrow(words);
  expect(() => backup(path, directory())).toThrow(words);
  expect(repair(path, true, SILENT)).rejects.toThrow(words);
  expect(restore(path, directory(), null)).rejects.toThrow(words);
  expect(fs.readdirSync(path)).toEqual(["notes.txt"]);
  expect(() => check(join(path, "notes.txt"), SILENT)).toThrow("is no directory");
  fs.writeFileSync(join(path, "lock"), "");
  expect(check(path, SILENT)).toEqual([]);
  expect(await repair(path, true, SILENT)).toBe(true);
  expect(await numbersOf(path)).toEqual([]);
  expect(restore(directoryWithLock(), directory(), { position: 1 })).rejects.toThrow("nothing in the backup");
});

function directoryWithLock(): string {
  const path = directory();
  fs.mkdirSync(path);
  fs.writeFileSync(join(path, "lock"), "");
  return path;
}

test("--to takes a position or a time", () => {
  expect(targetOf("12")).toEqual({ position: 12 });
  expect(targetOf("2026-05-01T00:00:01Z")).toEqual({ atMs: START_MS + 1_000 });
  expect(() => targetOf("yesterday")).toThrow("a position or a time");
});

test("the scripts run, tell their help, and say by their status how it went", async () => {
  const root = join(import.meta.dir, "../..");
  const run = async (...words: string[]): Promise<{ status: number; out: string; err: string }> => {
    const child = Bun.spawn(["sh", ...words], { cwd: root, stdout: "pipe", stderr: "pipe" });
    const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
    return { status: await child.exited, out, err };
  };
  const path = directory();
  await written(path);
  const helps = await Promise.all(
    ["check", "repair", "backup", "restore"].map((name) => run(`scripts/${name}`, "--help")),
  );
  for (const help of helps) {
    expect([help.status, help.err]).toEqual([0, ""]);
    expect(help.out).toStartWith("Usage: sh scripts/");
  }
  flip(join(path, redo(path)[0]!), 70);
  const broken = await run("scripts/check", path);
  expect([broken.status, broken.out.includes(`damage: ${redo(path)[0]} at offset 64`)]).toEqual([1, true]);
  const elsewhere = await run("scripts/check", join(root, "docs"));
  expect([elsewhere.status, elsewhere.out]).toEqual([1, ""]);
  expect(elsewhere.err).toContain("docs is no data directory: it holds no log");
  const wrong = await run("scripts/restore", path);
  expect([wrong.status, wrong.err]).toEqual([2, "it takes 2 words: BACKUP DIR; --help tells more\n"]);
}, 30_000);
