/** `set` and `del`: the rows a `get` with the same clauses would answer, written under the one writer. */

import { attempt } from "../base/refusal.ts";
import type { DelStatement, Expr, Returning, SetStatement } from "../lang/ast.ts";
import { boundOrderText, boundText } from "../plan/bound_text.ts";
import type { Env } from "../plan/env.ts";
import type { ExpressionCompiler, Test } from "../plan/expression.ts";
import { Pick } from "../plan/pick.ts";
import type { Op } from "../store/change.ts";
import type { Table } from "../store/table.ts";
import type { Row } from "../value/value.ts";
import { compilerOf, type Planning } from "./get.ts";
import { atRow, Patch } from "./patch.ts";
import { affected, type Plan, type Result, unmet } from "./plan.ts";
import { columnsOf, everyColumn, RowWriter } from "./render.ts";
import { type AsWritten, type Bound, deleteBound, readableAsWritten, updateBound, updateGuard } from "./rules.ts";
import { tableOf } from "./table_of.ts";
import { checkUnique } from "./unique.ts";

export function planSet(planning: Planning, statement: SetStatement): Plan {
  const table = tableOf(planning, statement.collection);
  const compiler = compilerOf(planning, table, "row");
  const reached = updateBound(planning, table, statement.where);
  const patch = new Patch(table, statement.patch, compiler);
  const guard = updateGuard(planning, table, patch.slots);
  const readable = statement.returning === null ? null : readableAsWritten(planning, table, statement.patch);
  const plain = readable?.plain ?? null;
  const bound = plain === null ? reached : { ...reached, rules: [...(reached.rules ?? []), plain] };
  const also = readable === null || readable.test === null ? null : asWritten(patch, readable.test);
  const pick = pickOf(planning, table, statement, bound, compiler, also);
  const writer = returningOf(table, statement.returning, compiler);
  const touchesUnique = table.uniques().some((index) => patch.slots.has(index.slot));
  const { cid } = table;
  const run = (env: Env): Result => {
    const picked = pick.run(env).rows;
    const write = patch.begin(env);
    const written: Row[] = new Array(picked.length);
    let change: Op[] = new Array(picked.length);
    for (let at = 0; at < picked.length; at++) {
      const row = atRow(picked[at] as Row, write);
      guard?.(picked[at] as Row, row, env);
      written[at] = row;
      change[at] = { op: "put", cid, row };
    }
    if (touchesUnique && written.length > 0) {
      const gone = checkUnique(
        table,
        new Map(written.map((row) => [row[0] as number, row])),
        planning.rules !== null,
        env,
      );
      change = [...gone, ...change];
    }
    return answer(statement, writer, written, env, change);
  };
  const line = (env: Env): string =>
    lineOf(table, bound.whole, statement, env) + (readable === null ? "" : writtenLine(readable, env));
  return planOf(planning, "set", table, pick, line, run);
}

export function planDel(planning: Planning, statement: DelStatement): Plan {
  const table = tableOf(planning, statement.collection);
  const compiler = compilerOf(planning, table, "row");
  const bound = deleteBound(planning, table, statement.where, statement.returning !== null);
  const pick = pickOf(planning, table, statement, bound, compiler, null);
  const writer = returningOf(table, statement.returning, compiler);
  const { cid } = table;
  const run = (env: Env): Result => {
    const picked = pick.run(env).rows;
    const change: Op[] = picked.map((row) => ({ op: "del", cid, id: row[0] as number }));
    return answer(statement, writer, picked, env, change);
  };
  const line = (env: Env): string => lineOf(table, bound.whole, statement, env);
  return planOf(planning, "del", table, pick, line, run);
}

function pickOf(
  planning: Planning,
  table: Table,
  statement: SetStatement | DelStatement,
  { rules, where, whole }: Bound,
  compiler: ExpressionCompiler,
  also: Test | null,
): Pick {
  const { order, limit } = statement;
  // First: it refuses what may not be read, and whatever is wrong in an inner read, in the order a read is refused in.
  const pick = new Pick(table, { rules, where, order, limit, offset: null, also }, compiler);
  planning.time.add(table, whole, compiler, (name) => planning.store.table(name));
  return pick;
}

/** A row as the patch would leave it, asked whether the token may read it. A patch that fails is left to the run. */
function asWritten(patch: Patch, readable: Test): Test {
  let begun: Env | null = null;
  let write = (row: Row): Row => row;
  return (row, env) => {
    if (begun !== env) {
      begun = env;
      write = patch.begin(env);
    }
    const after = attempt(() => write(row));
    return after === undefined || readable(after, env);
  };
}

/** What a claim writes parts no line, but where the rules judge rows as written all that they read of it does. */
function writtenLine({ reads, written }: AsWritten, env: Env): string {
  const values = written.map((each) => `${[each.field, ...each.keys].join(".")}: ${boundText(each.value, env)}`);
  return `${boundText(reads, env)}\u0001${values.join(", ")}`;
}

/** How many rows are taken parts no line, but who takes none must not stand before those who do. */
function lineOf(table: Table, where: Expr | null, { order, limit }: SetStatement | DelStatement, env: Env): string {
  const none = limit !== null && boundText(limit, env) === "0" ? "none" : "";
  return `${table.cid}\u0001${boundText(where, env)}\u0001${boundOrderText(order, env)}\u0001${none}\u0001`;
}

function returningOf(table: Table, returning: Returning | null, compiler: ExpressionCompiler): RowWriter | null {
  if (returning === null) return null;
  return new RowWriter(returning.kind === "all" ? everyColumn(table) : columnsOf(table, returning.items, compiler));
}

/** The answer of rows written; a `require` that is not met is the last refusal there can be. */
function answer(
  statement: SetStatement | DelStatement,
  writer: RowWriter | null,
  rows: readonly Row[],
  env: Env,
  change: readonly Op[],
): Result {
  const text = writer === null ? "" : writer.rows(rows, env);
  if (statement.require !== null && rows.length !== statement.require) {
    throw unmet(statement.kind, statement.collection, rows.length, statement.require);
  }
  if (writer === null) return affected(rows.length, change);
  return { kind: "rows", text, count: rows.length, change };
}

function planOf(
  planning: Planning,
  verb: string,
  table: Table,
  pick: Pick,
  line: (env: Env) => string,
  run: (env: Env) => Result,
): Plan {
  return {
    verb,
    isWrite: true,
    params: planning.counters.params,
    table,
    tables: planning.tables,
    inner: planning.inner,
    pick,
    time: planning.time,
    line,
    run,
  };
}
