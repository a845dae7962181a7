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
 */

import type { DiskFile } from "./disk.ts";

export const SEGMENT_HEAD_BYTES = 64;
const MAGIC = "FENECLOG";
const FORMAT = 1;
const HISTORY_BYTES = 16;
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
