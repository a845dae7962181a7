/**
 * A snapshot: the whole state at one position of the log, in one file, `snapshot-<position, 16 digits>.fsnap`. What its
 * blocks hold is the engine's business; here they are tagged bytes, each under a checksum.
 *
 * | at | bytes | the head (little endian) |
 * | -- | ----- | ------------------------ |
 * | 0  | 8     | `FENECSNP` |
 * | 8  | u32   | 1, the format |
 * | 12 | u32   | 0 |
 * | 16 | f64   | position at which its writing began |
 * | 24 | f64   | wall time of that, epoch ms |
 * | 32 | 16    | history, as in the log's segments |
 * | 48 | 12    | 0 |
 * | 60 | u32   | CRC-32 of the 60 bytes before |
 *
 * | at | bytes | a block |
 * | -- | ----- | ------- |
 * | 0  | u32   | CRC-32 of everything behind it, to the end of the block |
 * | 4  | u32   | tag: below 2^16 the engine's; 2^16 a frame; 2^16 + 1 the foot |
 * | 8  | u32   | bytes of data |
 * | 12 | u32   | number of the block, from 0 |
 * | 16 |       | data |
 *
 * Statements go on while a snapshot is written, so the engine's blocks hold rows of several moments. The blocks of tag
 * 2^16 behind them repeat the log's frames of that time (f64 position, f64 wall time, f64 change counter, payload);
 * applied over the rows they give the state at the last of them. So a snapshot needs no log to be whole.
 *
 * The foot is the last block: f64 position, f64 change counter, f64 wall time of the frame of that position. A file that does not end with it is no snapshot.
 *
 * Written under another name (`snapshot-*.tmp`), synced, read back, renamed, the directory synced: a file of a snapshot's
 * name was whole once. Nobody ever writes to one again, so it may be mapped.
 */

import { assert } from "../base/assert.ts";
import type { Steps } from "../base/steps.ts";
import { Damage } from "./damage.ts";
import type { Disk, DiskFile } from "./disk.ts";
import type { Frame } from "./frame.ts";

const HEAD_BYTES = 64;
const BLOCK_HEAD_BYTES = 16;
const MAGIC = "FENECSNP";
const FORMAT = 1;
const HISTORY_BYTES = 16;
const FRAME_TAG = 0x1_0000;
const FOOT_TAG = 0x1_0001;
const FRAME_NUMBERS_BYTES = 24;
const FOOT_BYTES = 24;
const NAME = /^snapshot-(\d{16})\.fsnap$/;
const UNFINISHED = /^snapshot-\d{16}\.tmp$/;
/** Written between two syncs of the file: a sync of the log must not find a gigabyte in front of it. */
const SYNC_BYTES = 8 * 1024 * 1024;
/** Blocks are put together here until they fill half of it; a very large row's gets a larger one. */
const SCRATCH_BYTES = 512 * 1024;

export function snapshotName(position: number): string {
  return `snapshot-${String(position).padStart(16, "0")}.fsnap`;
}

