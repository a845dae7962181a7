/**
 * `scripts/restore`: a new data directory from a backup (or from any data directory at rest), of its last moment or an
 * earlier one. It has a history of its own, so that nobody who follows the old one takes it for that.
 */

import * as fs from "node:fs";
import { diskToRead } from "../../src/log/disk.ts";
import type { Frame } from "../../src/log/frame.ts";
import { parseTime } from "../../src/value/time.ts";
import { CannotDo, commandOf, runScript, UsageError } from "./command.ts";
import { rebuild } from "./rebuild.ts";
import { directoryAt, followLog, type Snapshots, snapshotsOf } from "./survey.ts";

export const HELP = `Usage: sh scripts/restore BACKUP DIR [--to <position>|<time>]

  Makes the data directory DIR, empty or new, from the backup BACKUP: its last moment, or with --to the state after the
  frame of a position, or of the last moment not past a time such as 2026-05-01T12:00:00Z. It reaches back to the older
  snapshot of the backup, or to the beginning where the log does. BACKUP is not changed.

  Exit status: 0 done, 1 it cannot be done, 2 the command line is wrong.`;

/** A position of the log, or a moment in epoch ms. */
export type Target = { readonly position: number } | { readonly atMs: number };

export function targetOf(text: string): Target {
  if (/^\d{1,15}$/.test(text)) return { position: Number(text) };
  const atMs = parseTime(text);
  if (atMs === undefined)
    throw new UsageError(`--to takes a position or a time such as 2026-05-01T12:00:00Z, not ${text}`);
  return { atMs };
}

/** @returns what a start on the new directory finds */
export async function restore(
  from: string,
  to: string,
  target: Target | null,
): Promise<{ readonly rows: number; readonly position: number }> {
  const disk = diskToRead(directoryAt(from));
  try {
    if (fs.existsSync(to) && fs.readdirSync(to).length > 0) throw new CannotDo(`${to} is not empty`);
    const snapshots = snapshotsOf(disk);
    const position =
      target === null ? Infinity : positionOf(target, snapshots, (onFrame) => frames(disk, snapshots, onFrame));
    const snapshot = snapshots.whole.find((one) => one.position <= position) ?? null;
    let reached = snapshot?.position ?? 0;
    const { damages } = followLog(disk, snapshot, (frame) => {
      if (frame.position <= position) reached = frame.position;
    });
    const [damage] = damages;
    if (damage !== undefined && !(reached === position)) {
      throw new CannotDo(
        `${damage.file} is damaged at offset ${damage.offset}: ${damage.found}; it can be restored up to position ${reached} (--to ${reached})`,
      );
    }
    if (position !== Infinity && reached !== position) {
      throw new CannotDo(`the backup ends at position ${reached}`);
    }
    return await rebuild(to, from, snapshot, (onFrame) => {
      followLog(disk, snapshot, (frame) => {
        if (frame.position <= position) onFrame(frame);
      });
    });
  } finally {
    disk.close();
  }
}

/** All good frames there are, however far back. */
function frames(disk: Parameters<typeof followLog>[0], snapshots: Snapshots, onFrame: (frame: Frame) => void): void {
  const oldest = snapshots.whole.at(-1) ?? null;
  const fromStart = followLog(disk, null, () => {});
  followLog(disk, fromStart.kept?.first === 1 ? null : oldest, onFrame);
}

/** The last position that a target covers, among those the backup reaches back to. */
function positionOf(target: Target, snapshots: Snapshots, read: (onFrame: (frame: Frame) => void) => void): number {
  let first: Frame | null = null;
  let last = 0;
  let isPast = false;
  read((frame) => {
    first ??= { ...frame };
    isPast ||= "atMs" in target && frame.atMs > target.atMs;
    if (!isPast) last = frame.position;
  });
  const begin = first as Frame | null;
  // The log may begin behind the older snapshot, and then that is the first moment there is.
  const oldest = begin?.position === 1 ? begin : (snapshots.whole.at(-1) ?? null);
  if (oldest === null) throw new CannotDo("there is nothing in the backup");
  const time = new Date(oldest.atMs).toISOString();
  const words = `the backup reaches back to position ${oldest.position}, ${time}: name that or a later one`;
  if ("position" in target) {
    if (target.position < oldest.position) throw new CannotDo(words);
    return target.position;
  }
  if (target.atMs < oldest.atMs) throw new CannotDo(words);
  // No frame is kept that old, but a snapshot may be.
  return last > 0 ? last : (snapshots.whole.find((one) => one.atMs <= target.atMs)?.position ?? oldest.position);
}

if (import.meta.main) {
  process.exitCode = await runScript(
    HELP,
    () => commandOf(process.argv.slice(2), ["BACKUP", "DIR"], [], ["--to"]),
    async (command, print) => {
      const to = command.options.get("--to");
      const target = to === undefined ? null : targetOf(to);
      const { rows, position } = await restore(command.words[0]!, command.words[1]!, target);
      print(`restored: ${rows} rows at position ${position}`);
      return 0;
    },
  );
}
