import { describe, expect, test } from "bun:test";
import { parseCondition, parsePolicyCondition, parseStatement, parseStatements } from "../../src/lang/parse.ts";
import { printExpr, printStatement } from "../../src/lang/print.ts";
import { withRandom } from "../store/random.ts";
import { TreeMaker } from "./random_tree.ts";
import { respell, shout } from "./respell.ts";
import { treeText } from "./tree_text.ts";

const { FENEC_ROUNDS: givenRounds } = process.env;
const ROUNDS = Number(givenRounds ?? 400);

describe("a printed tree parses back to itself", () => {
  test("random statements", () => {
    withRandom((random) => {
      const maker = new TreeMaker(random);
      for (let round = 0; round < ROUNDS; round++) {
        const statement = maker.statement();
        const text = printStatement(statement);
        expect(`${text}\n${treeText(parseStatement(text))}`).toBe(`${text}\n${treeText(statement)}`);
      }
    });
  });

  test("whatever white space and comments stand in it", () => {
    withRandom((random) => {
      const maker = new TreeMaker(random);
      for (let round = 0; round < ROUNDS; round++) {
        const statement = maker.statement();
        const text = respell(printStatement(statement), random, 0.5);
        expect(`${text}\n${treeText(parseStatement(text))}`).toBe(`${text}\n${treeText(statement)}`);
      }
    });
  });

  test("whatever the case of its keywords", () => {
    const text = "set t {a: not b} where a in [1] and b is not null or c order by a desc limit 1 returning * require 1";
    expect(shout(text)).not.toBe(text);
    expect(treeText(parseStatement(shout(text)))).toBe(treeText(parseStatement(text)));
  });

  test("random statements one after another", () => {
    withRandom((random) => {
      const maker = new TreeMaker(random);
      for (let round = 0; round < ROUNDS / 20; round++) {
        const statements = Array.from({ length: random.below(5) }, () => maker.statement());
        const text = statements.map(printStatement).join(random.pick([";", " ;\n; ", ";;"]));
        expect(treeText(parseStatements(text))).toBe(treeText(statements));
      }
    });
  });

  test("random conditions", () => {
    withRandom((random) => {
      const maker = new TreeMaker(random);
      for (let round = 0; round < ROUNDS; round++) {
        const condition = maker.expr(4);
        const text = printExpr(condition);
        expect(`${text}\n${treeText(parseCondition(text))}`).toBe(`${text}\n${treeText(condition)}`);
      }
    });
  });
});

test("a claim prints as it was written", () => {
  for (const text of ["owner = $jwt.sub", "room in $jwt.rooms", 'room in [$jwt.rooms, "lobby"]', "not $jwt.admin"]) {
    expect(printExpr(parsePolicyCondition(text))).toBe(text);
  }
});

test("the canonical spelling", () => {
  const texts: [string, string][] = [
    ["GET Jobs WHERE a==1 AND (b<>2)", "get Jobs where a = 1 and b != 2"],
    ["select a, b as c from t order a asc, b DESC", "get t select a, b as c order by a, b desc"],
    ["update t set {a: a-1}", "set t {a: a - 1}"],
    ["delete from t limit 1", "del t limit 1"],
    ["insert t {'a': 'x',}", 'insert t {a: "x"}'],
    ["put t {a: 1} {a: 2}", "put t [{a: 1}, {a: 2}]"],
    ["get t where ((a + b)) * c = - (- 5)", "get t where (a + b) * c = -(- 5)"],
    ["get t where (a and b) and c", "get t where (a and b) and c"],
    ["alter collection t add x int", "alter collection t add field x int"],
  ];
  for (const [text, canonical] of texts) {
    const printed = printStatement(parseStatement(text));
    // Minus of minus needs no parentheses, only a space.
    expect(printed).toBe(canonical.replace("-(- 5)", "- - 5"));
  }
});
