/**
 * What a token may do, as nodes of the language. The auth room makes them out of a policy; here they become parts of the
 * statement before it is planned, so that reads, picks, counts, inner reads, held claims and explains are all held to
 * them by the one way through the code.
 *
 * A rule asks each row before the statement's own filter does, and a rule that cannot be worked out over a row does not
 * hold for it: no refusal is ever made by a row that a token may not know of. A rule that does not fit its collection (it
 * names a field that is not there) grants nothing in it.
 */

import { Refusal } from "../base/refusal.ts";
import type { Assignment, Expr } from "../lang/ast.ts";
import { allOf, conditionsOf, everyNode, someNode } from "../lang/walk.ts";
import { replaced } from "../plan/bound_text.ts";
import type { Env } from "../plan/env.ts";
import { Counters, ExpressionCompiler, type Test } from "../plan/expression.ts";
import { mentionsExpired, ruleTest } from "../plan/filter.ts";
import { readsNow } from "../plan/moment.ts";
import type { Store } from "../store/store.ts";
import type { Table } from "../store/table.ts";
import { compareCells, fitCell } from "../value/types.ts";
import type { Cell, FieldType, Row, Value } from "../value/value.ts";
import type { Planning } from "./get.ts";
import { compilerOf } from "./get.ts";

/** The filters of rules that grant one thing, of which one must hold; null is every row. None: it is not granted. */
export type Grants = readonly (Expr | null)[];

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
  readonly read: Grants;
  readonly insert: readonly InsertRule[];
  readonly update: readonly UpdateRule[];
  readonly delete: Grants;
  /** The rows of which `expired()` may be asked. */
  readonly expired: Grants;
  readonly appendOnly: boolean;
}

export interface Rules {
  /** Undefined: nothing is granted, so the collection is not there. */
  of(collection: string): TableRules | undefined;
}

/** The rows a statement is about: its own filter, and the rules it is held to. */
export interface Bound {
  /** Of each list one filter must hold; null: no rules bind. */
  readonly rules: readonly (readonly Expr[])[] | null;
  readonly where: Expr | null;
  /** All of it as one filter. */
  readonly whole: Expr | null;
}

function forbid(words: string): never {
  throw new Refusal("forbidden", words);
}

/** What fits of the rules of each collection, by the schema it had. */
const fitting = new WeakMap<Rules, WeakMap<object, TableRules | null>>();

/** The rules that grant something in a collection; undefined: for this token it is not there. */
export function grantsIn(rules: Rules, table: Table): TableRules | undefined {
  let known = fitting.get(rules);
  if (known === undefined) {
    known = new WeakMap();
    fitting.set(rules, known);
  }
  let fit = known.get(table.schema);
  if (fit === undefined) {
    fit = fitted(rules, table);
    known.set(table.schema, fit);
  }
  return fit ?? undefined;
}

function fitted(rules: Rules, table: Table): TableRules | null {
  const named = rules.of(table.schema.name);
  if (named === undefined) return null;
  const over = (where: Expr | null): boolean => misfit(table, where, false) === undefined;
  const fit: TableRules = {
    ...named,
    read: named.read.filter(over),
    insert: named.insert.filter((rule) => over(rule.where)),
    update: named.update.filter((rule) => misfit(table, rule.where, rule.transition) === undefined),
    delete: named.delete.filter(over),
    expired: named.expired.filter(over),
  };
  const granted = fit.read.length + fit.insert.length + fit.update.length + fit.delete.length;
  return granted === 0 ? null : fit;
}

/** Why a rule's filter makes no sense over a collection; undefined where it does. */
export function misfit(table: Table, where: Expr | null, transition: boolean): string | undefined {
  if (where === null) return undefined;
  const place = { table, row: true, incoming: transition, aggregates: false, columns: null };
  const compiler = new ExpressionCompiler(place, new Counters(), () => {
    throw new Refusal("bad_clause", "a rule reads its own row alone");
  });
  try {
    compiler.compile(where);
    return undefined;
  } catch (error) {
    if (error instanceof Refusal) return error.message;
    throw error;
  }
}

/** The collections a token may read, all without rules. */
export function readable(store: Store, rules: Rules | null): Table[] {
  return store.tables().filter((table) => mayRead(rules, table));
}

export function mayRead(rules: Rules | null, table: Table): boolean {
  return rules === null || (grantsIn(rules, table)?.read.length ?? 0) > 0;
}

