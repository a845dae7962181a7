/** Expressions against a second, plain parser: what is taken, and as which tree. */

import { describe, expect, test } from "bun:test";
import { Refusal } from "../../src/base/refusal.ts";
import type { Expr } from "../../src/lang/ast.ts";
import { parseCondition } from "../../src/lang/parse.ts";
import { type Random, withRandom } from "../store/random.ts";
import { referenceParse } from "./reference.ts";
import { treeText } from "./tree_text.ts";

const { FENEC_ROUNDS: givenRounds } = process.env;
const ROUNDS = Number(givenRounds ?? 3000);

function parsed(text: string): Expr | undefined {
  try {
    return parseCondition(text);
  } catch (failure) {
    if (failure instanceof Refusal && failure.status === 400) return undefined;
    throw failure;
  }
}

const SOUP = [
  ..."and or not = != < <= > >= ~ has in is null + - * / ( ) [ ] , a b.c 1 2.5 $1 f( case when then else end".split(
    " ",
  ),
  ..."-1 1e3 -0.0 { } k: true 'x' AND Not IN <> == not( ) ] .a a. 1. % ! 9223372036854775808 -9223372036854775808".split(
    " ",
  ),
];

/** Mostly right: operands and operators in turns, brackets that mostly close. */
function plausible(random: Random, depth: number): string {
  const operand = (): string => {
    if (depth > 0 && random.chance(0.5)) {
      const inner = () => plausible(random, depth - 1);
      switch (random.below(8)) {
        case 0:
          return `(${inner()})`;
        case 1:
          return `-${inner()}`;
        case 2:
          return `not ${inner()}`;
        case 3:
          return `[${inner()}, ${inner()}]`;
        case 4:
          return `f(${inner()})`;
        case 5:
          return `case when ${inner()} then ${inner()} end`;
        case 6:
          return `{k: ${inner()}, "m": ${inner()}}`;
        default:
          return `- ${inner()}`;
      }
    }
    return random.pick(["a", "b.c", "1", "-1", "2.50", "$2", '"x"', "null", "true", "not", "in", "and"]);
  };
  let text = operand();
  for (let more = random.below(4); more > 0; more--) {
    const operator = random.pick([
      "+",
      "-",
      "*",
      "/",
      "=",
      "<",
      "~",
      "has",
      "and",
      "or",
      "is null",
      "is not null",
      "in [1]",
    ]);
    text += random.chance(0.8) || /[a-z]/.test(operator) ? ` ${operator} ` : operator;
    text += random.chance(0.9) && !/^i[sn]/.test(operator) ? operand() : "";
  }
  return text;
}

describe("the same answer as a plain second parser", () => {
  test("texts that are mostly right", () => {
    withRandom((random) => {
      let taken = 0;
      for (let round = 0; round < ROUNDS; round++) {
        const text = plausible(random, 3);
        const expected = referenceParse(text);
        if (expected !== undefined) taken++;
        const seen = treeText(parsed(text));
        if (seen !== treeText(expected)) expect(`${text}\n${seen}`).toBe(`${text}\n${treeText(expected)}`);
      }
      expect(taken).toBeGreaterThan(ROUNDS / 4);
    });
  });

  test("tokens in any order", () => {
    withRandom((random) => {
      for (let round = 0; round < ROUNDS; round++) {
        const text = Array.from({ length: 1 + random.below(7) }, () => random.pick(SOUP)).join(
          random.pick([" ", " ", ""]),
        );
        const expected = treeText(referenceParse(text));
        const seen = treeText(parsed(text));
        if (seen !== expected) expect(`${text}\n${seen}`).toBe(`${text}\n${expected}`);
      }
    });
  });
});
