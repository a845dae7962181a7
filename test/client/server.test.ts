/** The client, its worker and its producers against a real server in a process of its own. */

import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  connect,
  enqueue,
  enqueueMany,
  expr,
  type Fetch,
  inc,
  type Json,
  raw,
  type Worker,
  worker,
} from "fenec/client";
import { PATIENCE_MS, Server } from "../harness/server.ts";
import { loop } from "./loop.ts";
import { ManualClock } from "./manual_clock.ts";

setDefaultTimeout(PATIENCE_MS);

interface Schema {
  jobs: {
    payload: Json<{ to?: string; n?: number | bigint }>;
    run_at: "timestamp";
    owner: "text";
    attempts: "int";
    error: "text";
    key: "text";
  };
  rides: { pickup: "geo"; run_at: "timestamp"; owner: "text"; attempts: "int" };
}

const JOBS =
  "create collection jobs (payload json, run_at timestamp @sorted, owner text, attempts int, error text, key text @unique)";
const RIDES = "create collection rides (pickup geo @geo, run_at timestamp @sorted, owner text, attempts int)";

const working: Worker<never>[] = [];
function started<F>(one: Worker<F>): Worker<F> {
  working.push(one as unknown as Worker<never>);
  return one;
}

/** Resolves once a worker has told so many of an event. */
function told<F>(one: Worker<F>, event: "done" | "failed" | "dead" | "claimed" | "lost", count = 1): Promise<void> {
  return new Promise((resolve) => {
    let left = count;
    one.on(event, () => {
      left--;
      if (left === 0) resolve();
    });
  });
}

async function stopAll(): Promise<void> {
  await Promise.all(working.splice(0).map((one) => one.stop({ graceMs: 0 })));
}
afterEach(stopAll);

