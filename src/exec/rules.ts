/**
 * What a token may do, as nodes of the language. The auth room makes them out of a policy; here they become parts of the
 * statement before it is planned, so that reads, picks, counts, inner reads, held claims and explains are all held to
 * them by the one way through the code.
 */

import { Refusal } from "../base/refusal.ts";
import type { Expr } from "../lang/ast.ts";
import type { Env } from "../plan/env.ts";
import { type Test, truth } from "../plan/expression.ts";
import { mentionsExpired } from "../plan/filter.ts";
import type { Table } from "../store/table.ts";
import { compareCells, fitCell } from "../value/types.ts";
import type { Cell, FieldType, Row } from "../value/value.ts";
import type { Planning } from "./get.ts";
import { compilerOf } from "./get.ts";

/** A grant over rows: undefined is no grant, null every row, else the rows its filter holds for. */
export type RowGrant = Expr | null | undefined;

export interface InsertRule {
  readonly where: Expr | null;
  /** Fields the filter pins to a value at its top: a document that leaves one out gets it. */
  readonly pins: readonly { readonly field: string; readonly value: Expr }[];
}

export interface UpdateRule {
  /** The fields it lets change; null: all of them. */
  readonly fields: ReadonlySet<string> | null;
  /** The filter whole: bare fields are read before the write, `new.` ones after it. */
  readonly where: Expr | null;
  /** It reads `new.`; one that does not must hold of the row before and after. */
  readonly transition: boolean;
  /** Its parts without `new.`: the rows it reaches. */
  readonly reach: Expr | null;
}

export interface TableRules {
  readonly read: RowGrant;
  readonly insert: readonly InsertRule[];
  readonly update: readonly UpdateRule[];
  readonly delete: RowGrant;
  /** `expired()` may be asked. */
  readonly expired: boolean;
  readonly appendOnly: boolean;
}

export interface Rules {
  /** Undefined: nothing is granted, so the collection is not there. */
  of(collection: string): TableRules | undefined;
}

function forbid(words: string): never {
  throw new Refusal("forbidden", words);
}

/** The rules of a table for whom the statement is planned; null: no rules bind it. */
export function rulesOf(planning: Planning, table: Table): TableRules | null {
  if (planning.rules === null) return null;
  return planning.rules.of(table.schema.name) ?? null;
}

/** Whether a collection is shown at all: one that can be written but not read is not. */
export function isReadable(planning: Planning, table: Table): boolean {
  return planning.rules === null || planning.rules.of(table.schema.name)?.read !== undefined;
}

/** A read's filter with the rules in front: no row they hide is asked anything. */
export function readWhere(planning: Planning, table: Table, where: Expr | null): Expr | null {
  const rules = rulesOf(planning, table);
  if (rules === null) return where;
  if (rules.read === undefined) forbid(`this token may not read \`${table.schema.name}\``);
  checkExpired(rules, where);
  return bothOf(rules.read, where);
}

/** The rows a `set` may reach. */
export function updateWhere(planning: Planning, table: Table, where: Expr | null): Expr | null {
  const rules = rulesOf(planning, table);
  if (rules === null) return where;
  const name = table.schema.name;
  if (rules.appendOnly) forbid(`\`${name}\` is append-only: nothing in it is changed`);
  if (rules.update.length === 0) forbid(`this token may not update \`${name}\``);
  checkExpired(rules, where);
  return bothOf(anyRule(rules.update.map((rule) => rule.reach)), where);
}

/** The rows a `del` may reach; those it answers it must be able to read. */
export function deleteWhere(planning: Planning, table: Table, where: Expr | null, answers: boolean): Expr | null {
  const rules = rulesOf(planning, table);
  if (rules === null) return where;
  const name = table.schema.name;
  if (rules.appendOnly) forbid(`\`${name}\` is append-only: nothing in it is deleted`);
  if (rules.delete === undefined) forbid(`this token may not delete from \`${name}\``);
  if (answers && rules.read === undefined) forbid(`this token may not read \`${name}\`, so nothing can be returned`);
  checkExpired(rules, where);
  const reached = bothOf(rules.delete, where);
  return answers ? bothOf(rules.read ?? null, reached) : reached;
}

/** A test that the row a `set` would write is one the token may read: a row it could not read is not picked. */
export function readableAsWritten(planning: Planning, table: Table): Test | null {
  const rules = rulesOf(planning, table);
  if (rules === null) return null;
  if (rules.read === undefined) {
    forbid(`this token may not read \`${table.schema.name}\`, so nothing can be returned`);
  }
  return rules.read === null ? null : compilerOf(planning, table, "row").test(rules.read).test;
}

