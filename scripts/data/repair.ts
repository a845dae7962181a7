/**
 * `scripts/repair`: makes a damaged data directory start again, by what is still good in it. It says what would be lost
 * and changes nothing until told to cut; then everything it replaces is copied aside first.
 */

import * as fs from "node:fs";
import { basename, join } from "node:path";
import { REPAIR_NAME } from "../../src/log/damage.ts";
import { misplaced } from "../../src/log/data_files.ts";
import { type Disk, fileDisk } from "../../src/log/disk.ts";
import { segmentFirst } from "../../src/log/segment.ts";
import { snapshotPosition } from "../../src/log/snapshot.ts";
import { CannotDo, commandOf, runScript } from "./command.ts";
import { rebuild } from "./rebuild.ts";
import { directoryAt, followLog, snapshotsOf, spanText } from "./survey.ts";

export const HELP = `Usage: sh scripts/repair DIR [--cut]

  Without --cut it changes nothing: it prints what is damaged, what a repair would keep and what it would lose.
  With --cut it copies the log, and the snapshots that are not whole, to DIR/damaged-<time>/, then writes the log anew: the
  frames that follow the newest whole snapshot without a gap. What is behind the first damage is lost to the server; the
  copies have it still. The server must be stopped.

  Exit status: 0 nothing to repair, or repaired; 1 there is something to repair, or it cannot be done; 2 the command line
  is wrong.`;

/** @returns whether the directory is sound now */
export async function repair(directory: string, cut: boolean, print: (line: string) => void): Promise<boolean> {
  const disk = fileDisk(directoryAt(directory));
  try {
    if (disk.list().includes(REPAIR_NAME)) {
      if (!cut) {
        print("a repair was begun here and not finished; --cut finishes it");
        return false;
      }
      putInPlace(disk);
      print("the repair begun before is finished");
      return true;
    }
    const [other] = misplaced(disk);
    if (other !== undefined) throw new CannotDo(`${other.file}: ${other.found}; put it out of the way first`);
    const { whole, broken } = snapshotsOf(disk);
    const [newest = null] = whole;
    const { scan, damages, kept, lost } = followLog(disk, newest, () => {});
    if (damages.length === 0 && broken.length === 0) {
      print("nothing to repair");
      return true;
    }
    for (const { file, offset, found } of [...broken, ...damages])
      print(`damage: ${file} at offset ${offset}: ${found}`);
    const begins = newest !== null || kept?.first === 1;
    if (!begins && (broken.length > 0 || scan.segments.length > 0)) {
      throw new CannotDo(
        "no snapshot is whole, and the log does not begin at the beginning: nothing can be built from this; restore a backup",
      );
    }
    print(newest === null ? "keeps: no snapshot" : `keeps: ${newest.name}, the state at position ${newest.position}`);
    print(kept === null ? "keeps: no frame of the log behind it" : `keeps: ${spanText(kept)}`);
    print(lost === null ? "loses: no good frame" : `loses: ${spanText(lost)}`);
    for (const { file, offset } of damages) print(`loses: whatever was written at offset ${offset} of ${file}`);
    if (!cut) {
      print("nothing was changed; --cut does it");
      return false;
    }

    const time = new Date().toISOString().replaceAll(":", "-");
    const aside = join(directory, `damaged-${time}`);
    const fresh = join(directory, `repaired-${time}`);
    const replaced = disk
      .list()
      .filter((name) => segmentFirst(name) !== undefined || broken.some(({ file }) => file === name));
    fs.mkdirSync(aside);
    for (const name of replaced) copyWhole(join(directory, name), join(aside, name));
    const { rows, position } = await rebuild(fresh, directory, newest, (onFrame) => {
      followLog(disk, newest, onFrame);
    });
    // The history is another one now, so the snapshot goes too, and one older than it leads nowhere any more.
    for (const name of dataFiles(disk)) {
      if (!replaced.includes(name)) copyWhole(join(directory, name), join(aside, name));
    }
    disk.sync();
    note(disk, "removing", fresh);
    putInPlace(disk);
    print(`repaired: ${rows} rows at position ${position}; what was there before is in ${aside}`);
    return true;
  } finally {
    disk.close();
  }
}

function dataFiles(disk: Disk): string[] {
  return disk.list().filter((name) => segmentFirst(name) !== undefined || snapshotPosition(name) !== undefined);
}

/** While this file is there no server starts: half of the directory may be gone. */
function note(disk: Disk, stage: "removing" | "moving", fresh: string): void {
  const path = join(disk.where, REPAIR_NAME);
  fs.writeFileSync(`${path}.tmp`, JSON.stringify({ stage, fresh: basename(fresh) }));
  syncPath(`${path}.tmp`);
  fs.renameSync(`${path}.tmp`, path);
  disk.sync();
}

/** Removes what was, moves in what is new; can be cut short anywhere and begun again. */
function putInPlace(disk: Disk): void {
  const text = fs.readFileSync(join(disk.where, REPAIR_NAME), "utf8");
  const { stage, fresh: name } = JSON.parse(text) as { stage: "removing" | "moving"; fresh: string };
  const fresh = join(disk.where, name);
  if (stage === "removing") {
    for (const old of dataFiles(disk)) disk.remove(old);
    note(disk, "moving", fresh);
  }
  for (const file of fs.readdirSync(fresh)) fs.renameSync(join(fresh, file), join(disk.where, file));
  disk.sync();
  fs.rmdirSync(fresh);
  disk.remove(REPAIR_NAME);
  disk.sync();
}

function copyWhole(from: string, to: string): void {
  fs.copyFileSync(from, to, fs.constants.COPYFILE_EXCL);
  syncPath(to);
}

function syncPath(path: string): void {
  const fd = fs.openSync(path, "r");
  fs.fsyncSync(fd);
  fs.closeSync(fd);
}

if (import.meta.main) {
  process.exitCode = await runScript(
    HELP,
    () => commandOf(process.argv.slice(2), ["DIR"], ["--cut"], []),
    async (command, print) => ((await repair(command.words[0]!, command.options.has("--cut"), print)) ? 0 : 1),
  );
}
