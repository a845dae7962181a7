/**
 * A data directory written anew: one snapshot with another history, and frames behind it. What `repair` and `restore`
 * put in place of what they found; two directories that go on from the same frames must not pass for each other.
 */

import * as fs from "node:fs";
import { join } from "node:path";
import { openStore } from "../../src/engine/recovery.ts";
import { fileDisk } from "../../src/log/disk.ts";
import type { Frame } from "../../src/log/frame.ts";
import { Log } from "../../src/log/log.ts";
import { encodeSnapshotHead, type Snapshot } from "../../src/log/snapshot.ts";

/**
 * @param into an empty directory, or one that is not there yet
 * @param source where the snapshot lies
 * @param frames hands on the frames behind the snapshot, in order
 * @returns what a start there finds
 */
export async function rebuild(
  into: string,
  source: string,
  snapshot: Snapshot | null,
  frames: (onFrame: (frame: Frame) => void) => void,
): Promise<{ readonly rows: number; readonly position: number }> {
  fs.mkdirSync(into, { recursive: true, mode: 0o700 });
  const history = Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString("hex");
  if (snapshot !== null) {
    const path = join(into, snapshot.name);
    fs.copyFileSync(join(source, snapshot.name), path);
    const fd = fs.openSync(path, "r+");
    const head = encodeSnapshotHead({ ...snapshot.head, history });
    fs.writeSync(fd, head, 0, head.length, 0);
    fs.fsyncSync(fd);
    fs.closeSync(fd);
  }
  const disk = fileDisk(into);
  const after = snapshot?.position ?? 0;
  const afterSeq = snapshot?.seq ?? 0;
  const log = Log.open(disk, { sync: "off", after, afterSeq, history, reserveBytes: 0 }, () => {});
  frames((frame) => log.append(frame.payload, frame.seq, frame.atMs, true));
  await log.close();
  disk.sync();
  disk.close();
  const opened = await reopened(into);
  for (const name of ["lock", "reserve"]) fs.rmSync(join(into, name), { force: true });
  return opened;
}

async function reopened(directory: string): Promise<{ rows: number; position: number }> {
  const disk = fileDisk(directory);
  const { store, log } = await openStore(disk, { reserveBytes: 0 });
  store.check();
  const rows = store.tables().reduce((sum, table) => sum + table.count, 0);
  const position = log.appended;
  await log.close();
  disk.close();
  return { rows, position };
}
