/** A put and the claim it serves are on disk by one sync, and both are answered by it. */

import { expect, test } from "bun:test";
import { WallClock } from "../../src/clock/clock.ts";
import { Database } from "../../src/engine/database.ts";
import { HeldClaims } from "../../src/hold/held_claims.ts";
import { fileDisk } from "../../src/log/disk.ts";
import { Scratch } from "../harness/server.ts";
import { ANYBODY } from "./hall.ts";

const CLAIM = 'set jobs {owner: "w", run_at: now() + 60000} where run_at <= now() order run_at limit 1 returning id';

test("one sync does for a put and for the claims that waited for it", async () => {
  using scratch = new Scratch();
  const clock = new WallClock();
  const database = await Database.open(fileDisk(scratch.path), {
    clock,
    sync: "always",
    readOnly: false,
    maxMemoryBytes: Number.POSITIVE_INFINITY,
    idempotencyTtlMs: 1_000,
  });
  const { engine, log } = database;
  const held = new HeldClaims(engine, clock);
  engine.query("create collection jobs (run_at timestamp @sorted, owner text)", [], ANYBODY);
  await engine.durable();
  const gone = new AbortController().signal;
  for (let round = 1; round <= 20; round++) {
    const answers = [1, 2, 3].map(() => held.query({ text: CLAIM, params: [] }, ANYBODY, 30_000, gone));
    const before = log?.counters.syncs ?? 0;
    engine.query("put jobs [{run_at: now()}, {run_at: now()}, {run_at: now()}]", [], ANYBODY);
    const put = engine.durable();
    expect(put).toBeDefined();
    for (const answer of await Promise.all(answers)) expect(answer.body).toMatch(/"id":/);
    await Promise.all([put, engine.durable()]);
    expect((log?.counters.syncs ?? 0) - before).toBe(1);
  }
  await database.close();
});
