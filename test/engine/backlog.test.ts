/** Jobs that wait cost their rows and nothing else: no timer, no promise, no closure a job. */

import { expect, test } from "bun:test";
import { type Scheduled, TestClock } from "../../src/clock/clock.ts";
import { Database } from "../../src/engine/database.ts";
import { HeldClaims } from "../../src/hold/held_claims.ts";
import { SimDisk } from "../sim/disk.ts";

const START_MS = Date.UTC(2026, 4, 1);
const ASKED = { scope: null, idempotencyKey: null, requestHash: "" };
const CLAIM =
  "set jobs {owner: $1, run_at: now() + 60000} where run_at <= now() order run_at limit 1 returning id, owner";

/** Counts what is scheduled and has not run or been cancelled. */
class CountingClock extends TestClock {
  scheduled = 0;

  override at(atMs: number, run: () => void): Scheduled {
    this.scheduled++;
    let counts = true;
    const done = (): void => {
      if (counts) this.scheduled--;
      counts = false;
    };
    const entry = super.at(atMs, () => {
      done();
      run();
    });
    return {
      cancel: () => {
        done();
        entry.cancel();
      },
    };
  }
}

test("ten thousand delayed jobs schedule nothing, neither put nor loaded; who waits for them, an alarm each at most", async () => {
  const disk = new SimDisk();
  const clock = new CountingClock(START_MS);
  const options = {
    clock,
    wall: new TestClock(START_MS),
    sync: "always" as const,
    readOnly: false,
    maxMemoryBytes: Infinity,
    idempotencyTtlMs: 1_000,
    reserveBytes: 0,
  };
  const first = await Database.open(disk, options);
  first.engine.query("create collection jobs (run_at timestamp @sorted, owner text)", [], ASKED);
  const before = clock.scheduled;
  for (let page = 0; page < 10; page++) {
    const times = Array.from({ length: 1_000 }, (_, n) => `{run_at: now() + ${1_000 + page * 1_000 + n}}`);
    first.engine.query(`put jobs [${times.join(", ")}]`, [], ASKED);
  }
  expect(clock.scheduled).toBe(before);
  await first.close();

  const second = await Database.open(disk, options);
  expect(second.engine.query("get jobs count", [], ASKED).body).toBe('[{"count":10000}]');
  expect(clock.scheduled).toBe(before);
  const held = new HeldClaims(second.engine, clock);
  const idle = clock.scheduled;
  const gone = new AbortController().signal;
  const answers = ["w1", "w2", "w3"].map((owner) => held.query({ text: CLAIM, params: [owner] }, ASKED, 30_000, gone));
  expect(clock.scheduled - idle).toBeLessThanOrEqual(3);
  await clock.advance(1_002);
  expect((await Promise.all(answers)).map(({ body }) => body)).toEqual([
    '[{"id":1,"owner":"w1"}]',
    '[{"id":2,"owner":"w2"}]',
    '[{"id":3,"owner":"w3"}]',
  ]);
  await second.close();
});
