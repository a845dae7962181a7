/**
 * Whether a sync is done where it stands, on the event loop, or handed to the thread pool.
 *
 * Handing it to a thread and hearing of its end takes as long as the sync itself on a quick disk: where few wait, 16 clients
 * make half as many writes again without (`bun run bench:durability`). So that a slow disk does not hold the event loop, a
 * sync that took longer than it may is followed by a time in which all go to the pool: 8 times as long, and up to 1 024
 * times as more slow ones follow one another. So do all while others write much to the disk.
 */

import { once } from "../base/once.ts";
import type { RunningClock } from "../clock/clock.ts";

/** A group of up to so many frames is small. With 32 clients either way to sync is as good, with 64 the pool. */
const SMALL_FRAMES = 32;
/** And of up to so many bytes. */
export const SMALL_BYTES = 32 * 1024;
const SLOW_TIMES = 8;
const SLOW_TIMES_MOST = 1024;
/** What others wrote, and the files they removed, keep the disk busy for a while. */
const CROWD_MS = 1_000;

export class Standstill {
  readonly #wall: RunningClock;
  /** What a sync may take; 0: none is done on the event loop. */
  readonly #mostMs: number;
  /** None before this time of the clock, as elapsed. */
  #from = 0;
  /** How many times as long as the next slow one the pool has them all. */
  #times = SLOW_TIMES;
  /** How many say that they write much. */
  #crowd = 0;

  constructor(wall: RunningClock, mostMs: number) {
    this.#wall = wall;
    this.#mostMs = mostMs;
  }

  /** For a group of so many frames and bytes, now. */
  isFor(frames: number, bytes: number): boolean {
    if (this.#mostMs === 0 || this.#crowd > 0 || frames > SMALL_FRAMES || bytes > SMALL_BYTES) return false;
    return this.#wall.elapsed() >= this.#from;
  }

  /** To be told of each sync on the event loop. */
  took(ms: number): void {
    if (ms <= this.#mostMs) {
      this.#times = SLOW_TIMES;
      return;
    }
    this.#from = this.#wall.elapsed() + ms * this.#times;
    this.#times = Math.min(2 * this.#times, SLOW_TIMES_MOST);
  }

  /** Much is about to be written besides; over a moment after the function it answers is called. */
  crowd(): () => void {
    this.#crowd++;
    return once(() => {
      this.#crowd--;
      this.#from = Math.max(this.#from, this.#wall.elapsed() + CROWD_MS);
    });
  }
}
