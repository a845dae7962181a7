/**
 * A `text/event-stream` answer under way: events go out as long as the reader takes them, comments keep a quiet connection
 * open, and a reader that takes nothing for `STREAM_STALL_MS` is given up.
 */

import { STREAM_BUFFER_BYTES, STREAM_STALL_MS } from "../base/limits.ts";
import type { Clock, Scheduled } from "../clock/clock.ts";

export const EVENT_STREAM_HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-store",
  // A proxy that gathers answers would hold events back.
  "x-accel-buffering": "no",
} as const;

const utf8 = new TextEncoder();

export class EventStream {
  readonly body: ReadableStream<Uint8Array>;
  readonly #clock: Clock;
  readonly #keepaliveMs: number;
  readonly #onRoom: () => void;
  readonly #onEnd: () => void;
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  #keepalive: Scheduled | undefined;
  #stall: Scheduled | undefined;

  /**
   * `onRoom` is called when a reader that was behind has caught up; `onEnd` once, when the stream is over, whoever ended
   * it.
   */
  constructor(clock: Clock, keepaliveMs: number, onRoom: () => void, onEnd: () => void) {
    this.#clock = clock;
    this.#keepaliveMs = keepaliveMs;
    this.#onRoom = onRoom;
    this.#onEnd = onEnd;
    this.body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        pull: () => this.#caughtUp(),
        cancel: () => this.#over(),
      },
      new ByteLengthQueuingStrategy({ highWaterMark: STREAM_BUFFER_BYTES }),
    );
    this.#quiet();
  }

  /** False while the reader is behind: an event sent now would only wait. */
  get hasRoom(): boolean {
    return (this.#controller?.desiredSize ?? 0) > 0;
  }

  /** `data` is json, on one line. */
  send(event: string, data: string): void {
    this.#write(`event: ${event}\ndata: ${data}\n\n`);
  }

  /** A line for nobody: what is to be read comes later. */
  comment(words: string): void {
    this.#write(`: ${words}\n\n`);
  }

  /** The reader gets what was sent, and then the end. */
  end(): void {
    this.#controller?.close();
    this.#over();
  }

  #write(text: string): void {
    const controller = this.#controller;
    if (controller === undefined) return;
    const bytes = utf8.encode(text);
    // In pieces, so that it shows how far a slow reader has come.
    for (let at = 0; at < bytes.length; at += STREAM_BUFFER_BYTES) {
      controller.enqueue(bytes.subarray(at, at + STREAM_BUFFER_BYTES));
    }
    this.#quiet();
    if (!this.hasRoom && this.#stall === undefined) this.#watchReader(controller);
  }

  /** Gives the reader up when it takes nothing at all for as long as it may. */
  #watchReader(controller: ReadableStreamDefaultController<Uint8Array>): void {
    const left = controller.desiredSize;
    this.#stall = this.#clock.after(STREAM_STALL_MS, () => {
      if (controller.desiredSize !== left) return this.#watchReader(controller);
      controller.error(new Error("the reader of a change stream takes nothing"));
      this.#over();
    });
  }

  #quiet(): void {
    this.#keepalive?.cancel();
    this.#keepalive = this.#clock.after(this.#keepaliveMs, () => {
      if (this.hasRoom) this.comment("quiet");
      else this.#quiet();
    });
  }

  #caughtUp(): void {
    if (this.#stall === undefined) return;
    this.#stall.cancel();
    this.#stall = undefined;
    this.#onRoom();
  }

  #over(): void {
    if (this.#controller === undefined) return;
    this.#controller = undefined;
    this.#keepalive?.cancel();
    this.#stall?.cancel();
    this.#onEnd();
  }
}
