import { beforeEach, describe, expect, test } from "bun:test";
import { listOf } from "../../src/http/rest_value.ts";
import { Asked } from "./parts.ts";

let asked: Asked;

beforeEach(async () => {
  asked = new Asked({ settings: { maxBodyBytes: 1_000_000 } });
  await run(
    "create collection t (n int @sorted, f float, s text, b bool, at timestamp @sorted, tags [text], ns [int], meta json, raw bytes, spot geo @geo)",
  );
  await run(
    `put t [
      {n: 1, f: 0.5, s: "one", b: true, at: "2024-01-01T00:00:00Z", tags: ["x", "y"], ns: [1, 2], meta: {"lang": "tr", "rank": 2}, raw: "abc", spot: [29, 41]},
      {n: 2, f: 1.5, s: "two, and (more)", b: false, at: "2025-01-01T00:00:00Z", tags: [], ns: [], meta: {"lang": "en", "rank": "2"}},
      {n: 9007199254740993, s: "a+b c", meta: {"lang": null}},
      {s: "eq.1"}
    ]`,
  );
});

async function run(text: string): Promise<void> {
  const answer = await asked.query(text);
  if (answer.status !== 200) throw new Error(answer.body);
}

/** Ids of the rows a query string names. */
async function ids(queryString: string): Promise<number[]> {
  const answer = await asked.ask("GET", `/t?select=id&${queryString}`);
  if (answer.status !== 200) throw new Error(`${queryString}: ${answer.status} ${answer.body}`);
  return (JSON.parse(answer.body) as { id: number }[]).map(({ id }) => id);
}

