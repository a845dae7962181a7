/**
 * The rules that concern one kind of token, a role and the claims it has, put together by collection. Tokens of one kind
 * share a set, and with it their plans; what differs between them is the claims' values.
 */

import type { Expr } from "../lang/ast.ts";
import { allOf, conditionsOf } from "../lang/walk.ts";
import { type Grant, type Policy, type Rule, readsNew } from "./policy.ts";

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
  readonly read: readonly (Expr | null)[];
  readonly insert: readonly InsertRule[];
  readonly update: readonly UpdateRule[];
  readonly delete: readonly (Expr | null)[];
  readonly expired: readonly (Expr | null)[];
  readonly appendOnly: boolean;
}

export class RuleSet {
  readonly rules: readonly Rule[];
  readonly #appendOnly: ReadonlySet<string>;
  readonly #byCollection = new Map<string, CollectionRules>();

  constructor(policy: Policy, rules: readonly Rule[]) {
    this.rules = rules;
    this.#appendOnly = policy.appendOnly;
  }

  of(collection: string): CollectionRules | undefined {
    const known = this.#byCollection.get(collection);
    if (known !== undefined) return known;
    const named = this.rules.filter((rule) => rule.collection === collection || rule.collection === "*");
    if (named.length === 0) return undefined;
    const rules = this.#put(collection, named);
    this.#byCollection.set(collection, rules);
    return rules;
  }

  /** Collections that its rules name to which only is added. */
  get appendOnly(): readonly string[] {
    const concerned = new Set(this.rules.map((rule) => rule.collection));
    return [...this.#appendOnly].filter((name) => concerned.has(name) || concerned.has("*") || name === "*");
  }

  #put(collection: string, rules: readonly Rule[]): CollectionRules {
    const appendOnly = this.#appendOnly.has(collection) || this.#appendOnly.has("*");
    const granting = (grant: Grant): readonly Rule[] => rules.filter((rule) => rule.grants.has(grant));
    const filters = (grant: Grant): readonly (Expr | null)[] => granting(grant).map((rule) => rule.where);
    return {
      read: filters("read"),
      insert: granting("insert").map(({ where }) => ({ where, pins: where === null ? [] : pinsOf(where) })),
      update: granting("update").map(updateRule),
      delete: filters("delete"),
      expired: filters("expired"),
      appendOnly,
    };
  }
}

function updateRule({ fields, where }: Rule): UpdateRule {
  if (where === null || !readsNew(where)) return { fields, where, transition: false, reach: where };
  const before = conditionsOf(where).filter((part) => !readsNew(part));
  return { fields, where, transition: true, reach: allOf(before) };
}

/** Fields held equal to a value of the token or of the rule, at the top of a filter. */
function pinsOf(where: Expr): { field: string; value: Expr }[] {
  return conditionsOf(where).flatMap((part) => {
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