describe("a server on a clock that runs", () => {
  let server: Server;
  beforeAll(async () => {
    server = await Server.start({ flags: ["--in-memory"] });
  });
  afterAll(async () => {
    await server.stop();
  });

  async function fresh() {
    const db = connect<Schema>(server.url);
    await db.run("drop collection if exists jobs");
    await db.run("drop collection if exists rides");
    await db.run(JOBS);
    await db.run(RIDES);
    return db;
  }

  test("the loop by hand sends every mail, the failed one again", async () => {
    const db = await fresh();
    const sent: unknown[] = [];
    const stop = new AbortController();
    let fail = true;
    const all = new Promise<void>((resolve) => {
      void loop(
        server.url,
        async (to) => {
          if (to === "bo" && fail) {
            fail = false;
            throw new Error("not now");
          }
          sent.push(to);
          if (sent.length === 5) resolve();
        },
        stop.signal,
      );
    });
    await enqueueMany(
      db.from("jobs"),
      ["ada", "bo", "cy"].map((to) => ({ payload: { to } })),
    );
    await enqueue(db.from("jobs"), { to: "di" }, { delayMs: 30 });
    await enqueue(db.from("jobs"), { to: "ed" });
    await all;
    expect([...sent].sort()).toEqual(["ada", "bo", "cy", "di", "ed"]);
    // The last ack may still be on its way.
    while ((await db.from("jobs").count()) > 0);
    stop.abort();
  });

  test("workers share a queue, and no job is run twice", async () => {
    const db = await fresh();
    const runs = new Map<number, number>();
    const finished: Promise<void>[] = [];
    let left = 500;
    const all = Promise.withResolvers<void>();
    for (let n = 0; n < 4; n++) {
      const one = started(
        worker(
          db.from("jobs"),
          (job) => {
            runs.set(job.id, (runs.get(job.id) ?? 0) + 1);
          },
          { concurrency: 7, batch: 5 },
        ),
      );
      one.on("done", () => {
        left--;
        if (left === 0) all.resolve();
      });
    }
    finished.push(
      enqueueMany(
        db.from("jobs"),
        Array.from({ length: 500 }, (_, n) => ({ payload: { n } })),
      ).then(() => undefined),
    );
    await all.promise;
    await Promise.all(finished);
    expect(runs.size).toBe(500);
    expect([...runs.values()].every((count) => count === 1)).toBe(true);
    expect(await db.from("jobs").count()).toBe(0);
  });

  test("failures rest, come back, and end as dead letters with their words", async () => {
    const db = await fresh();
    const one = started(
      worker(
        db.from("jobs"),
        () => {
          throw new Error('smtp: "timeout" \ud800');
        },
        { attempts: 3, backoff: () => 5 },
      ),
    );
    const dead = told(one, "dead");
    await enqueue(db.from("jobs"), { to: "ada" });
    await dead;
    expect(await db.from("jobs").where("run_at", null).rows()).toEqual([
      {
        id: 1,
        payload: { to: "ada" },
        run_at: null,
        owner: null,
        attempts: 3,
        error: 'smtp: "timeout" \ud800',
        key: null,
      },
    ]);
  });

  test("a claim whose answer is lost is answered the same jobs again", async () => {
    const db = await fresh();
    await enqueueMany(db.from("jobs"), [{ payload: { n: 1 } }, { payload: { n: 2 } }, { payload: { n: 3 } }]);
    let losses = 2;
    const fetchAndLose: Fetch = async (url, init) => {
      const response = await fetch(url, init);
      await response.clone().text();
      if (losses > 0) {
        losses--;
        throw new TypeError("connection reset");
      }
      return response;
    };
    const seen: (readonly [number, number])[] = [];
    const one = started(
      worker(
        connect<Schema>(server.url, { fetch: fetchAndLose }).from("jobs"),
        (job, { attempt }) => {
          seen.push([job.id, attempt]);
        },
        { concurrency: 2 },
      ),
    );
    one.on("error", () => undefined);
    await told(one, "done", 3);
    expect(seen).toEqual([
      [1, 1],
      [2, 1],
      [3, 1],
    ]);
  });

  test("an ack's follow-ups land with it, and not at all when it is refused", async () => {
    const db = await fresh();
    const jobs = db.from("jobs");
    const one = started(
      worker(jobs.where("payload.n", { lt: 3 }), async (job, context) => {
        const n = Number(job.payload?.n);
        if (n === 2) await jobs.where("id", job.id).update({ owner: "somebody else" });
        context.enqueue(jobs, { n: n + 10 });
      }),
    );
    const lost = told(one, "lost");
    const done = told(one, "done");
    await enqueueMany(jobs, [{ payload: { n: 1 } }, { payload: { n: 2 } }]);
    await Promise.all([lost, done]);
    const left = await jobs.select("payload.n", "owner").order("id").rows();
    expect(left).toEqual([
      { "payload.n": 2, owner: "somebody else" },
      { "payload.n": 11, owner: null },
    ]);
  });

  test("a worker that stops gives everything back, a held claim's catch too", async () => {
    const db = await fresh();
    const jobs = db.from("jobs");
    for (let round = 0; round < 20; round++) {
      const never = new Promise<void>(() => undefined);
      const one = worker(jobs, () => never, { concurrency: 1, prefetch: 2 });
      await enqueueMany(jobs, [{ payload: { n: 1 } }, { payload: { n: 2 } }]);
      const [stopped] = await Promise.all([one.stop({ graceMs: 0 }), enqueue(jobs, { n: 3 })]);
      expect(stopped).toBeUndefined();
    }
    const left = await jobs.rows();
    expect(left.length).toBe(60);
    expect(left.filter(({ owner, attempts }) => owner !== null || attempts !== 0)).toEqual([]);
  });

  test("unique jobs are passed over while a row holds their value", async () => {
    const db = await fresh();
    const jobs = db.from("jobs");
    expect(await enqueue(jobs, { to: "ada" }, { unique: { key: "a" } })).toBe(true);
    expect(await enqueue(jobs, { to: "ada" }, { unique: { key: "a" } })).toBe(false);
    expect(
      await enqueueMany(
        jobs,
        ["a", "b", "b"].map((key) => ({ payload: {}, unique: { key } })),
      ),
    ).toBe(1);
    expect(await jobs.count()).toBe(2);
  });

  test("ints past 2^53 come through a queue digit for digit", async () => {
    const db = await fresh();
    await enqueue(db.from("jobs"), { n: 3889108265204450030n });
    const one = started(worker(db.from("jobs"), (job) => expect(job.payload).toEqual({ n: 3889108265204450030n })));
    const [end] = await Promise.race([
      told(one, "done").then(() => ["done"]),
      told(one, "failed").then(() => ["failed"]),
    ]);
    expect(end).toBe("done");
  });

  test("a claim ordered by a distance takes the nearest, and a chain may move from claim to claim", async () => {
    const db = await fresh();
    const rides = db.from("rides");
    const pickups = [
      [29.01, 41.04],
      [29.03, 41.05],
      [28.9, 41.0],
    ] as const;
    await rides.insert(pickups.map((pickup) => ({ pickup, run_at: expr("now()"), attempts: 0 })));
    let here: readonly [number, number] = [29.029, 41.049];
    const order: number[] = [];
    const one = started(
      worker(
        () => rides.order(raw("distance(pickup, ?)", here)),
        (ride) => {
          order.push(ride.id);
          if (order.length === 1) here = [28.91, 41.0];
        },
        { concurrency: 1 },
      ),
    );
    await told(one, "done", 3);
    expect(order).toEqual([2, 3, 1]);
  });

  test("chains run: reads, writes, counts, groups, plans, batches", async () => {
    const db = await fresh();
    const jobs = db.from("jobs");
    await jobs.insert([
      { payload: { to: "ada" }, run_at: new Date(0), attempts: 0, key: "x" },
      { payload: { to: "bo" }, run_at: 5, attempts: 2 },
    ]);
    expect(await jobs.where("payload.to", "in", ["ada", "bo"]).count()).toBe(2);
    expect(
      await jobs
        .where({ attempts: { gte: 1 } })
        .select("payload.to")
        .rows(),
    ).toEqual([{ "payload.to": "bo" }]);
    expect(await jobs.upsert({ key: "x", attempts: 1 }, { attempts: inc(4) })).toBe(1);
    expect(await jobs.where("key", "x").first()).toMatchObject({ id: 1, attempts: 4, payload: { to: "ada" } });
    expect(await jobs.select("attempts", "count(*)").group("attempts").order("attempts", "desc").rows()).toEqual([
      { attempts: 4, count: 1 },
      { attempts: 2, count: 1 },
    ] as never);
    expect((await jobs.where("id", 1).explain()).length).toBeGreaterThan(0);
    const { results } = await db.batch([jobs.where("id", 1).toDelete({ require: 1 }), jobs]);
    expect(results).toMatchObject([{ affected: 1 }, { rows: [{ id: 2 }] }]);
    await expect(jobs.where("id", 1).delete({ require: 1 })).rejects.toMatchObject({ status: 412, code: "unmet" });
    await expect(db.run("get jobs where")).rejects.toMatchObject({ status: 400, code: "syntax" });
    await expect(db.batch([jobs, "get nowhere"])).rejects.toMatchObject({ status: 404, at: 1 });
    expect(db.seq).toBeGreaterThan(0);
  });
});

