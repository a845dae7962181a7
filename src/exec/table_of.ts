/** The collection a statement names, or a 404 that knows the nearest name. */

import { Refusal } from "../base/refusal.ts";
import { nearestWord } from "../lang/nearest_word.ts";
import type { Store } from "../store/store.ts";
import type { Table } from "../store/table.ts";
import { mayKnow, type Rules, readable } from "./rules.ts";

interface Known {
  readonly store: Store;
  readonly rules: Rules | null;
}

export function tableOf(planning: Known & { readonly tables: Set<Table> }, name: string): Table {
  const table = planning.store.table(name);
  if (table === undefined || !mayKnow(planning.rules, table)) {
    throw unknownCollection(planning, name);
  }
  planning.tables.add(table);
  return table;
}

export function unknownCollection({ store, rules }: Known, name: string): Refusal {
  const known = readable(store, rules).map((table) => table.schema.name);
  const near = nearestWord(name, known);
  const hint = near === undefined ? "" : `: did you mean \`${near}\`?`;
  return new Refusal("unknown_collection", `no collection \`${name}\``, {}, hint);
}
