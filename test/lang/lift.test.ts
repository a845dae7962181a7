/**
 * Lifting against parsing: the statement of a lifted text with its literals put back is the statement of the text. The
 * judge is the parser itself, which knows nothing of lifting but the markers.
 */

import { describe, expect, test } from "bun:test";
import { CACHED_TEXT_LENGTH } from "../../src/base/limits.ts";
import { Refusal } from "../../src/base/refusal.ts";
import type { Statement } from "../../src/lang/ast.ts";
import { listConstant, objectConstant } from "../../src/lang/constant.ts";
import { type Lifted, lift } from "../../src/lang/lift.ts";
import { LIFTED_BASE, parseLifted, parseStatement } from "../../src/lang/parse.ts";
import { printStatement } from "../../src/lang/print.ts";
import { Float, Json, type Value } from "../../src/value/value.ts";
import { type Random, withRandom } from "../store/random.ts";
import { TreeMaker } from "./random_tree.ts";
import { respell, tokensOf } from "./respell.ts";
import { treeText } from "./tree_text.ts";

const { FENEC_ROUNDS: givenRounds } = process.env;
const ROUNDS = Number(givenRounds ?? 400);

/** The tree with each lifted parameter replaced by its literal, and what that makes constant made one. */
function putBack(node: unknown, literals: readonly Value[]): unknown {
  if (typeof node !== "object" || node === null || node instanceof Float || node instanceof Json) return node;
  if (Array.isArray(node)) return node.map((member) => putBack(member, literals));
  const tree = Object.fromEntries(Object.entries(node).map(([name, member]) => [name, putBack(member, literals)]));
  if (tree["kind"] === "param" && typeof tree["index"] === "number" && tree["index"] >= LIFTED_BASE) {
    const literal = literals[tree["index"] - LIFTED_BASE];
    if (literal === undefined) throw new Error(`no literal ${tree["index"]}`);
    return { kind: "const", value: literal };
  }
  if (tree["kind"] === "list" && Array.isArray(tree["items"]) && tree["items"].every(isConstant)) {
    return listConstant(tree["items"]);
  }
  if (tree["kind"] === "object" && Array.isArray(tree["entries"])) {
    if (tree["entries"].every((entry) => isConstant(entry.value))) return objectConstant(tree["entries"]);
  }
  return tree;
}

function isConstant(expr: { kind?: unknown }): boolean {
  return expr.kind === "const";
}

function outcome(parse: () => unknown): string {
  try {
    return treeText(parse());
  } catch (failure) {
    if (failure instanceof Refusal && failure.status === 400) return "refused";
    throw failure;
  }
}

