/**
 * `explain`: how a statement would find its rows, and how many they are. A read is run; of a write nothing is, and it tells
 * which rows it would take, or why none.
 */

import { assert } from "../base/assert.ts";
import type { ExplainStatement } from "../lang/ast.ts";
import type { Env } from "../plan/env.ts";
import { jsonString } from "../value/json.ts";
import { boundLines, type Planning, planGet } from "./get.ts";
import { NO_CHANGE, type Plan, type Result } from "./plan.ts";
import { Prospect } from "./prospect.ts";
import { planDel, planSet } from "./set.ts";

export function planExplain(planning: Planning, statement: ExplainStatement): Plan {
  const { of } = statement;
  if (of.kind === "get") {
    const get = planGet(planning, of);
    return { ...get, verb: "explain", run: (env) => linesOf(get.how(env)) };
  }
  // A dry run: the row values are worked out as well, so that an error in them shows; `require` does not refuse it.
  const bare = { ...of, require: null };
  const plan = bare.kind === "set" ? planSet(planning, bare) : planDel(planning, bare);
  const { pick, table } = plan;
  assert(pick !== null && table !== null, "a write of rows picks them from a collection");
  const prospect = new Prospect(planning, of, { ...plan, pick, table });
  const run = (env: Env): Result => {
    const picked = pick.run(env);
    const tested = env.tested;
    const result = plan.run(env);
    const rows = `rows: ${result.count}`;
    const lines = [picked.how(), `rows tested: ${tested}`, rows];
    const how = planning.rules === null ? lines : boundLines(table, lines);
    return linesOf([...how.slice(0, -1), ...prospect.lines(picked.rows, env), rows]);
  };
  return { ...plan, verb: "explain", isWrite: false, run };
}

function linesOf(lines: readonly string[]): Result {
  const text = lines.map((line) => `{"plan":${jsonString(line)}}`).join(",");
  return { kind: "rows", text: `[${text}]`, count: lines.length, change: NO_CHANGE };
}