/** The position a snapshot's name speaks of; undefined when it is no snapshot's name. */
export function snapshotPosition(name: string): number | undefined {
  const digits = NAME.exec(name)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** True for what a snapshot is called that was not finished. */
export function isUnfinishedSnapshot(name: string): boolean {
  return UNFINISHED.test(name);
}

/** Names of the snapshots there are, newest first. */
export function snapshotNames(disk: Disk): string[] {
  return disk
    .list()
    .filter((name) => snapshotPosition(name) !== undefined)
    .reverse();
}

export interface SnapshotHead {
  /** The position at which its writing began. */
  readonly begun: number;
  readonly createdMs: number;
  readonly history: string;
}

export function encodeSnapshotHead(head: SnapshotHead): Buffer {
  const bytes = Buffer.alloc(HEAD_BYTES);
  bytes.write(MAGIC, 0, "latin1");
  bytes.writeUInt32LE(FORMAT, 8);
  bytes.writeDoubleLE(head.begun, 16);
  bytes.writeDoubleLE(head.createdMs, 24);
  bytes.write(head.history, 32, HISTORY_BYTES, "hex");
  bytes.writeUInt32LE(Bun.hash.crc32(bytes.subarray(0, 60)), 60);
  return bytes;
}

export class SnapshotWriter {
  readonly #disk: Disk;
  readonly #file: DiskFile;
  /** Behind the last block, written or not. */
  #at = HEAD_BYTES;
  #blocks = 0;
  /**
   * Blocks on their way to the file: new memory for each would bring the collector round again and again, and a call for
   * each of ten thousand small ones takes tens of milliseconds.
   */
  #scratch: Buffer = Buffer.allocUnsafe(SCRATCH_BYTES);
  /** Bytes of it that are not in the file yet. */
  #unwritten = 0;
  #syncedAt = 0;
  #open = true;

  /** Throws the disk's errors, as do all the others; `abandon` then. */
  constructor(disk: Disk, head: SnapshotHead) {
    const name = `snapshot-${String(head.begun).padStart(16, "0")}.tmp`;
    if (disk.list().includes(name)) disk.remove(name);
    this.#disk = disk;
    this.#file = disk.create(name);
    try {
      this.#file.write(encodeSnapshotHead(head), 0);
    } catch (error) {
      this.abandon();
      throw error;
    }
  }

  get bytes(): number {
    return this.#at;
  }

  /** A block of the engine's. */
  write(tag: number, data: Uint8Array): void {
    assert(tag >= 0 && tag < FRAME_TAG, "an engine's tag is below 2^16");
    const at = this.#begin(data.length);
    this.#scratch.set(data, at);
    this.#end(tag, at, data.length);
  }

  writeFrame(frame: Frame): void {
    const bytes = FRAME_NUMBERS_BYTES + frame.payload.length;
    const at = this.#begin(bytes);
    const scratch = this.#scratch;
    scratch.writeDoubleLE(frame.position, at);
    scratch.writeDoubleLE(frame.atMs, at + 8);
    scratch.writeDoubleLE(frame.seq, at + 16);
    scratch.set(frame.payload, at + FRAME_NUMBERS_BYTES);
    this.#end(FRAME_TAG, at, bytes);
  }

  /** Undefined when there is nothing to wait for; to be asked after each block or so. */
  pace(): Promise<void> | undefined {
    if (this.#at - this.#syncedAt < SYNC_BYTES) return undefined;
    this.#syncedAt = this.#at;
    return this.#sync();
  }

  /**
   * Makes it a snapshot: of the state at `position`, which must be on disk in the log, with this change counter.
   *
   * @param atMs wall time of the frame of that position
   * @param turn lets others go on between two pieces of the reading back
   */
  async finish(position: number, seq: number, atMs: number, turn: () => Promise<void>): Promise<string> {
    const at = this.#begin(FOOT_BYTES);
    this.#scratch.writeDoubleLE(position, at);
    this.#scratch.writeDoubleLE(seq, at + 8);
    this.#scratch.writeDoubleLE(atMs, at + 16);
    this.#end(FOOT_TAG, at, FOOT_BYTES);
    await this.#sync();
    await this.#readBack(turn);
    this.#close();
    const name = snapshotName(position);
    this.#disk.rename(this.#file.name, name);
    await new Promise<void>((resolve, reject) =>
      this.#disk.syncLater((error) => (error === null ? resolve() : reject(error))),
    );
    return name;
  }

  /** Leaves no trace of it, as far as the disk lets. */
  abandon(): void {
    this.#close();
    try {
      if (this.#disk.list().includes(this.#file.name)) this.#disk.remove(this.#file.name);
    } catch {
      // The next start removes it.
    }
  }

  #close(): void {
    if (this.#open) this.#file.close();
    this.#open = false;
  }

  #sync(): Promise<void> {
    this.#flush();
    return new Promise((resolve, reject) =>
      this.#file.syncLater((error) => (error === null ? resolve() : reject(error))),
    );
  }

  /** Room for a block of so many bytes of data; answers where in the scratch those go. */
  #begin(bytes: number): number {
    const need = BLOCK_HEAD_BYTES + bytes;
    if (this.#unwritten + need > this.#scratch.length) this.#flush();
    if (need > this.#scratch.length) this.#scratch = Buffer.allocUnsafe(need);
    return this.#unwritten + BLOCK_HEAD_BYTES;
  }

  /** The data of the block begun is there. */
  #end(tag: number, at: number, bytes: number): void {
    const scratch = this.#scratch;
    const from = at - BLOCK_HEAD_BYTES;
    scratch.writeUInt32LE(tag, from + 4);
    scratch.writeUInt32LE(bytes, from + 8);
    scratch.writeUInt32LE(this.#blocks, from + 12);
    scratch.writeUInt32LE(Bun.hash.crc32(scratch.subarray(from + 4, at + bytes)), from);
    this.#unwritten = at + bytes;
    this.#at += BLOCK_HEAD_BYTES + bytes;
    this.#blocks++;
    if (this.#unwritten >= SCRATCH_BYTES / 2) this.#flush();
  }

  #flush(): void {
    const bytes = this.#unwritten;
    if (bytes === 0) return;
    this.#unwritten = 0;
    this.#file.write(this.#scratch.subarray(0, bytes), this.#at - bytes);
  }

  /** The log is cut by what this file holds, so it is read once before it counts. */
  async #readBack(turn: () => Promise<void>): Promise<void> {
    let window: Buffer = Buffer.allocUnsafe(1 << 20);
    let at = HEAD_BYTES;
    let number = 0;
    let sinceTurn = 0;
    while (at < this.#at) {
      let count = this.#file.read(at, window);
      const bytes = count < BLOCK_HEAD_BYTES ? 0 : BLOCK_HEAD_BYTES + window.readUInt32LE(8);
      if (bytes > window.length) window = Buffer.allocUnsafe(bytes);
      if (bytes > count) count = this.#file.read(at, window);
      let from = 0;
      while (from < count) {
        const block = blockAt(window, from, count);
        if (block === undefined) break;
        if (block.number !== number)
          throw new Error(`block ${number} of ${this.#file.name} reads back as ${block.number}`);
        number++;
        from = block.end;
      }
      if (from === 0) throw new Error(`block ${number} of ${this.#file.name} does not read back as it was written`);
      at += from;
      sinceTurn += from;
      if (sinceTurn >= window.length) {
        sinceTurn = 0;
        await turn();
      }
    }
  }
}

interface Block {
  readonly tag: number;
  readonly number: number;
  readonly from: number;
  readonly end: number;
}

/** The block at `at`, or undefined when there is none that is whole and right before `end`. */
function blockAt(bytes: Buffer, at: number, end: number): Block | undefined {
  if (at + BLOCK_HEAD_BYTES > end) return undefined;
  const blockEnd = at + BLOCK_HEAD_BYTES + bytes.readUInt32LE(at + 8);
  if (blockEnd > end) return undefined;
  if (Bun.hash.crc32(bytes.subarray(at + 4, blockEnd)) !== bytes.readUInt32LE(at)) return undefined;
  const from = at + BLOCK_HEAD_BYTES;
  return { tag: bytes.readUInt32LE(at + 4), number: bytes.readUInt32LE(at + 12), from, end: blockEnd };
}

/** A snapshot that was found whole: every byte of it was checked. */
export class Snapshot {
  readonly name: string;
  readonly head: SnapshotHead;
  /** The position whose state it is, and the change counter there. */
  readonly position: number;
  readonly seq: number;
  /** Wall time of the last frame in it. */
  readonly atMs: number;
  readonly #bytes: Buffer;
  readonly #blocks: readonly Block[];

  private constructor(
    name: string,
    head: SnapshotHead,
    position: number,
    seq: number,
    atMs: number,
    bytes: Buffer,
    blocks: readonly Block[],
  ) {
    this.name = name;
    this.head = head;
    this.position = position;
    this.seq = seq;
    this.atMs = atMs;
    this.#bytes = bytes;
    this.#blocks = blocks;
  }

  /** @throws Damage when it is not whole */
  static open(disk: Disk, name: string): Snapshot {
    const mapped = disk.map(name);
    const bytes = Buffer.from(mapped.buffer, mapped.byteOffset, mapped.length);
    if (
      bytes.length < HEAD_BYTES ||
      bytes.toString("latin1", 0, 8) !== MAGIC ||
      bytes.readUInt32LE(60) !== Bun.hash.crc32(bytes.subarray(0, 60))
    ) {
      throw new Damage(name, 0, "its head is not whole");
    }
    const format = bytes.readUInt32LE(8);
    if (format !== FORMAT) throw new Error(`${name} has format ${format}, this version reads ${FORMAT}`);
    const head: SnapshotHead = {
      begun: bytes.readDoubleLE(16),
      createdMs: bytes.readDoubleLE(24),
      history: bytes.toString("hex", 32, 32 + HISTORY_BYTES),
    };
    const blocks: Block[] = [];
    let at = HEAD_BYTES;
    while (at < bytes.length) {
      const block = blockAt(bytes, at, bytes.length);
      if (block === undefined) throw new Damage(name, at, `block ${blocks.length} is not whole`);
      if (block.number !== blocks.length)
        throw new Damage(name, at, `block ${block.number} stands where ${blocks.length} should`);
      blocks.push(block);
      at = block.end;
    }
    const foot = blocks.pop();
    if (foot?.tag !== FOOT_TAG) throw new Damage(name, bytes.length, "its end is missing");
    const position = bytes.readDoubleLE(foot.from);
    if (position !== snapshotPosition(name)) {
      throw new Damage(name, foot.from, `it is of position ${position}, its name says ${snapshotPosition(name)}`);
    }
    const seq = bytes.readDoubleLE(foot.from + 8);
    return new Snapshot(name, head, position, seq, bytes.readDoubleLE(foot.from + 16), bytes, blocks);
  }

  get bytes(): number {
    return this.#bytes.length;
  }

  /**
   * Hands on the engine's blocks in the order they were written. All bytes are views of the file, good as long as
   * somebody holds them. Gives the bytes of each step.
   */
  *blocks(onBlock: (tag: number, data: Uint8Array) => void): Steps<void, number> {
    for (const block of this.#blocks) {
      if (block.tag === FRAME_TAG) continue;
      onBlock(block.tag, this.#bytes.subarray(block.from, block.end));
      yield block.end - block.from;
    }
  }

  /** The frames behind them, likewise. */
  *frames(onFrame: (frame: Frame) => void): Steps<void, number> {
    for (const block of this.#blocks) {
      if (block.tag !== FRAME_TAG) continue;
      const data = this.#bytes.subarray(block.from, block.end);
      onFrame({
        position: data.readDoubleLE(0),
        atMs: data.readDoubleLE(8),
        seq: data.readDoubleLE(16),
        payload: data.subarray(FRAME_NUMBERS_BYTES),
      });
      yield data.length;
    }
  }
}
