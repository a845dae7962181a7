/**
 * A segment: one file of the redo log, `redo-<first position, 16 digits>.log`. A head, then frames (`frame.ts`) one
 * behind the other, then nothing or zeros.
 *
 * | at | bytes | what (little endian) |
 * | -- | ----- | -------------------- |
 * | 0  | 8     | `FENECLOG` |
 * | 8  | u32   | 1, the format |
 * | 12 | u32   | salt of the frames: random, never 0 |
 * | 16 | f64   | position of the first frame |
 * | 24 | f64   | change counter before the first frame |
 * | 32 | f64   | wall time it was made, epoch ms |
 * | 40 | 16    | history: the same random bytes in all files of one directory's life |
 * | 56 | u32   | 0 |
 * | 60 | u32   | CRC-32 of the 60 bytes before |
 *
 * Only the newest segment is written to. Zeros behind its last frame are space taken in advance: a sync that does not
 * move the file's end is cheaper. They are cut off when a segment is done and when the server stops.
 *
 * How a segment ends, as a reader finds it:
 *
 * | ending   | behind the last good frame | what leads to it |
 * | -------- | -------------------------- | ---------------- |
 * | `whole`  | nothing                    | the usual |
 * | `zeros`  | zeros alone                | space taken in advance, or a tear |
 * | `torn`   | bytes that are no further frame, nor is anything behind them | a crash while writing the last frame |
 * | `lost`   | a place never written, behind it frames written in the same unsynced moment | power loss: pages reach a disk in any order |
 * | `damage` | a bad place with good frames behind it that were on disk once | the disk, or somebody's hand |
 */

import type { DiskFile } from "./disk.ts";
import { decodeFrame, type FoundFrame, FRAME_HEAD_BYTES, hasSalt, payloadBytes, UNKNOWN_BEHIND } from "./frame.ts";

export const SEGMENT_HEAD_BYTES = 64;
const MAGIC = "FENECLOG";
const FORMAT = 1;
const HISTORY_BYTES = 16;
/** Frames are read through a window of this many bytes, more for a larger frame. */
const WINDOW_BYTES = 1 << 20;
/** The smallest piece a disk writes as a whole. */
const SECTOR_BYTES = 512;
const NAME = /^redo-(\d{16})\.log$/;

export interface SegmentHead {
  readonly salt: number;
  /** Position of the first frame. */
  readonly first: number;
  /** The change counter before it. */
  readonly baseSeq: number;
  readonly createdMs: number;
  /** 32 hexadecimal digits. */
  readonly history: string;
}

export function segmentName(first: number): string {
  return `redo-${String(first).padStart(16, "0")}.log`;
}

