/** Expired rows go a minute after their time, and a server without any has no sweep at all. */

import { expect, test } from "bun:test";
import type { Clock, Scheduled } from "../../src/clock/clock.ts";
import { TestClock } from "../../src/clock/clock.ts";
import { Engine } from "../../src/engine/engine.ts";
import { KeptAnswers } from "../../src/engine/idempotency.ts";
import { MemoryJournal } from "../../src/engine/journal.ts";
import { Sweeper } from "../../src/engine/sweeper.ts";
import { Store } from "../../src/store/store.ts";

const START_MS = Date.UTC(2027, 0, 1);
const ASKED = { scope: null, idempotencyKey: null, requestHash: "" };

/** The test clock, and how often it was asked for a call. */
class CountingClock implements Clock {
  readonly inner = new TestClock(START_MS);
  asked = 0;
  now(): number {
    return this.inner.now();
  }
  at(atMs: number, run: () => void): Scheduled {
    this.asked++;
    return this.inner.at(atMs, run);
  }
  after(delayMs: number, run: () => void): Scheduled {
    return this.inner.after(delayMs, run);
  }
}

function started() {
  const clock = new CountingClock();
  const engine = new Engine({
    store: new Store(),
    journal: new MemoryJournal(),
    clock,
    seq: 0,
    readOnly: false,
    maxMemoryBytes: Number.POSITIVE_INFINITY,
    answers: new KeptAnswers(1_000),
    compact: () => {},
  });
  const sweeper = new Sweeper(engine, clock);
  sweeper.start();
  const run = (text: string): string => engine.query(text, [], ASKED).body;
  return { clock, engine, sweeper, run };
}

test("rows go a minute after their time, and not before", async () => {
  const { clock, engine, sweeper, run } = started();
  run("create collection s (n int, at timestamp @ttl(10s))");
  run("put s [{n: 1, at: now()}, {n: 2, at: now() + 3600000}, {n: 3}]");
  await clock.inner.advance(69_000);
  expect(run("get s where expired() select n")).toBe('[{"n":1}]');
  await clock.inner.advance(31_000);
  expect(run("get s where expired() select n")).toBe("[]");
  expect(engine.store.table("s")?.count).toBe(2);
  sweeper.stop();
});

test("more rows than one change holds go in the turns that follow", async () => {
  const { clock, engine, sweeper, run } = started();
  run("create collection s (n int, at timestamp @ttl(10s))");
  for (let n = 0; n < 5; n++) run(`put s [${Array.from({ length: 500 }, () => "{at: now()}").join(",")}]`);
  await clock.inner.advance(100_000);
  await clock.inner.advance(1);
  await clock.inner.advance(1);
  expect(engine.store.table("s")?.count).toBe(0);
  sweeper.stop();
});

test("a server whose rows never expire schedules nothing, until a collection is made whose do", async () => {
  const { clock, sweeper, run } = started();
  run("create collection a (n int, at timestamp @sorted)");
  run("put a {n: 1, at: now()}");
  await clock.inner.advance(86_400_000);
  expect(clock.asked).toBe(0);
  run("alter collection a alter field at @ttl(1h)");
  expect(clock.asked).toBe(1);
  sweeper.stop();
});
