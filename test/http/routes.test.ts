import { describe, expect, test } from "bun:test";
import { AssertionFailure } from "../../src/base/assert.ts";
import { TestClock } from "../../src/clock/clock.ts";
import { Asked, memoryEngine, OPEN_CONTEXT, START_MS, ToldEngine } from "./parts.ts";

describe("routes", () => {
  test("what is no route is a 404 in json", async () => {
    const asked = new Asked();
    for (const [method, path] of [
      ["GET", "/a/near"],
      ["PUT", "/a/near"],
      ["GET", "/a/b/c"],
      ["GET", "/a/"],
      ["POST", "/a/all"],
      ["GET", "/a/all"],
      ["POST", "/"],
      ["DELETE", "/"],
      ["GET", "/query"],
      ["GET", "/batch"],
      ["GET", "/_nothing"],
      ["OPTIONS", "/a"],
      ["PROPFIND", "/a"],
      ["GET", "//"],
      ["GET", "/%ff"],
      ["GET", "/__proto__"],
      ["GET", "/constructor"],
    ] as const) {
      const answer = await asked.ask(method, path);
      expect({ method, path, status: answer.status }).toEqual({ method, path, status: 404 });
      expect(answer.headers.get("content-type")).toBe("application/json");
      expect(Object.keys(JSON.parse(answer.body) as object)).toEqual(["error", "code"]);
      expect(answer.headers.get("access-control-allow-origin")).toBeNull();
    }
    expect(asked.lines).toEqual([]);
  });

  test("the server, its collections, and who asks", async () => {
    const asked = new Asked();
    await asked.query("create collection b (x int @hash)");
    await asked.query("create collection a (y text required)");
    expect(JSON.parse((await asked.ask("GET", "/")).body)).toEqual({
      fenec: "9.9.9",
      fenecdb: "9.9.9",
      collections: ["b", "a"],
    });
    expect((await asked.ask("GET", "/collections")).body).toBe(
      '[{"name":"b","fields":[{"name":"x","type":"int","index":"hash"}]},{"name":"a","fields":[{"name":"y","type":"text","required":true}]}]',
    );
    expect(JSON.parse((await asked.ask("GET", "/_whoami")).body)).toMatchObject({ read_only: false, kind: "open" });
  });

  test("the clock is moved and asked", async () => {
    const asked = new Asked();
    expect((await asked.ask("GET", "/_clock")).body).toBe(`{"now":${START_MS}}`);
    expect((await asked.ask("POST", "/_clock", '{"advance_ms":1500}')).body).toBe(`{"now":${START_MS + 1_500}}`);
    expect((await asked.ask("POST", "/_clock", '{"set":"2026-03-01T13:00:00Z"}')).status).toBe(200);
    expect(asked.clock.now()).toBe(START_MS + 3_600_000);
    for (const body of [
      "{}",
      "",
      '{"advance_ms":-1}',
      '{"advance_ms":1.5}',
      '{"advance_ms":"5"}',
      '{"set":"noon"}',
      '{"set":5}',
      '{"set":"2020-01-01"}',
      '{"advance_ms":1,"set":"2026-03-02"}',
    ]) {
      expect({ body, status: (await asked.ask("POST", "/_clock", body)).status }).toEqual({ body, status: 400 });
    }
    expect(asked.clock.now()).toBe(START_MS + 3_600_000);
  });

  test("metrics count what was asked", async () => {
    const asked = new Asked();
    await asked.query("create collection jobs (run_at timestamp @sorted, owner text)");
    await asked.query(
      "put jobs [{run_at: now()}, {run_at: now() + 5000}, {run_at: null}, {run_at: now() + 1, owner: 'w'}]",
    );
    await asked.query("get jobs");
    await asked.query("get jobs where");
    await asked.ask("POST", "/query", "no json");
    await asked.ask("GET", "/jobs?nofield=1");
    await asked.clock.advance(0);
    const answer = await asked.ask("GET", "/_metrics");
    expect(answer.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    for (const line of [
      'fenec_statements_total{transport="http",kind="write"} 2',
      'fenec_statements_total{transport="http",kind="read"} 3',
      'fenec_statement_errors_total{transport="http",kind="read"} 2',
      'fenec_statement_errors_total{transport="http",kind="write"} 0',
      'fenec_documents{collection="jobs"} 4',
      'fenec_queue_ready{collection="jobs"} 1',
      'fenec_queue_delayed{collection="jobs"} 1',
      'fenec_queue_leased{collection="jobs"} 1',
      'fenec_queue_dead{collection="jobs"} 1',
      'fenec_queue_oldest_ready_seconds{collection="jobs"} 0',
      "fenec_change_sequence 5",
    ]) {
      expect(answer.body.split("\n")).toContain(line);
    }
  });

  test("a slow statement is logged without its parameters", async () => {
    const asked = new Asked({ settings: { slowMs: 0 } });
    await asked.query("create collection jobs (a text)");
    await asked.query("put jobs {a: $1}", ["hidden"]);
    expect(asked.lines.length).toBe(2);
    expect(asked.lines[1]).toContain("put jobs {a: $1}");
    expect(asked.lines.join("")).not.toContain("hidden");
  });
});

describe("the state of the server", () => {
  test("while it loads, health says how far it is and all else is refused", async () => {
    const asked = new Asked({ engine: null });
    asked.service.loading(() => 0.437);
    const health = await asked.ask("GET", "/_health");
    expect(health.status).toBe(503);
    expect(JSON.parse(health.body)).toMatchObject({ ok: false, code: "loading", why: "loading: 43 %" });
    for (const [method, path] of [
      ["POST", "/query"],
      ["POST", "/batch"],
      ["GET", "/jobs"],
      ["DELETE", "/jobs/all"],
      ["GET", "/"],
      ["GET", "/_metrics"],
    ] as const) {
      const answer = await asked.ask(method, path, method === "POST" ? "{}" : undefined);
      expect({ path, status: answer.status }).toEqual({ path, status: 503 });
      expect(answer.headers.get("retry-after")).toBe("1");
      expect(answer.body).toContain('"code":"loading"');
    }
    asked.service.ready(new ToldEngine(), null);
    expect((await asked.ask("GET", "/_health")).body).toBe('{"ok":true}');
  });

  test("health says why the disk is given up", async () => {
    const engine = new ToldEngine();
    const asked = new Asked({ engine });
    engine.unwell = "a sync failed: EIO";
    const answer = await asked.ask("GET", "/_health");
    expect(answer.status).toBe(503);
    expect(JSON.parse(answer.body)).toMatchObject({ ok: false, why: "a sync failed: EIO" });
  });

  test("stopping, it answers until the data is let go of", async () => {
    const asked = new Asked();
    asked.service.stop();
    expect((await asked.ask("GET", "/_health")).status).toBe(503);
    expect((await asked.query("collections")).status).toBe(200);
    asked.service.letGo();
    const answer = await asked.query("collections");
    expect(answer.status).toBe(503);
    expect(answer.body).toContain('"code":"stopping"');
  });

  test("requests past the bound are 503; streams and health are not counted", async () => {
    const asked = new Asked({ settings: { maxConnections: 2 } });
    asked.service.listener = { pendingRequests: 3, timeout: () => {} };
    asked.service.open!.engine.query("create collection jobs (a int)", [], OPEN_CONTEXT);
    const refused = await asked.query("collections");
    expect(refused.status).toBe(503);
    expect(refused.headers.get("retry-after")).toBe("1");
    expect((await asked.ask("GET", "/_health")).status).toBe(200);
    expect((await asked.ask("GET", "/_metrics")).status).toBe(200);
    asked.service.listener = { pendingRequests: 2, timeout: () => {} };
    const stream = await asked.open("/jobs/changes");
    asked.service.listener = { pendingRequests: 3, timeout: () => {} };
    expect((await asked.query("collections")).status).toBe(200);
    await stream.body!.cancel();
    expect((await asked.query("collections")).status).toBe(503);
    const unbound = new Asked({ settings: { maxConnections: 0 } });
    unbound.service.listener = { pendingRequests: 1_000_000, timeout: () => {} };
    expect((await unbound.query("collections")).status).toBe(200);
  });

  test("read-only, it refuses every write by every route", async () => {
    const asked = new Asked({ engine: memoryEngine(new TestClock(0), true) });
    for (const [method, path, body] of [
      ["POST", "/query", '{"query":"put nosuch {a: 1}"}'],
      ["POST", "/query", '{"query":"create collection x (a int)"}'],
      ["POST", "/batch", '{"query":"del nosuch"}'],
      ["POST", "/nosuch", "{}"],
      ["PATCH", "/nosuch?a=1", "{}"],
      ["DELETE", "/nosuch/all", undefined],
    ] as const) {
      const answer = await asked.ask(method, path, body);
      expect({ path, body, status: answer.status }).toEqual({ path, body, status: 403 });
    }
    expect((await asked.query("collections")).status).toBe(200);
  });
});

describe("other origins", () => {
  test("may read when told so, and are answered before any token is asked", async () => {
    const gate = { authorize: () => Promise.reject(new AssertionFailure("not asked")), whoami: () => "{}" };
    const asked = new Asked({ settings: { cors: "*" }, gate });
    for (const path of ["/", "/query", "/jobs/all", "/a/b/c"]) {
      const answer = await asked.ask("OPTIONS", path);
      expect(answer.status).toBe(204);
      expect(answer.headers.get("access-control-allow-methods")).toContain("PATCH");
      expect(answer.headers.get("access-control-allow-origin")).toBe("*");
      expect(answer.headers.get("access-control-allow-headers")).toContain("Fenec-Wait");
    }
    const one = new Asked({ settings: { cors: "https://app.example" } });
    for (const answer of [
      await one.query("collections"),
      await one.query("nonsense"),
      await one.ask("GET", "/a/b/c"),
      await one.ask("GET", "/_metrics"),
      await one.query("create collection x (a int)"),
    ]) {
      expect(answer.headers.get("access-control-allow-origin")).toBe("https://app.example");
      expect(answer.headers.get("vary")).toBe("Origin");
      expect(answer.headers.get("access-control-expose-headers")).toContain("Fenec-Seq");
    }
  });
});