async function status(queryString: string): Promise<number> {
  const answer = await asked.ask("GET", `/t?${queryString}`);
  expect(answer.status === 200 || /^\{"error":".+","code":"[a-z_]+"/.test(answer.body)).toBe(true);
  return answer.status;
}

describe("conditions", () => {
  for (const [queryString, expected] of [
    ["n=1", [1]],
    ["n=eq.1", [1]],
    ["n=neq.1", [2, 3, 4]],
    ["n=gt.1", [2, 3]],
    ["n=gte.2", [2, 3]],
    ["n=lt.2", [1]],
    ["n=lte.1.5", [1]],
    ["n=not.gt.1", [1, 4]],
    ["n=9007199254740993", [3]],
    ["n=9007199254740992", []],
    ["n=gte.1&n=lt.9", [1, 2]],
    ["n=in.(1,2,5)", [1, 2]],
    ["n=in.()", []],
    ["n=not.in.(1,2)", [3, 4]],
    ["n=is.null", [4]],
    ["n=not.is.null", [1, 2, 3]],
    ["f=0.5", [1]],
    ["f=5e-1", [1]],
    ["b=true", [1]],
    ["b=neq.true", [2, 3, 4]],
    ["s=one", [1]],
    ["s=like.ONE", [1]],
    ["s=a%2Bb+c", [3]],
    ["s=a%2Bb%20c", [3]],
    // A value with no known operator is an equality, whatever dots it has.
    ["s=eq.eq.1", [4]],
    ["s=nope.1", []],
    ["s=not.one", []],
    ['s=in.("two,+and+(more)",one)', [1, 2]],
    ["at=gte.2024-06-01", [2]],
    ["at=2024-01-01T00:00:00Z", [1]],
    ["at=1704067200000", [1]],
    ["tags=has.x", [1]],
    ["tags=not.has.x", [2, 3, 4]],
    ['tags=["x","y"]', [1]],
    ["ns=has.2", [1]],
    ["meta.lang=tr", [1]],
    ["meta.rank=2", [1]],
    ['meta.rank="2"', [2]],
    ["meta.lang=null", [3, 4]],
    ["meta.lang=in.(tr,en)", [1, 2]],
    ["raw=abc", [1]],
    ["spot=[29,41]", [1]],
    ["id=2", [2]],
    ["id=in.(4,1)", [1, 4]],
    ["where=n+=+1+or+s+=+'a%2Bb+c'", [1, 3]],
    ["where=n = 1 or n = 2&b=true", [1]],
    ["where=n = 1 -- all of them", [1]],
    ["where=id in (get t select id where n = 2)", [2]],
    ["order=id.desc", [4, 3, 2, 1]],
    ["order=n.desc", [3, 2, 1, 4]],
    ["order=b,id.desc", [4, 3, 2, 1]],
    ["order=meta.lang.asc,id.desc", [4, 3, 2, 1]],
    ["limit=2&order=id", [1, 2]],
    ["limit=2&offset=1&order=id", [2, 3]],
    ["limit=0", []],
    ["offset=3&order=id", [4]],
    ["", [1, 2, 3, 4]],
    ["&&n=1&", [1]],
  ] as const) {
    test(queryString === "" ? "none" : queryString, async () => {
      expect(await ids(queryString)).toEqual([...expected]);
    });
  }
});

describe("refused with 400", () => {
  for (const queryString of [
    "n=gte.abc",
    "n=inf",
    "n=nan",
    "n=",
    "n=%201",
    "n=0x1",
    "n=99999999999999999999999999999999999999e999",
    "f=nan",
    "f=gt.Infinity",
    "b=1",
    "at=soon",
    "at=99999999999999999",
    "tags=x",
    "spot=x",
    "n=in.1,2",
    "n=in.(1,x)",
    's=in.("open)',
    "n=is.1",
    "id=x",
    "limit=lots",
    "limit=-1",
    "limit=1.5",
    "limit=1&limit=2",
    "offset=x",
    "count&limit=1",
    "count&order=n",
    "count&select=n",
    "count=maybe",
    "where=",
    "where=n = 1 limit 1",
    "where=n = $1&n=1",
    "where=n = ",
    "where=) or (true",
    "select=n limit 1",
    "select=n where n = 1",
    "select=n, $1 as x&n=1",
    "select=",
    "order=",
    "group=",
    "order=n.tr.desc",
    "order=n.desc.nullsfirst",
    "lookup=t",
    "facet=n",
    "n=%ff",
    "s.a=1",
    "n = 1 or n=1",
  ]) {
    test(queryString, async () => expect(await status(queryString)).toBe(400));
  }
});

describe("refused with words that say what is right:", () => {
  for (const [queryString, words] of [
    ["select=", "select is empty: it names fields, as in select=id,n"],
    ["order=", "order is empty: it names fields, as in order=n.desc,id"],
    ["group=&select=count(*)", "group is empty: it names fields"],
    ["where=", "where is empty: it is a condition"],
    ["select=n,", "select: found the end of the text, expected `*` or an expression"],
    ["select=n m", "select: found `m`"],
    ["order=n.desc.nullsfirst", "order=n.desc.nullsfirst: nulls come first, and last with desc"],
    ["order=n.nullslast", "order=n.nullslast: nulls come first, and last with desc"],
    ["order=n.up", "order=n.up: behind a field stands asc or desc"],
    ["order=n.DESC", "order=n.DESC: behind a field stands asc or desc"],
    ["order=n desc", "n.desc"],
    ["order=n,", "a field's name is missing"],
    ["Limit=1", 't has no field "Limit"; did you mean the clause limit?'],
    ["selct=n", "did you mean the clause select?"],
    ["nofield=1", 't has no field "nofield"'],
    ["=1", "a field's name is missing"],
    ["s.x=1", "only a json field has paths"],
  ] as const) {
    test(queryString, async () => {
      const answer = await asked.ask("GET", `/t?${encodeURI(queryString)}`);
      expect(answer.status).toBeOneOf([400, 404]);
      expect(JSON.parse(answer.body).error).toContain(words);
    });
  }
});

test("a statement sent by another method is told the right one", async () => {
  for (const path of ["/query", "/batch"]) {
    const answer = await asked.ask("GET", path);
    expect(answer.status).toBe(404);
    expect(answer.body).toContain(`POST ${path}`);
  }
  expect((await asked.ask("GET", "/t?having=n")).body).toContain("by POST /query");
});

describe("refused with 404", () => {
  for (const queryString of [
    "nofield=1",
    "nofield=",
    "__proto__=1",
    "toString=1",
    "no field=1",
    "n;drop=1",
    "n or 1=1",
    "meta..a=1",
    ".n=1",
    "select=nofield",
    "order=nofield",
    "order=n desc",
    "group=nofield&select=count(*)",
    "1=1",
    "t.on=1",
  ]) {
    test(queryString, async () => expect(await status(queryString)).toBe(404));
  }
});

describe("reads", () => {
  test("count is an object, not a row", async () => {
    for (const count of ["count", "count=", "count=true", "count=1", "count=yes", "count=exact"]) {
      expect((await asked.ask("GET", `/t?n=gte.2&${count}`)).body).toBe('{"count":2}');
    }
  });

  test("select names fields, paths and expressions, in its order", async () => {
    expect((await asked.ask("GET", "/t?n=1&select=s,meta.lang,id")).body).toBe('[{"s":"one","meta.lang":"tr","id":1}]');
    expect((await asked.ask("GET", "/t?n=1&select=*")).body).toStartWith('[{"id":1,"n":1,');
    expect((await asked.ask("GET", "/t?n=1&select=n%20*%202%20as%20twice%20--%20x")).body).toBe('[{"twice":2}]');
    expect((await asked.ask("GET", "/t?select=b,count(*)&group=b")).body).toBe(
      '[{"b":null,"count":2},{"b":false,"count":1},{"b":true,"count":1}]',
    );
  });

  test("HEAD is asked like GET", async () => {
    expect((await asked.ask("HEAD", "/t?count")).status).toBe(200);
    expect((await asked.ask("HEAD", "/t?n=x")).status).toBe(400);
  });

  test("Fenec-After holds a read back", async () => {
    const read = asked.ask("GET", "/t?count", undefined, { "fenec-after": "6" });
    await new Promise<void>((resolve) => setImmediate(resolve));
    await run("put t {n: 7}");
    expect((await read).body).toBe('{"count":5}');
  });
});

describe("writes", () => {
  test("POST inserts, and says how many", async () => {
    const one = await asked.ask("POST", "/t", '{"n": 5, "meta": {"b": 1.50, "10": 1}}');
    expect({ status: one.status, body: one.body, seq: one.headers.get("fenec-seq") }).toEqual({
      status: 201,
      body: '{"inserted":1}',
      seq: "6",
    });
    expect((await asked.ask("POST", "/t", '[{"n": 6}, {"n": 7}]')).body).toBe('{"inserted":2}');
    expect((await asked.ask("POST", "/t", "[]")).body).toBe('{"inserted":0}');
    expect((await asked.ask("GET", "/t?n=5&select=meta")).body).toBe('[{"meta":{"b":1.50,"10":1}}]');
  });

  test("a body that is no document is refused, and nothing written", async () => {
    for (const [body, status] of [
      ["", 400],
      ["{", 400],
      ["5", 400],
      ['"x"', 400],
      ["[1]", 400],
      ['[{"n": 1}, 5]', 400],
      ['{"n": "x"}', 400],
      ['{"nofield": 1}', 400],
      ['{"__proto__": 1}', 400],
      ['{"n": 1, "n": 2}', 400],
      ['{"meta": {"a": 1, "a": 2}}', 400],
      ['{"id": 1}', 409],
      ['{"n": 1} {"n": 2}', 400],
    ] as const) {
      expect({ body, status: (await asked.ask("POST", "/t", body)).status }).toEqual({ body, status });
    }
    expect((await asked.ask("POST", "/t?n=1", "{}")).status).toBe(400);
    expect((await asked.ask("POST", "/nosuch", "{}")).status).toBe(404);
    expect((await asked.ask("GET", "/t?count")).body).toBe('{"count":4}');
  });

  test("PATCH and PUT change the rows of a filter", async () => {
    for (const method of ["PATCH", "PUT"]) {
      const answer = await asked.ask(method, "/t?n=lte.2", '{"s": "new", "meta.rank": 3, "ns": [4]}');
      expect({ status: answer.status, body: answer.body }).toEqual({ status: 200, body: '{"updated":2}' });
      expect(answer.headers.get("fenec-seq")).not.toBeNull();
    }
    expect((await asked.ask("GET", "/t?s=new&select=meta,ns")).body).toBe(
      '[{"meta":{"lang":"tr","rank":3},"ns":[4]},{"meta":{"lang":"en","rank":3},"ns":[4]}]',
    );
    expect((await asked.ask("PATCH", "/t?where=n%20%3D%201", '{"b": null}')).body).toBe('{"updated":1}');
    expect((await asked.ask("PATCH", "/t?n=777", '{"b": null}')).body).toBe('{"updated":0}');
    for (const [path, body, status] of [
      ["/t", '{"b": true}', 400],
      ["/t?n=1", "{}", 400],
      ["/t?n=1", "[]", 400],
      ["/t?n=1", "", 400],
      ["/t?n=1", '{"b": 1}', 400],
      ["/t?n=1", '{"nofield": 1}', 404],
      ["/t?n=1", '{"b = true, s": 1}', 404],
      ["/t?n=1&limit=1", '{"b": true}', 400],
      ["/t?nofield=1", '{"b": true}', 404],
      ["/t/all?n=1", '{"b": true}', 400],
      ["/nosuch?n=1", '{"b": true}', 404],
    ] as const) {
      expect({ path, body, status: (await asked.ask("PATCH", path, body)).status }).toEqual({ path, body, status });
    }
    expect((await asked.ask("PATCH", "/t", '{"b": true}')).body).toContain("/t/all");
    expect((await asked.ask("PUT", "/t/all", '{"b": true}')).body).toBe('{"updated":4}');
  });

  test("DELETE takes the rows of a filter, and all by their own path", async () => {
    expect((await asked.ask("DELETE", "/t?n=1")).body).toBe('{"deleted":1}');
    const every = await asked.ask("DELETE", "/t");
    expect(every.status).toBe(400);
    expect(every.body).toContain("/t/all");
    expect((await asked.ask("DELETE", "/t/all?n=2")).status).toBe(400);
    expect((await asked.ask("DELETE", "/t/all")).body).toBe('{"deleted":3}');
    expect((await asked.ask("DELETE", "/nosuch/all")).status).toBe(404);
  });

  test("a chain of conditions past the depth of an expression is refused", async () => {
    expect(await status(Array.from({ length: 600 }, () => "n=1").join("&"))).toBe(400);
  });
});

describe("the list of in", () => {
  test("is split at commas outside quotes", () => {
    expect(listOf("(a,b)", "f")).toEqual(["a", "b"]);
    expect(listOf("()", "f")).toEqual([]);
    expect(listOf("(,)", "f")).toEqual(["", ""]);
    expect(listOf('("a,b","c\\"d","e\\\\f",g)', "f")).toEqual(["a,b", 'c"d', "e\\f", "g"]);
    expect(listOf("(a(b),c)", "f")).toEqual(["a(b)", "c"]);
    for (const text of ["", "(", ")", "a,b", '("a', '("a"b)', "(a"])
      expect(() => listOf(text, "f")).toThrow("in takes");
  });
});
