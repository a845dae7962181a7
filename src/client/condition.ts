/**
 * Conditions: what `where` takes, as a tree of `and`, `or`, `not` and single tests, and the tree as text. Parentheses
 * follow one rule: `and` inside `or` and `or` inside `and` get them, the same kind inside itself is flattened, `not`
 * always has them, and `raw` never.
 */

import { refuse } from "./error.ts";
import { type Binder, Expr, Piece, pathName, Raw } from "./expression.ts";

type Test =
  | { readonly kind: "raw"; readonly raw: Raw }
  | { readonly kind: "null"; readonly field: string; readonly not: boolean }
  | { readonly kind: "compare"; readonly left: Left; readonly operator: string; readonly value: unknown }
  | { readonly kind: "in"; readonly field: string; readonly values: readonly unknown[] }
  | { readonly kind: "within"; readonly field: string; readonly box: unknown };
type Left = { readonly field: string } | { readonly distanceOf: string; readonly from: unknown };
type Node =
  | Test
  | { readonly kind: "and" | "or"; readonly of: readonly Node[] }
  | { readonly kind: "not" | "sealed"; readonly of: Node };

/** A condition made by `or`, `and` or `not`; `raw` is one too. */
export class Condition extends Piece {
  readonly node: Node;
  constructor(node: Node) {
    super();
    this.node = node;
  }
}

/** What may stand where a condition is expected: fields with their values, all of which must hold, or a made condition. */
export type ConditionLike = Condition | Raw | object;

/** At least one holds. */
export function or(...conditions: readonly ConditionLike[]): Condition {
  return new Condition({ kind: "or", of: conditions.map(nodeOf) });
}

/** All hold. */
export function and(...conditions: readonly ConditionLike[]): Condition {
  return new Condition({ kind: "and", of: conditions.map(nodeOf) });
}

/** The opposite. */
export function not(condition: ConditionLike): Condition {
  return new Condition({ kind: "not", of: nodeOf(condition) });
}

const OPERATORS: ReadonlyMap<string, string> = new Map([
  ["=", "="],
  ["eq", "="],
  ["!=", "!="],
  ["ne", "!="],
  ["neq", "!="],
  ["<", "<"],
  ["lt", "<"],
  ["<=", "<="],
  ["lte", "<="],
  ["le", "<="],
  [">", ">"],
  ["gt", ">"],
  [">=", ">="],
  ["gte", ">="],
  ["ge", ">="],
  ["~", "~"],
  ["like", "~"],
  ["contains", "~"],
  ["has", "has"],
  ["in", "in"],
]);

/** The arguments of a `where`: a condition; a field and a value or operators; a field, an operator and a value. */
export function conditionOf(args: readonly unknown[]): Condition {
  const [head, second, third] = args;
  if (args.length >= 3) return new Condition(compare(fieldName(head), second, third));
  if (args.length === 2) return new Condition(spec(fieldName(head), second));
  return new Condition(nodeOf(head));
}

/** All conditions so far, as the one left side of an `or`. */
export function either(left: readonly Condition[], right: Condition): Condition {
  if (left.length === 0) return right;
  return new Condition({ kind: "or", of: [{ kind: "and", of: left.map((c) => c.node) }, right.node] });
}

/** Conditions kept together: a `raw` among them that holds an `or` does not reach over what comes after. */
export function sealed(conditions: readonly Condition[]): Condition {
  return new Condition({ kind: "sealed", of: { kind: "and", of: conditions.map((c) => c.node) } });
}

/** The text of all conditions, each of which must hold; empty when there is none. */
export function renderAll(conditions: readonly Condition[], binder: Binder): string {
  const tree = simplify({ kind: "and", of: conditions.map((c) => c.node) }, 0);
  return tree === null ? "" : render(tree, binder);
}

export function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype || Object.getPrototypeOf(prototype) === null;
}

function fieldName(name: unknown): string {
  return pathName(name as string);
}

function nodeOf(condition: unknown): Node {
  if (condition instanceof Condition) return condition.node;
  if (condition instanceof Raw) return { kind: "raw", raw: condition };
  if (!isPlainObject(condition)) {
    return refuse("bad-condition", "a condition is an object of fields, or made by or, and, not or raw");
  }
  return { kind: "and", of: Object.entries(condition).map(([field, value]) => spec(pathName(field), value)) };
}

/** A field against a value, or against an object of operators. */
function spec(field: string, value: unknown): Node {
  if (!isPlainObject(value)) return compare(field, "=", value);
  const entries = Object.entries(value);
  if (entries.length === 0) refuse("empty-operator-object", `\`${field}\`: {} holds no operator`);
  return { kind: "and", of: entries.map(([operator, operand]) => operatorNode(field, operator, operand)) };
}

