import { describe, expect, test } from "bun:test";
import { TestClock, WallClock } from "../../src/clock/clock.ts";

/** A system whose two readings a test sets. */
class System {
  wallMs = 1_000_000;
  monotonicMs = 50;
  readonly jumps: number[] = [];
  readonly clock = new WallClock((byMs) => this.jumps.push(Math.round(byMs)), {
    wall: () => Math.floor(this.wallMs),
    monotonic: () => this.monotonicMs,
  });

  pass(ms: number): void {
    this.wallMs += ms;
    this.monotonicMs += ms;
  }
}

describe("the wall clock", () => {
  test("goes with the system's", () => {
    const system = new System();
    for (let i = 0; i < 1_000; i++) {
      system.pass(0.37 * i);
      const ahead = system.clock.now() - Math.floor(system.wallMs);
      expect(ahead === 0 || ahead === 1).toBe(true);
    }
    expect(system.jumps).toEqual([]);
  });

  test("set back, it counts on and says so once", () => {
    const system = new System();
    system.pass(500);
    const before = system.clock.now();
    system.wallMs -= 3_600_000;
    expect(system.clock.now()).toBe(before);
    system.pass(10_000);
    expect(system.clock.now()).toBe(before + 10_000);
    system.pass(10_000);
    expect(system.clock.now()).toBe(before + 20_000);
    expect(system.jumps).toEqual([-3_600_000]);
  });

  test("set back and right again, it is where the system is", () => {
    const system = new System();
    const before = system.clock.now();
    system.wallMs -= 3_600_000;
    system.clock.now();
    system.wallMs += 3_600_000;
    system.pass(7);
    expect(system.clock.now()).toBe(before + 7);
  });

  test("set ahead, it follows", () => {
    const system = new System();
    const before = system.clock.now();
    system.wallMs += 3_600_000;
    expect(system.clock.now()).toBe(before + 3_600_000);
    expect(system.jumps).toEqual([3_600_000]);
  });

  test("a small step back is worked off and never seen as a step", () => {
    const system = new System();
    system.clock.now();
    system.wallMs -= 20;
    let last = system.clock.now();
    for (let i = 0; i < 60; i++) {
      system.pass(1_000);
      const now = system.clock.now();
      expect(now).toBeGreaterThan(last);
      last = now;
    }
    expect(last - Math.floor(system.wallMs)).toBeLessThanOrEqual(1);
    expect(system.jumps).toEqual([]);
  });

  test("calls at a moment, not before it", async () => {
    const clock = new WallClock();
    const due = clock.now() + 12;
    const seen = await new Promise<number>((resolve) => clock.at(due, () => resolve(clock.now())));
    expect(seen).toBeGreaterThanOrEqual(due);
    const cancelled = clock.at(clock.now(), () => expect.unreachable());
    cancelled.cancel();
    await new Promise<void>((resolve) => clock.after(3, resolve));
  });

  test("the rest of a millisecond is waited for turn by turn, not before it is over, and seldom", async () => {
    const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
    const system = new System();
    system.pass(0.6);
    const due = system.wallMs + 0.4;
    let ran = "";
    system.clock.at(due, () => (ran += "a"));
    for (let turns = 0; turns < 50; turns++) await turn();
    expect(ran).toBe("");
    system.pass(0.4);
    await turn();
    await turn();
    expect(ran).toBe("a");
    // So soon behind it a timer does it, which takes a real millisecond.
    system.pass(0.5);
    system.clock.at(due + 1, () => (ran += "b"));
    system.pass(0.5);
    await turn();
    await turn();
    expect(ran).toBe("a");
    while (ran === "a") await turn();
    expect(ran).toBe("ab");
    system.pass(20.5);
    system.clock.at(due + 22, () => (ran += "c")).cancel();
    system.pass(1);
    for (let turns = 0; turns < 5; turns++) await turn();
    expect(ran).toBe("ab");
  });
});

describe("the test clock", () => {
  test("stands still until it is moved", () => {
    const clock = new TestClock(5_000);
    expect(clock.now()).toBe(5_000);
    expect(clock.now()).toBe(5_000);
  });

  test("visits every moment in order, standing at each", async () => {
    const clock = new TestClock(1_000);
    const seen: [string, number][] = [];
    const note = (name: string) => () => seen.push([name, clock.now()]);
    clock.at(1_300, note("c"));
    clock.at(1_100, note("a"));
    clock.at(1_100, note("b"));
    clock.at(1_100, () => clock.after(50, note("made on the way")));
    clock.at(2_001, note("too late"));
    clock.at(1_200, note("cancelled")).cancel();
    await clock.advance(1_000);
    expect(seen).toEqual([
      ["a", 1_100],
      ["b", 1_100],
      ["made on the way", 1_150],
      ["c", 1_300],
    ]);
    expect(clock.now()).toBe(2_000);
    await clock.set(2_001);
    expect(seen.at(-1)).toEqual(["too late", 2_001]);
  });

  test("lets what a moment set off finish before the next", async () => {
    const clock = new TestClock(0);
    const seen: number[] = [];
    clock.at(10, () => void Promise.resolve().then(() => clock.at(20, () => seen.push(clock.now()))));
    clock.at(30, () => seen.push(clock.now()));
    await clock.advance(100);
    expect(seen).toEqual([20, 30]);
  });

  test("a moment in the past runs soon, never at once", async () => {
    const clock = new TestClock(100);
    let ran = 0;
    clock.at(50, () => ran++);
    expect(ran).toBe(0);
    await clock.advance(0);
    expect(ran).toBe(1);
  });

  test("goes forwards only", async () => {
    const clock = new TestClock(100);
    expect(clock.set(99)).rejects.toThrow("forwards");
    await clock.advance(1);
    expect(clock.now()).toBe(101);
  });
});
