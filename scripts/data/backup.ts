/**
 * `scripts/backup`: a copy of a data directory that a start, or `scripts/restore`, can use; also while the server runs.
 * Snapshots never change once they have their name, and of the log's segments only the newest one grows; so it is enough
 * to copy and to cut the last frame off if it was caught half-written. A server may remove files meanwhile, as newer ones
 * make them needless: then it begins again.
 */

import * as fs from "node:fs";
import { join } from "node:path";
import { diskToRead } from "../../src/log/disk.ts";
import { segmentFirst } from "../../src/log/segment.ts";
import { snapshotPosition } from "../../src/log/snapshot.ts";
import { CannotDo, commandOf, runScript } from "./command.ts";
import { directoryAt, followLog, Replayed, snapshotsOf } from "./survey.ts";

export const HELP = `Usage: sh scripts/backup DIR TO

  Copies the snapshots and the log of the data directory DIR to TO, an empty or new directory, and checks the copy. The
  server may run meanwhile. The copy is a data directory itself; scripts/restore makes one of any moment in it.

  Exit status: 0 done, 1 it cannot be done, 2 the command line is wrong.`;

const TRIES = 5;

/** @returns what the copy holds */
export function backup(
  from: string,
  to: string,
): { readonly position: number; readonly bytes: number; readonly text: string } {
  directoryAt(from);
  fs.mkdirSync(to, { recursive: true, mode: 0o700 });
  if (fs.readdirSync(to).length > 0) throw new CannotDo(`${to} is not empty`);
  let bytes: number | null = null;
  for (let tries = 0; bytes === null; tries++) {
    if (tries === TRIES) throw new CannotDo("the server removed files while they were copied, five times; try again");
    for (const name of fs.readdirSync(to)) fs.rmSync(join(to, name));
    bytes = copyAll(from, to);
  }
  const disk = diskToRead(to);
  try {
    const { whole, broken } = snapshotsOf(disk);
    const [newest = null] = whole;
    const state = new Replayed(newest);
    const { scan, damages } = followLog(disk, newest, (frame) => state.apply(frame));
    const [damage] = [...broken, ...damages];
    if (damage !== undefined) {
      throw new CannotDo(
        `${from} is damaged: ${damage.file} at offset ${damage.offset}: ${damage.found}; the copy is left as it is`,
      );
    }
    const last = scan.segments.at(-1);
    const isWhole = last === undefined || last.end.ending === "whole" || last.end.ending === "sealed";
    if (!isWhole) fs.truncateSync(join(to, last.name), last.end.offset);
    if (scan.unfinished !== null) fs.rmSync(join(to, scan.unfinished));
    for (const name of fs.readdirSync(to)) syncPath(join(to, name));
    syncPath(to);
    return { position: Math.max(scan.position, newest?.position ?? 0), bytes, text: state.text };
  } finally {
    disk.close();
  }
}

/** Null when a file went away meanwhile. */
function copyAll(from: string, to: string): number | null {
  const names = fs.readdirSync(from);
  // The log last: what a snapshot was taken of is in it then.
  const wanted = [
    ...names.filter((name) => snapshotPosition(name) !== undefined),
    ...names.filter((name) => segmentFirst(name) !== undefined).sort(),
  ];
  let bytes = 0;
  for (const name of wanted) {
    try {
      fs.copyFileSync(join(from, name), join(to, name));
    } catch (error) {
      if ((error as { code?: unknown }).code === "ENOENT") return null;
      throw error;
    }
    bytes += fs.statSync(join(to, name)).size;
  }
  return bytes;
}

function syncPath(path: string): void {
  const fd = fs.openSync(path, "r");
  fs.fsyncSync(fd);
  fs.closeSync(fd);
}

if (import.meta.main) {
  process.exitCode = await runScript(
    HELP,
    () => commandOf(process.argv.slice(2), ["DIR", "TO"], [], []),
    async (command, print) => {
      const { position, bytes, text } = backup(command.words[0]!, command.words[1]!);
      print(`copied ${bytes} bytes: ${text} at position ${position}`);
      return 0;
    },
  );
}
