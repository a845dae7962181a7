/** `put` and `insert`, with `if absent` and `if absent else set`. */

import { ID_MAX } from "../base/limits.ts";
import { Refusal } from "../base/refusal.ts";
import type { Document, PutStatement } from "../lang/ast.ts";
import type { Env } from "../plan/env.ts";
import { type Eval, type ExpressionCompiler, fieldRef, memberJson } from "../plan/expression.ts";
import { ruleTest } from "../plan/filter.ts";
import type { Op } from "../store/change.ts";
import type { Table } from "../store/table.ts";
import { jsonPathSet, tooDeep } from "../value/json.ts";
import { fitCell } from "../value/types.ts";
import { type Cell, type FieldType, Json, kindWords, type Row, type Value } from "../value/value.ts";
import { idOf } from "./document_id.ts";
import { Draft } from "./draft.ts";
import { compilerOf, type Planning } from "./get.ts";
import { atRow, missing, Patch } from "./patch.ts";
import { affected, type Plan, type Result, unmet } from "./plan.ts";
import { insertGuard, updateBound, updateGuard, withoutNames } from "./rules.ts";
import { SentRows } from "./sent_rows.ts";
import { tableOf } from "./table_of.ts";

/** Documents as rows: null for an id they do not name, undefined for a field they leave out. */
type Documents = (env: Env) => readonly Row[];

export function planPut(planning: Planning, statement: PutStatement): Plan {
  const table = tableOf(planning, statement.collection);
  const insert = insertGuard(planning, table);
  const reach = statement.elseSet === null ? null : reachTest(planning, table);
  const blank = blankRow(table, insert !== undefined);
  const documents = Array.isArray(statement.documents)
    ? writtenOut(table, blank, statement.documents as readonly Document[], compilerOf(planning, table, "none"))
    : sent(table, blank, compilerOf(planning, table, "none"), statement);
  const patch =
    statement.elseSet === null ? null : new Patch(table, statement.elseSet, compilerOf(planning, table, "incoming"));
  const update = patch === null ? undefined : updateGuard(planning, table, patch.slots);
  const required = requiredOf(table);
  const many = !Array.isArray(statement.documents) || statement.documents.length > 1;
  const isJudged = insert !== undefined || required.length > 0;
  const complete = (document: Row, env: Env): void => {
    insert?.(document, env);
    for (const field of required) if (document[field.slot] === null) throw missing(field.name);
  };
  // Documents that can meet no row, neither each other nor one that is there, are the change as they are.
  const canMeet = statement.ifAbsent || table.uniques().length > 0;
  const run = (env: Env): Result => {
    const rows = sentBy(planning, table, () => documents(env));
    // Every document is seen to fit before any is told that its values are taken.
    if (isJudged) for (const [at, row] of rows.entries()) inDocument(many ? at : null, () => complete(row, env));
    if (canMeet || rows.some((row) => row[0] !== null)) return drafted(rows, env);
    checkRequire(statement, rows.length);
    return affected(rows.length, appended(table, rows));
  };
  const drafted = (rows: readonly Row[], env: Env): Result => {
    const draft = new Draft(table, env, statement.ifAbsent);
    const isBound = planning.rules !== null;
    const write = patch?.begin(env);
    const setHolder =
      write === undefined
        ? null
        : (holder: Row, document: Row): Row => {
            if (reach !== null && !reach(holder, env))
              throw new Refusal("forbidden", "this token may not set the row there is");
            env.incoming = document;
            const written = atRow(holder, write);
            update?.(holder, written, env);
            return written;
          };
    let count = 0;
    for (const document of rows) {
      if (writeDocument(statement, draft, document, isBound, setHolder)) count++;
    }
    const change = draft.change(isBound);
    checkRequire(statement, count);
    return affected(count, change);
  };
  return {
    verb: statement.insert ? "insert" : "put",
    isWrite: true,
    params: planning.counters.params,
    table,
    tables: planning.tables,
    inner: planning.inner,
    pick: null,
    time: null,
    line: null,
    run,
  };
}

/** A `require` that is not met is the last refusal there can be. */
function checkRequire(statement: PutStatement, count: number): void {
  if (statement.require === null || count === statement.require) return;
  throw unmet(statement.insert ? "insert" : "put", statement.collection, count, statement.require);
}

/** Rows without ids, behind all there have been. */
function appended(table: Table, rows: readonly Row[]): Op[] {
  const { cid, nextId } = table;
  // Not by a sum: past 2^53 it would be rounded.
  if (rows.length > ID_MAX - nextId + 1) throw lastId(table);
  const change: Op[] = new Array(rows.length);
  for (let at = 0; at < rows.length; at++) {
    const row = rows[at] as Row;
    row[0] = nextId + at;
    change[at] = { op: "put", cid, row };
  }
  return change;
}

