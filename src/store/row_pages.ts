/** Rows by id, sorted, as a table takes them; weighed as they come, while the processor's caches hold them. */

import { Pages } from "../tree/pages.ts";
import { FANOUT } from "../tree/tree.ts";
import type { Row } from "../value/value.ts";
import { contentBytes } from "./weight.ts";

export class RowPages extends Pages<Row> {
  /** What the rows' contents weigh. */
  bytes = 0;

  constructor() {
    super(FANOUT);
  }

  override push(row: Row): void {
    super.push(row);
    this.bytes += contentBytes(row);
  }
}
