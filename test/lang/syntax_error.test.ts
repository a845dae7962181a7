/** Refusals: the place, the words, the suggestion; and texts made to hurt. */

import { describe, expect, test } from "bun:test";
import { Refusal } from "../../src/base/refusal.ts";
import { parseCondition, parseStatement, parseStatements } from "../../src/lang/parse.ts";

function refusal(run: () => unknown): Refusal {
  try {
    run();
  } catch (failure) {
    if (failure instanceof Refusal) return failure;
    throw failure;
  }
  throw new Error("was not refused");
}

const refused = (text: string): Refusal => refusal(() => parseStatement(text));

describe("line, column, what was found and what was expected", () => {
  const wrong: [text: string, line: number, column: number, ...words: string[]][] = [
    ["", 1, 1, "found the end of the text", "`get`"],
    ["get jobs wher a = 1", 1, 10, "found `wher`", "did you mean `where`?", "`limit`"],
    ["get jobs\n  where a = 1\n  limt 3", 3, 3, "found `limt`", "did you mean `limit`?"],
    ["set jobs {a: 1} where b = 2 retruning *", 1, 29, "did you mean `returning`?"],
    ["slect a from t", 1, 1, "found `slect`", "did you mean `select`?"],
    ["get t where a = 1 oder by b", 1, 19, "did you mean `order`?"],
    ["get t where a adn b", 1, 15, "did you mean `and`?"],
    ["create colection t (a int)", 1, 8, "did you mean `collection`?"],
    ["create collection t (a strng)", 1, 24, "`strng`", "did you mean `text`?"],
    ["create collection t (a itn)", 1, 24, "did you mean `int`?"],
    ["create collection t (a number)", 1, 24, "did you mean `int`?"],
    ["create collection t (a int @unqiue)", 1, 28, "did you mean `@unique`?"],
    ["get t where a =", 1, 16, "found the end of the text", "expected an expression"],
    ["get t where (a = 1", 1, 19, "found the end of the text", "`)`"],
    ["get t where a = 1)", 1, 18, "found `)`", "the end of the text"],
    ["get t where a % 2", 1, 15, "found `%`"],
    ["get t where a = 1 & b", 1, 19, "found `&`"],
    ["get t where a = ! b", 1, 17, "found `!`"],
    ["get t where a ! b", 1, 15, "`!=`"],
    ["get t where 😀 = 1", 1, 13, "found `😀`"],
    ["get t where '😀😀' = 'é' )", 1, 24, "found `)`"],
    ["get t where\r\n\r\na = 'x\ny' )", 4, 4, "found `)`"],
    ["put t {a: .5}", 1, 11, "found `.`"],
    ["put t {a: 1.}", 1, 12, "dot"],
    ["put t {a: 1.2.3}", 1, 14, "one dot"],
    ["put t {a: 12ab}", 1, 13, "letter"],
    ["put t {a: 1__0}", 1, 12, "`_` stands between two digits"],
    ["get t where a in (1, 2)", 1, 19, "`in [1, 2]`"],
    ["get t where a in ($1)", 1, 19, "`in [1, 2]`"],
    ["get t where a in (gett b)", 1, 19, "did you mean `get`?"],
    ["get t where a like 'x%'", 1, 15, '`x ~ "a"`'],
    ["get t where a BETWEEN 1 and 2", 1, 15, "`x >= a and x <= b`"],
    ["put t {a: 1_}", 1, 12, "`_` stands between two digits"],
    ["put t {a: 1_.5}", 1, 12, "`_` stands between two digits"],
    ["create index on t (a)", 1, 22, "expected `@hash`, `@unique`, `@sorted`, `@geo` or `@ttl(...)`"],
    ["create index on t (a) sorted", 1, 23, "did you mean `@sorted`?"],
    ["create collection t (a int unique)", 1, 28, "did you mean `@unique`?"],
    ["put t {a: 9223372036854775808}", 1, 11, "64 bits"],
    ["put t {a: -9223372036854775809}", 1, 11, "64 bits"],
    ["put t {a: {b: 99999999999999999999}}", 1, 15, "64 bits"],
    ["put t {a: 1e400}", 1, 11, "float"],
    ['put t {a: "open}', 1, 11, "never closed"],
    ['put t {a: "open\\"', 1, 11, "never closed"],
    ["get t where m. = 1", 1, 14, "dot"],
    ["get t where m.5 = 1", 1, 14, "dot"],
    ["get t where .m = 1", 1, 13, "found `.`"],
    ["get t where a = $0", 1, 17, "`$1`"],
    ["get t where a = $", 1, 17, "`$1`"],
    ["get t where a = $1x", 1, 17, "`$1`"],
    ["get t where a = ?0", 1, 17, "found `?`"],
    ["get t where a = 1 = 2", 1, 19, "does not chain"],
    ["get t where a < b < c", 1, 19, "does not chain"],
    ["get t where a in [1] = true", 1, 22, "does not chain"],
    ["get t where a = not b", 1, 17, "not"],
    ["get t where a not in [1]", 1, 15, "not x in"],
    ["get t where a in 1", 1, 18, "`[`"],
    ["get t where a in (1)", 1, 19, "`in (get ...)`"],
    ["get t where a is 1", 1, 18, "`null`"],
    ["get t select case else 1 end as c", 1, 19, "found `else`"],
    ["get t select case when a then 1 as c", 1, 33, "`end`"],
    ["get t limit -1", 1, 13, "found `-1`", "whole number"],
    ["get t limit 1.5", 1, 13, "whole number"],
    ['get t limit "2"', 1, 13, 'found `"2"`'],
    ["get t require $1", 1, 15, "found `$1`", "whole number"],
    ["set t {a: 1} require -1", 1, 22, "whole number"],
    ["get t order a down", 1, 15, "found `down`", "`desc`"],
    ["put t {a: 1, a: 2}", 1, 14, "`a` stands twice"],
    ["set t {m.a: 1, m.a: 2}", 1, 16, "`m.a` stands twice"],
    ['put t {j: {a: 1, "a": 2}}', 1, 18, "`a` stands twice"],
    ["put t {j: {a.b: 1}}", 1, 12, "not a path"],
    ["set t {a 1}", 1, 10, "found `1`", "`:`"],
    ["set t where a = 1", 1, 7, "found `where`", "`{`"],
    ["put t {a: 1", 1, 12, "`}`"],
    ["put t [{a: 1} {a: 2}]", 1, 15, "found `{`", "`,`"],
    ['put m {k: "x"} if present', 1, 19, "found `present`", "`absent`"],
    ['put m {k: "x"} if absent else {n: 1}', 1, 31, "`set`"],
    ["put t {a: 1} put t {a: 2}", 1, 14, "found `put`", "one statement"],
    ["put t {a: 1}; put t {a: 2}", 1, 15, "one statement"],
    ["get t get t", 1, 7, "one statement"],
    ["create collection t ()", 1, 22, "a field's name"],
    ["create collection t (a.b int)", 1, 23, "no dots"],
    ["create collection t (a int,)", 1, 28, "a field's name"],
    ["create collection x (t timestamp @ttl(0s))", 1, 39, "longer than nothing"],
    ["create collection x (t timestamp @ttl(30))", 1, 39, "`15m`"],
    ["create collection x (t timestamp @ttl(30y))", 1, 39, "`15m`"],
    ["create collection x (t timestamp @ttl)", 1, 38, "`(`"],
    ["create collection x (t timestamp @ttl(99999999999999d))", 1, 39, "milliseconds"],
    ["get t where bucket(at, 15q) = 1", 1, 24, "`15q`"],
    ["alter collection t alter field a @hash", 1, 34, "@sorted"],
    ["explain explain get t", 1, 9, "found `explain`"],
  ];
  for (const [text, line, column, ...words] of wrong) {
    test(text, () => {
      const failure = refused(text);
      for (const piece of [`line ${line}, column ${column}: `, ...words]) expect(failure.message).toContain(piece);
      expect(failure.code).toBe("syntax");
      expect(failure.status).toBe(400);
      expect(failure.data).toMatchObject({ line, column });
      expect(Array.isArray(failure.data["expected"])).toBe(true);
    });
  }

  test("a long token is cut", () => {
    expect(refused(`get t ${"x".repeat(10_000)}`).message.length).toBeLessThan(400);
    expect(refused(`get t "${"é😀".repeat(10_000)}"`).message.length).toBeLessThan(400);
    expect(refused(`put t {a: ${"9".repeat(10_000)}}`).message.length).toBeLessThan(400);
    expect(refused(`create collection t (a ${"x".repeat(200)})`).message.length).toBeLessThan(500);
    expect(refused("get t \ud800").message.isWellFormed()).toBe(true);
  });
});

