/**
 * The whole log read front to back: every segment there is, whether a snapshot covers it or not, so that damage is seen
 * at the next start and not on the day the older snapshot is needed. Nothing is changed here; `log.ts` cuts, `check`
 * reports.
 */

import { type Steps, toEnd } from "../base/steps.ts";
import { Damage } from "./damage.ts";
import type { Disk, DiskFile } from "./disk.ts";
import { type FoundFrame, type Frame, UNKNOWN_BEHIND } from "./frame.ts";
import { Marks } from "./marks.ts";
import { readSegmentHead, SEGMENT_HEAD_BYTES, type SegmentHead, segmentFirst } from "./segment.ts";
import { type SegmentEnd, SegmentReader, zerosFrom } from "./segment_reader.ts";

/** A segment as it was found. */
export interface SegmentFound {
  readonly name: string;
  readonly head: SegmentHead;
  /** Position of its last good frame; one before its first when it has none. */
  readonly last: number;
  readonly lastSeq: number;
  readonly end: SegmentEnd;
  readonly marks: Marks;
}

/** Read between two pauses: some milliseconds of replay. */
const STEP_BYTES = 1 << 20;

export interface LogScan {
  /** By position. */
  readonly segments: readonly SegmentFound[];
  /** The newest file when it is a segment whose making was cut short: it holds nothing, and may be removed. */
  readonly unfinished: string | null;
  /** The last good frame's; 0 when there is none. */
  readonly position: number;
  readonly seq: number;
  readonly frames: number;
  readonly history: string | null;
  /** Where, in the newest segment, frames begin that were perhaps not on disk when the process ended. */
  readonly doubtOffset: number;
}

/**
 * @param after what a snapshot holds: frames up to this position are checked and not handed on, and may be missing
 * @param history that of the snapshot; null when there is none
 * @param onDamage may throw; when it returns, the walk goes on behind the damage
 */
export function scanLog(
  disk: Disk,
  after: number,
  history: string | null,
  onFrame: (frame: Frame) => void,
  onDamage: (damage: Damage) => void,
): LogScan {
  return toEnd(scanInSteps(disk, after, history, onFrame, onDamage));
}

/** The same a piece at a time, for a reader who has other things to do meanwhile; gives the bytes of each piece. */
export function* scanInSteps(
  disk: Disk,
  after: number,
  history: string | null,
  onFrame: (frame: Frame) => void,
  onDamage: (damage: Damage) => void,
): Steps<LogScan, number> {
  const names = disk.list().filter((name) => segmentFirst(name) !== undefined);
  const segments: SegmentFound[] = [];
  let unfinished: string | null = null;
  let position = 0;
  let seq = 0;
  let frames = 0;
  let doubtOffset = SEGMENT_HEAD_BYTES;
  let known = history;
  for (const [index, name] of names.entries()) {
    const newest = index === names.length - 1;
    const file = disk.open(name);
    try {
      const head = readSegmentHead(file);
      if (head === undefined) {
        if (newest && zerosFrom(file, SEGMENT_HEAD_BYTES)) unfinished = name;
        else onDamage(new Damage(name, 0, "its head is not whole"));
        continue;
      }
      const nameSays = segmentFirst(name);
      if (nameSays !== head.first)
        onDamage(new Damage(name, 16, `it begins at position ${head.first}, its name says ${nameSays}`));
      known ??= head.history;
      if (head.history !== known) onDamage(new Damage(name, 40, "it is of another data directory"));
      const expected = Math.max(position, segments.length === 0 ? after : 0) + 1;
      if (segments.length > 0 && head.first <= position) {
        onDamage(new Damage(name, 16, `it begins at position ${head.first}, the file before it ends at ${position}`));
      } else if (head.first > expected && head.first > after + 1) {
        onDamage(
          new Damage(name, 16, `positions ${Math.max(expected, after + 1)} to ${head.first - 1} are missing before it`),
        );
      }
      const segment = yield* walk(
        file,
        head,
        newest,
        (frame) => {
          if (frame.position <= after) return;
          frames++;
          onFrame(frame);
        },
        onDamage,
      );
      if (newest) doubtOffset = segment.doubtOffset;
      if (segment.found.last >= head.first) {
        position = segment.found.last;
        seq = segment.found.lastSeq;
      } else {
        position = head.first - 1;
        seq = head.baseSeq;
      }
      segments.push(segment.found);
    } finally {
      file.close();
    }
  }
  return { segments, unfinished, position, seq, frames, history: known, doubtOffset };
}

function* walk(
  file: DiskFile,
  head: SegmentHead,
  newest: boolean,
  onFrame: (frame: FoundFrame) => void,
  onDamage: (damage: Damage) => void,
): Steps<{ found: SegmentFound; doubtOffset: number }, number> {
  const reader = new SegmentReader(file, head.salt);
  const marks = new Marks();
  /** Frames whose being on disk no later frame vouches for, oldest first. */
  let doubt: { position: number; offset: number }[] = [];
  let last = head.first - 1;
  let lastSeq = head.baseSeq;
  let offset = SEGMENT_HEAD_BYTES;
  for (;;) {
    const pauseAt = offset + STEP_BYTES;
    let paused = false;
    const end = reader.walk(offset, last + 1, (frame, at) => {
      paused = at >= pauseAt;
      if (paused) return false;
      marks.note(frame.position, frame.seq, at);
      last = frame.position;
      lastSeq = frame.seq;
      if (newest) {
        const known = frame.position - 1 - frame.behind;
        if (doubt.length > 0 && doubt[0]!.position <= known) doubt = doubt.filter((entry) => entry.position > known);
        // Written without syncs, nothing ever leaves the list: its first entry is enough.
        if (frame.behind !== UNKNOWN_BEHIND || doubt.length === 0) doubt.push({ position: frame.position, offset: at });
      }
      onFrame(frame);
      return true;
    });
    if (paused) {
      yield end.offset - offset;
      offset = end.offset;
      continue;
    }
    const { ending } = end;
    const done = end.next === null || (newest && ending === "lost");
    if (ending === "damage" || !(newest || ending === "whole" || ending === "sealed")) {
      onDamage(new Damage(file.name, end.offset, words(end, last + 1, newest)));
    }
    if (done) {
      const found = { name: file.name, head, last, lastSeq, end, marks };
      return { found, doubtOffset: ending === "sealed" ? end.offset : (doubt[0]?.offset ?? end.offset) };
    }
    offset = end.next!.offset;
    last = end.next!.position - 1;
  }
}

function words(end: SegmentEnd, position: number, newest: boolean): string {
  if (end.next !== null) {
    return `the frame of position ${position} is not whole, and good frames follow from offset ${end.next.offset} on (position ${end.next.position})`;
  }
  if (end.ending === "damage") return `the frame of position ${position} is not whole, and it was on disk once`;
  const rest = `${end.size - end.offset} bytes behind its last whole frame (position ${position - 1})`;
  return newest ? `${rest} are no frame` : `${rest} are no frame, and it is not the newest segment`;
}
