/**
 * Reads a segment's frames in order, and where they end judges what lies behind.
 *
 * | ending   | behind the last good frame | what leads to it |
 * | -------- | -------------------------- | ---------------- |
 * | `whole`  | nothing                    | a segment that is done |
 * | `sealed` | its seal, and zeros        | a log at rest (`seal.ts`) |
 * | `zeros`  | zeros alone                | space taken in advance, or a tear |
 * | `torn`   | bytes that are no further frame, nor is anything behind them | a crash while writing the last frame |
 * | `lost`   | a place never written, behind it frames written in the same unsynced moment | power loss: pages reach a disk in any order |
 * | `damage` | a bad place with good frames behind it that were on disk once | the disk, or somebody's hand |
 */

import type { DiskFile } from "./disk.ts";
import { decodeFrame, type FoundFrame, FRAME_HEAD_BYTES, hasSalt, payloadBytes, UNKNOWN_BEHIND } from "./frame.ts";
import { SEAL_BYTES, SECTOR_BYTES, sealedPosition } from "./seal.ts";

/** Frames are read through a window of this many bytes, more for a larger frame. */
const WINDOW_BYTES = 256 * 1024;

export type Ending = "whole" | "sealed" | "zeros" | "torn" | "lost" | "damage";

export interface SegmentEnd {
  readonly ending: Ending;
  /** Behind the last good frame. */
  readonly offset: number;
  /** The file's size when it was read. */
  readonly size: number;
  /** Where good frames go on behind damage or a lost page: offset and position. Else null. */
  readonly next: { readonly offset: number; readonly position: number } | null;
}

export class SegmentReader {
  readonly #file: DiskFile;
  readonly #salt: number;
  /** Bytes of the file from `#windowAt` up to `#windowEnd`; kept from one walk to the next. */
  #window: Buffer = Buffer.alloc(0);
  #windowAt = 0;
  #windowEnd = 0;

  constructor(file: DiskFile, salt: number) {
    this.#file = file;
    this.#salt = salt;
  }

  /**
   * Reads frames from `offset` as long as they are whole, right and of the next position, `expected` first. Nobody
   * overwrites what is read while this reader is in use; frames may be added behind it.
   *
   * @param visit takes each with its offset; false stops the walk, whose end then says `whole`
   */
  walk(
    offset: number,
    expected: number,
    visit: (frame: FoundFrame, offset: number) => boolean | undefined,
  ): SegmentEnd {
    const size = this.#file.size();
    let position = expected;
    let at = offset;
    while (this.#has(at, FRAME_HEAD_BYTES, size) && hasSalt(this.#window, at - this.#windowAt, this.#salt)) {
      if (!this.#has(at, FRAME_HEAD_BYTES + payloadBytes(this.#window, at - this.#windowAt), size)) break;
      const frame = decodeFrame(this.#window, at - this.#windowAt, this.#windowEnd - this.#windowAt, this.#salt);
      if (frame === undefined || frame.position !== position) break;
      if (visit(frame, at) === false) return { ending: "whole", offset: at, size, next: null };
      position++;
      at += frame.bytes;
    }
    return this.#judge(at, size, position);
  }

  /** Sees to it that the window has the bytes from `at` on, `need` of them; false past the end of the file. */
  #has(at: number, need: number, size: number): boolean {
    if (at >= this.#windowAt && at + need <= this.#windowEnd) return true;
    if (at + need > size) return false;
    const least = Math.max(need, Math.min(WINDOW_BYTES, size - at));
    if (this.#window.length < least) this.#window = Buffer.allocUnsafe(least);
    this.#windowAt = at;
    this.#windowEnd = at + this.#file.read(at, this.#window);
    return at + need <= this.#windowEnd;
  }

  /** What there is from `offset` on, where the frame of `position` should be. */
  #judge(offset: number, size: number, position: number): SegmentEnd {
    if (offset === size) return { ending: "whole", offset, size, next: null };
    if (zerosFrom(this.#file, offset)) return { ending: "zeros", offset, size, next: null };
    const rest = Buffer.alloc(size - offset);
    this.#file.read(offset, rest);
    const mark = Buffer.alloc(4);
    mark.writeUInt32LE(this.#salt, 0);
    let next: { offset: number; position: number } | null = null;
    let sealed = false;
    /** The furthest position that something behind the bad place knew to be on disk. */
    let known = 0;
    for (let found = rest.indexOf(mark, 4); found >= 0; ) {
      const at = found - 4;
      const seal = sealedPosition(rest, at, this.#salt);
      if (seal !== undefined) {
        known = Math.max(known, seal);
        sealed ||= seal === position - 1;
        // What a seal lies in was not written since: zeros, as far as frames go.
        rest.fill(0, at, at + SEAL_BYTES);
        found = rest.indexOf(mark, at + SEAL_BYTES);
        continue;
      }
      const frame = decodeFrame(rest, at, rest.length, this.#salt);
      // A frame of a position already read says nothing new: it does not make the bad place before it damage.
      if (frame === undefined || frame.position < position) {
        found = rest.indexOf(mark, found + 1);
        continue;
      }
      next ??= { offset: offset + at, position: frame.position };
      if (frame.behind !== UNKNOWN_BEHIND) known = Math.max(known, frame.position - 1 - frame.behind);
      found = rest.indexOf(mark, found + frame.bytes);
    }
    if (known >= position) return { ending: "damage", offset, size, next };
    if (next !== null)
      return { ending: hasUnwritten(rest, offset, next.offset) ? "lost" : "damage", offset, size, next };
    if (!allZeros(rest, 0, rest.length)) return { ending: "torn", offset, size, next };
    return { ending: sealed ? "sealed" : "zeros", offset, size, next };
  }
}

/** True when the file from `offset` on holds nothing but zeros. */
export function zerosFrom(file: DiskFile, offset: number): boolean {
  const size = file.size();
  if (offset >= size) return true;
  const window = Buffer.allocUnsafe(Math.min(WINDOW_BYTES, size - offset));
  for (let at = offset; at < size; at += window.length) {
    const count = file.read(at, window.subarray(0, Math.min(window.length, size - at)));
    if (!allZeros(window, 0, count)) return false;
  }
  return true;
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
