import { describe, expect, test } from "bun:test";
import { connect, enqueue, enqueueMany, expr, FenecError, raw } from "../../src/client/index.ts";

interface Asked {
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly body: string;
}

/** A server that gives the prepared answers, in order. */
function prepared(...answers: (Response | Error)[]) {
  const asked: Asked[] = [];
  const db = connect("http://127.0.0.1:1/", {
    token: "secret",
    fetch: async (url, { headers, body, signal }) => {
      signal?.throwIfAborted();
      asked.push({ url, headers, body });
      const answer = answers[asked.length - 1];
      if (answer === undefined) throw new Error("not prepared");
      if (answer instanceof Error) throw answer;
      return answer;
    },
  });
  return { db, asked };
}

function json(body: string, headers: Record<string, string> = {}, status = 200): Response {
  return new Response(body, { status, headers });
}

async function failure(promise: Promise<unknown>): Promise<FenecError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(FenecError);
  return error as FenecError;
}

describe("run", () => {
  test("sends one statement to /query, with its token", async () => {
    const { db, asked } = prepared(json('[{"id":1}]'));
    expect(await db.run("get jobs where id = $1", [1])).toEqual({ rows: [{ id: 1 }] });
    expect(asked).toEqual([
      {
        url: "http://127.0.0.1:1/query",
        headers: { "Content-Type": "application/json", Authorization: "Bearer secret" },
        body: '{"query":"get jobs where id = $1","params":[1]}',
      },
    ]);
  });

  test("gives each shape of answer what it is", async () => {
    const { db } = prepared(
      json('{"affected":2}', { "Fenec-Seq": "7" }),
      json('[{"id":1}]', { "Fenec-Seq": "8", "Idempotent-Replayed": "true" }),
      json("[]"),
      json('{"message":"create jobs"}', { "Fenec-Seq": "9" }),
    );
    expect(db.seq).toBeNull();
    expect(await db.run("set jobs {a: 1}")).toEqual({ kind: "affected", count: 2, seq: 7, replayed: false });
    expect(db.withIdempotencyKey("k").seq).toBe(7);
    expect(await db.run("set jobs {a: 1} returning *")).toEqual({ rows: [{ id: 1 }], seq: 8, replayed: true });
    expect(await db.run("get jobs")).toEqual({ rows: [] });
    expect(await db.withIdempotencyKey("k").run("create ...")).toEqual({ message: "create jobs" });
    expect(db.seq).toBe(9);
  });

  test("keeps ints exact on the way out and back", async () => {
    const { db, asked } = prepared(json('[{"payload":{"id":3889108265204450030}}]'));
    expect(await db.rows("get jobs where payload.id = $1", [3889108265204450030n])).toEqual([
      { payload: { id: 3889108265204450030n } },
    ]);
    expect(asked[0]?.body).toContain('"params":[3889108265204450030]');
  });

  test("asks a token function before every request", async () => {
    const seen: (string | undefined)[] = [];
    let turn = 0;
    const db = connect("http://127.0.0.1:1", {
      token: async () => `t${++turn}`,
      fetch: async (_url, { headers }) => {
        seen.push(headers["Authorization"]);
        return json("[]");
      },
    });
    await db.rows("get a");
    await db.rows("get a");
    expect(seen).toEqual(["Bearer t1", "Bearer t2"]);
  });

  test("sends waits as whole milliseconds, none for 0, and refuses what is none", async () => {
    const { db, asked } = prepared(json("[]"), json("[]"), json("[]"));
    await db.run("set a {b: 1}", [], { wait: 1500.9 });
    await db.run("set a {b: 1}", [], { wait: 0 });
    expect(asked.map(({ headers }) => headers["Fenec-Wait"])).toEqual(["1500", undefined]);
    for (const wait of [-1, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect((await failure(db.run("set a {b: 1}", [], { wait }))).code).toBe("bad-wait");
    }
    expect(asked.length).toBe(2);
  });

  test("sends idempotency keys, the call's before the copy's, and refuses what is none", async () => {
    const { db, asked } = prepared(json("[]"), json("[]"), json("[]"));
    const keyed = db.withIdempotencyKey("one");
    await keyed.run("get a");
    await keyed.run("get a", [], { idempotencyKey: "two" });
    await db.run("get a");
    expect(asked.map(({ headers }) => headers["Idempotency-Key"])).toEqual(["one", "two", undefined]);
    for (const key of ["", "x".repeat(256), "ключ", "a\nb"]) {
      expect(() => db.withIdempotencyKey(key)).toThrow(expect.objectContaining({ code: "bad-key" }));
    }
  });

  test("a signal gives the request up with its own reason", async () => {
    const { db } = prepared(json("[]"));
    const reason = new Error("enough");
    await expect(db.run("get a", [], { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  });
});

describe("errors", () => {
  test("carry what the server said", async () => {
    const { db } = prepared(
      json('{"error":"unexpected end","code":"syntax","line":1,"column":5,"expected":["a name"]}', {}, 400),
      json('{"error":"`set jobs` wrote 0 rows, and requires 1","code":"unmet","at":1,"completed":0}', {}, 412),
      json('{"error":"busy","code":"overloaded"}', { "Retry-After": "1" }, 503),
    );
    expect(await failure(db.run("get "))).toMatchObject({
      message: "unexpected end",
      status: 400,
      code: "syntax",
      kind: "query",
      passing: false,
      query: "get ",
      line: 1,
      column: 5,
      expected: ["a name"],
    });
    expect(await failure(db.batch(["get a", "set jobs {a: 1} require 1"]))).toMatchObject({
      status: 412,
      kind: "unmet",
      at: 1,
      completed: 0,
      query: "set jobs {a: 1} require 1",
    });
    expect(await failure(db.run("get a"))).toMatchObject({
      status: 503,
      kind: "io",
      passing: true,
      retryAfterMs: 1000,
    });
  });

  test("no answer, and an answer of something else, are told apart from a refusal", async () => {
    const { db } = prepared(new TypeError("refused"), json("<html>Bad gateway</html>", {}, 502), json("hello"));
    expect(await failure(db.run("get a"))).toMatchObject({ status: 0, code: "unreachable", kind: "io", passing: true });
    expect(await failure(db.run("get a"))).toMatchObject({ status: 502, code: "bad-answer", passing: true });
    expect(await failure(db.run("get a"))).toMatchObject({ status: 200, code: "bad-answer", passing: false });
  });

  test("an answer of another kind than asked for is no refusal by the builder: the statement was run", async () => {
    const { db } = prepared(json('{"affected":1}'), json('{"affected":1}'), json("[]"));
    const wrong = { status: 200, code: "bad-answer", kind: "io", query: "set a {b: 1}" };
    expect(await failure(db.rows("set a {b: 1}"))).toMatchObject(wrong);
    expect(await failure(db.from("a").rows())).toMatchObject({ ...wrong, query: "get a" });
    expect(await failure(db.from("a").insert({ b: 1 }))).toMatchObject({ ...wrong, query: "put a {b: $1}" });
  });

  test("the reason behind a fetch that failed is told", async () => {
    const { db } = prepared(new TypeError("fetch failed", { cause: new Error("connect ECONNREFUSED 127.0.0.1:1") }));
    expect((await failure(db.run("get a"))).message).toEndWith("connect ECONNREFUSED 127.0.0.1:1");
  });

  test("kinds go by the status", () => {
    const kinds = [undefined, 400, 401, 403, 404, 409, 412, 422, 500, 0].map(
      (status) => new FenecError("x", "x", { status }).kind,
    );
    expect(kinds).toEqual(["builder", "query", "denied", "denied", "missing", "duplicate", "unmet", "io", "io", "io"]);
  });
});

describe("batch", () => {
  test("sends a line a statement, and gives the results as sent", async () => {
    const { db, asked } = prepared(
      json('{"ok":4,"results":[{"rows":[]},{"affected":1},{"rows":[]},{"affected":1}]}', { "Fenec-Seq": "3" }),
    );
    const jobs = db.from("jobs");
    const answer = await db.batch(
      [
        jobs.where("id", 1),
        jobs.where("id", 1).toDelete({ require: 1 }),
        "get jobs",
        ["put jobs {payload: $1}", ["line\nbreak"]],
      ],
      { idempotencyKey: "k", wait: 5 },
    );
    expect(answer).toEqual({
      results: [{ rows: [] }, { affected: 1 }, { rows: [] }, { affected: 1 }],
      seq: 3,
      replayed: false,
    });
    expect(asked).toEqual([
      {
        url: "http://127.0.0.1:1/batch",
        headers: {
          "Content-Type": "application/x-ndjson",
          Authorization: "Bearer secret",
          "Idempotency-Key": "k",
          "Fenec-Wait": "5",
        },
        body: [
          '{"query":"get jobs where id = $1","params":[1]}',
          '{"query":"del jobs where id = $1 require 1","params":[1]}',
          '{"query":"get jobs","params":[]}',
          '{"query":"put jobs {payload: $1}","params":["line\\nbreak"]}',
        ].join("\n"),
      },
    ]);
  });

  test("of nothing is refused", async () => {
    const { db, asked } = prepared();
    expect((await failure(db.batch([]))).code).toBe("empty-batch");
    expect(asked).toEqual([]);
  });
});

describe("chains", () => {
  test("give rows, a row, a number, lines", async () => {
    const { db, asked } = prepared(
      json('[{"id":1},{"id":2}]'),
      json('[{"id":1}]'),
      json("[]"),
      json('[{"count":5}]'),
      json('[{"plan":"a"},{"plan":"rows: 1"}]'),
      json('{"affected":3}'),
      json('[{"id":4}]', { "Fenec-Seq": "1" }),
    );
    const jobs = db.from("jobs");
    expect((await jobs.rows()).map(({ id }) => id)).toEqual([1, 2]);
    expect((await jobs.first())?.id).toBe(1);
    expect(await jobs.first()).toBeNull();
    expect(await jobs.count()).toBe(5);
    expect(await jobs.explain()).toEqual(["a", "rows: 1"]);
    expect(await jobs.where("id", 1).update({ owner: null })).toBe(3);
    expect(
      await jobs
        .where(raw("run_at <= now()"))
        .limit(1)
        .delete({ returning: ["id"], wait: 9 }),
    ).toEqual([{ id: 4 }] as never);
    expect(await jobs.insert([])).toBe(0);
    expect(await jobs.upsert([], { a: 1 })).toBe(0);
    expect(asked.length).toBe(7);
    expect(asked[6]?.headers["Fenec-Wait"]).toBe("9");
  });
});

describe("producers", () => {
  test("enqueue one job, its time worked out by the server", async () => {
    const { db, asked } = prepared(json('{"affected":1}'), json('{"affected":0}'), json('{"affected":1}'));
    const jobs = db.from("jobs");
    expect(await enqueue(jobs, { to: "ada" })).toBe(true);
    expect(
      await enqueue(
        jobs,
        { to: "bo" },
        { delayMs: 1500, priority: 9, unique: { key: "bo" }, fields: { queue: "mail" } },
      ),
    ).toBe(false);
    await enqueue(jobs, 1, { at: expr("bucket(now(), ?)", "1h") });
    expect(asked.map(({ body }) => JSON.parse(body))).toEqual([
      { query: "put jobs {payload: $1, run_at: now(), attempts: $2}", params: [{ to: "ada" }, 0] },
      {
        query: "put jobs {queue: $1, key: $2, payload: $3, run_at: now() + $4, attempts: $5, priority: $6} if absent",
        params: ["mail", "bo", { to: "bo" }, 1500, 0, 9],
      },
      { query: "put jobs {payload: $1, run_at: bucket(now(), $2), attempts: $3}", params: [1, "1h", 0] },
    ]);
    expect((await failure(enqueue(jobs, 1, { at: 5, delayMs: 5 }))).code).toBe("bad-time");
    expect((await failure(enqueue(jobs, 1, { delayMs: -5 }))).code).toBe("bad-time");
  });

  test("enqueue many in one batch of equal texts", async () => {
    const { db, asked } = prepared(
      json('{"ok":4,"results":[{"affected":50},{"affected":50},{"affected":20},{"affected":3}]}'),
    );
    const list = Array.from({ length: 125 }, (_, n) => ({
      payload: n,
      ...(n < 120 ? {} : { unique: { key: `k${n}` } }),
    }));
    expect(await enqueueMany(db.from("jobs"), list)).toBe(123);
    const lines = (asked[0]?.body ?? "")
      .split("\n")
      .map((line) => JSON.parse(line) as { query: string; params: unknown[] });
    expect(lines.map(({ query }) => query.match(/payload/g)?.length)).toEqual([50, 50, 20, 5]);
    expect(lines[0]?.query).toBe(lines[1]?.query as string);
    expect(lines.map(({ query }) => query.endsWith(" if absent"))).toEqual([false, false, false, true]);
    expect(lines.flatMap(({ params }) => params.filter((_, i) => i % 2 === 0)).slice(0, 120)).toEqual(
      Array.from({ length: 120 }, (_, n) => n),
    );
    expect(await enqueueMany(db.from("jobs"), [])).toBe(0);
  });
});
