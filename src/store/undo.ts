/**
 * What takes a change back. Each step tells how one op is undone, and the steps are taken last first, so each finds the
 * store as its op left it. One that is rolled back leaves rows, counters and indexes as they were, to the row object;
 * only the versions go on rising, as whoever remembers one may have looked in between.
 */

import type { Row } from "../value/value.ts";
import type { Table, TableState } from "./table.ts";

export type UndoStep =
  | { readonly kind: "inserted"; readonly table: Table; readonly row: Row; readonly nextId: number }
  | { readonly kind: "replaced"; readonly table: Table; readonly row: Row; readonly cells: Row }
  | { readonly kind: "deleted"; readonly table: Table; readonly row: Row }
  | { readonly kind: "created"; readonly table: Table; readonly nextCid: number }
  | { readonly kind: "dropped"; readonly table: Table }
  | { readonly kind: "altered"; readonly table: Table; readonly state: TableState; readonly dataBytes: number };

export class Undo {
  readonly steps: UndoStep[] = [];
}
