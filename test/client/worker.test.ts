import { describe, expect, test } from "bun:test";
import {
  connect,
  type JobContext,
  JobError,
  type Row,
  raw,
  type WorkerOptions,
  worker,
} from "../../src/client/index.ts";
import { FakeQueue } from "./fake_queue.ts";
import { ManualClock, settled } from "./manual_clock.ts";

interface Schema {
  jobs: { payload: "json"; run_at: "timestamp"; owner: "text"; attempts: "int"; error: "text" };
}
type Job = Row<Schema["jobs"]>;

/** A handler whose runs are ended by the test. */
class Bench {
  readonly started: { job: Job; context: JobContext; end: (error?: unknown) => void }[] = [];
  most = 0;
  #running = 0;

  readonly handler = (job: Job, context: JobContext): Promise<void> => {
    this.most = Math.max(this.most, ++this.#running);
    return new Promise((resolve, reject) => {
      const end = (error?: unknown): void => {
        this.#running--;
        if (error === undefined) resolve();
        else reject(error);
      };
      this.started.push({ job, context, end });
    });
  };

  at(index: number): Bench["started"][number] {
    const run = this.started[index];
    if (run === undefined) throw new Error(`run ${index} has not started`);
    return run;
  }
}

function setUp(options: WorkerOptions = {}, handler?: (job: Job, context: JobContext) => unknown) {
  const clock = new ManualClock();
  const queue = new FakeQueue(clock);
  const bench = new Bench();
  const db = connect<Schema>("http://queue.test", { fetch: queue.fetch });
  const jobs = db.from("jobs");
  const events: string[] = [];
  const start = () => {
    const works = worker(jobs, handler ?? bench.handler, { clock, leaseMs: 30_000, ...options });
    works.on("claimed", (taken) => events.push(`claimed ${taken.map(({ id }) => id).join(" ")}`));
    works.on("done", ({ id }) => events.push(`done ${id}`));
    works.on("failed", ({ id }, error, restMs) => events.push(`failed ${id} ${(error as Error)?.message} ${restMs}`));
    works.on("dead", ({ id }, error) => events.push(`dead ${id} ${(error as Error)?.message}`));
    works.on("lost", ({ id }) => events.push(`lost ${id}`));
    works.on("released", ({ id }) => events.push(`released ${id}`));
    works.on("error", (error) => events.push(`error ${(error as { code?: string }).code ?? String(error)}`));
    return works;
  };
  return { clock, queue, bench, jobs, db, events, start };
}

describe("claiming", () => {
  test("every job is run once and acked, and a put wakes the held claim", async () => {
    const { queue, events, start } = setUp({ concurrency: 2 }, () => undefined);
    queue.put("a");
    queue.put("b");
    queue.put("c");
    const works = start();
    await settled();
    expect(queue.rows).toEqual([]);
    expect(queue.held).toBe(1);
    queue.put("d");
    await settled();
    expect(queue.rows).toEqual([]);
    expect(events.filter((event) => event.startsWith("done"))).toEqual(["done 1", "done 2", "done 3", "done 4"]);
    await works.stop();
  });

  test("no more run than concurrency, and a claim asks for no more than there is room for", async () => {
    const { queue, bench, start } = setUp({ concurrency: 3 });
    for (let n = 0; n < 10; n++) queue.put(n);
    const works = start();
    await settled();
    expect(bench.started.length).toBe(3);
    bench.at(0).end();
    await settled();
    bench.at(1).end();
    bench.at(2).end();
    await settled();
    for (let n = 3; n < 10; n++) {
      bench.at(n).end();
      await settled();
    }
    expect(bench.most).toBe(3);
    expect(queue.rows).toEqual([]);
    for (const { statements } of queue.requests("returning")) {
      expect(Number(/limit (\d+)/.exec(statements[0]?.query ?? "")?.[1])).toBeLessThanOrEqual(3);
    }
    await works.stop();
  });

  test("each claim has a token of its own, beginning with the worker's name", async () => {
    const { queue, start } = setUp({ name: "mail", concurrency: 1 }, () => undefined);
    queue.put("a");
    queue.put("b");
    const works = start();
    await settled();
    const owners = queue.requests("returning").map(({ statements, key }) => {
      expect(key).toBe(statements[0]?.params[0] as string);
      return key;
    });
    expect(works.name).toMatch(/^mail-[0-9a-f]{12}$/);
    expect(owners).toEqual([`${works.name}:1`, `${works.name}:2`, `${works.name}:3`]);
    await works.stop();
  });

  test("a filter of the user's cannot reach what is leased", async () => {
    const { clock, queue, jobs } = setUp();
    const works = worker(jobs.where(raw("owner = ? or owner is null", "a")), () => undefined, { clock });
    works.on("error", () => undefined);
    await settled();
    expect(queue.sent[0]?.statements[0]?.query).toContain(
      " where (owner = $4 or owner is null) and run_at <= now() order ",
    );
    await works.stop();
  });

  test("a fixed owner is written as it is, and the keys stay one a claim", async () => {
    const { queue, start } = setUp({ owner: "sub-7", concurrency: 1 }, () => undefined);
    queue.put("a");
    const works = start();
    await settled();
    const claims = queue.requests("returning");
    expect(claims.map(({ statements }) => statements[0]?.params[0])).toEqual(["sub-7", "sub-7"]);
    expect(new Set(claims.map(({ key }) => key)).size).toBe(2);
    await works.stop();
  });

  test("a claim whose answer was lost is sent again under its key, and takes nothing twice", async () => {
    const { clock, queue, bench, start } = setUp({ concurrency: 2 });
    for (const payload of ["a", "b", "c"]) queue.put(payload);
    queue.faults.push("lose the answer");
    const works = start();
    await settled();
    expect(bench.started.length).toBe(0);
    await clock.advance(1_000);
    expect(bench.started.map(({ job }) => job.id)).toEqual([1, 2]);
    expect(queue.rows.map(({ attempts }) => attempts)).toEqual([1, 1, 0]);
    const [first, again] = queue.requests("returning");
    expect(again).toEqual(first as NonNullable<typeof first>);
    bench.at(0).end();
    bench.at(1).end();
    await settled();
    await works.stop({ graceMs: 0 });
  });

  test("the jobs of a claim answered too late for their lease are not run", async () => {
    const { clock, queue, bench, events, start } = setUp({ concurrency: 2, leaseMs: 1_000 });
    queue.put("a");
    queue.put("b");
    queue.faults.push("lose the answer");
    const works = start();
    await settled();
    // Another worker took one of them before this one got through.
    Object.assign(queue.rows[0] as object, { owner: "other" });
    await clock.advance(900);
    expect(bench.started.map(({ job }) => job.id)).toEqual([2]);
    expect(events).toEqual(["error unreachable", "claimed 2"]);
    await works.stop({ graceMs: 0 });
  });

  test("no job of such a claim is run before the server has confirmed its lease", async () => {
    const { clock, queue, bench, start } = setUp({ concurrency: 2, leaseMs: 1_000 });
    queue.put("a");
    queue.put("b");
    queue.faults.push("lose the answer", undefined, "swallow");
    const works = start();
    await clock.advance(900);
    expect(queue.sent.length).toBe(3);
    expect(bench.started.length).toBe(0);
    await clock.advance(11_000);
    // By then the leases were over, so that the jobs were claimed anew.
    expect(bench.started.map(({ context }) => context.attempt)).toEqual([2, 2]);
    await works.stop({ graceMs: 0 });
  });

  test("empty answers that come at once are no reason to spin", async () => {
    const { clock, queue, start } = setUp({ waitMs: 0 }, () => undefined);
    const works = start();
    await clock.advance(60_000);
    expect(queue.sent.length).toBeLessThan(80);
    expect(queue.sent.length).toBeGreaterThan(50);
    queue.put("late");
    await clock.advance(1_000);
    expect(queue.rows).toEqual([]);
    await works.stop();
  });

  test("an idle worker sends two claims a minute", async () => {
    const { clock, queue, start } = setUp({}, () => undefined);
    const works = start();
    await clock.advance(300_000);
    expect(queue.sent.length).toBe(11);
    await works.stop();
  });

  test("a server that is gone for a while is asked until it is back", async () => {
    const { clock, queue, events, start } = setUp({}, () => undefined);
    queue.down = true;
    const works = start();
    await clock.advance(60_000);
    expect(queue.sent.length).toBeGreaterThan(10);
    expect(queue.sent.length).toBeLessThan(40);
    expect(new Set(events)).toEqual(new Set(["error unreachable"]));
    queue.down = false;
    queue.put("a");
    await clock.advance(5_000);
    expect(queue.rows).toEqual([]);
    await works.stop();
  });

  test("a first claim that is refused ends the worker; a later one does not", async () => {
    const early = setUp();
    early.queue.faults.push({ status: 404, code: "unknown_collection" });
    await expect(early.start().done).rejects.toMatchObject({ code: "unknown_collection", status: 404 });

    const { clock, queue, events, start } = setUp({}, () => undefined);
    const works = start();
    await settled();
    queue.faults.push(undefined, { status: 401, code: "unauthorized" });
    await clock.advance(30_000);
    await clock.advance(30_000);
    queue.put("b");
    await clock.advance(5_000);
    expect(queue.rows).toEqual([]);
    expect(events).toContain("error unauthorized");
    await works.stop();
  });

  test("a claim a silent network swallowed is sent again", async () => {
    const { clock, queue, events, start } = setUp({ concurrency: 1 }, () => undefined);
    queue.put("a");
    queue.faults.push("swallow");
    const works = start();
    await clock.advance(39_999);
    expect(queue.sent.length).toBe(1);
    await clock.advance(200);
    expect(queue.rows).toEqual([]);
    expect(events).toEqual(["error unreachable", "claimed 1", "done 1"]);
    await works.stop();
  });
});

describe("leases", () => {
  test("a long job keeps its lease", async () => {
    const { clock, queue, bench, events, start } = setUp({ leaseMs: 3_000 });
    queue.put("long");
    const works = start();
    await settled();
    await clock.advance(60_000);
    expect(bench.at(0).context.signal.aborted).toBe(false);
    expect(queue.rows[0]).toMatchObject({ attempts: 1, owner: `${works.name}:1` });
    bench.at(0).end();
    await settled();
    expect(events).toEqual(["claimed 1", "done 1"]);
    await works.stop();
  });

  test("a job another worker took has its signal fired, and its end writes nothing", async () => {
    const { clock, queue, bench, events, start } = setUp({ leaseMs: 3_000 });
    queue.put("a");
    const works = start();
    await settled();
    Object.assign(queue.rows[0] as object, { owner: "other", attempts: 2 });
    await clock.advance(1_000);
    expect(bench.at(0).context.signal.aborted).toBe(true);
    expect(bench.at(0).context.signal.reason).toMatchObject({ code: "lease-lost" });
    bench.at(0).end(new Error("aborted"));
    await settled();
    expect(events).toEqual(["claimed 1", "lost 1"]);
    expect(queue.rows[0]).toMatchObject({ owner: "other", attempts: 2, error: null });
    await works.stop();
  });

  test("a lease no extension reached is lost when its time is over, not later", async () => {
    const { clock, queue, bench, events, start } = setUp({ leaseMs: 3_000, concurrency: 1 });
    queue.put("a");
    const works = start();
    await settled();
    queue.down = true;
    await clock.advance(2_999);
    expect(bench.at(0).context.signal.aborted).toBe(false);
    await clock.advance(1);
    expect(bench.at(0).context.signal.aborted).toBe(true);
    expect(events).toContain("lost 1");
    await works.stop({ graceMs: 0 });
  });

  test("an ack of a lapsed lease counts as lost, although nobody else has the job", async () => {
    const { queue, bench, events, start } = setUp({ concurrency: 1 });
    const row = queue.put("a");
    const works = start();
    await settled();
    row.run_at = 0;
    bench.at(0).end();
    await settled();
    expect(events).toEqual(["claimed 1", "claimed 1", "lost 1"]);
    expect(queue.rows).toMatchObject([{ attempts: 2 }]);
    await works.stop({ graceMs: 0 });
  });
});

describe("outcomes", () => {
  test("a failure rests longer each time and is dead after the last attempt", async () => {
    const { clock, queue, events, start } = setUp(
      { attempts: 3, concurrency: 1, backoff: (attempt) => attempt * 1_000 },
      (job) => {
        throw new Error(`no ${job.payload}`);
      },
    );
    queue.put("mail");
    const works = start();
    await settled();
    expect(queue.rows[0]).toMatchObject({ run_at: 1_000, owner: null, error: "no mail", attempts: 1 });
    await clock.advance(999);
    expect(events.length).toBe(2);
    await clock.advance(5_000);
    expect(events).toEqual([
      "claimed 1",
      "failed 1 no mail 1000",
      "claimed 1",
      "failed 1 no mail 2000",
      "claimed 1",
      "dead 1 no mail",
    ]);
    expect(queue.rows[0]).toMatchObject({ run_at: null, owner: null, error: "no mail", attempts: 3 });
    await works.stop();
  });

  test("a handler may say how long the job rests, or that it is dead", async () => {
    const { queue, events, start } = setUp({ concurrency: 1 }, (job) => {
      throw job.id === 1 ? new JobError("busy", { restMs: 7_000 }) : new JobError("gone", { dead: true });
    });
    queue.put("a");
    queue.put("b");
    const works = start();
    await settled();
    expect(events.filter((event) => !event.startsWith("claimed"))).toEqual(["failed 1 busy 7000", "dead 2 gone"]);
    expect(queue.rows.map(({ run_at }) => run_at)).toEqual([7_000, null]);
    await works.stop();
  });

  test("a job that ended its last attempts without a word is buried, not run", async () => {
    const { queue, bench, events, start } = setUp({ attempts: 2 });
    queue.put("killer", { attempts: 2 });
    const works = start();
    await settled();
    expect(bench.started.length).toBe(0);
    expect(events[1]).toStartWith("dead 1 gave up after 2 attempts");
    expect(queue.rows[0]).toMatchObject({ run_at: null, owner: null, attempts: 3 });
    await works.stop();
  });

  test("a handler that throws no Error, or nothing sensible at all, is a failure as well", async () => {
    const odd = Object.defineProperty(new Error("a"), "message", { value: { code: 7 } });
    const thrown = [undefined, null, "text", 7, Object.create(null), new Error(""), odd];
    const { queue, events, start } = setUp({ concurrency: 1, backoff: () => 60_000 }, (job) => {
      throw thrown[job.id - 1];
    });
    for (const _ of thrown) queue.put("x");
    const works = start();
    await settled();
    expect(events.filter((event) => event.startsWith("failed")).length).toBe(thrown.length);
    expect(queue.rows.map(({ error }) => error)).toEqual([
      "undefined",
      "null",
      "text",
      "7",
      "an error without words",
      "Error",
      "[object Object]",
    ]);
    await works.stop();
  });

  test("a rest that is no time is told, and the job rests by the default backoff", async () => {
    const rests = [Number.NaN, Number.POSITIVE_INFINITY, 1e300];
    const { queue, events, start } = setUp(
      { concurrency: 1, backoff: (attempt) => Promise.resolve(attempt) as unknown as number },
      (job) => {
        throw job.id > rests.length
          ? new Error("async")
          : new JobError("busy", { restMs: rests[job.id - 1] as number });
      },
    );
    for (let n = 0; n <= rests.length; n++) queue.put(n);
    const works = start();
    await settled();
    expect(events.filter((event) => event === "error bad-time").length).toBe(4);
    expect(queue.rows.map(({ owner }) => owner)).toEqual([null, null, null, null]);
    for (const { run_at } of queue.rows) expect(run_at).toBeWithin(1_000, 1_501);
    await works.stop();
  });

  test("a job whose outcome the server refused is told as lost", async () => {
    const { queue, bench, events, start } = setUp({ concurrency: 1 });
    queue.put("a");
    const works = start();
    await settled();
    queue.faults.push(undefined, { status: 403, code: "forbidden" });
    bench.at(0).end(new Error("no"));
    await settled();
    expect(events).toEqual(["claimed 1", "error forbidden", "lost 1"]);
    await works.stop();
  });

  test("acks that come together share a request", async () => {
    const { queue, bench, start } = setUp({ concurrency: 10 });
    for (let n = 0; n < 10; n++) queue.put(n);
    const works = start();
    await settled();
    for (const { end } of bench.started) end();
    await settled();
    expect(queue.requests("del jobs").map(({ statements }) => statements.length)).toEqual([10]);
    expect(queue.rows).toEqual([]);
    await works.stop();
  });

  test("an ack whose answer was lost is asked for again, and counts as done", async () => {
    const { clock, queue, bench, events, start } = setUp({ concurrency: 1 });
    queue.put("a");
    const works = start();
    await settled();
    // The next claim is sent first, then the ack.
    queue.faults.push(undefined, "lose the answer");
    bench.at(0).end();
    await settled();
    expect(queue.rows).toEqual([]);
    await clock.advance(1_000);
    expect(events).toEqual(["claimed 1", "error unreachable", "done 1"]);
    await works.stop();
  });

  test("one lost job among ten acks takes nothing along", async () => {
    const { queue, bench, events, start } = setUp({ concurrency: 10 });
    for (let n = 0; n < 10; n++) queue.put(n);
    const works = start();
    await settled();
    Object.assign(queue.rows[4] as object, { owner: "other" });
    for (const { context, end } of bench.started) {
      if (context.attempt === 1) end();
    }
    await settled();
    expect(queue.rows.map(({ id }) => id)).toEqual([5]);
    expect(events.filter((event) => event.startsWith("done")).length).toBe(9);
    expect(events.filter((event) => event.startsWith("lost"))).toEqual(["lost 5"]);
    await works.stop();
  });

  test("keep leaves a done job without a time to run, and without the words of an earlier failure", async () => {
    const { queue, start } = setUp({ keep: true }, () => undefined);
    queue.put("a", { error: "from before" });
    const works = start();
    await settled();
    expect(queue.rows[0]).toMatchObject({ run_at: null, owner: null, error: null });
    await works.stop();
  });

  test("again moves the job on in place of deleting it, its attempts back at none", async () => {
    const { queue, start } = setUp({}, (_job, context) => context.again(60_000, { payload: "next" }));
    queue.put("a", { error: "from before", attempts: 3 });
    const works = start();
    await settled();
    expect(queue.rows[0]).toMatchObject({ run_at: 60_000, owner: null, attempts: 0, error: null, payload: "next" });
    await works.stop();
  });
});

describe("follow-ups", () => {
  test("land with the ack", async () => {
    const { queue, jobs, start } = setUp({ concurrency: 1 }, (job, context) => {
      if (job.payload === "first") context.enqueue(jobs, "second", { delayMs: 5_000 });
    });
    queue.put("first");
    const works = start();
    await settled();
    expect(queue.rows).toMatchObject([{ payload: "second", run_at: 5_000, attempts: 0 }]);
    expect(queue.requests("put jobs")[0]?.statements.map(({ query }) => query.slice(0, 8))).toEqual([
      "del jobs",
      "put jobs",
    ]);
    await works.stop();
  });

  test("of a lost job do not land, and the other acks of the batch do", async () => {
    const { queue, jobs, bench, events, start } = setUp({ concurrency: 3 });
    for (const payload of ["a", "b", "c"]) queue.put(payload);
    const works = start();
    await settled();
    Object.assign(queue.rows[1] as object, { owner: "other" });
    for (const { job, context, end } of bench.started) {
      context.enqueue(jobs, `after ${job.payload}`, { delayMs: 60_000 });
      end();
    }
    await settled();
    expect(queue.rows.map(({ payload }) => payload)).toEqual(["b", "after a", "after c"]);
    expect(events.slice(1)).toEqual(["lost 2", "done 1", "done 3"]);
    await works.stop();
  });

  test("that the server refuses make the job fail, and the others of the batch are acked", async () => {
    const { queue, jobs, bench, events, start } = setUp({ concurrency: 3, backoff: () => 9_000 });
    for (const payload of ["a", "b", "c"]) queue.put(payload);
    const works = start();
    await settled();
    for (const { job, context, end } of bench.started) {
      if (job.id === 2) context.enqueue(jobs, "bad");
      end();
    }
    await settled();
    expect(queue.rows).toMatchObject([{ id: 2, run_at: 9_000, error: "refused: 400" }]);
    expect(events.slice(1)).toEqual(["done 1", "done 3", "failed 2 refused: 400 9000"]);
    await works.stop();
  });
});

describe("stopping", () => {
  test("takes no more, and waits for what runs, whose lease is kept meanwhile", async () => {
    const { clock, queue, bench, events, start } = setUp({ concurrency: 2, leaseMs: 3_000 });
    queue.put("a");
    const works = start();
    await settled();
    let stopped = false;
    const stop = works.stop({ graceMs: 60_000 }).then(() => {
      stopped = true;
    });
    await settled();
    expect(queue.held).toBe(0);
    queue.put("b");
    await clock.advance(30_000);
    expect(stopped).toBe(false);
    expect(bench.started.length).toBe(1);
    bench.at(0).end();
    await stop;
    expect(events).toEqual(["claimed 1", "done 1"]);
    expect(queue.rows).toMatchObject([{ payload: "b", owner: null, attempts: 0 }]);
    expect(clock.timers).toBe(0);
  });

  test("gives back what has not started, without an attempt spent", async () => {
    const { queue, bench, events, start } = setUp({ concurrency: 1, batch: 3, prefetch: 2 });
    for (const payload of ["a", "b", "c"]) queue.put(payload);
    const works = start();
    await settled();
    expect(bench.started.length).toBe(1);
    const stop = works.stop();
    await settled();
    bench.at(0).end();
    await stop;
    expect(events).toEqual(["claimed 1 2 3", "released 2", "released 3", "done 1"]);
    expect(queue.rows).toMatchObject([
      { id: 2, owner: null, attempts: 0, run_at: 0 },
      { id: 3, owner: null, attempts: 0, run_at: 0 },
    ]);
  });

  test("once the grace is over, fires the signals and gives back what runs", async () => {
    const { clock, queue, bench, events, start } = setUp({ concurrency: 1 });
    queue.put("a", { attempts: 2 });
    const works = start();
    await settled();
    const stop = works.stop({ graceMs: 1_000 });
    await clock.advance(1_000);
    await stop;
    expect(bench.at(0).context.signal.reason).toMatchObject({ code: "stopping" });
    expect(queue.rows).toMatchObject([{ owner: null, attempts: 2 }]);
    expect(events.at(-1)).toBe("released 1");
    const requests = queue.sent.length;
    bench.at(0).end();
    await settled();
    expect(queue.sent.length).toBe(requests);
  });

  test("gives back what a claim took in the moment it was given up", async () => {
    const { queue, bench, events, start } = setUp({ concurrency: 2 });
    queue.put("a");
    queue.faults.push(undefined, "lose the answer");
    const works = start();
    await settled();
    queue.put("b");
    await settled();
    expect(queue.rows).toMatchObject([{ payload: "a" }, { payload: "b", owner: `${works.name}:2`, attempts: 1 }]);
    const stop = works.stop();
    await settled();
    bench.at(0).end();
    await stop;
    expect(events).toEqual(["claimed 1", "error unreachable", "released 2", "done 1"]);
    expect(queue.rows).toMatchObject([{ payload: "b", owner: null, attempts: 0 }]);
  });

  test("waits through the grace for a server that is gone, so that nothing done is done again", async () => {
    const { clock, queue, bench, events, start } = setUp({ concurrency: 1 });
    queue.put("a");
    const works = start();
    await settled();
    queue.down = true;
    bench.at(0).end();
    await settled();
    const stop = works.stop({ graceMs: 20_000 });
    await clock.advance(15_000);
    queue.down = false;
    await clock.advance(5_000);
    await stop;
    expect(events.at(-1)).toBe("done 1");
    expect(queue.rows).toEqual([]);
    expect(clock.timers).toBe(0);
  });

  test("tells a job as lost whose outcome was not answered until the end", async () => {
    const { clock, queue, bench, events, start } = setUp({ concurrency: 1 });
    queue.put("a");
    const works = start();
    await settled();
    queue.down = true;
    bench.at(0).end();
    const stop = works.stop({ graceMs: 1_000 });
    await clock.advance(6_000);
    await stop;
    expect(events.filter((event) => event !== "error unreachable")).toEqual(["claimed 1", "error abandoned", "lost 1"]);
  });

  test("ends although the server is gone", async () => {
    const { clock, queue, bench, start } = setUp({ concurrency: 1 });
    queue.put("a");
    const works = start();
    await settled();
    queue.down = true;
    bench.at(0).end();
    let stopped = false;
    void works.stop({ graceMs: 1_000 }).then(() => {
      stopped = true;
    });
    await clock.advance(10_000);
    expect(stopped).toBe(true);
    expect(clock.timers).toBe(0);
  });

  test("twice is as once", async () => {
    const { start } = setUp({}, () => undefined);
    const works = start();
    await settled();
    await Promise.all([works.stop(), works.stop()]);
  });
});

describe("options", () => {
  test("that make no sense are refused at once", () => {
    const { start: _start, jobs } = setUp();
    for (const wrong of [
      { concurrency: 0 },
      { batch: 1.5 },
      { leaseMs: 1 },
      { waitMs: -1 },
      { attempts: 0 },
      { name: "a b" },
    ]) {
      expect(() => worker(jobs, () => undefined, wrong)).toThrow(expect.objectContaining({ code: "bad-option" }));
    }
  });
});
