/**
 * What a `put` has written so far, before any of it is applied: later documents of the statement see the rows that
 * earlier ones made. Rows past their time count as gone.
 */

import type { Env } from "../plan/env.ts";
import type { Op } from "../store/change.ts";
import type { OrderedIndex } from "../store/ordered_index.ts";
import type { Table } from "../store/table.ts";
import { identity } from "../value/order.ts";
import type { Row, Value } from "../value/value.ts";
import { checkUnique, isDead } from "./unique.ts";

type Identity = ReturnType<typeof identity>;

export class Draft {
  readonly table: Table;
  readonly #env: Env;
  readonly #rows = new Map<number, Row>();
  /** Rows written by the unique values they hold: several for a moment, as a later document may move one of them on. */
  readonly #holders = new Map<OrderedIndex, Map<Identity, Row[]>>();
  nextId: number;

  /** @param tracked whether unique values must be known document by document (`if absent`) */
  constructor(table: Table, env: Env, tracked: boolean) {
    this.table = table;
    this.#env = env;
    this.nextId = table.nextId;
    if (tracked) for (const index of table.uniques()) this.#holders.set(index, new Map());
  }

  /** The live row with an id. */
  get(id: number): Row | undefined {
    const written = this.#rows.get(id);
    if (written !== undefined) return written;
    const held = this.table.get(id);
    return held === undefined || isDead(this.table, held, this.#env.now) ? undefined : held;
  }

  /** The live rows that hold the id or a unique value of `row`. */
  holdersOf(row: Row, namesId: boolean): Row[] {
    const found = new Set<Row>();
    if (namesId) {
      const held = this.get(row[0] as number);
      if (held !== undefined) found.add(held);
    }
    for (const [index, holders] of this.#holders) {
      const key = index.keyOf(row);
      if (key === null) continue;
      // Until the statement is done a value may be held by a row it wrote and by one it has not come to.
      for (const written of holders.get(identity(key as Value)) ?? []) found.add(written);
      const held = index.holder(key);
      if (held === undefined || this.#rows.has(held[0] as number) || isDead(this.table, held, this.#env.now)) continue;
      found.add(held);
    }
    return [...found];
  }

  write(row: Row): void {
    const id = row[0] as number;
    const before = this.#rows.get(id);
    this.#rows.set(id, row);
    if (id >= this.nextId) this.nextId = id + 1;
    for (const [index, holders] of this.#holders) {
      if (before !== undefined) {
        const key = identity(index.keyOf(before) as Value);
        const others = holders.get(key)?.filter((other) => other !== before) ?? [];
        if (others.length > 0) holders.set(key, others);
        else holders.delete(key);
      }
      const key = index.keyOf(row);
      if (key === null) continue;
      const held = holders.get(identity(key as Value));
      if (held === undefined) holders.set(identity(key as Value), [row]);
      else held.push(row);
    }
  }

  /** The change of all that was written; refuses unique values held twice. */
  change(bound: boolean): Op[] {
    const { table } = this;
    const change: Op[] = table.uniques().length === 0 ? [] : [...checkUnique(table, this.#rows, bound, this.#env)];
    for (const row of this.#rows.values()) change.push({ op: "put", cid: table.cid, row });
    return change;
  }
}
