/**
 * A clock's running time as a clock of its own, for what is to last so long and not until then: when the system's clock is
 * set ahead by an hour, leases lapse, but who was told to wait thirty seconds waits thirty seconds.
 */

import type { Clock, RunningClock, Scheduled } from "./clock.ts";

export class ElapsedTime implements Clock {
  readonly #clock: RunningClock;

  constructor(clock: RunningClock) {
    this.#clock = clock;
  }

  now(): number {
    return Math.floor(this.#clock.elapsed());
  }

  at(atMs: number, run: () => void): Scheduled {
    return this.#clock.after(Math.max(0, atMs - this.#clock.elapsed()), run);
  }

  after(delayMs: number, run: () => void): Scheduled {
    return this.#clock.after(delayMs, run);
  }
}