function operatorNode(field: string, operator: string, operand: unknown): Node {
  if (operator === "not") {
    return operand === null ? { kind: "null", field, not: true } : { kind: "not", of: spec(field, operand) };
  }
  if (operator === "within") return { kind: "within", field, box: operand };
  if (operator === "distance") return distanceNode(field, operand);
  return compare(field, operator, operand);
}

function distanceNode(field: string, operand: unknown): Node {
  if (!isPlainObject(operand) || operand["from"] === undefined) {
    return refuse("bad-condition", `\`${field}\`: distance takes {from: [longitude, latitude], lte: metres}`);
  }
  const entries = Object.entries(operand).filter(([key]) => key !== "from");
  if (entries.length === 0) refuse("empty-operator-object", `\`${field}\`: distance has nothing to compare with`);
  const left: Left = { distanceOf: field, from: operand["from"] };
  return {
    kind: "and",
    of: entries.map(([operator, value]): Node => {
      const known = knownOperator(field, operator);
      if (known === "in" || known === "has" || known === "~") {
        return refuse("unknown-operator", `\`${operator}\` does not compare a distance`);
      }
      if (value === null) return refuse("operator-with-null", `a distance is never compared with null`);
      return { kind: "compare", left, operator: known, value };
    }),
  };
}

function knownOperator(field: string, operator: unknown): string {
  const known = typeof operator === "string" ? OPERATORS.get(operator.toLowerCase()) : undefined;
  return (
    known ??
    refuse(
      "unknown-operator",
      `\`${field}\`: unknown operator \`${String(operator)}\`; known are ${[...OPERATORS.keys()].join(" ")}`,
    )
  );
}

function compare(field: string, word: unknown, value: unknown): Node {
  const operator = knownOperator(field, word);
  if (operator === "in") {
    if (!Array.isArray(value)) return refuse("in-needs-list", `\`${field} in\` takes a list`);
    if (value.length === 0) return refuse("in-empty", `\`${field} in []\` holds for no row`);
    return { kind: "in", field, values: value };
  }
  if (value === null) {
    if (operator === "=" || operator === "!=") return { kind: "null", field, not: operator === "!=" };
    return refuse("operator-with-null", `\`${field} ${operator} null\` holds for no row; null goes with = and !=`);
  }
  return { kind: "compare", left: { field }, operator, value };
}

/** Groups a chain of calls can build; a chain past it is a mistake in a loop. */
const DEPTH = 512;

/** Drops empty groups, unwraps groups of one, flattens a kind inside itself. Null when nothing is left. */
function simplify(node: Node, depth: number): Node | null {
  if (depth > DEPTH) refuse("too-deep", `conditions nest at most ${DEPTH} levels`);
  if (node.kind === "not") {
    const of = simplify(node.of, depth + 1);
    return of === null ? null : { kind: "not", of };
  }
  if (node.kind === "sealed") {
    const of = simplify(node.of, depth + 1);
    const reaches = of?.kind === "raw" || (of?.kind === "and" && of.of.some(({ kind }) => kind === "raw"));
    return of !== null && reaches ? { kind: "sealed", of } : of;
  }
  if (node.kind !== "and" && node.kind !== "or") return node;
  const kept: Node[] = [];
  for (const child of node.of) {
    const simple = simplify(child, depth + 1);
    if (simple === null) continue;
    if (simple.kind === node.kind) for (const inner of simple.of) kept.push(inner);
    else kept.push(simple);
  }
  if (kept.length === 0) return null;
  return kept.length === 1 ? (kept[0] ?? null) : { kind: node.kind, of: kept };
}

function render(node: Node, binder: Binder): string {
  switch (node.kind) {
    case "and":
    case "or":
      return node.of
        .map((child) => {
          const text = render(child, binder);
          return child.kind === "and" || child.kind === "or" ? `(${text})` : text;
        })
        .join(` ${node.kind} `);
    case "not":
      return `not (${render(node.of, binder)})`;
    case "sealed":
      return `(${render(node.of, binder)})`;
    case "raw":
      return node.raw.render(binder);
    case "null":
      return `${node.field} is ${node.not ? "not " : ""}null`;
    case "in":
      return `${node.field} in [${node.values.map((value) => operandText(value, binder)).join(", ")}]`;
    case "within":
      return `within(${node.field}, ${binder.bind(node.box)})`;
    case "compare": {
      const { left } = node;
      const leftText = "field" in left ? left.field : `distance(${left.distanceOf}, ${binder.bind(left.from)})`;
      return `${leftText} ${node.operator} ${operandText(node.value, binder)}`;
    }
  }
}

function operandText(value: unknown, binder: Binder): string {
  return value instanceof Expr ? value.render(binder) : binder.bind(value);
}
