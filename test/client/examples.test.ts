/** The examples of the documentation, each run as somebody would who copied it. */

import { afterAll, afterEach, beforeAll, describe, expect, jest, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { Glob } from "bun";
import { connect, type Worker } from "fenec/client";
import * as counters from "../../docs/examples/counter.ts";
import * as couriers from "../../docs/examples/courier.ts";
import * as boards from "../../docs/examples/leaderboard.ts";
import * as locks from "../../docs/examples/lock.ts";
import * as mails from "../../docs/examples/mail.ts";
import * as limits from "../../docs/examples/rate_limit.ts";
import * as schedules from "../../docs/examples/schedule.ts";
import * as webhooks from "../../docs/examples/webhooks.ts";
import { PATIENCE_MS, PROJECT, Server } from "../harness/server.ts";
import { settled } from "./manual_clock.ts";

setDefaultTimeout(PATIENCE_MS);

const working: Worker<never>[] = [];
function started<F>(one: Worker<F>): Worker<F> {
  working.push(one as unknown as Worker<never>);
  return one;
}
afterEach(async () => {
  await Promise.all(working.splice(0).map((one) => one.stop({ graceMs: 0 })));
});

function told<F>(one: Worker<F>, event: "done" | "failed" | "dead", count = 1): Promise<void> {
  return new Promise((resolve) => {
    let left = count;
    one.on(event, () => {
      left--;
      if (left === 0) resolve();
    });
  });
}

let server: Server;
beforeAll(async () => {
  server = await Server.start({ flags: ["--in-memory", "--test-clock"] });
});
afterAll(async () => {
  await server.stop();
});

async function fresh(collection: string): Promise<void> {
  const db = connect(server.url);
  await db.run(`drop collection if exists ${/exists\s+(\w+)/.exec(collection)?.[1]}`);
  await db.run(collection);
  await db.run(collection);
}

async function advance(ms: number): Promise<void> {
  const answer = await fetch(`${server.url}/_clock`, { method: "POST", body: JSON.stringify({ advance_ms: ms }) });
  expect(answer.status).toBe(200);
}

/** Moves on to the next time of day that reads so; gives that day and the one after it. */
async function nextTime(hours: number, minutes: number): Promise<readonly [string, string]> {
  const { now } = (await (await fetch(`${server.url}/_clock`)).json()) as { readonly now: number };
  const day = 86_400_000;
  const ofDay = (hours * 60 + minutes) * 60_000;
  const at = now - (now % day) + ofDay + (now % day > ofDay ? day : 0);
  await advance(at - now);
  return [new Date(at).toISOString().slice(0, 10), new Date(at + day).toISOString().slice(0, 10)];
}

test("every example has a test here", () => {
  const names = [...new Glob("*.ts").scanSync({ cwd: join(PROJECT, "docs", "examples") })].sort();
  expect(names).toEqual([
    "counter.ts",
    "courier.ts",
    "leaderboard.ts",
    "lock.ts",
    "mail.ts",
    "rate_limit.ts",
    "schedule.ts",
    "webhooks.ts",
  ]);
});

test("mail: what was not sent is tried again, and what has no address is not", async () => {
  await fresh(mails.COLLECTION);
  const db = connect<mails.Schema>(server.url);
  const sent: string[] = [];
  let failures = 1;
  const sender = started(
    mails.sendMails(db, async ({ to }) => {
      if (to.startsWith("bo") && failures-- > 0) throw new Error("smtp timeout");
      sent.push(to);
    }),
  );
  const failed = told(sender, "failed");
  const dead = told(sender, "dead");
  const all = told(sender, "done", 3);
  for (const to of ["ada@example.com", "bo@example.com", "nowhere"])
    await mails.post(db, { to, subject: "s", body: "b" });
  await mails.post(db, { to: "late@example.com", subject: "s", body: "b" }, 5_000);
  await Promise.all([failed, dead]);
  expect(sent).not.toContain("late@example.com");
  await advance(5_000);
  await all;
  expect(sent.sort()).toEqual(["ada@example.com", "bo@example.com", "late@example.com"]);
  expect(await db.from("mails").rows()).toMatchObject([{ run_at: null, error: "nowhere is no address" }]);
});

describe("webhooks", () => {
  const answers: (() => Response)[] = [];
  const got: { id: string | null; event: unknown }[] = [];
  let receiver: ReturnType<typeof Bun.serve>;
  beforeAll(() => {
    receiver = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: async (request) => {
        got.push({ id: request.headers.get("Webhook-Id"), event: await request.json() });
        return answers.shift()?.() ?? new Response("ok");
      },
    });
  });
  afterAll(() => receiver.stop(true));

  test("a receiver that asks for a pause gets it, and one that is gone is left alone", async () => {
    await fresh(webhooks.COLLECTION);
    const db = connect<webhooks.Schema>(server.url);
    const deliverer = started(webhooks.deliver(db));
    const rests: number[] = [];
    deliverer.on("failed", (_job, _error, restMs) => rests.push(restMs));
    answers.push(() => new Response("slow down", { status: 429, headers: { "Retry-After": "7" } }));
    const failed = told(deliverer, "failed");
    await webhooks.notify(db, receiver.url.href, { paid: 1 });
    await failed;
    expect(rests).toEqual([7_000]);
    const done = told(deliverer, "done");
    await advance(7_000);
    await done;
    expect(got).toEqual([
      { id: "1", event: { paid: 1 } },
      { id: "1", event: { paid: 1 } },
    ]);

    answers.push(() => new Response("gone", { status: 410 }));
    const dead = told(deliverer, "dead");
    await webhooks.notify(db, receiver.url.href, { paid: 2 });
    await dead;
    const [left] = await webhooks.undelivered(db);
    expect(left).toMatchObject({ id: 2, error: `${receiver.url.href} answered 410` });
    const again = told(deliverer, "done");
    expect(await webhooks.resend(db, 2)).toBe(1);
    await again;
    expect(got.length).toBe(4);
  });
});