function lastId(table: Table): Refusal {
  return new Refusal(
    "limit_passed",
    `\`${table.schema.name}\` has given its last id: a document names a free one of its own`,
  );
}

/** Documents sent name their fields only now. */
function sentBy(planning: Planning, table: Table, documents: () => readonly Row[]): readonly Row[] {
  try {
    return documents();
  } catch (error) {
    throw withoutNames(planning.rules, table, error);
  }
}

/** Answers whether a row was written. */
function writeDocument(
  statement: PutStatement,
  draft: Draft,
  document: Row,
  isBound: boolean,
  setHolder: ((holder: Row, document: Row) => Row) | null,
): boolean {
  const namesId = document[0] !== null;
  if (statement.ifAbsent) {
    const holders = draft.holdersOf(document, namesId);
    if (holders.length > 0) {
      if (setHolder === null) return false;
      const [holder, other] = holders as [Row, Row | undefined];
      if (other !== undefined) {
        throw new Refusal(
          "conflict",
          `the document meets two rows of \`${statement.collection}\`${
            // A token held to rules may not know of them.
            isBound ? "" : `, ${String(holder[0])} and ${String(other[0])}`
          }: it can set only one`,
        );
      }
      draft.write(setHolder(holder, document));
      return true;
    }
  } else if (statement.insert && namesId && draft.get(document[0] as number) !== undefined) {
    throw new Refusal(
      "id_taken",
      `\`${statement.collection}\` has a row ${String(document[0])} already: insert takes a free id`,
    );
  }
  if (!namesId) {
    if (draft.nextId > ID_MAX) throw lastId(draft.table);
    document[0] = draft.nextId;
  }
  draft.write(document);
  return true;
}

/** What a document leaves out stays undefined until the rules have had their say; without rules it is null. */
function blankRow(table: Table, isBound: boolean): Row {
  const row: (Cell | undefined)[] = new Array(table.types.length + 1).fill(isBound ? undefined : null);
  row[0] = null;
  return row as Row;
}

/** The rows an upsert may set: those an update rule reaches. */
function reachTest(planning: Planning, table: Table): ((row: Row, env: Env) => boolean) | null {
  const [filters] = updateBound(planning, table, null).rules ?? [];
  return filters === undefined ? null : ruleTest(filters, compilerOf(planning, table, "row"));
}

interface Slot {
  readonly slot: number;
  readonly keys: readonly string[];
  readonly type: FieldType;
  readonly name: string;
  readonly eval: Eval;
}

function writtenOut(table: Table, blank: Row, documents: readonly Document[], compiler: ExpressionCompiler): Documents {
  const compiled = documents.map((document) => {
    const seen = new Set<string>();
    return document.entries.map((entry): Slot => {
      const name = [entry.field, ...entry.keys].join(".");
      if (seen.has(name)) throw new Refusal("bad_clause", `\`${name}\` stands twice in a document`);
      seen.add(name);
      const ref = fieldRef(table, entry.field, entry.keys);
      return { slot: ref.slot, keys: entry.keys, type: ref.type, name, eval: compiler.compile(entry.value).eval };
    });
  });
  const many = documents.length > 1;
  return (env) =>
    compiled.map((slots, at) =>
      inDocument(many ? at : null, () => {
        const row = blank.slice();
        for (const step of slots) {
          const value = step.eval([], env);
          if (step.slot === 0) row[0] = idOf(value);
          else if (step.keys.length === 0) row[step.slot] = fitCell(step.type, value, `\`${step.name}\``);
          else row[step.slot] = pathCell((row[step.slot] as string | null | undefined) ?? null, step, value);
        }
        return row;
      }),
    );
}

function pathCell(cell: string | null, step: Slot, value: Value): string {
  const text = jsonPathSet(cell, step.keys, memberJson(value));
  if (tooDeep(text)) throw new Refusal("too_deep", `\`${step.name}\` would nest too deep`);
  return text;
}

/** `put c $1`: an object, or a list of them. */
function sent(table: Table, blank: Row, compiler: ExpressionCompiler, statement: PutStatement): Documents {
  const parameter = statement.documents as { readonly kind: "param"; readonly index: number };
  const value = compiler.compile(parameter);
  const reader = new SentRows(table, blank);
  return (env) => {
    const documents = value.eval([], env);
    if (documents instanceof Json) return reader.rows(documents);
    throw new Refusal(
      "bad_value",
      `$${parameter.index + 1} stands for documents: an object or a list of objects, not ${kindWords(documents)}`,
    );
  };
}

/** A refusal made by one document of many says which, counted from 0. */
function inDocument<T>(at: number | null, work: () => T): T {
  if (at === null) return work();
  try {
    return work();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    throw error.behind(`document ${at}: `, { document: at });
  }
}

function requiredOf(table: Table): readonly { readonly slot: number; readonly name: string }[] {
  return table.schema.fields.filter((field) => field.required);
}
