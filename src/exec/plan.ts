/** What a planned statement is: made once a text and schema, run any number of times, writing nothing itself. */

import { Refusal } from "../base/refusal.ts";
import type { Env } from "../plan/env.ts";
import type { TimeSense } from "../plan/moment.ts";
import type { Pick } from "../plan/pick.ts";
import type { Change } from "../store/change.ts";
import type { Table } from "../store/table.ts";

export type ResultKind = "rows" | "affected" | "message" | "schemas";

export interface Result {
  readonly kind: ResultKind;
  /** For rows and schemas: a json array. For a message: its words. */
  readonly text: string;
  /** Rows answered, or documents written. */
  readonly count: number;
  /** What is to be applied; empty for a read, and for a write that wrote nothing. */
  readonly change: Change;
}

export const NO_CHANGE: Change = [];

export interface Plan {
  /** The statement's kind: `get`, `set`, ... */
  readonly verb: string;
  readonly isWrite: boolean;
  /** Parameters it reads: the request must send as many. */
  readonly params: number;
  /** The collection it is about, where it is about one. */
  readonly table: Table | null;
  /** Every collection it reads or writes, inner reads included. */
  readonly tables: ReadonlySet<Table>;
  /** Those its inner reads read; its own may be among them. */
  readonly inner: ReadonlySet<Table>;
  /** For `get`, `set` and `del`: which rows, so that a held claim can ask without running. */
  readonly pick: Pick | null;
  /** How time alone changes what the filter answers; null for statements without one. */
  readonly time: TimeSense | null;
  /**
   * For `set` and `del`: a text that two claims share exactly when they would take the same rows, whatever they write;
   * parameters, literals and claims of the token are written out in it.
   */
  readonly line: ((env: Env) => string) | null;
  run(env: Env): Result;
}

/** A `require` that was not met. */
export function unmet(verb: string, collection: string, count: number, wanted: number): Refusal {
  const did = verb === "get" ? "answered" : "wrote";
  const rows = count === 1 ? "row" : "rows";
  return new Refusal("unmet", `\`${verb} ${collection}\` ${did} ${count} ${rows}, and requires ${wanted}`, {
    count,
    require: wanted,
  });
}

export function affected(count: number, change: Change): Result {
  return { kind: "affected", text: "", count, change };
}

export function message(text: string, change: Change): Result {
  return { kind: "message", text, count: 0, change };
}
