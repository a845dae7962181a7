/**
 * Space kept back for the day the disk is full: the file `reserve`, given up piece by piece so that what gives space
 * (deletes, acks) can still be logged, and taken again before anything else may be written.
 *
 * Filled with random bytes, as some file systems store zeros in no space at all.
 */

import { type Disk, type DiskFile, saysFull } from "./disk.ts";

export const RESERVE_NAME = "reserve";
/** Given up at once: a step that holds many small frames, so that a delete seldom waits for the file system. */
const STEP_BYTES = 64 * 1024;

export class Reserve {
  readonly #file: DiskFile;
  readonly #bytes: number;
  #size: number;

  private constructor(file: DiskFile, bytes: number) {
    this.#file = file;
    this.#bytes = bytes;
    this.#size = file.size();
  }

  /** As much of it as the disk has room for. */
  static open(disk: Disk, bytes: number): Reserve {
    const file = disk.list().includes(RESERVE_NAME) ? disk.open(RESERVE_NAME) : disk.create(RESERVE_NAME);
    const reserve = new Reserve(file, bytes);
    if (reserve.#size > bytes) reserve.#cut(bytes);
    reserve.fill();
    return reserve;
  }

  get whole(): boolean {
    return this.#size === this.#bytes;
  }

  /** Takes what is missing; false when the disk has no room for it. */
  fill(): boolean {
    const noise = Buffer.alloc(STEP_BYTES);
    while (this.#size < this.#bytes) {
      const step = Math.min(STEP_BYTES, this.#bytes - this.#size);
      crypto.getRandomValues(noise);
      try {
        this.#file.write(noise.subarray(0, step), this.#size);
      } catch (error) {
        if (!saysFull(error)) throw error;
        this.#cut(this.#size);
        return false;
      }
      this.#size += step;
    }
    return true;
  }

  /** Takes what is missing, and sees whether there is a step's room beside it. */
  probe(): boolean {
    if (!this.fill()) return false;
    try {
      this.#file.write(crypto.getRandomValues(Buffer.alloc(STEP_BYTES)), this.#size);
      return true;
    } catch (error) {
      if (!saysFull(error)) throw error;
      return false;
    } finally {
      this.#cut(this.#size);
    }
  }

  /** Gives up at least so many bytes, or all there is; false when there was nothing left to give. */
  give(bytes: number): boolean {
    if (this.#size === 0) return false;
    this.#cut(Math.max(0, this.#size - Math.ceil(bytes / STEP_BYTES) * STEP_BYTES));
    return true;
  }

  close(): void {
    this.#file.close();
  }

  #cut(size: number): void {
    this.#file.truncate(size);
    this.#size = size;
  }
}
