/**
 * All collections in memory, changed by changes alone. Applying one is deterministic: no clock, no disk, no refusal.
 * Whoever made the change has checked it against the store as it was, so an op that does not fit is a defect and throws
 * an assertion.
 */

import { assert } from "../base/assert.ts";
import type { Steps } from "../base/steps.ts";
import type { CollectionSchema } from "../schema/schema.ts";
import type { Change, Op } from "./change.ts";
import type { RowPages } from "./row_pages.ts";
import { type Scale, Table } from "./table.ts";
import type { Undo, UndoStep } from "./undo.ts";

export class Store {
  /** Rises with every create, drop and alter, and with the taking back of one. */
  schemaVersion = 0;
  /** The cid the next collection gets; above every one there has been. */
  nextCid = 1;
  readonly #byName = new Map<string, Table>();
  readonly #byCid = new Map<number, Table>();
  readonly #scale: Scale = { bytes: 0 };

  table(name: string): Table | undefined {
    return this.#byName.get(name);
  }

  tableById(cid: number): Table | undefined {
    return this.#byCid.get(cid);
  }

  /** In the order they were created. */
  tables(): Table[] {
    return [...this.#byCid.values()].sort((a, b) => a.cid - b.cid);
  }

  /** What all rows and indexes take; an estimate, see `weight.ts`. */
  get memoryBytes(): number {
    return this.#scale.bytes;
  }

  /**
   * Applies the ops in their order. The row of a put whose id is new becomes the stored row itself; the row of one that
   * replaces is copied from.
   *
   * @param undo takes the steps that `rollback` needs to take this change, and all that follow it, back
   */
  apply(change: Change, undo?: Undo): void {
    for (const op of change) this.#apply(op, undo, false);
  }

  /**
   * Applies a change that a snapshot may already hold in part: a snapshot taken while the writer went on can lack a row
   * that a logged change deletes. All else is as in `apply`.
   */
  replay(change: Change): void {
    for (const op of change) this.#apply(op, undefined, true);
  }

  /** Takes back all that was applied with `undo`, the last first, and empties it. */
  rollback(undo: Undo): void {
    for (let step = undo.steps.pop(); step !== undefined; step = undo.steps.pop()) this.#takeBack(step);
  }

  /** A collection with its rows, sorted by id, as a snapshot has them. The store owns the rows from here on. */
  *bulkLoad(schema: CollectionSchema, nextId: number, rows: RowPages): Steps<Table> {
    const table = this.#create(schema, nextId);
    yield* table.load(rows);
    return table;
  }

  /** Throws unless every table is sound and the counters stand above all they count. Reads everything. */
  check(): void {
    let bytes = 0;
    for (const [cid, table] of this.#byCid) {
      assert(table.cid === cid && table.schema.cid === cid, `table ${cid} says it is ${table.cid}`);
      assert(cid < this.nextCid, `table ${cid}: the next is ${this.nextCid}`);
      assert(this.#byName.get(table.schema.name) === table, `table ${cid} is not found by its name`);
      table.check();
      bytes += table.memoryBytes;
    }
    assert(this.#byName.size === this.#byCid.size, `${this.#byName.size} names for ${this.#byCid.size} tables`);
    assert(bytes === this.#scale.bytes, `the tables weigh ${bytes}, counted ${this.#scale.bytes}`);
  }

  #apply(op: Op, undo: Undo | undefined, mayLackRows: boolean): void {
    switch (op.op) {
      case "put":
        this.#known(op.cid).put(op.row, undo);
        return;
      case "del": {
        const deleted = this.#known(op.cid).del(op.id, undo);
        assert(deleted || mayLackRows, `a delete of row ${op.id} of table ${op.cid}, which is not there`);
        return;
      }
      case "create": {
        const nextCid = this.nextCid;
        const table = this.#create(op.schema, 1);
        undo?.steps.push({ kind: "created", table, nextCid });
        return;
      }
      case "drop": {
        const table = this.#known(op.cid);
        this.#drop(table);
        undo?.steps.push({ kind: "dropped", table });
        return;
      }
      case "alter":
        this.#known(op.schema.cid).alter(op.schema, op.from, undo);
        this.schemaVersion++;
        return;
    }
  }

  #takeBack(step: UndoStep): void {
    switch (step.kind) {
      case "inserted":
        step.table.remove(step.row);
        step.table.nextId = step.nextId;
        return;
      case "replaced":
        step.table.replace(step.row, step.cells);
        return;
      case "deleted":
        step.table.insert(step.row);
        return;
      case "created":
        this.#drop(step.table);
        this.nextCid = step.nextCid;
        return;
      case "dropped":
        this.#add(step.table);
        return;
      case "altered":
        step.table.restore(step.state, step.dataBytes);
        this.schemaVersion++;
        return;
    }
  }

  #known(cid: number): Table {
    const table = this.#byCid.get(cid);
    assert(table !== undefined, `an op on table ${cid}, which is not there`);
    return table;
  }

  #create(schema: CollectionSchema, nextId: number): Table {
    const table = new Table(schema, nextId, this.#scale);
    this.#add(table);
    this.nextCid = Math.max(this.nextCid, schema.cid + 1);
    return table;
  }

  #add(table: Table): void {
    const { name } = table.schema;
    assert(!this.#byName.has(name), `a second table ${name}`);
    assert(!this.#byCid.has(table.cid), `a second table ${table.cid}`);
    this.#byName.set(name, table);
    this.#byCid.set(table.cid, table);
    this.#scale.bytes += table.memoryBytes;
    table.version++;
    this.schemaVersion++;
  }

  #drop(table: Table): void {
    this.#byName.delete(table.schema.name);
    this.#byCid.delete(table.cid);
    this.#scale.bytes -= table.memoryBytes;
    table.version++;
    this.schemaVersion++;
  }
}
