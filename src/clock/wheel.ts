/**
 * A timer wheel: many moments, one timer. Levels of 64 slots, each level's slot as wide as the whole level below, so
 * adding and cancelling cost the same however many moments there are; a moment far off sits in a coarse slot and comes
 * down a level when the wheel turns past it.
 *
 * The clock under it is asked for one call, at the earliest moment that can matter. A moment is never called early, and
 * those of one millisecond are called in the order they were added.
 */

import type { Clock, Scheduled } from "./clock.ts";

const SLOT_BITS = 6;
const SLOTS = 1 << SLOT_BITS;
/** 64^8 ms is longer than the years a timestamp can name. */
const LEVELS = 8;

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
    const moment = new Moment(Math.max(Math.ceil(atMs), this.#turnedMs), this.#added++, run);
    this.#place(moment);
    this.#size++;
    if (moment.atMs < this.#scheduledMs && !this.#turning) this.#schedule(moment.atMs);
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
      const next = this.#nextMs();
      if (next > now) break;
      this.#turnTo(next);
      const slot = (this.#levels[0] as Set<Moment>[])[next % SLOTS] as Set<Moment>;
      const due = [...slot].filter((moment) => moment.atMs <= next).sort((a, b) => a.order - b.order);
      for (const moment of due) {
        if (moment.slot === null) continue;
        this.cancel(moment);
        moment.run();
      }
    }
    this.#turning = false;
    if (this.#turnedMs < now) this.#turnTo(now);
    this.#schedule(this.#size > 0 ? this.#nextMs() : Number.POSITIVE_INFINITY);
  }

  #schedule(atMs: number): void {
    this.#scheduled?.cancel();
    this.#scheduledMs = atMs;
    this.#scheduled = atMs === Number.POSITIVE_INFINITY ? null : this.#clock.at(atMs, () => this.turn());
  }

  /** Into the lowest level whose span from here holds it. */
  #place(moment: Moment): void {
    const ahead = moment.atMs - this.#turnedMs;
    let level = 0;
    let width = 1;
    while (level < LEVELS - 1 && ahead >= width * SLOTS) {
      level++;
      width *= SLOTS;
    }
    const slot = (this.#levels[level] as Set<Moment>[])[Math.floor(moment.atMs / width) % SLOTS] as Set<Moment>;
    slot.add(moment);
    moment.slot = slot;
  }

  /** The earliest moment there is: exact in the lowest level that has any, and no other level can hold an earlier one. */
  #nextMs(): number {
    let width = 1;
    let best = Number.POSITIVE_INFINITY;
    for (const slots of this.#levels) {
      const start = Math.floor(this.#turnedMs / width);
      for (let step = 0; step < SLOTS; step++) {
        const slot = slots[(start + step) % SLOTS] as Set<Moment>;
        if (slot.size === 0) continue;
        if ((start + step) * width > best) break;
        for (const moment of slot) if (moment.atMs < best) best = moment.atMs;
        // A slot a whole turn ahead may share this place; the slots between may hold earlier ones, so go on.
        if (best < (start + step + 1) * width) break;
      }
      width *= SLOTS;
    }
    return best;
  }

  /** Moves the wheel on, bringing moments of coarse slots it enters down to finer ones. */
  #turnTo(toMs: number): void {
    const from = this.#turnedMs;
    this.#turnedMs = toMs;
    let width = SLOTS;
    for (let level = 1; level < LEVELS; level++) {
      const entered = Math.floor(toMs / width);
      if (entered === Math.floor(from / width)) break;
      const slot = (this.#levels[level] as Set<Moment>[])[entered % SLOTS] as Set<Moment>;
      for (const moment of [...slot]) {
        slot.delete(moment);
        this.#place(moment);
      }
      width *= SLOTS;
    }
  }
}