/** Judges each row a `set` writes; undefined where no rules bind. Refuses (403) with the field that may not change. */
export function updateGuard(
  planning: Planning,
  table: Table,
): ((before: Row, after: Row, env: Env) => void) | undefined {
  const rules = rulesOf(planning, table);
  if (rules === null) return undefined;
  const compiled = rules.update.map((rule) => ({ fields: rule.fields, holds: transitionTest(planning, table, rule) }));
  const compare = table.types.map((type: FieldType) => compareCells(type));
  return (before, after, env) => {
    const changed: string[] = [];
    for (const field of table.schema.fields) {
      const order = compare[field.slot - 1]?.(before[field.slot] as Cell, after[field.slot] as Cell) ?? 0;
      if (order !== 0) changed.push(field.name);
    }
    let blamed: string | undefined;
    for (const rule of compiled) {
      const beyond = changed.find((name) => rule.fields !== null && !rule.fields.has(name));
      if (beyond !== undefined) blamed ??= beyond;
      else if (rule.holds(before, after, env)) return;
    }
    const name = table.schema.name;
    if (blamed === undefined) forbid(`this token may not write that to a row of \`${name}\``);
    forbid(`this token may not change \`${blamed}\` in \`${name}\``);
  };
}

function transitionTest(
  planning: Planning,
  table: Table,
  rule: UpdateRule,
): (before: Row, after: Row, env: Env) => boolean {
  const { where } = rule;
  if (where === null) return () => true;
  if (!rule.transition) {
    const { test } = compilerOf(planning, table, "row").test(where);
    return (before, after, env) => test(before, env) && test(after, env);
  }
  const compiled = compilerOf(planning, table, "incoming").compile(where);
  const test = truth(compiled, where);
  return (before, after, env) => {
    env.incoming = after;
    return test(before, env);
  };
}

/**
 * Lets a document in: fills what a rule pins and the document leaves out (undefined cells), and refuses (403) what no
 * rule admits. Undefined where no rules bind.
 */
export function insertGuard(planning: Planning, table: Table): ((document: Row, env: Env) => void) | undefined {
  const rules = rulesOf(planning, table);
  if (rules === null) return undefined;
  const name = table.schema.name;
  if (rules.insert.length === 0) forbid(`this token may not put into \`${name}\``);
  const compiled = rules.insert.map((rule) => ({
    test: rule.where === null ? null : compilerOf(planning, table, "row").test(rule.where).test,
    pins: rule.pins.flatMap((pin) => {
      const slot = table.slotOf(pin.field);
      if (slot === undefined || slot === 0) return [];
      return [{ slot, name: pin.field, value: compilerOf(planning, table, "none").compile(pin.value).eval }];
    }),
  }));
  return (document, env) => {
    if (document[0] !== null) forbid(`a token held to rules names no id in \`${name}\`: leave it out`);
    for (const rule of compiled) {
      const filled = document.slice();
      for (const pin of rule.pins) {
        if (filled[pin.slot] !== undefined) continue;
        filled[pin.slot] = fitCell(table.types[pin.slot - 1] as FieldType, pin.value([], env), `\`${pin.name}\``);
      }
      for (let slot = 1; slot < filled.length; slot++) filled[slot] ??= null;
      if (rule.test !== null && !rule.test(filled, env)) continue;
      for (let slot = 1; slot < filled.length; slot++) document[slot] = filled[slot] as Cell;
      return;
    }
    forbid(`this token may not put that into \`${name}\``);
  };
}

/** Schemas and maintenance are the server token's. */
export function checkDefinition(planning: Planning, what: string): void {
  if (planning.rules !== null) forbid(`${what} takes the server's token: one held to rules may not`);
}

function checkExpired(rules: TableRules, where: Expr | null): void {
  if (where !== null && !rules.expired && mentionsExpired(where)) forbid("this token may not ask for expired() rows");
}

/** Both hold, the first asked first. */
export function bothOf(first: Expr | null, second: Expr | null): Expr | null {
  if (first === null) return second;
  if (second === null) return first;
  const parts = (expr: Expr): readonly Expr[] => (expr.kind === "and" ? expr.of : [expr]);
  return { kind: "and", of: [...parts(first), ...parts(second)] };
}

/** Any of the grants; null, every row, if one of them is. */
export function anyRule(grants: readonly (Expr | null)[]): Expr | null {
  const filters: Expr[] = [];
  for (const grant of grants) {
    if (grant === null) return null;
    filters.push(grant);
  }
  const [only] = filters;
  return filters.length === 1 && only !== undefined ? only : { kind: "or", of: filters };
}
