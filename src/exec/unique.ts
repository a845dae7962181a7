/** Unique values are judged on the rows as the statement leaves them, so a swap is fine. */

import { Refusal } from "../base/refusal.ts";
import type { Env } from "../plan/env.ts";
import { isExpired } from "../plan/expression.ts";
import type { DelOp } from "../store/change.ts";
import type { OrderedIndex } from "../store/ordered_index.ts";
import type { Table } from "../store/table.ts";
import { valueToJson } from "../value/json.ts";
import { identity } from "../value/order.ts";
import { cellToValue } from "../value/types.ts";
import type { Cell, FieldType, Row, Value } from "../value/value.ts";

/** Whether a row is past its time, and so holds neither its id nor its values. */
export function isDead(table: Table, row: Row, now: number): boolean {
  const ttl = table.ttl;
  return ttl !== undefined && isExpired(row[ttl.slot] as Cell, ttl.ttlMs, now);
}

/** A key of an index as the value it stands for. */
function valueOfKey(table: Table, index: OrderedIndex, row: Row): Value {
  const key = index.keyOf(row);
  if (index.def.keys.length > 0) return key as Value;
  return cellToValue(table.types[index.slot - 1] as FieldType, key as Cell);
}

/**
 * Refuses (409) where a row written holds a value that another row of the statement, or a live row it leaves alone,
 * holds too. Answers the expired rows that held such a value: they go in the same change.
 *
 * @param bound a token held to rules is told the field alone: the other row may not be its to know of
 * @param written the rows as they will be, by id
 */
export function checkUnique(table: Table, written: ReadonlyMap<number, Row>, bound: boolean, env: Env): DelOp[] {
  const gone = new Set<number>();
  for (const index of table.uniques()) {
    const holders = new Map<ReturnType<typeof identity>, Row>();
    for (const row of written.values()) {
      const value = valueOfKey(table, index, row);
      if (value === null) continue;
      const key = identity(value);
      const twin = holders.get(key);
      if (twin !== undefined) throw taken(table, index, row, twin[0] as number, bound);
      holders.set(key, row);
      const holder = index.holder(index.keyOf(row));
      if (holder === undefined || written.has(holder[0] as number)) continue;
      if (!isDead(table, holder, env.now)) throw taken(table, index, row, holder[0] as number, bound);
      gone.add(holder[0] as number);
    }
  }
  return Array.from(gone, (id) => ({ op: "del", cid: table.cid, id }));
}

function taken(table: Table, index: OrderedIndex, row: Row, holder: number, bound: boolean): Refusal {
  const field = [index.def.field, ...index.def.keys].join(".");
  if (bound) {
    return new Refusal("unique_taken", `\`${field}\` is unique in \`${table.schema.name}\`, and the value is taken`, {
      field,
    });
  }
  const value = valueToJson(valueOfKey(table, index, row));
  const shown = value.length > 60 ? `${value.slice(0, 60)}...` : value;
  return new Refusal(
    "unique_taken",
    `\`${field}\` is unique in \`${table.schema.name}\`, and row ${holder} holds ${shown}`,
    {
      field,
    },
  );
}
