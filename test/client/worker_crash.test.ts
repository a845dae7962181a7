/**
 * Workers over a server that is killed under them again and again, one of them replaced each time. Whatever was answered
 * stands: no job is lost, none is acked twice, follow-ups come once, and each claim that was told ends in one way.
 * `FENEC_KILLS` sets how often.
 */

import { expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { connect, enqueueMany, type Fetch, type Json, type Worker, worker } from "../../src/client/index.ts";
import { PATIENCE_MS, Scratch, Server } from "../harness/server.ts";

const KILLS = Number(process.env["FENEC_KILLS"] ?? 3);
const JOBS_BETWEEN = 60;
setDefaultTimeout(PATIENCE_MS * Math.max(1, KILLS / 3));

interface Schema {
  jobs: { payload: Json<{ n: number }, true>; run_at: "timestamp"; owner: "text"; attempts: "int"; error: "text" };
  after: { payload: Json<{ of: number }, true>; run_at: "timestamp"; owner: "text"; attempts: "int" };
}

test("no job is lost, and none is acked twice", async () => {
  using scratch = new Scratch();
  const start = () => Server.start({ flags: ["--data", join(scratch.path, "data")] });
  let server = await start();
  // The port is another one after a restart; the workers know their server by a name.
  const toServer: Fetch = (url, init) => fetch(url.replace("http://queue", server.url), init);
  const db = connect<Schema>("http://queue", { fetch: toServer });
  await db.run("create collection jobs (payload json, run_at timestamp @sorted, owner text, attempts int, error text)");
  await db.run("create collection after (payload json, run_at timestamp @sorted, owner text, attempts int)");

  const done = new Map<number, number>();
  const claims = new Map<string, string[]>();
  let doneOnce: () => void = () => undefined;
  const begin = (name: string): Worker<Schema["jobs"]> => {
    const one = worker(
      db.from("jobs"),
      ({ payload: { n } }, { attempt, enqueue }) => {
        if (n % 7 === 0 && attempt === 1) throw new Error("no");
        if (n % 3 === 0) enqueue(db.from("after"), { of: n });
      },
      { name, concurrency: 3, prefetch: 2, leaseMs: 1_000, attempts: 100, backoff: () => 50 },
    );
    one.on("error", () => undefined);
    one.on("claimed", (jobs) => {
      for (const { id, owner } of jobs) claims.set(`${id} by ${owner}`, []);
    });
    for (const event of ["done", "failed", "dead", "lost", "released"] as const) {
      one.on(event, ({ id, owner }: { readonly id: number; readonly owner: string | null }) => {
        claims.get(`${id} by ${owner}`)?.push(event);
      });
    }
    one.on("done", ({ payload: { n } }) => {
      done.set(n, (done.get(n) ?? 0) + 1);
      doneOnce();
    });
    return one;
  };

  const workers = [begin("a"), begin("b")];
  try {
    for (let kill = 0; kill <= KILLS; kill++) {
      const enough = done.size + JOBS_BETWEEN / 2;
      const all = (kill + 1) * JOBS_BETWEEN;
      const numbers = Array.from({ length: JOBS_BETWEEN }, (_, index) => kill * JOBS_BETWEEN + index);
      const reached = (count: number) =>
        new Promise<void>((resolve) => {
          doneOnce = () => done.size >= count && resolve();
        });
      const some = reached(kill === KILLS ? all : enough);
      await enqueueMany(
        db.from("jobs"),
        numbers.map((n) => ({ payload: { n } })),
      );
      await some;
      if (kill === KILLS) break;
      await server.kill();
      const replaced = workers.shift()?.stop();
      workers.push(begin("c"));
      server = await start();
      await replaced;
    }
    expect(await db.from("jobs").count()).toBe(0);
    await Promise.all(workers.map((one) => one.stop()));

    const numbers = Array.from({ length: (KILLS + 1) * JOBS_BETWEEN }, (_, n) => n);
    expect(numbers.filter((n) => done.get(n) !== 1)).toEqual([]);
    expect([...claims].filter(([, ends]) => ends.length !== 1)).toEqual([]);
    const after = (await db.from("after").rows()).map(({ payload }) => payload.of);
    expect(after.toSorted((a, b) => a - b)).toEqual(numbers.filter((n) => n % 3 === 0));
  } finally {
    await Promise.all(workers.map((one) => one.stop({ graceMs: 0 })));
    await server.kill();
  }
});
