/** What the disk itself takes for a frame of 300 bytes, asked between what is measured: a shared disk has its moods. */

import { closeSync, fdatasyncSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { median } from "./table.ts";

const FRAME_BYTES = 300;

export class Disk {
  readonly #file: number;
  readonly #frame = Buffer.alloc(FRAME_BYTES, 1);
  #took: number[] = [];

  constructor(directory: string) {
    this.#file = openSync(join(directory, "beside"), "w");
  }

  sync(): void {
    const startedMs = performance.now();
    writeSync(this.#file, this.#frame, 0, this.#frame.length, null);
    fdatasyncSync(this.#file);
    this.#took.push(performance.now() - startedMs);
  }

  /** Milliseconds, of the syncs since the last time it was asked. */
  p50(): number {
    const p50 = median(this.#took);
    this.#took = [];
    return p50;
  }

  close(): void {
    closeSync(this.#file);
  }
}