/** Whether a token may know that a collection is there: that something in it is granted. */
export function mayKnow(rules: Rules | null, table: Table): boolean {
  return rules === null || grantsIn(rules, table) !== undefined;
}

/** The rules of a table for whom the statement is planned; null: no rules bind it. */
function rulesOf(planning: Planning, table: Table): TableRules | null {
  if (planning.rules === null) return null;
  return grantsIn(planning.rules, table) ?? forbid(`this token may not use \`${table.schema.name}\``);
}

/** A read's filter with the rules in front: no row they hide is asked anything. */
export function readBound(planning: Planning, table: Table, where: Expr | null): Bound {
  const rules = rulesOf(planning, table);
  if (rules === null) return unbound(where);
  if (rules.read.length === 0) forbid(`this token may not read \`${table.schema.name}\``);
  return boundBy([rules.read, ...expiredOf(rules, where)], where);
}

/** The rows a `set` may reach. */
export function updateBound(planning: Planning, table: Table, where: Expr | null): Bound {
  const rules = rulesOf(planning, table);
  if (rules === null) return unbound(where);
  const name = table.schema.name;
  if (rules.appendOnly) forbid(`\`${name}\` is append-only: nothing in it is changed`);
  if (rules.update.length === 0) forbid(`this token may not update \`${name}\``);
  return boundBy([rules.update.map((rule) => rule.reach), ...expiredOf(rules, where)], where);
}

/** The rows a `del` may reach; those it answers it must be able to read. */
export function deleteBound(planning: Planning, table: Table, where: Expr | null, answers: boolean): Bound {
  const rules = rulesOf(planning, table);
  if (rules === null) return unbound(where);
  const name = table.schema.name;
  if (rules.appendOnly) forbid(`\`${name}\` is append-only: nothing in it is deleted`);
  if (rules.delete.length === 0) forbid(`this token may not delete from \`${name}\``);
  if (answers && rules.read.length === 0) forbid(`this token may not read \`${name}\`, so nothing can be returned`);
  const grants = answers ? [rules.delete, rules.read] : [rules.delete];
  return boundBy([...grants, ...expiredOf(rules, where)], where);
}

/** What a `set` that answers rows asks of each row as it would write it. */
export interface AsWritten {
  /** The read rules read no field the patch writes: rows are asked as they are, like by any rule. */
  readonly plain: readonly Expr[] | null;
  /** Else the row that would be written is asked. */
  readonly test: Test | null;
  /** The read rules, and of what is written all that they read: rows are picked alike where this is alike. */
  readonly reads: Expr;
  readonly written: readonly Assignment[];
}

/**
 * A `set` that answers rows picks those that the token may read once they are written, so that there is no lease nobody
 * was told of. Null where that holds for every row. Refuses (403) where nothing may be read.
 */
export function readableAsWritten(planning: Planning, table: Table, patch: readonly Assignment[]): AsWritten | null {
  const rules = rulesOf(planning, table);
  if (rules === null) return null;
  if (rules.read.length === 0) {
    forbid(`this token may not read \`${table.schema.name}\`, so nothing can be returned`);
  }
  const filters = filtersOf(rules.read);
  if (filters === null) return null;
  const reads = anyOf(filters);
  const read = new Set<string>();
  for (const expr of everyNode(reads)) if (expr.kind === "path") read.add(expr.field);
  const written = patch.filter((each) => read.has(each.field));
  noteTime(planning, table, reads, written);
  if (written.length === 0) return { plain: filters, test: null, reads, written };
  return { plain: null, test: ruleTest(filters, compilerOf(planning, table, "row")), reads, written };
}

/** When time alone changes what the read rules say of the rows as written. */
function noteTime(planning: Planning, table: Table, reads: Expr, written: readonly Assignment[]): void {
  const values = new Map(written.filter((each) => each.keys.length === 0).map((each) => [each.field, each.value]));
  const inPath = (expr: Expr): boolean => expr.kind === "path" && expr.keys.length > 0;
  const opaque = written.filter(
    (each) => each.keys.length > 0 || someNode(reads, (expr) => inPath(expr) && nameOf(expr) === each.field),
  );
  for (const each of opaque) if (readsNow(each.value)) planning.time.problem ??= each.value;
  const before = replaced(reads, (expr) => (inPath(expr) ? expr : (values.get(nameOf(expr)) ?? expr)));
  const storeTable = (name: string): Table | undefined => planning.store.table(name);
  planning.time.addFilter(table, before, compilerOf(planning, table, "row"), storeTable);
}

