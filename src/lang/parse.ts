/**
 * FenecQL text to nodes, frozen where a cached plan may share them. A text that does not parse is a Refusal: `syntax` (with `line`, `column` and `expected`),
 * `too_deep`, `unsupported` for the parts of the language this server leaves out, `bad_clause` and `limit_passed`.
 */

import type { Parser } from "parsimmon";
import { CACHED_TEXT_LENGTH } from "../base/limits.ts";
import type { Expr, Statement } from "./ast.ts";
import { readExpression } from "./expression.ts";
import { deepFreeze } from "./freeze.ts";
import type { Lifted } from "./lift.ts";
import { type Dialect, reading, spaceEnd } from "./reader.ts";
import { type Grammar, statementGrammar } from "./statement.ts";
import { syntaxError } from "./syntax_error.ts";

export { LIFTED_BASE } from "./lifted.ts";

/** A parser, and the same one again for the second reading of a wrong text. */
interface Pair<T> {
  readonly quick: Parser<T>;
  readonly recording: Parser<T>;
}

function pair<T>(dialect: Omit<Dialect, "recording">, build: (dialect: Dialect) => Parser<T>): Pair<T> {
  return { quick: build({ ...dialect, recording: false }), recording: build({ ...dialect, recording: true }) };
}

function statements<T>(lifted: boolean, part: (grammar: Grammar) => Parser<T>): Pair<T> {
  return pair({ claims: false, lifted }, (dialect) => part(statementGrammar(dialect)));
}

function condition(claims: boolean): Pair<Expr> {
  return pair({ claims, lifted: false }, (dialect) =>
    reading(dialect, (r) => {
      r.at = spaceEnd(r.input, r.at);
      const expr = readExpression(r);
      if (r.at < r.length) r.fail("the end of the text");
      return expr;
    }),
  );
}

const ONE = statements(false, (grammar) => grammar.one);
const MANY = statements(false, (grammar) => grammar.many);
const ONE_LIFTED = statements(true, (grammar) => grammar.one);
const CONDITION = condition(false);
const POLICY_CONDITION = condition(true);

function run<T extends object>(pair: Pair<T>, text: string): T {
  const reply = pair.quick._(text, 0);
  if (reply.status) {
    // A plan made from a longer text is kept by nobody, and freezing a thousand documents costs more than reading them.
    return text.length <= CACHED_TEXT_LENGTH ? deepFreeze(reply.value) : reply.value;
  }
  const again = pair.recording._(text, 0);
  if (again.status) return again.value;
  throw syntaxError(text, again.furthest, again.expected);
}

/** Exactly one statement; white space, comments and `;` may stand around it. */
export function parseStatement(text: string): Statement {
  return run(ONE, text);
}

/** Statements one after another, with or without `;` between them. */
export function parseStatements(text: string): Statement[] {
  return run(MANY, text);
}

/** A condition on its own: what stands behind `where`. */
export function parseCondition(text: string): Expr {
  return run(CONDITION, text);
}

/** A condition of a policy's rule: `$jwt.name` is a token's claim, and there are no numbered parameters. */
export function parsePolicyCondition(text: string): Expr {
  return run(POLICY_CONDITION, text);
}

/**
 * The statement of a text whose literals were lifted out: each is a parameter from LIFTED_BASE on. Throws when the text is
 * wrong or its literals are part of what it means; the text itself then says what it is, by `parseStatement`.
 */
export function parseLifted(lifted: Lifted): Statement {
  return run(ONE_LIFTED, lifted.key);
}
