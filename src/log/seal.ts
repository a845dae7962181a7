/**
 * A seal: the word, behind the last frame of a log that rests, that all before it is on disk. Frames that follow say the
 * same of those before them (`behind` in `frame.ts`), but nobody says it of the last; without a seal, a bit of it that
 * flipped while the server was stopped would look like a write cut short, and a confirmed row would be gone.
 *
 * | at | bytes | what (little endian) |
 * | -- | ----- | -------------------- |
 * | 0  | u32   | CRC-32 of the 20 bytes behind it |
 * | 4  | u32   | the segment's salt |
 * | 8  | u32   | 2^32 - 1, which no frame has for its length |
 * | 12 | u32   | 0 |
 * | 16 | f64   | position of the last frame |
 *
 * It is written when the log is opened, closed, or has had nothing to do for a while, and the next frame is written over
 * it. It lies within one sector, so that after a power loss it is there or not.
 */

import { hasSalt } from "./frame.ts";

export const SEAL_BYTES = 24;
const MARK = 0xffffffff;
/** The smallest piece a disk writes as a whole. */
export const SECTOR_BYTES = 512;

/** Where the seal goes of frames that end at `end`. */
export function sealOffset(end: number): number {
  const left = SECTOR_BYTES - (end % SECTOR_BYTES);
  return left >= SEAL_BYTES ? end : end + left;
}

export function encodeSeal(salt: number, position: number): Buffer {
  const bytes = Buffer.alloc(SEAL_BYTES);
  bytes.writeUInt32LE(salt, 4);
  bytes.writeUInt32LE(MARK, 8);
  bytes.writeDoubleLE(position, 16);
  bytes.writeUInt32LE(Bun.hash.crc32(bytes.subarray(4)), 0);
  return bytes;
}

/** The position that the seal at `at` tells of; undefined when there is none that is whole. */
export function sealedPosition(buffer: Buffer, at: number, salt: number): number | undefined {
  if (at + SEAL_BYTES > buffer.length || !hasSalt(buffer, at, salt) || buffer.readUInt32LE(at + 8) !== MARK) return;
  if (Bun.hash.crc32(buffer.subarray(at + 4, at + SEAL_BYTES)) !== buffer.readUInt32LE(at)) return;
  return buffer.readDoubleLE(at + 16);
}
