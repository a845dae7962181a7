/**
 * A timer wheel: many moments, one timer. Levels of 64 slots, each level's slot as wide as the whole level below, so
 * adding and cancelling cost the same however many moments there are; a moment far off sits in a coarse slot and comes
 * down when the wheel enters that slot. Nobody ever looks through a coarse slot for its earliest moment, so ten thousand
 * moments of one distance cost no more than one.
 *
 * The clock under it is asked for one call: at the next moment of the lowest level, or when a coarse slot that holds any is
 * entered. A moment is never called early, and those of one millisecond are called in the order they were added.
 */

import { assert } from "../base/assert.ts";
import type { Clock, Scheduled } from "./clock.ts";

const SLOT_BITS = 6;
const SLOTS = 1 << SLOT_BITS;
/** 64^8 ms is longer than the years a timestamp can name. */
const LEVELS = 8;
const SPAN_MS = SLOTS ** LEVELS;

export class Moment {
  readonly atMs: number;
  readonly run: () => void;
  /** Of two moments of one millisecond the one added first is called first. */
  readonly order: number;
  slot: Set<Moment> | null = null;

  constructor(atMs: number, order: number, run: () => void) {
    this.atMs = atMs;
    this.order = order;
    this.run = run;
  }
}

export class TimerWheel {
  readonly #clock: Clock;
  readonly #levels: Set<Moment>[][];
  /** All moments before this have been called. */
  #turnedMs: number;
  #scheduled: Scheduled | null = null;
  #scheduledMs = Number.POSITIVE_INFINITY;
  #size = 0;
  #added = 0;
  #turning = false;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#turnedMs = clock.now();
    this.#levels = Array.from({ length: LEVELS }, () => Array.from({ length: SLOTS }, () => new Set<Moment>()));
  }

  /** Moments waiting. */
  get size(): number {
    return this.#size;
  }

  /** The clock's time. */
  get now(): number {
    return this.#clock.now();
  }

  /** Calls `run` once `now()` is at or past `atMs`, never within this call. */
  add(atMs: number, run: () => void): Moment {
    // Nothing waits, so there is nothing to turn past on the way to now.
    if (this.#size === 0 && !this.#turning) this.#turnedMs = this.#clock.now();
    const moment = new Moment(Math.max(Math.ceil(atMs), this.#turnedMs), this.#added++, run);
    assert(moment.atMs - this.#turnedMs < SPAN_MS, "a moment within the wheel's span");
    const callMs = this.#place(moment);
    this.#size++;
    if (callMs < this.#scheduledMs && !this.#turning) this.#schedule(callMs);
    return moment;
  }

  cancel(moment: Moment): void {
    if (moment.slot === null) return;
    moment.slot.delete(moment);
    moment.slot = null;
    this.#size--;
  }

  /** Calls everything that is due; the clock's call does, and whoever must not run ahead of a due moment. */
  turn(): void {
    if (this.#turning) return;
    this.#turning = true;
    const now = this.#clock.now();
    while (this.#size > 0) {
      const next = this.#nextCallMs();
      if (next > now) break;
      this.#turnTo(next);
      const slot = (this.#levels[0] as Set<Moment>[])[next % SLOTS] as Set<Moment>;
      if (slot.size === 0) continue;
      for (const moment of [...slot].sort((a, b) => a.order - b.order)) {
        // One called before it may have cancelled it.
        if (moment.slot === null) continue;
        this.cancel(moment);
        moment.run();
      }
    }
    this.#turning = false;
    if (this.#turnedMs < now) this.#turnTo(now);
    this.#schedule(this.#size > 0 ? this.#nextCallMs() : Number.POSITIVE_INFINITY);
  }

  #schedule(atMs: number): void {
    this.#scheduled?.cancel();
    this.#scheduledMs = atMs;
    this.#scheduled = atMs === Number.POSITIVE_INFINITY ? null : this.#clock.at(atMs, () => this.turn());
  }

  /** Into the lowest level whose span from here holds it. Answers when the wheel is to be turned for it. */
  #place(moment: Moment): number {
    const ahead = moment.atMs - this.#turnedMs;
    let level = 0;
    let width = 1;
    while (ahead >= width * SLOTS) {
      level++;
      width *= SLOTS;
    }
    const along = Math.floor(moment.atMs / width);
    const slot = (this.#levels[level] as Set<Moment>[])[along % SLOTS] as Set<Moment>;
    slot.add(moment);
    moment.slot = slot;
    return along * width;
  }

  /** When the wheel is to be turned next: at a moment of the lowest level, or on entering a slot that holds any. */
  #nextCallMs(): number {
    let width = 1;
    let best = Number.POSITIVE_INFINITY;
    for (const [level, slots] of this.#levels.entries()) {
      // Where a coarse slot is entered it is emptied, so what lies there is a whole turn ahead.
      const first = level === 0 ? 0 : 1;
      const start = Math.floor(this.#turnedMs / width);
      for (let step = first; step < first + SLOTS; step++) {
        const entered = (start + step) * width;
        if (entered >= best) break;
        if ((slots[(start + step) % SLOTS] as Set<Moment>).size > 0) best = entered;
      }
      width *= SLOTS;
    }
    return best;
  }

  /** Moves the wheel on, bringing moments of the coarse slots it enters down to finer ones. */
  #turnTo(toMs: number): void {
    const from = this.#turnedMs;
    this.#turnedMs = toMs;
    let width = SLOTS;
    for (let level = 1; level < LEVELS; level++) {
      const entered = Math.floor(toMs / width);
      if (entered === Math.floor(from / width)) break;
      const slot = (this.#levels[level] as Set<Moment>[])[entered % SLOTS] as Set<Moment>;
      if (slot.size > 0) {
        for (const moment of [...slot]) {
          slot.delete(moment);
          this.#place(moment);
        }
      }
      width *= SLOTS;
    }
  }
}
