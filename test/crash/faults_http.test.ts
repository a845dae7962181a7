/** A disk that is full or fails, and memory that is, as a client sees them: statuses, and what goes on. */

import { expect, test } from "bun:test";
import { Database, type DatabaseOptions } from "../../src/engine/database.ts";
import { HeldClaims } from "../../src/hold/held_claims.ts";
import { type Answer, Asked } from "../http/parts.ts";
import { SimDisk } from "../sim/disk.ts";

const RESERVE_BYTES = 64 * 1024;
const CREATE = "create collection jobs (payload text, run_at timestamp @sorted, owner text)";
const CLAIM =
  "set jobs {owner: $1, run_at: now() + 60000} where run_at <= now() order run_at limit 1 returning id, owner";
const HOLD = { "fenec-wait": "30000" };

function options(asked: Asked): DatabaseOptions {
  return { clock: asked.clock, readOnly: false, maxMemoryBytes: Infinity, idempotencyTtlMs: 60_000 };
}

function serve(asked: Asked, database: Database): void {
  asked.service.ready(database.engine, new HeldClaims(database.engine, asked.clock));
}

async function onDisk(disk: SimDisk): Promise<{ asked: Asked; database: Database }> {
  const asked = new Asked({ engine: null, settings: { maxBodyBytes: 1_000_000 } });
  const database = await Database.open(disk, { ...options(asked), sync: "always", reserveBytes: RESERVE_BYTES });
  serve(asked, database);
  return { asked, database };
}

/** Its status, and its body or the code of its refusal. */
function told({ status, body }: Answer): [number, string] {
  return [status, status === 200 ? body : (JSON.parse(body) as { code: string }).code];
}

async function untilHeld(asked: Asked, count: number): Promise<void> {
  while (!(await asked.ask("GET", "/_metrics")).body.includes(`\nfenec_held_claims ${count}\n`));
}

function used(disk: SimDisk): number {
  return [...disk.files().values()].reduce((sum, bytes) => sum + bytes.length, 0);
}

test("a full disk: 507, and reads, claims, held ones too, and deletes go on; with space puts do again", async () => {
  const disk = new SimDisk();
  const { asked } = await onDisk(disk);
  await asked.query(CREATE);
  await asked.query("put jobs [{run_at: now()}, {run_at: now() + 1000}, {run_at: now() + 1000}]");
  disk.capacityBytes = used(disk);
  const text = "x".repeat(700);
  let put = await asked.query("put jobs {payload: $1}", [text]);
  // Space taken in advance is used first.
  while (put.status === 200) put = await asked.query("put jobs {payload: $1}", [text]);
  expect(told(put)).toEqual([507, "disk_full"]);
  const count = (await asked.query("get jobs count")).body;
  expect(told(await asked.ask("POST", "/jobs", `{"payload":"${text}"}`))).toEqual([507, "disk_full"]);
  const health = await asked.ask("GET", "/_health");
  expect([health.status, JSON.parse(health.body)]).toMatchObject([503, { ok: false, code: "disk_full" }]);
  expect((await asked.query("get jobs count")).body).toBe(count);

  expect(told(await asked.query(CLAIM, ["w1"]))).toEqual([200, '[{"id":1,"owner":"w1"}]']);
  const held = [asked.query(CLAIM, ["w2"], HOLD), asked.query(CLAIM, ["w3"], HOLD)];
  await untilHeld(asked, 2);
  await asked.clock.advance(1_000);
  expect((await Promise.all(held)).map(told)).toEqual([
    [200, '[{"id":2,"owner":"w2"}]'],
    [200, '[{"id":3,"owner":"w3"}]'],
  ]);
  expect(told(await asked.query('del jobs where id = 1 and owner = "w1" require 1'))).toEqual([200, '{"affected":1}']);
  // A rewriting of payloads is no claim.
  const rewritten = await asked.query("set jobs {payload: $1} where id = 2", ["y".repeat(100_000)]);
  expect(told(rewritten)).toEqual([507, "disk_full"]);

  disk.capacityBytes = Infinity;
  expect(told(await asked.query("put jobs {payload: $1}", ["after"]))).toEqual([200, '{"affected":1}']);
  expect((await asked.ask("GET", "/_health")).status).toBe(200);
  const rows = (await asked.query("get jobs")).body;
  const { asked: next } = await onDisk(SimDisk.of(disk.files()));
  expect((await next.query("get jobs")).body).toBe(rows);
});

test("a sync that failed: 500 for its write and every later one, reads go on, health says why, until a restart", async () => {
  const disk = new SimDisk();
  const { asked } = await onDisk(disk);
  await asked.query(CREATE);
  await asked.query('put jobs {payload: "confirmed"}');
  disk.failsSync = /^redo/;
  expect(told(await asked.query('put jobs {payload: "lost"}'))).toEqual([500, "disk_failed"]);
  disk.failsSync = null;
  expect(told(await asked.query("del jobs"))).toEqual([500, "disk_failed"]);
  expect(told(await asked.query('get jobs select id where payload = "confirmed"'))).toEqual([200, '[{"id":1}]']);
  const health = await asked.ask("GET", "/_health");
  expect(health.status).toBe(503);
  expect(health.body).toContain("a sync failed");
  expect((await asked.ask("GET", "/_metrics")).body).toContain("\nfenec_storage_failed 1\n");
  const { asked: next } = await onDisk(SimDisk.of(disk.files()));
  expect((await next.query('get jobs where payload = "confirmed" count')).body).toBe('[{"count":1}]');
  expect((await next.query('put jobs {payload: "again"}')).status).toBe(200);
});

test("memory past --max-memory: 507 for what makes rows larger or more, reads and deletes go on, and then puts do", async () => {
  const asked = new Asked({ engine: null });
  serve(asked, Database.inMemory({ ...options(asked), maxMemoryBytes: 100_000 }));
  await asked.query(CREATE);
  const text = "x".repeat(700);
  let put = await asked.query("put jobs {payload: $1, run_at: now()}", [text]);
  while (put.status === 200) put = await asked.query("put jobs {payload: $1, run_at: now()}", [text]);
  expect(told(put)).toEqual([507, "memory_full"]);
  expect(told(await asked.query(CLAIM, ["w"]))).toEqual([507, "memory_full"]);
  expect(told(await asked.query("get jobs where id = 1 count"))).toEqual([200, '[{"count":1}]']);
  const held = asked.query("del jobs where owner is null and run_at > now() limit 1 returning id", [], HOLD);
  await untilHeld(asked, 1);
  expect((await asked.ask("GET", "/_health")).status).toBe(200);
  expect(told(await asked.query("del jobs where id <= 10"))).toEqual([200, '{"affected":10}']);
  expect(told(await asked.query("put jobs {payload: $1, run_at: now() + 1000}", [text]))[0]).toBe(200);
  expect(told(await held)[0]).toBe(200);
});
