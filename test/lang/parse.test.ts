/** What texts mean: pairs of spellings with one meaning, single nodes, and words that are both keyword and name. */

import { describe, expect, test } from "bun:test";
import { Refusal } from "../../src/base/refusal.ts";
import { parseCondition, parsePolicyCondition, parseStatement, parseStatements } from "../../src/lang/parse.ts";
import { printExpr, printStatement } from "../../src/lang/print.ts";
import { Float, Json, type Value } from "../../src/value/value.ts";
import { listOf, membersOf, readCases, textOf } from "../harness/case_file.ts";
import { treeText } from "./tree_text.ts";

function canonical(text: string): string {
  return printStatement(parseStatement(text));
}

function constant(text: string): Value {
  const expr = parseCondition(text);
  if (expr.kind !== "const") throw new Error(`${text} is a ${expr.kind}`);
  return expr.value;
}

test("every statement that a case expects to succeed is a statement", () => {
  let statements = 0;
  for (const one of readCases("language.jsonl")) {
    for (const step of listOf(one, "steps").map(membersOf)) {
      const expected = step.get("expect");
      const isRefused = expected !== undefined && membersOf(expected).has("error");
      if (isRefused) continue;
      const text = textOf(step, "q");
      expect(treeText(parseStatement(printStatement(parseStatement(text))))).toBe(treeText(parseStatement(text)));
      statements++;
    }
  }
  expect(statements).toBeGreaterThan(1000);
});

test("every text of the builders is a statement", () => {
  for (const one of readCases("builder-vectors.jsonl")) {
    if (!one.has("text")) continue;
    const text = textOf(one, "text");
    expect(treeText(parseStatement(canonical(text)))).toBe(treeText(parseStatement(text)));
  }
});

describe("two spellings of one statement", () => {
  const pairs: [string, string][] = [
    ["get t", "select from t"],
    ["get t", "get from t"],
    ["get t", "  get\nt ; ; "],
    ["get t", "-- before\nget t # behind"],
    ["get t select a, b", "select a, b from t"],
    ["get t select a, b", "get a,b from t"],
    ["get t select *", "select * from t"],
    ["get t select a.b where c = 1", "select a.b from t where c=1"],
    ["get t select not a as b", "select not a as b from t"],
    ["get t select case when a then 1 end as b", "select case when a then 1 end as b from t"],
    ["get t select count(*) group by a", "select count ( * ) from t group a"],
    ["get t order by a, b desc", "get t order a asc, b DESC"],
    ["get t limit 3 where a = 1 order by b", "get t where a == 1 order b limit 3"],
    ["get t where a != 1", "get t where a <> 1"],
    ["set t {a: 1}", "update t set {a: 1,}"],
    ["set t {a: a - 1}", "set t {a: a-1}"],
    ["set t {a: a - -1}", "set t {a: a - -- a comment\n-1}"],
    ["del t where a = 1", "delete from t where a = 1"],
    ["put t {a: 1}", "put into t {a: 1}"],
    ["put t {a: 1}", "put t [{a: 1},]"],
    ["put t [{a: 1}, {a: 2}]", "put t {a: 1} {a: 2}"],
    ["insert t {a: 1}", "insert into t {'a': 1}"],
    ["alter collection t add field a int @hash", "alter collection t add a int @hash"],
    ["alter collection t drop field a", "alter collection t drop a"],
    ["alter collection t rename field a to b", "alter collection t rename a to b"],
    ["create collection t (a [[int]] required @sorted)", "CREATE collection t(a [ [Int] ] REQUIRED @Sorted)"],
    ["explain get t select a", "explain select a from t"],
    ["get t where a in (get u select b)", "get t where a in (select b from u)"],
  ];
  for (const [one, other] of pairs) {
    test(other, () => expect(canonical(other)).toBe(canonical(one)));
  }
});

describe("words that are names where no clause can be", () => {
  const texts = [
    "get t where limit = 3 limit 3",
    "get t select count count",
    "get t select count(*), count",
    "put t {order: 1, count: 2, where: 3, in: 4}",
    "set set {set: set} where where = 1",
    "get where where where = where",
    "get order order by order desc",
    "get t order by by",
    "get t order by by desc limit 1",
    "del from from",
    'del l where by = "w" and v = "a" require 1',
    "get t where not not a",
    "get t where case = 1",
    "create collection if (index int, required text required, collection geo)",
    "create collection if not exists if (at timestamp)",
    "alter collection t rename field to to to",
    "alter collection t add field field int",
    "create index if not exists on on (on.on) @hash",
  ];
  for (const text of texts) test(text, () => expect(canonical(text)).toBe(text));

  test("`order by` is a field where nothing else can be", () => {
    expect(canonical("get t order by")).toBe("get t order by by");
    expect(canonical("get t order by, id")).toBe("get t order by by, id");
    expect(canonical("get t order by limit 3")).toBe("get t order by by limit 3");
    expect(canonical("get t order by where a = 1")).toBe("get t where a = 1 order by by");
    expect(canonical("del t order by returning *")).toBe("del t order by by returning *");
    expect(canonical("get t order by -by")).toBe("get t order by -by");
  });

  test("`select` and `from` are fields too", () => {
    expect(canonical("get from from t")).toBe("get t select from");
    expect(canonical("get from from from")).toBe("get from from select from");
    expect(canonical("get t where not = 1 and (not)")).toBe("get t where not = 1 and not");
  });
});

