/** The parts of an expression, for whoever walks one. An inner read is not walked into: its names are another's. */

import type { Expr } from "./ast.ts";

export function partsOf(expr: Expr): readonly Expr[] {
  switch (expr.kind) {
    case "unary":
    case "isNull":
      return [expr.of];
    case "binary":
      return [expr.left, expr.right];
    case "and":
    case "or":
      return expr.of;
    case "in":
      return [expr.left, ...expr.list];
    case "inGet":
      return [expr.left];
    case "call":
      return expr.by === null ? expr.args : [...expr.args, expr.by];
    case "case": {
      const arms = expr.whens.flatMap((arm) => [arm.when, arm.then]);
      return expr.otherwise === null ? arms : [...arms, expr.otherwise];
    }
    case "list":
      return expr.items;
    case "object":
      return expr.entries.map((entry) => entry.value);
    default:
      return [];
  }
}

/** Every node of an expression, inner reads aside. */
export function* everyNode(root: Expr): Iterable<Expr> {
  const pending: Expr[] = [root];
  for (let expr = pending.pop(); expr !== undefined; expr = pending.pop()) {
    yield expr;
    for (const part of partsOf(expr)) pending.push(part);
  }
}

/** Whether any node of an expression, inner reads aside, is such. */
export function someNode(root: Expr, is: (expr: Expr) => boolean): boolean {
  const pending: Expr[] = [root];
  for (let expr = pending.pop(); expr !== undefined; expr = pending.pop()) {
    if (is(expr)) return true;
    for (const part of partsOf(expr)) pending.push(part);
  }
  return false;
}

/** The conditions that all must hold, in order, whatever parentheses stand around some of them; none for null. */
export function conditionsOf(where: Expr | null): Expr[] {
  const conditions: Expr[] = [];
  const pending: Expr[] = where === null ? [] : [where];
  for (let expr = pending.pop(); expr !== undefined; expr = pending.pop()) {
    if (expr.kind === "and") for (const part of expr.of.toReversed()) pending.push(part);
    else conditions.push(expr);
  }
  return conditions;
}

/** The condition that all of them hold; null for none. */
export function allOf(conditions: readonly Expr[]): Expr | null {
  const [only, second] = conditions;
  if (only === undefined) return null;
  return second === undefined ? only : { kind: "and", of: conditions };
}
