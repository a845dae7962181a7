/**
 * An index whose keys have an order: `sorted`, `ttl`, `hash` and `unique` alike. The kinds differ in what they promise,
 * not in how they are kept. A hash table would answer an equality over a million texts in 0.5 us where the tree takes 1
 * to 4, in the same memory; but it stands still for 0.5 s whenever it has grown or shed its deleted entries, and a tree
 * never does. A tree may also hold a unique value twice for a moment, as a swap of two values or a replay over a fuzzy
 * snapshot does.
 *
 * The key of a row is the cell of the index's field, or what its path leads to in that cell; null is a key like any
 * other and comes first. Rows with equal keys come by ascending id, whichever way a walk goes.
 */

import { assert } from "../base/assert.ts";
import type { Steps } from "../base/steps.ts";
import type { IndexDef } from "../schema/schema.ts";
import type { Pages } from "../tree/pages.ts";
import { Tree } from "../tree/tree.ts";
import { jsonPathValue } from "../value/json.ts";
import { compareValues } from "../value/order.ts";
import { compareCells } from "../value/types.ts";
import type { Cell, FieldType, Row, Value } from "../value/value.ts";
import { orderKeys, orderNumbers } from "./key_order.ts";

/** A cell of the field, or for a path the value it leads to. */
export type Key = Cell | Value;

/** `undefined` is no bound. Nulls are keys: `lo: null, loOpen: true` leaves them out. */
export interface KeyRange {
  readonly lo: Key | undefined;
  readonly loOpen: boolean;
  readonly hi: Key | undefined;
  readonly hiOpen: boolean;
}

/** Every row of an index, and every row whose key is not null. */
export const WHOLE_RANGE: KeyRange = { lo: undefined, loOpen: false, hi: undefined, hiOpen: false };
export const NOT_NULL_RANGE: KeyRange = { lo: null, loOpen: true, hi: undefined, hiOpen: false };

/** Keys made in one step. */
const STEP_ROWS = 1 << 16;

export class OrderedIndex {
  readonly def: IndexDef;
  readonly slot: number;
  /** The order of the keys. */
  readonly compare: (a: Key, b: Key) => number;
  readonly #numeric: boolean;
  readonly #tree: Tree<Key, Row>;

  constructor(def: IndexDef, slot: number, type: FieldType, shared?: OrderedIndex) {
    this.def = def;
    this.slot = slot;
    // Ints stay out of the numeric tree: one may be a bigint, which no double holds.
    this.#numeric = def.keys.length === 0 && (type.kind === "timestamp" || type.kind === "float");
    if (shared !== undefined) {
      this.compare = shared.compare;
      this.#tree = shared.#tree;
      return;
    }
    this.compare =
      def.keys.length === 0
        ? (compareCells(type) as (a: Key, b: Key) => number)
        : (compareValues as (a: Key, b: Key) => number);
    this.#tree = new Tree(this.#numeric ? "number" : this.compare);
  }

  /** The same tree under another definition: a renamed field, `sorted` that became `ttl`. */
  as(def: IndexDef, type: FieldType): OrderedIndex {
    return new OrderedIndex(def, this.slot, type, this);
  }

  get size(): number {
    return this.#tree.size;
  }

  keyOf(row: Row): Key {
    return this.#keyOfCell(row[this.slot] as Cell);
  }

