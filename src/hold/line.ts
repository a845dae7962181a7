/**
 * A line: the held requests that would take the same rows, whatever they write. One look serves them all; only one is
 * run at a time, the one held longest.
 */

import type { Env } from "../plan/env.ts";
import type { Pick } from "../plan/pick.ts";
import type { Table } from "../store/table.ts";
import type { Waiter } from "./waiter.ts";

/** One `set` or `del` of the line's requests, as the read of one row it amounts to. */
export class Watch {
  readonly line: Line;
  readonly table: Table;
  readonly pick: Pick;
  /** Collections it reads besides: a write to one may change any row's answer. */
  readonly inner: readonly Table[];
  readonly #envOf: () => Env;
  #env: Env | null = null;

  constructor(line: Line, table: Table, pick: Pick, inner: readonly Table[], envOf: () => Env) {
    this.line = line;
    this.table = table;
    this.pick = pick;
    this.inner = inner;
    this.#envOf = envOf;
  }

  /** What a look reads now. Constants are kept while the clock stands, inner reads never. */
  env(now: number): Env {
    const kept = this.#env;
    if (kept !== null && kept.now === now && this.inner.length === 0) return kept;
    const env = this.#envOf();
    this.#env = env;
    return env;
  }
}

export class Line {
  readonly key: string;
  readonly watches: Watch[] = [];
  /** In the order they were held. */
  readonly waiters: Waiter[] = [];
  /** Needs that the rows there are could not meet, in the drain under way. */
  readonly unmet = new Set<string>();

  constructor(key: string) {
    this.key = key;
  }

  /** Who is to run: the one held longest, of those whose need was not found unmet just now. */
  get turn(): Waiter | undefined {
    if (this.unmet.size === 0) return this.waiters[0];
    return this.waiters.find((waiter) => !this.unmet.has(waiter.need));
  }

  leave(waiter: Waiter): void {
    const at = this.waiters[0] === waiter ? 0 : this.waiters.indexOf(waiter);
    if (at === 0) this.waiters.shift();
    else if (at > 0) this.waiters.splice(at, 1);
    waiter.line = null;
  }
}
