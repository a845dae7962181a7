/** Which names in a data directory are the log's, the snapshots' and their company's; each of them is a plain file. */

import { Damage } from "./damage.ts";
import type { Disk } from "./disk.ts";
import { LOCK_NAME } from "./lock.ts";
import { RESERVE_NAME } from "./reserve.ts";
import { segmentFirst } from "./segment.ts";
import { snapshotPosition } from "./snapshot.ts";

export function isDataFile(name: string): boolean {
  return (
    segmentFirst(name) !== undefined ||
    snapshotPosition(name) !== undefined ||
    name === LOCK_NAME ||
    name === RESERVE_NAME
  );
}

/** Where something else has such a name: passed over, it would be as if the file had never been. */
export function misplaced(disk: Disk): Damage[] {
  return disk
    .others()
    .filter(isDataFile)
    .map((name) => new Damage(name, 0, "it is no plain file but a directory, a link or the like"));
}