describe("literals", () => {
  const values: [string, Value][] = [
    ["0", 0],
    ["-0", new Float(-0, "-0")],
    ["007", 7],
    ["1_000_000", 1_000_000],
    ["-9007199254740991", -9007199254740991],
    ["9007199254740993", 9007199254740993n],
    ["9223372036854775807", 2n ** 63n - 1n],
    ["-9223372036854775808", -(2n ** 63n)],
    [`${"0".repeat(100)}1`, 1],
    ["1.5", new Float(1.5)],
    ["1.50", new Float(1.5, "1.50")],
    ["2.0", new Float(2, "2.0")],
    ["-0.0", new Float(-0, "-0.0")],
    ["1e3", new Float(1000, "1e3")],
    ["1E+3", new Float(1000, "1E+3")],
    ["1_0.2_5", new Float(10.25)],
    ["NULL", null],
    ["True", true],
    ["'it''s'", "it"],
    [`"it's"`, "it's"],
    [`'say "hi"'`, 'say "hi"'],
    [`"a\\"b\\\\c\\nd\\te\\rf\\0"`, 'a"b\\c\nd\te\rf\0'],
    [`"\\q\\'\\/\\u0041"`, "q'/u0041"],
    [`"a\nb"`, "a\nb"],
    [`"-- no comment # at all"`, "-- no comment # at all"],
    ["[]", []],
    ["[1, 'a', [null], {k: -1.50}]", [1, "a", [null], new Json('{"k":-1.50}')]],
    ["{}", new Json("{}")],
    [`{b: 1, "a c": [1.0, "é\\n"], d: {e: null,},}`, new Json('{"b":1,"a c":[1.0,"é\\n"],"d":{"e":null}}')],
    ['{"__proto__": 1}', new Json('{"__proto__":1}')],
  ];
  for (const [text, value] of values) {
    test(text.slice(0, 60), () => {
      if (text === "'it''s'") expect(() => parseCondition(text)).toThrow(Refusal);
      else expect(treeText(constant(text))).toBe(treeText(value));
    });
  }

  test("a minus is a literal's where a value starts, and subtracts behind one", () => {
    expect(treeText(parseCondition("n -1"))).toBe(treeText(parseCondition("n - 1")));
    expect(treeText(parseCondition("n-1"))).toBe(treeText(parseCondition("n - 1")));
    expect(treeText(parseCondition("(n)-1"))).toBe(treeText(parseCondition("n - 1")));
    expect(treeText(parseCondition("$1 -1"))).toBe(treeText(parseCondition("$1 - 1")));
    expect(parseCondition("3 * -2")).toMatchObject({ op: "*", right: { kind: "const", value: -2 } });
    expect(parseCondition("-2 * 3")).toMatchObject({ op: "*", left: { kind: "const", value: -2 } });
    expect(parseCondition("-n * 3")).toMatchObject({ op: "*", left: { kind: "unary", op: "-" } });
  });

  test("what is not constant stays a tree", () => {
    expect(parseCondition("[1, $1]")).toMatchObject({ kind: "list", items: [{ value: 1 }, { index: 0 }] });
    expect(parseCondition("{a: 1, b: n + 1}")).toMatchObject({ kind: "object", entries: [{ key: "a" }, { key: "b" }] });
  });
});

describe("precedence", () => {
  const groups: [string, string][] = [
    ["a or b and c", "a or (b and c)"],
    ["not a and b", "(not a) and b"],
    ["not a = b", "not (a = b)"],
    ["not a in [1]", "not (a in [1])"],
    ["a + b * c = d", "(a + (b * c)) = d"],
    ["a - b - c", "(a - b) - c"],
    ["a / b * c", "(a / b) * c"],
    ["-a * b", "(-a) * b"],
    ["a has b + 1 and c", "(a has (b + 1)) and c"],
    ["a is null or b is not null", "(a is null) or (b is not null)"],
    ["a - b in [1]", "(a - b) in [1]"],
  ];
  for (const [text, grouped] of groups) {
    test(text, () => expect(printExpr(parseCondition(grouped))).toBe(printExpr(parseCondition(text))));
  }

  test("a chain is one node, and parentheses in it are another", () => {
    expect(parseCondition("a and b and c")).toMatchObject({ kind: "and", of: { length: 3 } });
    expect(parseCondition("(a and b) and c")).toMatchObject({ kind: "and", of: { length: 2 } });
  });
});

