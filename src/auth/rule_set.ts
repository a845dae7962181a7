/**
 * The rules that concern one kind of token, a role and the claims it has, put together by collection. Tokens of one kind
 * share a set, and with it their plans; what differs between them is the claims' values.
 */

import type { Expr } from "../lang/ast.ts";
import { type Policy, type Rule, readsNew } from "./policy.ts";

export interface InsertRule {
  readonly where: Expr | null;
  readonly pins: readonly { readonly field: string; readonly value: Expr }[];
}

export interface UpdateRule {
  readonly fields: ReadonlySet<string> | null;
  readonly where: Expr | null;
  readonly transition: boolean;
  readonly reach: Expr | null;
}

/** See `exec/rules.ts`, which says what each means. */
export interface CollectionRules {
  readonly read: Expr | null | undefined;
  readonly insert: readonly InsertRule[];
  readonly update: readonly UpdateRule[];
  readonly delete: Expr | null | undefined;
  readonly expired: boolean;
  readonly appendOnly: boolean;
}

export class RuleSet {
  readonly rules: readonly Rule[];
  readonly #appendOnly: ReadonlySet<string>;
  readonly #byCollection = new Map<string, CollectionRules | undefined>();

  constructor(policy: Policy, rules: readonly Rule[]) {
    this.rules = rules;
    this.#appendOnly = policy.appendOnly;
  }

  of(collection: string): CollectionRules | undefined {
    if (this.#byCollection.has(collection)) return this.#byCollection.get(collection);
    const named = this.rules.filter((rule) => rule.collection === collection || rule.collection === "*");
    const rules = named.length === 0 ? undefined : this.#put(collection, named);
    // Names come from requests: what nothing is granted on is not remembered.
    if (rules !== undefined) this.#byCollection.set(collection, rules);
    return rules;
  }

  #put(collection: string, rules: readonly Rule[]): CollectionRules {
    const appendOnly = this.#appendOnly.has(collection) || this.#appendOnly.has("*");
    const granting = (grant: "read" | "insert" | "update" | "delete"): readonly Rule[] =>
      rules.filter((rule) => rule.grants.has(grant));
    return {
      read: anyOf(granting("read")),
      insert: granting("insert").map(({ where }) => ({ where, pins: where === null ? [] : pinsOf(where) })),
      update: appendOnly ? [] : granting("update").map(updateRule),
      delete: appendOnly ? undefined : anyOf(granting("delete")),
      expired: rules.some((rule) => rule.grants.has("expired")),
      appendOnly,
    };
  }
}

/** Rules widen each other; undefined without any, null where one of them has no filter. */
function anyOf(rules: readonly Rule[]): Expr | null | undefined {
  if (rules.length === 0) return undefined;
  const filters: Expr[] = [];
  for (const { where } of rules) {
    if (where === null) return null;
    filters.push(where);
  }
  const [only] = filters;
  return filters.length === 1 && only !== undefined ? only : { kind: "or", of: filters };
}

function updateRule({ fields, where }: Rule): UpdateRule {
  if (where === null || !readsNew(where)) return { fields, where, transition: false, reach: where };
  const before = topParts(where).filter((part) => !readsNew(part));
  const [only] = before;
  const reach: Expr | null =
    before.length === 0 ? null : before.length === 1 && only !== undefined ? only : { kind: "and", of: before };
  return { fields, where, transition: true, reach };
}

function topParts(where: Expr): readonly Expr[] {
  return where.kind === "and" ? where.of : [where];
}

/** Fields held equal to a value of the token or of the rule, at the top of a filter. */
function pinsOf(where: Expr): { field: string; value: Expr }[] {
  return topParts(where).flatMap((part) => {
    if (part.kind !== "binary" || part.op !== "=") return [];
    for (const [side, value] of [
      [part.left, part.right],
      [part.right, part.left],
    ] as const) {
      if (side.kind !== "path" || side.keys.length > 0) continue;
      if (value.kind === "claim" || value.kind === "const") return [{ field: side.field, value }];
    }
    return [];
  });
}
