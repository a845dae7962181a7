import { describe, expect, test } from "bun:test";
import { AssertionFailure } from "../../src/base/assert.ts";
import { Refusal } from "../../src/base/refusal.ts";
import type { Outcome } from "../../src/engine/contract.ts";
import type { Hold, Identity } from "../../src/http/seams.ts";
import type { Float, Json } from "../../src/value/value.ts";
import { Asked, ToldEngine } from "./parts.ts";

function told(options: ConstructorParameters<typeof Asked>[0] = {}): { engine: ToldEngine; asked: Asked } {
  const engine = new ToldEngine();
  return { engine, asked: new Asked({ ...options, engine }) };
}

function wrote(body: string, seq: number): Outcome {
  return { kind: "affected", body, batchBody: body, count: 1, wrote: 1, isWrite: true, isRead: false, seq };
}

describe("bodies", () => {
  test("parameters keep every digit", async () => {
    const { engine, asked } = told();
    const sent =
      '{ "query" : "q", "params" : [9223372036854775807, 1.50, -0, {"b": 1, "10": 2, "2": 1E2}, ["x", null], true] }';
    expect((await asked.ask("POST", "/query", sent)).status).toBe(200);
    const [big, float, zero, object, list, bool] = engine.asked[0]!.params;
    expect(big).toBe(9223372036854775807n);
    expect((float as Float & { text?: string }).text).toBe("1.50");
    expect((zero as Float & { text?: string }).text).toBe("-0");
    expect((object as Json).text).toBe('{"b":1,"10":2,"2":1E2}');
    expect((list as Json).text).toBe('["x",null]');
    expect(bool).toBe(true);
  });

  test("what is no query body is a 400 that says where", async () => {
    const { engine, asked } = told();
    for (const [body, words] of [
      ["", "empty"],
      ["[]", "a list"],
      ['"get jobs"', "a text"],
      ["{", "key"],
      ["{}", '"query"'],
      ['{"query": 5}', '"query"'],
      ['{"query": ""}', '"query"'],
      ['{"query": "q", "params": {"a": 1}}', '"params"'],
      ['{"query": "q", "params": "x"}', '"params"'],
      ['{"query": "q", "params": 1}', '"params"'],
      ['{"query": "q", "query": "r"}', "twice"],
      ['{"query": "q"} {"query": "r"}', "one value"],
      ['{"query": "q", "params": [1e400]}', ""],
      [`{"query": "q", "params": [${"[".repeat(100_000)}`, ""],
    ] as const) {
      const asks = new Asked({ engine, settings: { maxBodyBytes: 1_000_000 } });
      const answer = await asks.ask("POST", "/query", body);
      expect({ body: body.slice(0, 60), status: answer.status }).toEqual({ body: body.slice(0, 60), status: 400 });
      const { error, code } = JSON.parse(answer.body) as { error: string; code: string };
      expect(error).toContain(words);
      expect(typeof code).toBe("string");
    }
    expect(engine.asked).toEqual([]);
    expect((await asked.ask("POST", "/query", '{"query": "q", "params": null, "more": 1}')).status).toBe(200);
  });

  test("bytes that are no UTF-8 are refused, not replaced", async () => {
    const { asked } = told();
    const request = Buffer.concat([Buffer.from('{"query": "'), Buffer.from([0xff]), Buffer.from('"}')]);
    const answer = await asked.ask("POST", "/query", request as unknown as string, {
      "content-length": String(request.length),
    });
    expect(answer.status).toBe(400);
    expect(answer.body).toContain("UTF-8");
  });

  test("past the ceiling: 413", async () => {
    const { asked } = told();
    const answer = await asked.ask("POST", "/query", `{"query": "${"x".repeat(1_000)}"}`);
    expect(answer.status).toBe(413);
    expect(answer.body).toContain('"code":"body_too_large"');
    const exact = `{"query": "${"x".repeat(1_000 - 13)}"}`;
    expect(exact.length).toBe(1_000);
    expect((await asked.ask("POST", "/query", exact)).status).toBe(200);
  });
});

