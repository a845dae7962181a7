/**
 * The only source of time. Two clocks: the wall clock, and the test clock that stands still until it is told to move.
 *
 * The wall clock never goes backwards within a run. It counts from the start by the monotonic clock and follows the
 * system's clock forwards at once (a jump ahead makes leases lapse); when the system's clock is set back by more than
 * `SMALL_STEP_MS` it keeps counting as if nothing had happened, so that a lease of ten seconds still lapses after ten,
 * and says so once. Smaller differences, the usual corrections of a time service, are worked off slowly.
 *
 * The test clock moves by `advance`: every moment something was scheduled for is visited in order, the clock standing
 * at that moment while it runs, so that one long jump gives what many short ones would have given.
 */

import { assert } from "../base/assert.ts";

/** A scheduled call; cancelling one that has run does nothing. */
export interface Scheduled {
  cancel(): void;
}

export interface Clock {
  /** Epoch milliseconds, whole, never less than before. */
  now(): number;
  /** Calls `run` once, as soon as `now()` is at or past `atMs`; never before, and never within this call. */
  at(atMs: number, run: () => void): Scheduled;
  /** Calls `run` once when this many milliseconds have gone by, whatever the system's clock is set to meanwhile. */
  after(delayMs: number, run: () => void): Scheduled;
}

/** A clock that also tells how long something takes, whatever the system's clock is set to meanwhile. */
export interface RunningClock extends Clock {
  /** Milliseconds since some moment. */
  elapsed(): number;
}

/** The two readings the wall clock is made of, so that a test can set them. */
export interface TimeSource {
  /** Epoch milliseconds as the system has them. */
  wall(): number;
  /** Milliseconds since some moment, never set back. */
  monotonic(): number;
}

/** Differences up to this are corrections, worked off slowly; beyond it the clock was set. */
const SMALL_STEP_MS = 1_000;
/** How much of the elapsed time may be given to working off a difference: 0.5 ms a second. */
const SLEW = 0.0005;
/** A far moment is looked at again this often, as the system's clock may be set ahead meanwhile. */
const LOOK_MS = 1_000;
/** The last part of a millisecond is waited for turn by turn at most this often: a tenth of the time at the worst. */
const TURNS_EVERY_MS = 10;
/** setTimeout of 2^31 ms or more fires at once. */
const TIMEOUT_MAX_MS = 2 ** 31 - 1;

const system: TimeSource = { wall: Date.now, monotonic: () => performance.now() };

export class WallClock implements RunningClock {
  readonly #source: TimeSource;
  readonly #jumped: (byMs: number) => void;
  /** `now()` is the monotonic reading plus this. */
  #offset: number;
  #monotonic: number;
  /** When turns were last passed in wait for a moment. */
  #turnedAt = Number.NEGATIVE_INFINITY;
  /** The system's clock is this far behind ours, as last told. */
  #behindMs = 0;

  /** `jumped` is told once when the system's clock was set, by how many milliseconds (less than 0: back). */
  constructor(jumped: (byMs: number) => void = () => {}, source: TimeSource = system) {
    this.#source = source;
    this.#jumped = jumped;
    this.#monotonic = source.monotonic();
    this.#offset = source.wall() - this.#monotonic;
  }

