import { expect, test } from "bun:test";
import type { Clock, Scheduled } from "../../src/clock/clock.ts";
import { type Moment, TimerWheel } from "../../src/clock/wheel.ts";

/** A clock that only moves when told, and calls what it was asked to. */
class HandClock implements Clock {
  time = 1_000_000_000_000;
  calls = 0;
  #asked: { atMs: number; run: () => void } | null = null;
  now(): number {
    return this.time;
  }
  at(atMs: number, run: () => void): Scheduled {
    const asked = { atMs, run };
    this.#asked = asked;
    return {
      cancel: () => {
        if (this.#asked === asked) this.#asked = null;
      },
    };
  }
  after(delayMs: number, run: () => void): Scheduled {
    return this.at(this.time + delayMs, run);
  }
  /** Moves to a time, stopping wherever the wheel asked to be called. */
  moveTo(toMs: number): void {
    while (this.#asked !== null && this.#asked.atMs <= toMs) {
      const asked = this.#asked;
      this.#asked = null;
      this.time = Math.max(this.time, asked.atMs);
      this.calls++;
      asked.run();
    }
    this.time = toMs;
  }
}

const seed = Number(process.env["FENEC_SEED"] ?? Date.now() % 1_000_000);
function randomFrom(start: number): () => number {
  let state = start >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

test(`every moment is called at its own millisecond, in the order added (seed ${seed})`, () => {
  const random = randomFrom(seed);
  const clock = new HandClock();
  const wheel = new TimerWheel(clock);
  const waiting = new Map<Moment, { atMs: number; order: number }>();
  let called: { atMs: number; order: number; seenMs: number }[] = [];
  let order = 0;
  for (let step = 0; step < 3_000; step++) {
    const dice = random();
    if (dice < 0.1) {
      // A moment of the same millisecond as one that came long before.
      const [twin] = waiting.values();
      if (twin === undefined) continue;
      const mine = { atMs: twin.atMs, order: order++ };
      const moment = wheel.add(mine.atMs, () => {
        waiting.delete(moment);
        called.push({ ...mine, seenMs: clock.time });
      });
      waiting.set(moment, mine);
    } else if (dice < 0.6) {
      const ahead = Math.floor(random() ** 6 * 10 ** (2 + Math.floor(random() * 9)));
      const mine = { atMs: clock.time + ahead, order: order++ };
      const moment = wheel.add(mine.atMs, () => {
        waiting.delete(moment);
        called.push({ ...mine, seenMs: clock.time });
      });
      waiting.set(moment, mine);
    } else if (dice < 0.7) {
      const [moment] = waiting.keys();
      if (moment !== undefined) {
        wheel.cancel(moment);
        waiting.delete(moment);
      }
    } else {
      const to = clock.time + Math.floor(random() ** 4 * 10 ** (1 + Math.floor(random() * 8)));
      const due = [...waiting.values()].filter((entry) => entry.atMs <= to);
      due.sort((a, b) => a.atMs - b.atMs || a.order - b.order);
      called = [];
      clock.moveTo(to);
      expect(called.map((entry) => entry.order)).toEqual(due.map((entry) => entry.order));
      for (const entry of called) expect(entry.seenMs).toBe(entry.atMs);
    }
    expect(wheel.size).toBe(waiting.size);
  }
});

test("a moment forty days off costs a call a level, however many there are", () => {
  for (const count of [1, 10_000]) {
    const clock = new HandClock();
    const wheel = new TimerWheel(clock);
    let ran = 0;
    for (let each = 0; each < count; each++) wheel.add(clock.time + 40 * 86_400_000, () => ran++);
    clock.moveTo(clock.time + 40 * 86_400_000 - 1);
    expect(ran).toBe(0);
    clock.moveTo(clock.time + 1);
    expect(ran).toBe(count);
    expect(clock.calls).toBeLessThanOrEqual(8);
  }
});

test("a moment at a slot's edge, a whole turn ahead, and called late", () => {
  for (const start of [0, 1, 63, 64, 4_095, 4_096, 262_143]) {
    for (const ahead of [0, 1, 63, 64, 65, 4_032, 4_095, 4_096, 4_097, 262_144]) {
      const clock = new HandClock();
      clock.time = 2 ** 40 + start;
      const wheel = new TimerWheel(clock);
      const seen: number[] = [];
      wheel.add(clock.time + ahead, () => seen.push(clock.time));
      const due = clock.time + ahead;
      clock.moveTo(due + 1_000);
      expect(seen).toEqual([due]);
    }
  }
});

test("a moment that is cancelled by another of its millisecond is not called", () => {
  const clock = new HandClock();
  const wheel = new TimerWheel(clock);
  let ran = 0;
  wheel.add(clock.time + 100, () => wheel.cancel(second));
  const second = wheel.add(clock.time + 100, () => ran++);
  clock.moveTo(clock.time + 200);
  expect([ran, wheel.size]).toEqual([0, 0]);
});

test("a moment that is added while others are called waits for its time", () => {
  const clock = new HandClock();
  const wheel = new TimerWheel(clock);
  const seen: number[] = [];
  wheel.add(clock.time + 5, () => {
    wheel.add(clock.time + 5, () => seen.push(clock.time));
    wheel.add(clock.time, () => seen.push(clock.time));
  });
  const start = clock.time;
  clock.moveTo(start + 20);
  expect(seen).toEqual([start + 5, start + 10]);
});