describe("nodes", () => {
  test("calls", () => {
    expect(parseCondition("Coalesce(n, 0)")).toMatchObject({ kind: "call", name: "coalesce", args: { length: 2 } });
    expect(parseCondition("count(*)")).toMatchObject({ star: true, args: [] });
    expect(parseCondition("count(distinct a + 1)")).toMatchObject({ distinct: true, args: { length: 1 } });
    expect(parseCondition("count(distinct)")).toMatchObject({ distinct: false, args: [{ field: "distinct" }] });
    expect(parseCondition("first(a by b)")).toMatchObject({ args: { length: 1 }, by: { field: "b" } });
    expect(parseCondition("last(a)")).toMatchObject({ by: null });
    expect(parseCondition("bucket(t, 15m)")).toMatchObject({ args: [{}, { kind: "duration", text: "15m" }] });
    expect(parseCondition("bucket(t, 1e3)")).toMatchObject({ args: [{}, { kind: "const" }] });
    expect(parseCondition("bucket(t, 60000)")).toMatchObject({ args: [{}, { kind: "const", value: 60000 }] });
  });

  test("columns name themselves", () => {
    const items = parseStatement("get t select id, m.k, count(*), SUM( a*2 ), a + 1 as b, bucket(at,1h)");
    const names = items.kind === "get" ? items.select.map((item) => (item.kind === "item" ? item.text : "*")) : [];
    expect(names).toEqual(["id", "m.k", "count", "sum(a * 2)", "b", "bucket(at, 1h)"]);
  });

  test("a durable index", () => {
    expect(parseStatement("create collection t (at timestamp @ttl(7d))")).toMatchObject({
      fields: [{ name: "at", index: { kind: "ttl", ttlMs: 604_800_000, ttlText: "7d" }, required: false }],
    });
    expect(parseStatement("alter collection t alter field at @ttl(250ms)")).toMatchObject({
      action: { kind: "index", field: "at", index: { kind: "ttl", ttlMs: 250 } },
    });
  });

  test("documents and patches", () => {
    expect(parseStatement("put t $2")).toMatchObject({ documents: { kind: "param", index: 1 } });
    expect(parseStatement("put t []")).toMatchObject({ documents: [] });
    expect(parseStatement("put t {}")).toMatchObject({ documents: [{ entries: [] }] });
    expect(parseStatement('put t {m.a.b: 1, "m.a": 2}')).toMatchObject({
      documents: [
        {
          entries: [
            { field: "m", keys: ["a", "b"] },
            { field: "m.a", keys: [] },
          ],
        },
      ],
    });
    expect(parseStatement("put t {a: 1} if absent else set {n: n + new.n} require 2")).toMatchObject({
      ifAbsent: true,
      elseSet: [{ field: "n" }],
      require: 2,
    });
  });

  test("returning", () => {
    expect(parseStatement("del t returning *")).toMatchObject({ returning: { kind: "all" } });
    expect(parseStatement("del t returning id, m.u, a + 1 as b")).toMatchObject({
      returning: { kind: "list", items: [{ text: "id" }, { text: "m.u" }, { text: "b", as: "b" }] },
    });
    expect(parseStatement("del t")).toMatchObject({ returning: null });
  });

  test("counts", () => {
    expect(parseStatement("get t limit $1 offset 2")).toMatchObject({ limit: { index: 0 }, offset: { value: 2 } });
    expect(parseStatement("get t limit 9223372036854775807")).toMatchObject({
      limit: { value: Number.MAX_SAFE_INTEGER },
    });
  });

  test("near", () => {
    expect(parseStatement("get p near loc [10, 99] exact limit 1")).toMatchObject({
      near: { field: "loc", point: { kind: "const", value: [10, 99] } },
    });
  });

  test("places are offsets", () => {
    const text = "get jobs where  owner = now()";
    expect(parseStatement(text)).toMatchObject({ at: 4, where: { left: { at: 16 }, right: { at: 24 } } });
  });
});

test("a text holds statements one after another", () => {
  const all = parseStatements("create collection t (a int) put t {a: 1} get t count; ;del t returning a\nget t");
  expect(all.map((statement) => statement.kind)).toEqual(["create", "put", "get", "del", "get"]);
  expect(parseStatements(" ; -- nothing\n")).toEqual([]);
});

test("claims stand in policies alone", () => {
  expect(parsePolicyCondition("a = $jwt.sub")).toMatchObject({ right: { kind: "claim", name: "sub" } });
  expect(parsePolicyCondition("a in $JWT.rooms")).toMatchObject({
    kind: "in",
    list: [{ kind: "claim", name: "rooms" }],
  });
  expect(parsePolicyCondition('a in [$jwt.rooms, "x"]')).toMatchObject({ list: [{ kind: "claim" }, { value: "x" }] });
  for (const text of ["a = $1", "a = $jwt", "a = $jwt.", "a = $jwt.a.b", "a in $1", "a = $sub"]) {
    expect(() => parsePolicyCondition(text)).toThrow(Refusal);
  }
  expect(() => parseCondition("a = $jwt.sub")).toThrow(/policy/);
  expect(() => parseCondition("a in $1")).toThrow(Refusal);
});

test("a tree that plans may share is frozen", () => {
  const pending: unknown[] = [parseStatement("set t {a: [1, n]} where b in (get u select c) order by d returning e")];
  while (pending.length > 0) {
    const node = pending.pop();
    if (typeof node !== "object" || node === null) continue;
    expect(Object.isFrozen(node)).toBe(true);
    for (const member of Object.values(node)) pending.push(member);
  }
});
