/** The rows of a table by id, asked as an ordered index is: so that an order by id is a walk like any other. */

import type { Tree } from "../tree/tree.ts";
import type { Row } from "../value/value.ts";
import type { KeyRange } from "./ordered_index.ts";

export class IdIndex {
  readonly #rows: () => Tree<number, Row>;

  constructor(rows: () => Tree<number, Row>) {
    this.#rows = rows;
  }

  /** Rows with an id in the range; its bounds are numbers, or absent. */
  count(range: KeyRange): number {
    return Math.max(0, this.#end(range) - this.#start(range));
  }

  walk(range: KeyRange, descending: boolean, visit: (row: Row) => boolean): void {
    if (descending) this.#rows().descendRange(this.#start(range), this.#end(range), visit);
    else this.#rows().ascendRange(this.#start(range), this.#end(range), visit);
  }

  #start(range: KeyRange): number {
    if (range.lo === undefined) return 0;
    return this.#rows().rank(range.lo as number, range.loOpen ? Infinity : -Infinity);
  }

  #end(range: KeyRange): number {
    const rows = this.#rows();
    return range.hi === undefined ? rows.size : rows.rank(range.hi as number, range.hiOpen ? -Infinity : Infinity);
  }
}
