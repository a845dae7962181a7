/** `scripts/check`: every damage in a data directory, its place, and whether the state can be built from it. */

import { isDataFile, misplaced } from "../../src/log/data_files.ts";
import { diskToRead } from "../../src/log/disk.ts";
import { isUnfinishedSnapshot } from "../../src/log/snapshot.ts";
import { commandOf, runScript } from "./command.ts";
import { directoryAt, followLog, Replayed, snapshotsOf, spanText } from "./survey.ts";

export const HELP = `Usage: sh scripts/check DIR

  Reads a data directory, changes nothing, and prints every damage with its file and offset. It may run beside a
  server: what is being written at that moment is reported as an end that is not whole, which is no damage.

  Exit status: 0 all is well, 1 there is damage or DIR is no data directory, 2 the command line is wrong.`;

/** @returns the damages found, as lines */
export function check(directory: string, print: (line: string) => void): string[] {
  const disk = diskToRead(directoryAt(directory));
  const damages: string[] = [];
  const damage = (line: string): void => {
    damages.push(line);
    print(`damage: ${line}`);
  };
  try {
    for (const name of disk.list()) {
      if (isUnfinishedSnapshot(name)) print(`note: ${name} is a snapshot being written, or one that was not finished`);
      else if (!isDataFile(name)) print(`note: ${name} is no file of a data directory`);
    }
    for (const { file, offset, found } of misplaced(disk)) damage(`${file} at offset ${offset}: ${found}`);
    const { whole, broken } = snapshotsOf(disk);
    for (const { file, offset, found } of broken) damage(`${file} at offset ${offset}: ${found}`);
    for (const snapshot of whole.slice(1).reverse()) {
      const older = new Replayed(snapshot);
      older.store.check();
      print(`ok: ${snapshot.name}: position ${snapshot.position}, ${older.text}`);
    }
    const [newest = null] = whole;
    const state = new Replayed(newest);
    if (newest !== null) print(`ok: ${newest.name}: position ${newest.position}, ${state.text}`);
    const { scan, damages: found, kept } = followLog(disk, newest, (frame) => state.apply(frame));
    for (const { file, offset, found: what } of found) damage(`${file} at offset ${offset}: ${what}`);
    for (const segment of scan.segments) {
      const { ending, offset, size } = segment.end;
      print(`log: ${segment.name}: positions ${segment.head.first} to ${segment.last}, ${size} bytes`);
      if ((ending === "torn" || ending === "lost") && segment === scan.segments.at(-1)) {
        print(
          `note: ${segment.name}: ${size - offset} bytes from offset ${offset} on are no whole frame; the next start cuts them off`,
        );
      }
    }
    if (scan.unfinished !== null) print(`note: ${scan.unfinished} was not finished and holds nothing`);
    if (broken.length > 0 && newest === null && kept?.first !== 1)
      damage("no snapshot is whole, and the log does not begin at the beginning");
    const [first] = scan.segments;
    const [, fallback] = whole;
    if (first !== undefined && fallback !== undefined && first.head.first > fallback.position + 1) {
      print(
        `note: ${fallback.name} could not stand in for the newest: the log begins at position ${first.head.first}, behind its ${fallback.position}`,
      );
    }
    if (state.wrong !== null) damage(state.wrong);
    else state.store.check();
    if (kept !== null) print(`log behind the snapshot: ${spanText(kept)}`);
    print(`state: ${state.text}`);
    print(damages.length === 0 ? "no damage" : `${damages.length} damages; scripts/repair says what can be done`);
    return damages;
  } finally {
    disk.close();
  }
}

if (import.meta.main) {
  process.exitCode = await runScript(
    HELP,
    () => commandOf(process.argv.slice(2), ["DIR"], [], []),
    async (command, print) => (check(command.words[0]!, print).length === 0 ? 0 : 1),
  );
}