describe("answers", () => {
  test("a write carries the change counter, a read and an empty claim do not", async () => {
    const { engine, asked } = told();
    expect((await asked.query("q")).headers.get("fenec-seq")).toBeNull();
    engine.answer = { ...engine.answer, isWrite: true };
    expect((await asked.query("q")).headers.get("fenec-seq")).toBeNull();
    engine.answer = { ...engine.answer, count: 1, body: "[{}]", seq: 12 };
    expect((await asked.query("q")).headers.get("fenec-seq")).toBe("12");
    engine.answer = { ...wrote('{"affected":0}', 13), count: 0, wrote: 0 };
    const none = await asked.query("q");
    expect(none.headers.get("fenec-seq")).toBe("13");
    expect(none.body).toBe('{"affected":0}');
    expect(none.headers.get("content-type")).toBe("application/json");
  });

  test("wait for the disk", async () => {
    const { engine, asked } = told();
    const disk = Promise.withResolvers<void>();
    engine.onDisk = disk.promise;
    let answered = false;
    const answer = asked.query("q").then((got) => {
      answered = true;
      return got;
    });
    await new Promise<void>((resolve) => setImmediate(resolve));
    expect(engine.asked.length).toBe(1);
    expect(answered).toBe(false);
    disk.resolve();
    expect((await answer).status).toBe(200);
  });

  test("a disk that failed is a 500 with its code", async () => {
    const { engine, asked } = told();
    engine.onDisk = Promise.reject(new Refusal("disk_failed", "the disk is gone"));
    const answer = await asked.query("q");
    expect(answer.status).toBe(500);
    expect(JSON.parse(answer.body)).toEqual({ error: "the disk is gone", code: "disk_failed" });
    expect(asked.lines).toEqual([]);
    // Once that is known, reads go on: they confirm nothing.
    engine.unwell = "the disk is gone";
    const lines = '{"query":"q"}\n{"query":"r"}';
    expect((await asked.query("q")).status).toBe(200);
    expect((await asked.ask("POST", "/batch", lines)).status).toBe(200);
    expect((await asked.ask("GET", "/")).status).toBe(200);
    expect((await asked.ask("GET", "/collections")).status).toBe(200);
    engine.answer = wrote('{"affected":1}', 1);
    expect((await asked.query("q")).status).toBe(500);
  });

  test("a refusal keeps its data; 401 and 503 their headers", async () => {
    const { engine, asked } = told();
    engine.failure = new Refusal("syntax", "no", { line: 2, column: 3, expected: ["a", "b"] });
    const wrong = await asked.query("q");
    expect(wrong.status).toBe(400);
    expect(JSON.parse(wrong.body)).toEqual({ error: "no", code: "syntax", line: 2, column: 3, expected: ["a", "b"] });
    engine.failure = new Refusal("unauthorized", "no");
    expect((await asked.query("q")).headers.get("www-authenticate")).toBe("Bearer");
    engine.failure = new Refusal("overloaded", "no");
    expect((await asked.query("q")).headers.get("retry-after")).toBe("1");
  });

  test("a defect is a 500 that tells nothing, logged once", async () => {
    const { engine, asked } = told();
    engine.failure = new TypeError("secret");
    const answer = await asked.query("q");
    expect(answer.status).toBe(500);
    expect(answer.body).not.toContain("secret");
    expect(answer.body).toContain('"code":"internal"');
    expect(asked.lines.length).toBe(2);
    expect(asked.lines[1]).toContain("secret");
    expect(asked.broken).toEqual([]);
  });

  test("a broken assumption is told to whoever ends the server", async () => {
    const { engine, asked } = told();
    engine.failure = new AssertionFailure("two heads");
    expect((await asked.query("q")).status).toBe(500);
    expect(asked.broken.length).toBe(1);
  });
});

describe("batches", () => {
  test("a line each, blank ones passed over; results in their order", async () => {
    const { engine, asked } = told();
    engine.seq = 4;
    const answer = await asked.ask("POST", "/batch", '{"query":"a"}\r\n\n  \n{"query":"b","params":[1]}\n');
    expect(answer.status).toBe(200);
    expect(answer.body).toBe('{"ok":2,"results":[{"rows":[]},{"rows":[]}]}');
    expect(answer.headers.get("fenec-seq")).toBe("4");
    expect(engine.asked.map(({ text }) => text)).toEqual(["a", "b"]);
  });

  test("a bad line is named, and nothing is run", async () => {
    const { engine, asked } = told();
    const answer = await asked.ask("POST", "/batch", '\n{"query":"a"}\n{nope\n');
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.body)).toMatchObject({ code: "bad_json", at: 1, completed: 0 });
    expect((await asked.ask("POST", "/batch", "\n \n")).status).toBe(400);
    expect((await asked.ask("POST", "/batch", "")).status).toBe(400);
    expect(engine.asked).toEqual([]);
  });
});

