/** What a result is worth nothing without: where it was measured. */

import { closeSync, fdatasyncSync, openSync, statfsSync, writeSync } from "node:fs";
import { arch, cpus, loadavg, release, totalmem, type } from "node:os";
import { join } from "node:path";
import manifest from "../package.json" with { type: "json" };
import { scratchDirectory } from "./processes.ts";

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly system: string;
  /** Of the directory the data was in. */
  readonly fileSystem: string;
  /** A 200 byte append and its fdatasync, median. */
  readonly syncMs: number;
  readonly bun: string;
  readonly fenec: string;
  /** Of the last minute, when it began: above 0 others were using the machine too. */
  readonly load: number;
  readonly at: string;
}

const FILE_SYSTEMS = new Map([
  [0xef53, "ext4"],
  [0x9123683e, "btrfs"],
  [0x58465342, "xfs"],
  [0x01021994, "tmpfs"],
  [0x794c7630, "overlayfs"],
  [0x2fc12fc1, "zfs"],
]);

export function machine(): Machine {
  const scratch = scratchDirectory();
  try {
    const kind = Number(statfsSync(scratch.path).type);
    return {
      cpu: cpus()[0]?.model.trim() ?? "unknown",
      cores: cpus().length,
      memoryGiB: Math.round(totalmem() / 2 ** 30),
      system: `${type()} ${release()} ${arch()}`,
      fileSystem: FILE_SYSTEMS.get(kind) ?? `0x${kind.toString(16)}`,
      syncMs: syncMs(scratch.path),
      bun: Bun.version,
      fenec: manifest.version,
      load: loadavg()[0] ?? 0,
      at: new Date().toISOString(),
    };
  } finally {
    scratch.remove();
  }
}

function syncMs(directory: string): number {
  const fd = openSync(join(directory, "sync"), "w");
  const bytes = Buffer.alloc(200, 1);
  const took: number[] = [];
  for (let at = 0; at < 300; at++) {
    const startedMs = performance.now();
    writeSync(fd, bytes, 0, bytes.length, null);
    fdatasyncSync(fd);
    took.push(performance.now() - startedMs);
  }
  closeSync(fd);
  took.sort((a, b) => a - b);
  return Math.round((took[took.length >> 1] ?? 0) * 1_000) / 1_000;
}

export function machineWords(at: Machine): string {
  return [
    `${at.cpu}, ${at.cores} cores, ${at.memoryGiB} GiB, ${at.system}, ${at.fileSystem}`,
    `append and fdatasync ${at.syncMs} ms, Bun ${at.bun}, fenec ${at.fenec}, load ${at.load.toFixed(2)}, ${at.at}`,
  ].join("\n");
}
