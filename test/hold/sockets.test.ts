/** Held claims over sockets: what a client sees when the server stops, dies, is full, or loses what the claim reads. */

import { expect, setDefaultTimeout, test } from "bun:test";
import { PATIENCE_MS, Scratch, Server } from "../harness/server.ts";
import type { Answer, Exchange } from "../harness/wire.ts";

setDefaultTimeout(PATIENCE_MS);

const CREATE = "create collection jobs (payload json, run_at timestamp @sorted, owner text, attempts int, error text)";
const CLAIM =
  "set jobs {owner: $1, run_at: now() + 30000, attempts: attempts + 1} where run_at <= now() order run_at limit 1 returning id, owner";
const PUT = "put jobs {payload: 1, run_at: now(), attempts: 0}";

async function serve(...flags: readonly string[]): Promise<Server> {
  const server = await Server.start({ flags: flags.length === 0 ? ["--in-memory"] : flags });
  await server.run(CREATE);
  return server;
}

function hold(server: Server, count: number, waitMs = 30_000): Exchange[] {
  return Array.from({ length: count }, (_, at) => server.hold(CLAIM, [`w:${at}`], waitMs));
}

async function untilHeld(server: Server, count: number): Promise<void> {
  const end = Date.now() + 20_000;
  while ((await server.metric("fenec_held_claims")) !== count) {
    if (Date.now() > end) throw new Error(`never ${count} claims held`);
  }
}

async function bodies(held: readonly Exchange[]): Promise<string[]> {
  return (await Promise.all(held.map(({ answer }) => answer))).map(({ status, body }) => `${status} ${body}`);
}

test("dropped under twenty that wait: 404 for each of them", async () => {
  const server = await serve();
  const held = hold(server, 20);
  await untilHeld(server, 20);
  await server.run("drop collection jobs");
  const answers = await Promise.all(held.map(({ answer }) => answer));
  expect(answers.map(({ status }) => status)).toEqual(held.map(() => 404));
  await server.kill();
});

test("told to stop, it answers fifty that wait, and ends", async () => {
  const server = await serve();
  const held = hold(server, 50);
  await untilHeld(server, 50);
  const [status, answers] = await Promise.all([server.stop(), bodies(held)]);
  expect([status, ...new Set(answers)]).toEqual([0, "200 []"]);
});

test("killed, it leaves nobody hanging, and its successor knows of no waiters and serves new ones", async () => {
  using scratch = new Scratch();
  const flags = ["--data", scratch.path, "--sync", "always"];
  const server = await serve(...flags);
  const held = hold(server, 50);
  await untilHeld(server, 50);
  await server.kill();
  const ends = await Promise.allSettled(held.map(({ answer }) => answer));
  expect(ends.every(({ status }) => status === "rejected")).toBe(true);

  const next = await Server.start({ flags });
  expect(await next.metric("fenec_held_claims")).toBe(0);
  const again = hold(next, 50);
  await untilHeld(next, 50);
  for (let put = 0; put < 50; put++) await next.run(PUT);
  const answers = await bodies(again);
  expect(new Set(answers).size).toBe(50);
  await next.kill();
});

test("full of held claims, it refuses the next with 503, and takes it once there is room", async () => {
  const server = await serve("--in-memory", "--max-connections", "5");
  const held = hold(server, 5);
  // The metrics are told however many are under way.
  await untilHeld(server, 5);
  const refused: Answer = await server.query("get jobs");
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "1"]);
  expect(held.some(({ answered }) => answered)).toBe(false);
  held[0]?.drop();
  await untilHeld(server, 4);
  await server.run(PUT);
  expect((await held[1]?.answer)?.body).toBe('[{"id":1,"owner":"w:1"}]');
  await server.kill();
});

test("claims held and given up, over and over, leave nothing behind", async () => {
  const server = await serve();
  for (let round = 0; round < 10; round++) {
    const held = hold(server, 50);
    await untilHeld(server, 50);
    for (const [at, each] of held.entries()) {
      if (at % 2 === 0) each.drop();
      else each.halfClose();
    }
    await untilHeld(server, 0);
  }
  await server.run(PUT);
  expect((await server.query(CLAIM, ["live"])).body).toBe('[{"id":1,"owner":"live"}]');
  expect(await server.metric("fenec_held_runs_total")).toBe(0);
  await server.kill();
});

test("how soon each was answered is counted", async () => {
  const server = await serve();
  const held = hold(server, 3);
  await untilHeld(server, 3);
  for (let put = 0; put < 3; put++) await server.run(PUT);
  await bodies(held);
  expect(await server.metric("fenec_held_wake_seconds_count")).toBe(3);
  expect(await server.metric("fenec_held_wake_seconds_bucket", '{le="+Inf"}')).toBe(3);
  expect(await server.metric("fenec_held_runs_total")).toBe(3);
  await server.kill();
});

test.skipIf(process.env["FENEC_LONG"] === undefined)(
  "thirty seconds are thirty seconds, and then an answer (waits them: with FENEC_LONG=1)",
  async () => {
    const server = await serve();
    const [held] = hold(server, 1, 60_000);
    expect((await held?.answer)?.body).toBe("[]");
    const tookMs = (held?.answeredAt ?? 0) - (held?.sentAt ?? 0);
    expect(tookMs).toBeGreaterThanOrEqual(30_000);
    expect(tookMs).toBeLessThan(31_000);
    await server.kill();
  },
);
