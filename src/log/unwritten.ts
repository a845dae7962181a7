/** Frames that are encoded and not written yet: they go to the file in one piece. */

import { encodeFrame, FRAME_HEAD_BYTES } from "./frame.ts";

/** A larger piece lets go of its memory once it is written. */
const KEPT_BYTES = 64 * 1024;

export class Unwritten {
  #buffer: Buffer = Buffer.alloc(KEPT_BYTES);
  #view = viewOf(this.#buffer);
  #bytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  add(salt: number, behind: number, position: number, atMs: number, seq: number, payload: Uint8Array): void {
    const at = this.#bytes;
    const end = at + FRAME_HEAD_BYTES + payload.length;
    if (end > this.#buffer.length) {
      const larger = Buffer.alloc(Math.max(end, 2 * at));
      larger.set(this.#buffer.subarray(0, at));
      this.#buffer = larger;
      this.#view = viewOf(larger);
    }
    encodeFrame(this.#buffer, this.#view, at, salt, behind, position, atMs, seq, payload);
    this.#bytes = end;
  }

  /** All of it, good until the next `add`; what comes then begins anew. */
  take(): Buffer {
    const taken = this.#buffer.subarray(0, this.#bytes);
    this.#bytes = 0;
    if (this.#buffer.length > KEPT_BYTES) {
      this.#buffer = Buffer.alloc(KEPT_BYTES);
      this.#view = viewOf(this.#buffer);
    }
    return taken;
  }
}

function viewOf(buffer: Buffer): DataView {
  return new DataView(buffer.buffer, buffer.byteOffset, buffer.length);
}