test("courier: a new order goes to the nearest who waits, and not again to who declined it", async () => {
  await fresh(couriers.COLLECTION);
  const db = connect<couriers.Schema>(server.url);
  const taken: string[] = [];
  let offered = Promise.withResolvers<void>();
  const hire = (name: string, place: couriers.Place, declines: boolean) =>
    started(
      couriers.courier(
        db,
        name,
        () => place,
        async (order) => {
          taken.push(`${name} ${declines ? "declined" : "took"} ${order.dish}`);
          if (!declines) offered.resolve();
          return !declines;
        },
      ),
    );
  hire("far", [28.9, 41.0], false);
  hire("near", [29.03, 41.05], false);
  hire("picky", [29.029, 41.049], true);
  await held(3);
  await db.from("orders").insert({ dish: "soup", pickup: [29.029, 41.049], run_at: new Date(0), attempts: 0 });
  await offered.promise;
  expect(taken).toEqual(["picky declined soup", "near took soup"]);

  offered = Promise.withResolvers();
  await held(3);
  await db.from("orders").insert({ dish: "cake", pickup: [28.91, 41.0], run_at: new Date(0), attempts: 0 });
  await offered.promise;
  expect(taken.at(-1)).toBe("far took cake");
});

/** Resolves once so many claims are held at the server; bounded, so that a server that never gets there is told of. */
async function held(count: number): Promise<void> {
  let text = "";
  for (let look = 0; look < 2_000; look++) {
    text = await (await fetch(`${server.url}/_metrics`, { signal: AbortSignal.timeout(10_000) })).text();
    if (text.includes(`\nfenec_held_claims ${count}\n`)) return;
  }
  throw new Error(`not ${count} claims held: ${/^fenec_held_claims.*$/m.exec(text)?.[0]}`);
}

test("schedule: one row a task, moved on to the next time, missed times run once", async () => {
  await fresh(schedules.COLLECTION);
  const [today, tomorrow] = await nextTime(10, 7);
  const db = connect<schedules.Schema>(server.url);
  let fail = false;
  let runs = 0;
  const tasks = new Map<string, schedules.Task>([
    [
      "report",
      {
        next: schedules.NEXT.quarterHour,
        run: async () => {
          runs++;
          if (fail) throw new Error("no");
        },
      },
    ],
    ["tidy up", { next: schedules.NEXT.nightly, run: async () => undefined }],
  ]);
  await schedules.register(db, tasks);
  await schedules.register(db, tasks);
  const times = async () => (await db.from("schedules").order("name").rows()).map(({ run_at }) => run_at);
  expect(await times()).toEqual([`${today}T10:15:00Z`, `${tomorrow}T02:00:00Z`]);

  const runner = started(schedules.runSchedules(db, tasks));
  const first = told(runner, "done");
  await advance(8 * 60_000);
  await first;
  expect(await times()).toEqual([`${today}T10:30:00Z`, `${tomorrow}T02:00:00Z`]);
  const later = told(runner, "done");
  await advance(3 * 3_600_000);
  await later;
  expect(runs).toBe(2);
  expect(await times()).toEqual([`${today}T13:30:00Z`, `${tomorrow}T02:00:00Z`]);

  fail = true;
  for (const _ of [1, 2]) {
    const failed = told(runner, "failed");
    await advance(15 * 60_000);
    await failed;
  }
  const given = told(runner, "done");
  await advance(15 * 60_000);
  await given;
  expect(runs).toBe(5);
  expect((await times())[0]).toBe(`${today}T14:15:00Z`);
});