/** The first position a segment's name speaks of; undefined when it is no segment's name. */
export function segmentFirst(name: string): number | undefined {
  const digits = NAME.exec(name)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

export function encodeSegmentHead(head: SegmentHead): Buffer {
  const bytes = Buffer.alloc(SEGMENT_HEAD_BYTES);
  bytes.write(MAGIC, 0, "latin1");
  bytes.writeUInt32LE(FORMAT, 8);
  bytes.writeUInt32LE(head.salt, 12);
  bytes.writeDoubleLE(head.first, 16);
  bytes.writeDoubleLE(head.baseSeq, 24);
  bytes.writeDoubleLE(head.createdMs, 32);
  bytes.write(head.history, 40, HISTORY_BYTES, "hex");
  bytes.writeUInt32LE(Bun.hash.crc32(bytes.subarray(0, 60)), 60);
  return bytes;
}

/** Undefined when the head is not whole; a format of another number is an error of its own. */
export function readSegmentHead(file: DiskFile): SegmentHead | undefined {
  const bytes = Buffer.alloc(SEGMENT_HEAD_BYTES);
  if (file.read(0, bytes) < SEGMENT_HEAD_BYTES) return undefined;
  if (bytes.toString("latin1", 0, 8) !== MAGIC) return undefined;
  if (bytes.readUInt32LE(60) !== Bun.hash.crc32(bytes.subarray(0, 60))) return undefined;
  const format = bytes.readUInt32LE(8);
  if (format !== FORMAT) {
    throw new Error(
      `${file.name} has format ${format}, this version reads ${FORMAT}: start it with the version it is of`,
    );
  }
  return {
    salt: bytes.readUInt32LE(12),
    first: bytes.readDoubleLE(16),
    baseSeq: bytes.readDoubleLE(24),
    createdMs: bytes.readDoubleLE(32),
    history: bytes.toString("hex", 40, 40 + HISTORY_BYTES),
  };
}

/** True when the file from `offset` on holds nothing but zeros. */
export function zerosFrom(file: DiskFile, offset: number): boolean {
  const size = file.size();
  const window = Buffer.alloc(WINDOW_BYTES);
  for (let at = offset; at < size; at += WINDOW_BYTES) {
    const count = file.read(at, window.subarray(0, Math.min(WINDOW_BYTES, size - at)));
    if (!allZeros(window, 0, count)) return false;
  }
  return true;
}

export type Ending = "whole" | "zeros" | "torn" | "lost" | "damage";

export interface SegmentEnd {
  readonly ending: Ending;
  /** Behind the last good frame. */
  readonly offset: number;
  /** The file's size when it was read. */
  readonly size: number;
  /** Where good frames go on behind damage or a lost page: offset and position. Else null. */
  readonly next: { readonly offset: number; readonly position: number } | null;
}

/**
 * Reads frames from `offset` as long as they are whole, right and of the next position, `expected` first.
 *
 * @param visit takes each with its offset; false stops the walk, whose end then says `whole`
 */
export function walkSegment(
  file: DiskFile,
  salt: number,
  offset: number,
  expected: number,
  visit: (frame: FoundFrame, offset: number) => boolean | undefined,
): SegmentEnd {
  const size = file.size();
  let window: Buffer = Buffer.allocUnsafe(Math.min(WINDOW_BYTES, Math.max(0, size - offset)));
  let windowAt = offset;
  let windowEnd = offset;
  let position = expected;
  let at = offset;
  /** Bytes of the window from `at`, refilled until they are `need`; false past the end of the file. */
  const has = (need: number): boolean => {
    if (at + need <= windowEnd) return true;
    if (at + need > size) return false;
    if (need > window.length) window = Buffer.allocUnsafe(need);
    windowAt = at;
    windowEnd = at + file.read(at, window);
    return at + need <= windowEnd;
  };
  while (has(FRAME_HEAD_BYTES) && hasSalt(window, at - windowAt, salt)) {
    if (!has(FRAME_HEAD_BYTES + payloadBytes(window, at - windowAt))) break;
    const frame = decodeFrame(window, at - windowAt, windowEnd - windowAt, salt);
    if (frame === undefined || frame.position !== position) break;
    if (visit(frame, at) === false) return { ending: "whole", offset: at, size, next: null };
    position++;
    at += frame.bytes;
  }
  return judge(file, salt, at, size, position);
}

/** What there is from `offset` on, where the frame of `position` should be. */
function judge(file: DiskFile, salt: number, offset: number, size: number, position: number): SegmentEnd {
  if (offset === size) return { ending: "whole", offset, size, next: null };
  if (zerosFrom(file, offset)) return { ending: "zeros", offset, size, next: null };
  const rest = Buffer.alloc(size - offset);
  file.read(offset, rest);
  const mark = Buffer.alloc(4);
  mark.writeUInt32LE(salt, 0);
  let next: { offset: number; position: number } | null = null;
  /** The furthest position that a frame behind the bad place knew to be on disk. */
  let known = 0;
  for (let found = rest.indexOf(mark, 4); found >= 0; ) {
    const frame = decodeFrame(rest, found - 4, rest.length, salt);
    // A frame of a position already read says nothing new: it does not make the bad place before it damage.
    if (frame === undefined || frame.position < position) {
      found = rest.indexOf(mark, found + 1);
      continue;
    }
    next ??= { offset: offset + found - 4, position: frame.position };
    known = Math.max(known, frame.behind === UNKNOWN_BEHIND ? Infinity : frame.position - 1 - frame.behind);
    found = rest.indexOf(mark, found + frame.bytes);
  }
  if (next === null) return { ending: "torn", offset, size, next };
  const lost = known < position && hasUnwritten(rest, offset, next.offset);
  return { ending: lost ? "lost" : "damage", offset, size, next };
}

/** True when a sector that begins before `end`, or what of it is behind `offset`, is all zeros: it never was written. */
function hasUnwritten(rest: Buffer, offset: number, end: number): boolean {
  let at = offset;
  while (at < end) {
    const sectorEnd = (Math.floor(at / SECTOR_BYTES) + 1) * SECTOR_BYTES;
    if (allZeros(rest, at - offset, Math.min(rest.length, sectorEnd - offset))) return true;
    at = sectorEnd;
  }
  return false;
}

function allZeros(bytes: Buffer, from: number, to: number): boolean {
  for (let at = from; at < to; at++) if (bytes[at] !== 0) return false;
  return true;
}
