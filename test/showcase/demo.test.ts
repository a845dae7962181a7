/** The demo's two parts, smaller: real payloads and real places through a child server. */

import { afterAll, beforeAll, expect, test } from "bun:test";
import { runCouriers } from "../../scripts/showcase/couriers.ts";
import { type DemoServer, startServer } from "../../scripts/showcase/server.ts";
import { runWebhooks } from "../../scripts/showcase/webhooks.ts";

let server: DemoServer;
beforeAll(async () => {
  server = await startServer();
}, 60_000);
afterAll(() => server.stop(), 60_000);

test("every delivery is done exactly once or a dead letter, its payload byte for byte", async () => {
  const jobs = 700;
  const report = await runWebhooks(server, jobs, 7, () => {});
  expect(report.doneTwice).toBe(0);
  expect(report.lost).toBe(0);
  expect(report.changedPayloads).toBe(0);
  expect(report.done + report.dead).toBe(jobs);
  // Jobs that fail whenever they run end as dead letters, and some were died on and came back.
  expect(report.dead).toBeGreaterThanOrEqual(Math.floor(jobs / 97));
  expect(report.died).toBeGreaterThan(0);
  expect(report.failed).toBeGreaterThan(0);
}, 180_000);

test("couriers claim the nearest of the places that are left", async () => {
  const report = await runCouriers(server, 20_000, 60, 11, () => {});
  expect(report.places).toBe(20_000);
  expect(report.wrong).toBe(0);
}, 180_000);