describe("a server on a test clock", () => {
  test("a worker that went silent loses its job to another, and its late ack changes nothing", async () => {
    const server = await Server.start({ flags: ["--in-memory", "--test-clock"] });
    const db = connect<Schema>(server.url);
    const advance = (ms: number) =>
      fetch(`${server.url}/_clock`, { method: "POST", body: JSON.stringify({ advance_ms: ms }) });
    try {
      await db.run(JOBS);
      await enqueue(db.from("jobs"), { to: "ada" });
      // The first worker's own clock stands still: it never extends, and believes its lease for ever.
      const stuck = Promise.withResolvers<void>();
      const silent = started(
        worker(db.from("jobs"), () => stuck.promise, { clock: new ManualClock(), concurrency: 1 }),
      );
      await told(silent, "claimed");

      let attempt = 0;
      const second = started(
        worker(db.from("jobs"), (_job, context) => {
          attempt = context.attempt;
          return new Promise<void>(() => undefined);
        }),
      );
      await advance(29_999);
      expect(attempt).toBe(0);
      const claimed = told(second, "claimed");
      await advance(1);
      await claimed;
      expect(attempt).toBe(2);

      const lost = told(silent, "lost");
      stuck.resolve();
      await lost;
      expect(await db.from("jobs").first()).toMatchObject({ owner: `${second.name}:1`, attempts: 2 });
    } finally {
      await stopAll();
      await server.kill();
    }
  });
});

describe("a server that goes and comes back", () => {
  for (const signal of ["killed", "stopped"] as const) {
    test(`${signal}: the worker goes on by itself, and no job is left behind`, async () => {
      const directory = mkdtempSync(join(tmpdir(), "fenec-client-"));
      const start = () => Server.start({ flags: ["--data", directory] });
      let server = await start();
      // The port is another one after a restart; the worker knows its server by a name.
      const toServer: Fetch = (url, init) => fetch(url.replace("http://queue", server.url), init);
      const db = connect<Schema>("http://queue", { fetch: toServer });
      try {
        await db.run(JOBS);
        await enqueueMany(
          db.from("jobs"),
          Array.from({ length: 60 }, (_, n) => ({ payload: { n } })),
        );
        const ran = new Set<number>();
        const again = async () => {
          await (signal === "killed" ? server.kill() : server.stop());
          server = await start();
        };
        const restarted = Promise.withResolvers<void>();
        const one = started(
          worker(
            db.from("jobs"),
            (job) => {
              ran.add(job.id);
              if (ran.size === 20) restarted.resolve(again());
            },
            { concurrency: 4, leaseMs: 500 },
          ),
        );
        one.on("error", () => undefined);
        const ended = new Set<number>();
        const all = (count: number) =>
          new Promise<void>((resolve) => {
            one.on("done", (job) => void (ended.add(job.id).size === count && resolve()));
          });
        const most = all(60);
        await restarted.promise;
        await most;
        // Its claim is held at the second server by now.
        const last = all(61);
        await enqueue(db.from("jobs"), { n: 99 });
        await last;
        expect(ran.size).toBe(61);
        expect(await db.from("jobs").count()).toBe(0);
      } finally {
        await stopAll();
        await server.kill();
        rmSync(directory, { recursive: true, force: true });
      }
    });
  }
});