describe("clauses that do not stand where they are", () => {
  const wrong: [string, string][] = [
    ["get t where a = 1 where b = 2", "`where`"],
    ["get t limit 1 limit 2", "`limit`"],
    ["select a from t select b", "`select`"],
    ["del t require 1 require 1", "`require`"],
    ["get t count count", "`count`"],
    ["set t {a: 1} limit 1 offset 1", "`offset`"],
    ["del t order a limit 1 offset 1", "`offset`"],
    ["set t {a: 1} returning *, a", "`returning *`"],
    ["set t {a: 1} returning a, *", "`returning *`"],
    ["set t {a: 1} returning a + 1", "`as`"],
    ["put t {a: 1} returning *", "`returning`"],
    ["insert t {a: 1} returning id", "`returning`"],
    ["get t returning id", "`returning`"],
    ["put t {a: 1} where b = 1", "`where`"],
    ['put m {k: "x"} else set {n: 1}', "`if absent`"],
    ["explain put t {a: 1}", "`explain`"],
  ];
  for (const [text, words] of wrong) {
    test(text, () => {
      const failure = refused(text);
      expect(failure.code).toBe("bad_clause");
      expect(failure.message).toContain(words);
    });
  }
});

describe("what the server leaves out is named", () => {
  const wrong: [string, string][] = [
    ["get t match body 'x'", "match"],
    ["get t rerank v $1", "rerank"],
    ["get t near v $1 fuse", "fuse"],
    ["get t facet a", "facet"],
    ["get t lookup u on a", "lookup"],
    ["get t near v $1 ef 10", "ef"],
    ["get t select highlight(body)", "highlight"],
    ["get t select snippet(body, 3) as s", "snippet"],
    ["get t order a collate tr", "collate"],
    ["create collection t (a text collate und)", "collate"],
    ["create collection t (a vector<3>)", "vector"],
    ["create collection t (a sparse<3> @hnsw)", "sparse"],
    ["create collection t (a text @text)", "@text"],
    ["create index on t (v) @hnsw", "@hnsw"],
  ];
  for (const [text, words] of wrong) {
    test(text, () => {
      const failure = refused(text);
      expect(failure.code).toBe("unsupported");
      expect(failure.message).toContain(`\`${words}\``);
      expect(failure.message).toContain("not supported");
    });
  }

  test("the words are fields as well", () => {
    expect(parseStatement("get t select match, facet where lookup = rerank order by fuse")).toMatchObject({
      kind: "get",
    });
  });
});