  /** Rows with a key in the range, in logarithmic time. */
  count(range: KeyRange): number {
    return Math.max(0, this.#end(range) - this.#start(range));
  }

  /** Rows by key, then ascending id; `visit` answers false to stop. The store must not change meanwhile. */
  walk(range: KeyRange, descending: boolean, visit: (row: Row) => boolean): void {
    if (descending) this.#tree.descendRange(this.#start(range), this.#end(range), visit);
    else this.#tree.ascendRange(this.#start(range), this.#end(range), visit);
  }

  /** The row that holds a unique value; null is held by none. */
  holder(key: Key): Row | undefined {
    if (key === null) return undefined;
    let found: Row | undefined;
    this.#tree.ascend(key, -Infinity, (row) => {
      if (this.compare(this.keyOf(row), key) === 0) found = row;
      return false;
    });
    return found;
  }

  insert(row: Row): void {
    this.#tree.insert(this.keyOf(row), row);
  }

  remove(row: Row): void {
    const removed = this.#tree.remove(this.keyOf(row), row[0] as number);
    assert(removed, `index ${this.def.field} does not hold row ${String(row[0])}`);
  }

  /** Moves a row to where `cells`, about to be written over its own, put it. */
  move(row: Row, cells: Row): void {
    const oldCell = row[this.slot] as Cell;
    const newCell = cells[this.slot] as Cell;
    if (oldCell === newCell) return;
    const oldKey = this.#keyOfCell(oldCell);
    const newKey = this.#keyOfCell(newCell);
    if (this.compare(oldKey, newKey) === 0) return;
    const removed = this.#tree.remove(oldKey, row[0] as number);
    assert(removed, `index ${this.def.field} does not hold row ${String(row[0])}`);
    this.#tree.insert(newKey, row);
  }

  /** Takes rows, sorted by id, into the empty index. */
  *load(rows: Pages<Row>): Steps<void> {
    const { slot } = this;
    if (this.#numeric) {
      const keys = new Float64Array(rows.length);
      for (let i = 0; i < rows.length; i++) {
        const cell = (rows.at(i) as Row)[slot] as number | null;
        keys[i] = cell === null ? -Infinity : cell;
      }
      yield;
      const order = yield* orderNumbers(keys);
      yield* this.#tree.loadInSteps(keys as ArrayLike<Key>, rows, order);
    } else {
      const keys = new Array<Key>(rows.length);
      for (let i = 0; i < rows.length; i++) {
        keys[i] = this.keyOf(rows.at(i) as Row);
        if (i % STEP_ROWS === STEP_ROWS - 1) yield;
      }
      const order = yield* orderKeys(keys, this.compare);
      yield* this.#tree.loadInSteps(keys, rows, order);
    }
  }

  /** Throws unless the index holds exactly these rows (sorted by id) in its order. */
  check(rows: readonly Row[]): void {
    const name = [this.def.field, ...this.def.keys].join(".");
    this.#tree.check();
    assert(this.#tree.size === rows.length, `index ${name} holds ${this.#tree.size} rows of ${rows.length}`);
    const expected = rows.map((row) => ({ key: this.keyOf(row), row }));
    expected.sort((a, b) => this.compare(a.key, b.key) || (a.row[0] as number) - (b.row[0] as number));
    let at = 0;
    this.walk(WHOLE_RANGE, false, (row) => {
      assert(expected[at]?.row === row, `index ${name}: place ${at} holds row ${String(row[0])}`);
      at++;
      return true;
    });
    assert(at === rows.length, `index ${name}: a walk met ${at} rows of ${rows.length}`);
    let from = 0;
    for (let i = 1; i <= expected.length; i++) {
      const key = expected[from]?.key as Key;
      if (i < expected.length && this.compare(key, expected[i]?.key as Key) === 0) continue;
      const same: KeyRange = { lo: key, loOpen: false, hi: key, hiOpen: false };
      assert(this.count(same) === i - from, `index ${name}: a key's count is not ${i - from}`);
      if (this.def.kind === "unique" && key !== null) {
        assert(i - from === 1, `unique index ${name} holds a value ${i - from} times`);
        assert(this.holder(key) === expected[from]?.row, `unique index ${name} names another holder`);
      }
      from = i;
    }
  }

  #keyOfCell(cell: Cell): Key {
    if (this.def.keys.length === 0 || cell === null) return cell;
    return jsonPathValue(cell as string, this.def.keys);
  }

  #start(range: KeyRange): number {
    return range.lo === undefined ? 0 : this.#tree.rank(range.lo, range.loOpen ? Infinity : -Infinity);
  }

  #end(range: KeyRange): number {
    return range.hi === undefined ? this.#tree.size : this.#tree.rank(range.hi, range.hiOpen ? -Infinity : Infinity);
  }
}
