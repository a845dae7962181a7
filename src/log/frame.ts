/**
 * A frame: one whole change in the redo log. All of it is under one checksum, so a change is there or it is not.
 *
 * | at | bytes | what (little endian) |
 * | -- | ----- | -------------------- |
 * | 0  | u32   | CRC-32 of everything behind it, to the end of the payload |
 * | 4  | u32   | the segment's salt, see `segment.ts` |
 * | 8  | u32   | bytes of payload |
 * | 12 | u32   | frames before this one that were not known to be on disk when it was written; 2^32 - 1: not known |
 * | 16 | f64   | position: 1 for the first frame of a directory's life, one more for each |
 * | 24 | f64   | wall time, epoch ms |
 * | 32 | f64   | the change counter after the frame |
 * | 40 |       | payload |
 *
 * The salt is new in each file and never 0: zeros are no frame, a payload cannot pretend to be one (whoever wrote it does
 * not know the salt), and behind a bad place the next good frame is found by looking for the salt.
 *
 * CRC-32: it sees every single flipped bit and every run of up to 32, and at 240 bytes takes 0.04 µs here, as the best
 * of the 64-bit hashes do; those come as bigints.
 */

export const FRAME_HEAD_BYTES = 40;
/** `behind` of a frame that does not know. */
export const UNKNOWN_BEHIND = 0xffffffff;

export interface Frame {
  readonly position: number;
  /** Wall time, epoch ms. */
  readonly atMs: number;
  /** The change counter after the frame. */
  readonly seq: number;
  /** The reader's own memory: good only until it moves on. */
  readonly payload: Uint8Array;
}

/** A frame found in a buffer, with what only recovery asks. */
export interface FoundFrame extends Frame {
  readonly behind: number;
  /** Head and payload. */
  readonly bytes: number;
}

/** Writes the frame at `at` of `into`, which is large enough; `view` is of the same memory. */
export function encodeFrame(
  into: Buffer,
  view: DataView,
  at: number,
  salt: number,
  behind: number,
  position: number,
  atMs: number,
  seq: number,
  payload: Uint8Array,
): void {
  view.setUint32(at + 4, salt, true);
  view.setUint32(at + 8, payload.length, true);
  view.setUint32(at + 12, behind, true);
  view.setFloat64(at + 16, position, true);
  view.setFloat64(at + 24, atMs, true);
  view.setFloat64(at + 32, seq, true);
  into.set(payload, at + FRAME_HEAD_BYTES);
  view.setUint32(at, Bun.hash.crc32(into.subarray(at + 4, at + FRAME_HEAD_BYTES + payload.length)), true);
}

/** Bytes of payload the head at `at` speaks of; nothing in it is checked. The head is all there. */
export function payloadBytes(buffer: Buffer, at: number): number {
  return buffer.readUInt32LE(at + 8);
}

export function hasSalt(buffer: Buffer, at: number, salt: number): boolean {
  return buffer.readUInt32LE(at + 4) === salt;
}

/** The frame at `at`, or undefined when there is none that is whole and right before `end`. */
export function decodeFrame(buffer: Buffer, at: number, end: number, salt: number): FoundFrame | undefined {
  if (at + FRAME_HEAD_BYTES > end || !hasSalt(buffer, at, salt)) return undefined;
  const bytes = FRAME_HEAD_BYTES + payloadBytes(buffer, at);
  if (at + bytes > end) return undefined;
  if (Bun.hash.crc32(buffer.subarray(at + 4, at + bytes)) !== buffer.readUInt32LE(at)) return undefined;
  return {
    position: buffer.readDoubleLE(at + 16),
    atMs: buffer.readDoubleLE(at + 24),
    seq: buffer.readDoubleLE(at + 32),
    payload: buffer.subarray(at + FRAME_HEAD_BYTES, at + bytes),
    behind: buffer.readUInt32LE(at + 12),
    bytes,
  };
}
