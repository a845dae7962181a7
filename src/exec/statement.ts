/** A parsed statement over the store as it is: one place that says which file makes which plan. */

import type { Statement } from "../lang/ast.ts";
import { Counters } from "../plan/expression.ts";
import { TimeSense } from "../plan/moment.ts";
import type { Store } from "../store/store.ts";
import { planDefinition } from "./define.ts";
import { planExplain } from "./explain.ts";
import { type Planning, planGet } from "./get.ts";
import type { Plan } from "./plan.ts";
import { planPut } from "./put.ts";
import { type Rules, withoutNames } from "./rules.ts";
import { planDel, planSet } from "./set.ts";

/** Throws Refusal: unknown names (404), clauses and types that do not go together (400). */
export function planStatement(store: Store, statement: Statement, rules: Rules | null): Plan {
  try {
    return plan(store, statement, rules);
  } catch (error) {
    const about = statement.kind === "explain" ? statement.of : statement;
    const table = "collection" in about ? store.table(about.collection ?? "") : undefined;
    throw rules === null || table === undefined ? error : withoutNames(rules, table, error);
  }
}

function plan(store: Store, statement: Statement, rules: Rules | null): Plan {
  const planning: Planning = {
    store,
    counters: new Counters(),
    tables: new Set(),
    inner: new Set(),
    time: new TimeSense(),
    rules,
    level: 0,
  };
  switch (statement.kind) {
    case "get":
      return planGet(planning, statement);
    case "put":
      return planPut(planning, statement);
    case "set":
      return planSet(planning, statement);
    case "del":
      return planDel(planning, statement);
    case "explain":
      return planExplain(planning, statement);
    default:
      return planDefinition(planning, statement);
  }
}
