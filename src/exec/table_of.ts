/** The collection a statement names, or a 404 that knows the nearest name. */

import { Refusal } from "../base/refusal.ts";
import { nearestWord } from "../lang/nearest_word.ts";
import type { Store } from "../store/store.ts";
import type { Table } from "../store/table.ts";

export function tableOf(planning: { readonly store: Store; readonly tables: Set<Table> }, name: string): Table {
  const table = planning.store.table(name);
  if (table === undefined) throw unknownCollection(planning.store, name);
  planning.tables.add(table);
  return table;
}

export function unknownCollection(store: Store, name: string): Refusal {
  const near = nearestWord(
    name,
    store.tables().map((table) => table.schema.name),
  );
  const hint = near === undefined ? "" : `: did you mean \`${near}\`?`;
  return new Refusal("unknown_collection", `no collection \`${name}\`${hint}`);
}