function nameOf(expr: Expr): string {
  return expr.kind === "path" ? expr.field : "";
}

/**
 * Judges each row a `set` writes; undefined where no rules bind. Refuses (403) with the field that may not change.
 *
 * @param slots what the patch writes
 */
export function updateGuard(
  planning: Planning,
  table: Table,
  slots: ReadonlySet<number>,
): ((before: Row, after: Row, env: Env) => void) | undefined {
  const rules = rulesOf(planning, table);
  if (rules === null) return undefined;
  const compiled = rules.update.map((rule) => ({ fields: rule.fields, holds: transitionTest(planning, table, rule) }));
  const fields = [...slots].map((slot) => ({
    slot,
    name: table.schema.fields[slot - 1]?.name ?? "",
    compare: compareCells(table.types[slot - 1] as FieldType),
  }));
  return (before, after, env) => {
    let blamed: string | undefined;
    for (const rule of compiled) {
      let beyond: string | undefined;
      if (rule.fields !== null) {
        for (const { slot, name, compare } of fields) {
          if (rule.fields.has(name)) continue;
          const was = before[slot] as Cell;
          const is = after[slot] as Cell;
          if (was === is || compare(was, is) === 0) continue;
          beyond = name;
          break;
        }
      }
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
    const test = ruleTest([where], compilerOf(planning, table, "row"));
    return (before, after, env) => test(before, env) && test(after, env);
  }
  const test = ruleTest([where], compilerOf(planning, table, "incoming"));
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
    test: rule.where === null ? null : ruleTest([rule.where], compilerOf(planning, table, "row")),
    pins: rule.pins.flatMap((pin) => {
      const slot = table.slotOf(pin.field);
      if (slot === undefined || slot === 0) return [];
      const type = table.types[slot - 1] as FieldType;
      return [{ slot, type, value: compilerOf(planning, table, "none").compile(pin.value).eval }];
    }),
  }));
  return (document, env) => {
    if (document[0] !== null) forbid(`a token held to rules names no id in \`${name}\`: leave it out`);
    for (const rule of compiled) {
      const filled = document.slice();
      for (const pin of rule.pins) {
        if (filled[pin.slot] === undefined) filled[pin.slot] = pinned(pin.type, pin.value([], env));
      }
      for (let slot = 1; slot < filled.length; slot++) filled[slot] ??= null;
      if (rule.test !== null && !rule.test(filled, env)) continue;
      for (let slot = 1; slot < filled.length; slot++) document[slot] = filled[slot] as Cell;
      return;
    }
    forbid(`this token may not put that into \`${name}\``);
  };
}

/** A pinned value as the field's; null where the field does not take it, and the rule then says that it is not its. */
function pinned(type: FieldType, value: Value): Cell {
  try {
    return fitCell(type, value, "");
  } catch (error) {
    if (error instanceof Refusal) return null;
    throw error;
  }
}

/** Schemas and maintenance are the server token's. */
export function checkDefinition(planning: Planning, what: string): void {
  if (planning.rules !== null) forbid(`${what} takes the server's token: one held to rules may not`);
}

/** What is wrong with a name is told to who may not read a collection without the names that are right. */
export function withoutNames(rules: Rules | null, table: Table, error: unknown): unknown {
  if (!(error instanceof Refusal) || error.code !== "unknown_field" || mayRead(rules, table)) return error;
  return error.withoutHint();
}

/** Who asks for `expired()` rows is held to the rules that let it, too. */
function expiredOf(rules: TableRules, where: Expr | null): Grants[] {
  if (where === null || !mentionsExpired(where)) return [];
  if (rules.expired.length === 0) forbid("this token may not ask for expired() rows");
  return [rules.expired];
}

function unbound(where: Expr | null): Bound {
  return { rules: null, where, whole: where };
}

function boundBy(grants: readonly Grants[], where: Expr | null): Bound {
  const rules = grants.map(filtersOf).filter((filters) => filters !== null);
  const conditions = rules.flatMap((filters) => conditionsOf(anyOf(filters)));
  return { rules, where, whole: allOf([...conditions, ...conditionsOf(where)]) };
}

/** Null where one of them is every row. */
function filtersOf(grants: Grants): readonly Expr[] | null {
  const filters: Expr[] = [];
  for (const grant of grants) {
    if (grant === null) return null;
    filters.push(grant);
  }
  return filters;
}

function anyOf(filters: readonly Expr[]): Expr {
  const [only] = filters;
  return filters.length === 1 && only !== undefined ? only : { kind: "or", of: filters };
}