/** Texts whose literal behind `limit` or `offset` is no whole number are refused by whoever binds it. */
function hasOddCount(statement: Statement, literals: readonly Value[]): boolean {
  return [...treeText(statement).matchAll(/(?:limit|offset): \{index: (\d+)/g)].some(([, index]) => {
    const literal = literals[Number(index) - LIFTED_BASE];
    return Number(index) >= LIFTED_BASE && (typeof literal !== "number" || literal < 0);
  });
}

function keyOf(text: string): string | undefined {
  return lift(text)?.key;
}

function lifted(text: string): Lifted {
  const result = lift(text);
  if (result === null) throw new Error(`not lifted: ${text}`);
  return result;
}

describe("literals put back make the same statement", () => {
  test("random statements in random spellings", () => {
    withRandom((random) => {
      const maker = new TreeMaker(random);
      let lifts = 0;
      for (let round = 0; round < ROUNDS; round++) {
        const text = respell(printStatement(maker.work()), random, 0.3);
        const result = lift(text);
        if (result === null) continue;
        lifts++;
        const seen = outcome(() => putBack(parseLifted(result), result.literals));
        const expected = outcome(() => parseStatement(text));
        expect(expected).not.toBe("refused");
        if (seen !== expected) expect(`${text}\n${result.key}\n${seen}`).toBe(`${text}\n${result.key}\n${expected}`);
      }
      expect(lifts).toBeGreaterThan(ROUNDS / 4);
    });
  });

  test("a wrong text is wrong lifted too", () => {
    withRandom((random) => {
      const maker = new TreeMaker(random);
      for (let round = 0; round < ROUNDS * 2; round++) {
        const text = spoiled(printStatement(maker.work()), random);
        const result = lift(text);
        if (result === null) continue;
        const expected = outcome(() => parseStatement(text));
        let statement: Statement | undefined;
        const seen = outcome(() => {
          statement = parseLifted(result);
          return putBack(statement, result.literals);
        });
        if (statement !== undefined && hasOddCount(statement, result.literals)) continue;
        if (seen !== expected) expect(`${text}\n${result.key}\n${seen}`).toBe(`${text}\n${result.key}\n${expected}`);
      }
    });
  });
});

/** Another literal of the same kind. */
function likeness(literal: Value, random: Random): string {
  if (typeof literal === "string") return random.pick(['"w9"', "'it is'", '""', '"?0 -- [{"']);
  if (Array.isArray(literal)) return random.pick(["[]", "[1, 2.50]", "[ 'a' , [null] ]"]);
  if (literal instanceof Json) return random.pick(["{}", "{k: -1}", '{"a b": [1, {c: true}],}']);
  const n = literal instanceof Float ? literal.n : literal;
  return Object.is(n, -0) || Number(n) < 0
    ? random.pick(["-7", "-0.5"])
    : random.pick(["0", "12", "1_000", "2.50", "1e3"]);
}

test("other literals in the same places have the same key", () => {
  withRandom((random) => {
    const maker = new TreeMaker(random);
    for (let round = 0; round < ROUNDS; round++) {
      const result = lift(printStatement(maker.work()));
      if (result === null) continue;
      const parts = tokensOf(result.key.replaceAll(/\?(\d+)/g, "@m$1"));
      // Markers inside quoted keys are text.
      if (parts.some((part) => /^["'].*@m/s.test(part))) continue;
      const other = parts
        .map((part) => (part.startsWith("@m") ? likeness(result.literals[Number(part.slice(2))]!, random) : part))
        .join("");
      expect(`${other}\n${keyOf(other)}`).toBe(`${other}\n${result.key}`);
    }
  });
});

/** Tokens left out, doubled, swapped, put in, or run together. */
function spoiled(text: string, random: Random): string {
  const tokens = tokensOf(text);
  for (let changes = 1 + random.below(2); changes > 0; changes--) {
    const at = random.below(tokens.length);
    switch (random.below(5)) {
      case 0:
        tokens.splice(at, 1);
        break;
      case 1:
        tokens.splice(at, 0, random.pick(tokens));
        break;
      case 2:
        tokens.splice(at, 1, random.pick(tokens));
        break;
      case 3:
        tokens.splice(
          at,
          0,
          random.pick(["-", "1", '"x"', " ", "?", "?0", "5m", "(", "[", "{", "}", ",", ":", " -3", "%", ";"]),
        );
        break;
      default:
        tokens.splice(at, 1, random.pick(["", " ", "-1", "'y'", "select", "count", " limit ", " require "]));
    }
  }
  return tokens.join("");
}

describe("one key for texts that differ in their literals", () => {
  const queue: [string, string, string][] = [
    [
      `set jobs {owner: "w1", run_at: now() + 30000, attempts: attempts + 1} where run_at <= now() order run_at limit 10 returning *`,
      `set jobs {owner: 'w2:17',  run_at: now() + 5,\n attempts: attempts + 2}\nwhere run_at <= now() -- ready\norder run_at limit 1 returning * `,
      "set jobs {owner: ?0, run_at: now() + ?1, attempts: attempts + ?2} where run_at <= now() order run_at limit ?3 returning *",
    ],
    [
      'del jobs where id = 7 and owner = "w1" require 1',
      '  del jobs where id = 12345678901 and owner = "" require 1',
      "del jobs where id = ?0 and owner = ?1 require 1",
    ],
    [
      'put jobs {payload: {"to": "ada"}, run_at: now(), attempts: 0}',
      'put jobs {payload: [1, {"deep": [null, true, -1.50]}], run_at: now(), attempts: -3}',
      "put jobs {payload: ?0, run_at: now(), attempts: ?1}",
    ],
    [
      "set rides {owner: $1} order distance(pickup, [29.0290, 41.0490]) limit 1 returning id",
      "set rides {owner: $1} order distance(pickup, [-1, 2]) limit 5 returning id",
      "set rides {owner: $1} order distance(pickup, ?0) limit ?1 returning id",
    ],
    [
      "get jobs select id, error where run_at is null and attempts > 5 limit 3 offset 1",
      "get jobs select id, error where run_at is null and attempts > 1_000 limit 9 offset 2",
      "get jobs select id, error where run_at is null and attempts > ?0 limit ?1 offset ?2",
    ],
    [
      'put jobs [{n: 1, k: "a"}, {n: 2, k: "b"}] if absent else set {n: n + 1} require 2',
      'put jobs [{n: -1, k: "c"}, {n: 2.5, k: "d"}] if absent else set {n: n + 9} require 2',
      "put jobs [{n: ?0, k: ?1}, {n: ?2, k: ?3}] if absent else set {n: n + ?4} require 2",
    ],
    [
      "get t where a in [1, 2] and b - -1 < 4 and c has [1, 2] and group = 'g'",
      "get t where a in [7, 'x'] and b - -9 < 4 and c has [] and group = 'h'",
      "get t where a in [?0, ?1] and b - ?2 < ?3 and c has ?4 and group = ?5",
    ],
  ];
  for (const [one, other, key] of queue) {
    test(key, () => {
      expect(keyOf(one)).toBe(key);
      expect(keyOf(other)).toBe(key);
    });
  }
});

test("what stays in the text", () => {
  const texts: [string, string][] = [
    ["del t require 3", "del t require 3"],
    ["get t where bucket(at, 15m) = 5", "get t where bucket(at, 15m) = ?0"],
    ["get t select a * 2 as b, 'x' as c where d = 1", "get t select a * 2 as b, 'x' as c where d = ?0"],
    ["select 1 + n as m from t where n = 2", "select 1 + n as m from t where n = ?0"],
    ['put t {"a b": 1, "c": {"d": n}}', 'put t {"a b": ?0, "c": {"d": n}}'],
    ["get t limit -1", "get t limit -1"],
    ["get t where n -1 = 0", "get t where n -?0 = ?1"],
    ["put order [{a: 1}]", "put order [{a: ?0}]"],
  ];
  for (const [text, key] of texts) expect(keyOf(text)).toBe(key);
});

test("what is not lifted at all", () => {
  const texts = [
    "create collection t (a int)",
    "collections",
    "get t select count(*) where a = 1 group b",
    "get t near p [1, 2]",
    "put t {a: 9223372036854775808}",
    'put t {a: "open}',
    "get t where a = ?",
    "get t where a = ?0",
    "",
    `put t {a: "${"x".repeat(CACHED_TEXT_LENGTH)}"}`,
  ];
  for (const text of texts) expect(lift(text)).toBeNull();
});

test("a literal is the value the parser reads", () => {
  const text = `put t {a: -9223372036854775808, b: 1.50, c: "a\\n\\"b", d: {k: [1e2, -0.0, 1_000], "__proto__": {}}}`;
  expect(treeText(lifted(text).literals)).toBe(
    treeText([-(2n ** 63n), new Float(1.5, "1.50"), 'a\n"b', new Json('{"k":[1e2,-0.0,1000],"__proto__":{}}')]),
  );
});

test("a column called by its text keeps its literals", () => {
  // The field `order` ends nothing where a column starts, and a list that is left early is caught by the parser.
  const text = "get t select order, sum(a * 2) where b = 1";
  expect(keyOf(text)).toBe("get t select order, sum(a * 2) where b = ?0");
  expect(() => parseLifted({ key: "get t select sum(a * ?0)", literals: [2] })).toThrow(Refusal);
});