describe("bounds", () => {
  const parentheses = (depth: number): string => `${"(".repeat(depth)}n = 1${")".repeat(depth)}`;
  const chain = (terms: number, operator: string): string => Array(terms).fill("n").join(operator);

  test("512 levels and not one more", () => {
    for (const fits of [
      parentheses(512),
      chain(512, " or "),
      chain(512, " and "),
      chain(512, " + "),
      chain(512, " * "),
      `${"not ".repeat(512)}n`,
      `${"- ".repeat(512)}n`,
      `${"f(".repeat(512)}n${")".repeat(512)}`,
      `${"case when a then ".repeat(512)}n${" end".repeat(512)}`,
      `(${chain(300, " or ")})${" or n".repeat(211)}`,
    ]) {
      expect(parseCondition(fits)).toBeDefined();
    }
    for (const deep of [
      parentheses(513),
      chain(513, " or "),
      chain(513, " and "),
      chain(513, " + "),
      chain(513, " * "),
      `${"not ".repeat(513)}n`,
      `${"- ".repeat(513)}n`,
      `${"f(".repeat(513)}n${")".repeat(513)}`,
      `${"case when a then ".repeat(513)}n${" end".repeat(513)}`,
      `(${chain(512, " or ")})`,
      `(${chain(300, " or ")})${" or n".repeat(212)}`,
    ]) {
      const failure = refusal(() => parseCondition(deep));
      expect(failure.code).toBe("too_deep");
      expect(failure.message).toContain("too deep");
    }
  });

  test("a tree that leans left is as deep as its parentheses and its chains together", () => {
    let text = "n";
    for (let level = 0; level < 40; level++) text = `(${text})${" + 1".repeat(20)}`;
    expect(refusal(() => parseCondition(text)).code).toBe("too_deep");
  });

  test("texts made to overflow a stack are refused", () => {
    const many = 100_000;
    for (const text of [
      `${"not ".repeat(many)}n`,
      `${"- ".repeat(many)}n`,
      "(".repeat(many),
      "[".repeat(many),
      "a in [".repeat(many),
      "{a: ".repeat(many),
      "f(".repeat(many),
      "case when ".repeat(many),
      `n${" + 1".repeat(many)}`,
      `n${" = 1 or n".repeat(many)}`,
      `n${" and n".repeat(many)}`,
      "a in (get t where ".repeat(many),
    ]) {
      const failure = refusal(() => parseCondition(text));
      expect(["too_deep", "limit_passed"]).toContain(failure.code);
    }
    for (const text of [
      `create collection t (a ${"[".repeat(many)}int`,
      `put t {a: ${"[".repeat(many)}`,
      `put t {a${".a".repeat(many)}: 1}`,
      "explain ".repeat(many),
    ]) {
      expect(refused(text).status).toBe(400);
    }
  });

  test("a list has no bound of its own", () => {
    const list = Array.from({ length: 100_000 }, (_, i) => i).join(", ");
    expect(parseCondition(`n in [${list}]`)).toMatchObject({ list: { length: 100_000 } });
    expect(parseCondition(`[${list}]`)).toMatchObject({ value: { length: 100_000 } });
  });

  test("values nest to 64 levels, paths to 64 keys, inner reads to 4, names to 255 letters", () => {
    const nested = (levels: number): string => `put d {m: ${"{a: ".repeat(levels)}1${"}".repeat(levels)}}`;
    expect(parseStatement(nested(64))).toBeDefined();
    expect(refused(nested(65)).code).toBe("too_deep");
    expect(parseCondition(`m${".a".repeat(64)} = 1`)).toBeDefined();
    expect(refusal(() => parseCondition(`m${".a".repeat(65)} = 1`)).code).toBe("limit_passed");
    const reads = (levels: number): string => `a${" in (get t select b where b".repeat(levels)}${")".repeat(levels)}`;
    expect(parseCondition(reads(4))).toBeDefined();
    expect(refusal(() => parseCondition(reads(5))).code).toBe("limit_passed");
    expect(parseStatement(`get ${"𠀀".repeat(255)}`)).toBeDefined();
    expect(refused(`get ${"x".repeat(256)}`).code).toBe("limit_passed");
    expect(refusal(() => parseCondition(`${"x".repeat(256)} = 1`)).code).toBe("limit_passed");
  });

  test("a parameter's number ends before the lifted literals'", () => {
    expect(parseCondition("$1000000")).toMatchObject({ index: 999_999 });
    expect(refusal(() => parseCondition("$1000001")).code).toBe("limit_passed");
    expect(refusal(() => parseCondition(`$${"9".repeat(400)}`)).code).toBe("limit_passed");
  });
});

test("a text that is a member of every object leaves none behind", () => {
  for (const text of ["__proto__", "constructor", "toString", "hasOwnProperty", "__proto__ x"]) {
    expect(refused(text).code).toBe("syntax");
    expect(refusal(() => parseStatements(text)).code).toBe("syntax");
    expect(refusal(() => parseCondition(`${text} +`)).code).toBe("syntax");
  }
  expect(Object.keys(Object.prototype)).toEqual([]);
  expect(Object.getOwnPropertyNames(Object).filter((name) => /^\d+$/.test(name))).toEqual([]);
});
