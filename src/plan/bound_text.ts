/**
 * An expression with its parameters, lifted literals and claims written out: two claims whose filters read the same with
 * the values in them want the same rows.
 */

import type { Expr, GetStatement, OrderKey } from "../lang/ast.ts";
import { printExpr } from "../lang/print.ts";
import type { Value } from "../value/value.ts";
import type { Env } from "./env.ts";

type Bind = (expr: Expr) => Expr;

export function boundText(expr: Expr | null, env: Env): string {
  return expr === null ? "" : printExpr(bound(expr, binderOf(env)));
}

export function boundOrderText(order: readonly OrderKey[], env: Env): string {
  const bind = binderOf(env);
  return order.map((key) => `${printExpr(bound(key.expr, bind))}${key.desc ? " desc" : ""}`).join(", ");
}

/** The order with its values left out: orders of one shape rank rows on one scale. */
export function orderShape(order: readonly OrderKey[]): string {
  const blank: Bind = (expr) => (isValue(expr) ? { kind: "param", index: 0 } : expr);
  return order.map((key) => `${printExpr(bound(key.expr, blank))}${key.desc ? " desc" : ""}`).join(", ");
}

function isValue(expr: Expr): boolean {
  return expr.kind === "param" || expr.kind === "claim" || expr.kind === "const";
}

function binderOf(env: Env): Bind {
  const constant = (value: Value): Expr => ({ kind: "const", value });
  return (expr) => {
    if (expr.kind === "param") return constant(env.param(expr.index));
    if (expr.kind === "claim") return constant(env.claims.get(expr.name) ?? null);
    return expr;
  };
}

/** The tree with other leaves. */
export function replaced(expr: Expr, leaf: (leaf: Expr) => Expr): Expr {
  return bound(expr, leaf);
}

/** The tree with its leaves bound; its depth is the parser's, which is bounded. */
function bound(expr: Expr, bind: Bind): Expr {
  const each = (part: Expr): Expr => bound(part, bind);
  switch (expr.kind) {
    case "unary":
    case "isNull":
      return { ...expr, of: each(expr.of) };
    case "binary":
      return { ...expr, left: each(expr.left), right: each(expr.right) };
    case "and":
    case "or":
      return { ...expr, of: expr.of.map(each) };
    case "in":
      return { ...expr, left: each(expr.left), list: expr.list.map(each) };
    case "inGet":
      return { ...expr, left: each(expr.left), get: boundGet(expr.get, bind) };
    case "call":
      return { ...expr, args: expr.args.map(each), by: expr.by === null ? null : each(expr.by) };
    case "case":
      return {
        ...expr,
        // biome-ignore lint/suspicious/noThenProperty: the arm's own member, as the syntax tree has it
        whens: expr.whens.map((arm) => ({ ...arm, when: each(arm.when), then: each(arm.then) })),
        otherwise: expr.otherwise === null ? null : each(expr.otherwise),
      };
    case "list":
      return { ...expr, items: expr.items.map(each) };
    case "object":
      return { ...expr, entries: expr.entries.map((entry) => ({ ...entry, value: each(entry.value) })) };
    default:
      return bind(expr);
  }
}

function boundGet(get: GetStatement, bind: Bind): GetStatement {
  const each = (part: Expr): Expr => bound(part, bind);
  const count = (part: GetStatement["limit"]): GetStatement["limit"] =>
    part === null ? null : (bind(part) as GetStatement["limit"]);
  return {
    ...get,
    select: get.select.map((item) => (item.kind === "star" ? item : { ...item, expr: each(item.expr) })),
    where: get.where === null ? null : each(get.where),
    near: get.near === null ? null : { ...get.near, point: each(get.near.point) },
    order: get.order.map((key) => ({ ...key, expr: each(key.expr) })),
    limit: count(get.limit),
    offset: count(get.offset),
    group: get.group.map(each),
    having: get.having === null ? null : each(get.having),
  };
}
