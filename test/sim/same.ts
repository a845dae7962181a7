/** A store held to the model: every table, its rows to the bit, and all counters. */

import { expect } from "bun:test";
import type { Store } from "../../src/store/store.ts";
import type { Row } from "../../src/value/value.ts";
import { type Model, rowsById, sameRow } from "../store/model.ts";

/** Throws unless the store is sound and holds what the model does. */
export function expectSame(store: Store, model: Model): void {
  store.check();
  expect(store.nextCid).toBe(model.nextCid);
  expect(store.tables().map((table) => table.cid)).toEqual([...model.tables.keys()].sort((a, b) => a - b));
  for (const [cid, plain] of model.tables) {
    const table = store.tableById(cid)!;
    expect(table.schema).toEqual(plain.schema);
    expect(table.nextId).toBe(plain.nextId);
    const rows: Row[] = [];
    table.scan(-Infinity, (row) => rows.push(row) > 0);
    const expected = rowsById(plain);
    expect(rows.map((row) => row[0])).toEqual(expected.map((row) => row[0]));
    for (const [at, row] of rows.entries()) if (!sameRow(row, expected[at]!)) expect(row).toEqual(expected[at]!);
  }
}