describe("the entity tag of a read", () => {
  test("is told to who asks, and answers 304 without running", async () => {
    const { engine, asked } = told();
    engine.tag = 7;
    expect((await asked.query("q")).headers.get("etag")).toBeNull();
    const first = await asked.query("q", [], { "if-none-match": '"0"' });
    expect(first.headers.get("etag")).toBe('"7"');
    const before = engine.asked.length;
    for (const sent of ['"7"', 'W/"7"', '"1", "7"']) {
      const again = await asked.query("q", [], { "if-none-match": sent });
      expect(again.status).toBe(304);
      expect(again.body).toBe("");
      expect(again.headers.get("etag")).toBe('"7"');
    }
    expect(engine.asked.length).toBe(before);
    engine.tag = 8;
    expect((await asked.query("q", [], { "if-none-match": '"7"' })).headers.get("etag")).toBe('"8"');
    engine.tag = undefined;
    const untagged = await asked.query("q", [], { "if-none-match": '"8"' });
    expect(untagged.status).toBe(200);
    expect(untagged.headers.get("etag")).toBeNull();
  });

  test("of a scoped token is a digest of what it was answered", async () => {
    const scoped: Identity = {
      kind: "scoped",
      scope: { rules: { of: () => undefined }, claims: new Map(), expiresAtMs: Infinity, subject: "", rights: "" },
    };
    const { engine, asked } = told({ gate: { authorize: () => scoped, whoami: () => "{}" } });
    engine.tag = 7;
    const first = await asked.query("q", [], { "if-none-match": '"7"' });
    expect(first.status).toBe(200);
    const tag = first.headers.get("etag")!;
    expect(tag).toMatch(/^"c[0-9a-f]+"$/);
    engine.tag = 8;
    expect((await asked.query("q", [], { "if-none-match": tag })).status).toBe(304);
    engine.answer = { ...engine.answer, body: "[1]" };
    expect((await asked.query("q", [], { "if-none-match": tag })).status).toBe(200);
  });
});

describe("Fenec-After", () => {
  test("a change that is there is no wait; one that comes is waited for", async () => {
    const { engine, asked } = told();
    engine.seq = 5;
    expect((await asked.query("q", [], { "fenec-after": "5" })).status).toBe(200);
    const waiting = asked.query("q", [], { "fenec-after": "7" });
    const other = asked.query("r", [], { "fenec-after": "6" });
    await new Promise<void>((resolve) => setImmediate(resolve));
    engine.change(6);
    expect((await other).status).toBe(200);
    expect(engine.asked.map(({ text }) => text)).toEqual(["q", "r"]);
    engine.change(7);
    expect((await waiting).status).toBe(200);
  });

  test("one that does not come is 504 at the end of the patience, never before", async () => {
    const { engine, asked } = told();
    let answered = 0;
    const count = async (headers: Record<string, string>) => {
      const answer = await asked.query("q", [], headers);
      answered++;
      return answer;
    };
    const short = count({ "fenec-after": "9", "fenec-wait": "300" });
    const usual = count({ "fenec-after": "9" });
    await asked.clock.advance(299);
    expect(answered).toBe(0);
    await asked.clock.advance(1);
    const answer = await short;
    expect(answer.status).toBe(504);
    expect(JSON.parse(answer.body)).toMatchObject({ code: "not_reached", seq: 0 });
    await asked.clock.advance(4_699);
    expect(answered).toBe(1);
    await asked.clock.advance(1);
    expect((await usual).status).toBe(504);
    expect(engine.asked).toEqual([]);
  });

  test("a number it is not, or a wait that is none: 400", async () => {
    const { asked } = told();
    for (const sent of ["soon", "-1", "1.5", ""]) {
      expect((await asked.query("q", [], { "fenec-after": sent })).status).toBe(400);
      expect((await asked.query("q", [], { "fenec-wait": sent })).status).toBe(400);
    }
  });

  test("a server that stops lets nobody wait", async () => {
    const { asked } = told();
    const waiting = asked.query("q", [], { "fenec-after": "9" });
    await new Promise<void>((resolve) => setImmediate(resolve));
    asked.service.stop();
    expect((await waiting).status).toBe(503);
  });
});