test("lock: one holder at a time, until it is released or runs out", async () => {
  await fresh(locks.COLLECTION);
  const db = connect<locks.Schema>(server.url);
  expect(await locks.acquire(db, "cron", "a")).toBe(true);
  expect(await locks.acquire(db, "cron", "b")).toBe(false);
  await advance(20_000);
  expect(await locks.renew(db, "cron", "a")).toBe(true);
  await advance(29_999);
  expect(await locks.acquire(db, "cron", "b")).toBe(false);
  await advance(1);
  expect(await locks.renew(db, "cron", "a")).toBe(false);
  expect(await locks.acquire(db, "cron", "b")).toBe(true);
  expect(await locks.release(db, "cron", "a")).toBe(false);
  expect(await locks.withLock(db, "cron", async () => undefined)).toBe(false);
  expect(await locks.release(db, "cron", "b")).toBe(true);
  let inside = false;
  const ran = await locks.withLock(db, "cron", async () => {
    inside = !(await locks.acquire(db, "cron", "c"));
  });
  expect([ran, inside, await locks.acquire(db, "cron", "c")]).toEqual([true, true, true]);
});

test("lock: a server that does not answer takes the lock away once its time is over", async () => {
  jest.useFakeTimers();
  try {
    let answers = true;
    const answer = () =>
      answers ? Promise.resolve(new Response('{"affected":1}')) : new Promise<never>(() => undefined);
    const db = connect<locks.Schema>("http://server.test", { fetch: answer });
    const working = Promise.withResolvers<AbortSignal>();
    const end = Promise.withResolvers<void>();
    const ran = locks.withLock(db, "cron", (signal) => {
      working.resolve(signal);
      return end.promise;
    });
    const signal = await working.promise;
    const tick = async (): Promise<void> => {
      jest.advanceTimersByTime(10_000);
      await settled();
    };
    for (let n = 0; n < 6; n++) await tick();
    expect(signal.aborted).toBe(false);
    answers = false;
    await tick();
    await tick();
    expect(signal.aborted).toBe(false);
    await tick();
    expect(signal.aborted).toBe(true);
    answers = true;
    end.resolve();
    expect(await ran).toBe(true);
  } finally {
    jest.useRealTimers();
  }
});

test("rate limit: so many a minute, however many ask at once", async () => {
  await fresh(limits.COLLECTION);
  const db = connect<limits.Schema>(server.url);
  const left = await Promise.all(Array.from({ length: 20 }, () => limits.take(db, "ada", 5)));
  expect(left.filter((n) => n !== null).sort()).toEqual([0, 1, 2, 3, 4]);
  expect(await limits.take(db, "bo", 5)).toBe(4);
  await advance(60_000);
  expect(await limits.take(db, "ada", 5)).toBe(4);
});

test("leaderboard: the best, and a rank that ties share", async () => {
  await fresh(boards.COLLECTION);
  const db = connect<boards.Schema>(server.url);
  for (const [player, points] of [
    ["ada", 100],
    ["bo", 90],
    ["cy", 70],
    ["ada", 20],
    ["cy", 20],
  ] as const) {
    await boards.score(db, player, points);
  }
  expect(await boards.best(db, 2)).toEqual([
    { player: "ada", score: 120 },
    { player: "bo", score: 90 },
  ]);
  expect(await Promise.all(["ada", "bo", "cy", "di"].map((player) => boards.rank(db, player)))).toEqual([
    1,
    2,
    2,
    null,
  ]);
});

test("counter: nothing is lost between counters, and no number is given twice", async () => {
  await fresh(counters.COLLECTION);
  const db = connect<counters.Schema>(server.url);
  await Promise.all(Array.from({ length: 50 }, () => counters.count(db, "clicks")));
  expect(await counters.read(db, "clicks")).toBe(50);
  expect(await counters.read(db, "never")).toBe(0);
  const firsts = await Promise.all(Array.from({ length: 10 }, () => counters.reserve(db, "invoices", 10)));
  expect(firsts.sort((a, b) => a - b)).toEqual(Array.from({ length: 10 }, (_, n) => n * 10 + 1));
});