  now(): number {
    return Math.floor(this.#exact());
  }

  /** Milliseconds with their fraction. */
  #exact(): number {
    // In this order: a pause between the two readings must not look like the system's clock running ahead.
    const wall = this.#source.wall();
    const monotonic = this.#source.monotonic();
    const difference = wall - monotonic - this.#offset;
    // The system's reading is cut to whole milliseconds, so ours is ahead of it by less than one when they agree.
    if (difference > 0) {
      if (difference > SMALL_STEP_MS && difference > -this.#behindMs) this.#jumped(difference);
      this.#offset += difference;
      this.#behindMs = 0;
    } else if (difference < -SMALL_STEP_MS) {
      const behindMs = -difference;
      if (Math.abs(behindMs - this.#behindMs) > SMALL_STEP_MS) this.#jumped(this.#behindMs - behindMs);
      this.#behindMs = behindMs;
    } else if (difference < -1) {
      this.#offset -= Math.min(-difference - 1, (monotonic - this.#monotonic) * SLEW);
      this.#behindMs = 0;
    }
    this.#monotonic = monotonic;
    return monotonic + this.#offset;
  }

  elapsed(): number {
    return this.#source.monotonic();
  }

  at(atMs: number, run: () => void): Scheduled {
    let cancelled = false;
    let turning = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const look = (): void => {
      if (cancelled) return;
      const leftMs = atMs - this.#exact();
      if (leftMs <= 0) run();
      else wait(leftMs);
    };
    const wait = (leftMs: number): void => {
      // A timer of less than a millisecond takes a whole one, so the rest is passed turn by turn, where that is seldom.
      if (leftMs < 1 && (turning || this.#monotonic - this.#turnedAt >= TURNS_EVERY_MS)) {
        turning = true;
        this.#turnedAt = this.#monotonic;
        setImmediate(look);
      } else timer = setTimeout(look, Math.min(leftMs, LOOK_MS));
    };
    const leftMs = atMs - this.#exact();
    if (leftMs > 0) wait(leftMs);
    else timer = setTimeout(look, 0);
    return {
      cancel: () => {
        cancelled = true;
        clearTimeout(timer);
      },
    };
  }

  after(delayMs: number, run: () => void): Scheduled {
    assert(delayMs <= TIMEOUT_MAX_MS, "a delay is less than 2^31 ms");
    const until = this.#source.monotonic() + delayMs;
    let timer: ReturnType<typeof setTimeout>;
    const look = (): void => {
      const leftMs = until - this.#source.monotonic();
      if (leftMs <= 0) run();
      else timer = setTimeout(look, Math.ceil(leftMs));
    };
    timer = setTimeout(look, Math.max(0, Math.ceil(delayMs)));
    return { cancel: () => clearTimeout(timer) };
  }
}

interface Entry {
  readonly atMs: number;
  readonly run: () => void;
  cancelled: boolean;
}

export class TestClock implements RunningClock {
  #nowMs: number;
  /** By moment, then in the order scheduled; few, so a sorted list. */
  readonly #entries: Entry[] = [];
  #moving: Promise<void> = Promise.resolve();
  readonly #settle: () => Promise<void>;

  /** `settle` resolves when all that a moment set off has been done: by default, after some turns of the event loop. */
  constructor(startMs: number, settle: () => Promise<void> = turn) {
    this.#nowMs = Math.floor(startMs);
    this.#settle = settle;
  }

  now(): number {
    return this.#nowMs;
  }

  elapsed(): number {
    return this.#nowMs;
  }

  at(atMs: number, run: () => void): Scheduled {
    const entry: Entry = { atMs, run, cancelled: false };
    let low = 0;
    let high = this.#entries.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#entries[middle]!.atMs <= atMs) low = middle + 1;
      else high = middle;
    }
    this.#entries.splice(low, 0, entry);
    // Due already: it still never runs within this call.
    if (atMs <= this.#nowMs) setImmediate(() => this.#runDue());
    return {
      cancel: () => {
        entry.cancelled = true;
        const place = this.#entries.indexOf(entry);
        if (place >= 0) this.#entries.splice(place, 1);
      },
    };
  }

  after(delayMs: number, run: () => void): Scheduled {
    return this.at(this.#nowMs + Math.max(0, delayMs), run);
  }

  /** Moves on by whole milliseconds from 0; resolves when everything that came due has run. */
  advance(byMs: number): Promise<void> {
    return this.#move(() => this.#nowMs + byMs);
  }

  /** Moves to a moment not before now; resolves when everything that came due has run. */
  set(toMs: number): Promise<void> {
    return this.#move(() => toMs);
  }

  /** Two requests to move are done one after the other. */
  #move(target: () => number): Promise<void> {
    const move = this.#moving.then(async () => {
      const toMs = target();
      assert(Number.isSafeInteger(toMs) && toMs >= this.#nowMs, "the test clock moves forwards by whole milliseconds");
      await this.#settle();
      while (this.#entries.length > 0 && this.#entries[0]!.atMs <= toMs) {
        this.#nowMs = Math.max(this.#nowMs, this.#entries[0]!.atMs);
        this.#runDue();
        await this.#settle();
      }
      this.#nowMs = toMs;
    });
    this.#moving = move.catch(() => {});
    return move;
  }

  #runDue(): void {
    while (this.#entries.length > 0 && this.#entries[0]!.atMs <= this.#nowMs) {
      const entry = this.#entries.shift()!;
      if (!entry.cancelled) entry.run();
    }
  }
}

/** Three whole turns of the event loop, promises included: what is put off to the next is done, and what comes of it. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(() => setImmediate(() => setImmediate(resolve))));
}