describe("holding", () => {
  class ToldHold implements Hold {
    readonly asked: { text: string; waitMs: number }[] = [];
    readonly held = 0;
    readonly looks = 0;
    readonly runs = 0;
    answer = Promise.withResolvers<Outcome>();
    query(request: { text: string }, _context: unknown, waitMs: number): Promise<Outcome> {
      this.asked.push({ text: request.text, waitMs });
      return this.answer.promise;
    }
    batch(): never {
      throw new Refusal("not_holdable", "no");
    }
    ahead(): undefined {}
    release(): void {}
  }

  test("is asked for with Fenec-Wait alone, for 30 seconds at most", async () => {
    const hold = new ToldHold();
    const { engine, asked } = told({ hold });
    await asked.query("plain");
    await asked.query("zero", [], { "fenec-wait": "0" });
    await asked.query("after", [], { "fenec-wait": "9", "fenec-after": "0" });
    expect(engine.asked.map(({ text }) => text)).toEqual(["plain", "zero", "after"]);
    expect(hold.asked).toEqual([]);
    const held = asked.query("held", [], { "fenec-wait": "99999999999" });
    await new Promise<void>((resolve) => setImmediate(resolve));
    expect(hold.asked).toEqual([{ text: "held", waitMs: 30_000 }]);
    hold.answer.resolve(wrote('{"affected":1}', 3));
    const answer = await held;
    expect(answer.body).toBe('{"affected":1}');
    expect(answer.headers.get("fenec-seq")).toBe("3");
    expect((await asked.ask("POST", "/batch", '{"query":"x"}', { "fenec-wait": "5" })).status).toBe(400);
  });
});

describe("idempotency keys", () => {
  test("are handed on with a digest of method, path and body", async () => {
    const { engine, asked } = told();
    const key = { "idempotency-key": "k" };
    await asked.query("a", [], key);
    await asked.query("a", [], key);
    await asked.query("b", [], key);
    await asked.ask("POST", "/batch", JSON.stringify({ query: "a", params: [] }), key);
    await asked.query("a");
    const hashes = engine.asked.map(({ context }) => context.requestHash);
    expect(engine.asked[0]!.context.idempotencyKey).toBe("k");
    expect(hashes[0]).toMatch(/^[\w+/]{24}$/);
    expect(hashes[1]).toBe(hashes[0]!);
    expect(new Set(hashes.slice(1, 4)).size).toBe(3);
    expect(engine.asked[4]!.context).toEqual({ scope: null, idempotencyKey: null, requestHash: "" });
    expect((await asked.query("a", [], { "idempotency-key": "x".repeat(255) })).status).toBe(200);
    expect((await asked.query("a", [], { "idempotency-key": "x".repeat(256) })).status).toBe(400);
    // A header is read byte by byte, so what is no ASCII counts as it was sent.
    expect((await asked.query("a", [], { "idempotency-key": "\u00e9".repeat(255) })).status).toBe(200);
    expect((await asked.query("a", [], { "idempotency-key": "" })).status).toBe(400);
  });

  test("a kept answer says that it is one", async () => {
    const { engine, asked } = told();
    engine.answer = { ...wrote('{"affected":1}', 9), replayed: true };
    const answer = await asked.query("a", [], { "idempotency-key": "k" });
    expect(answer.headers.get("idempotent-replayed")).toBe("true");
    expect(answer.headers.get("fenec-seq")).toBe("9");
  });
});

describe("who asks", () => {
  test("is asked before the body is read", async () => {
    const refuse = () => Promise.reject(new Refusal("unauthorized", "no token"));
    const { engine, asked } = told({ gate: { authorize: refuse, whoami: () => "{}" } });
    for (const [method, path] of [
      ["POST", "/query"],
      ["POST", "/batch"],
      ["GET", "/jobs"],
      ["POST", "/jobs"],
      ["DELETE", "/jobs/all"],
      ["GET", "/"],
      ["GET", "/collections"],
      ["GET", "/_whoami"],
      ["GET", "/_metrics"],
      ["POST", "/_clock"],
    ] as const) {
      const answer = await asked.ask(method, path, method === "POST" ? "not json" : undefined);
      expect({ path, status: answer.status }).toEqual({ path, status: 401 });
      expect(answer.headers.get("www-authenticate")).toBe("Bearer");
    }
    expect(engine.asked).toEqual([]);
    expect((await asked.ask("GET", "/_health")).status).toBe(200);
  });

  test("a token held to rules sees no metrics and moves no clock", async () => {
    const scoped: Identity = {
      kind: "scoped",
      scope: { rules: { of: () => undefined }, claims: new Map(), expiresAtMs: Infinity, subject: "", rights: "" },
    };
    const { asked } = told({ gate: { authorize: () => scoped, whoami: (who) => `{"kind":"${who.kind}"}` } });
    expect((await asked.ask("GET", "/_metrics")).status).toBe(401);
    expect((await asked.ask("POST", "/_clock", '{"advance_ms":1}')).status).toBe(403);
    expect((await asked.ask("GET", "/_whoami")).body).toBe('{"kind":"scoped"}');
  });
});
