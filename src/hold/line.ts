/**
 * A line: the held requests that would take the same rows, whatever they write. One look serves them all; only one is
 * run at a time, the one held longest.
 *
 * Requests of one line may still need other things of the rows: how many they take, how many they require. A need that the
 * rows there are did not meet passes the turn on to the next in line with another need, and keeps its place.
 */

import type { Env } from "../plan/env.ts";
import type { TimeSense } from "../plan/moment.ts";
import type { Pick } from "../plan/pick.ts";
import type { Table } from "../store/table.ts";
import type { Waiter } from "./waiter.ts";

/** A stretch of time in which nothing is written: what was worked out in it holds until it is over. */
export interface Instant {
  readonly now: number;
}

/** One `set` or `del` of the line's requests, as the read of one row it amounts to. */
export class Watch {
  readonly line: Line;
  readonly table: Table;
  readonly pick: Pick;
  /** How time alone changes what it picks. */
  readonly time: TimeSense;
  /** Collections it reads besides the rows themselves: a write to one may change any row's answer. */
  readonly inner: ReadonlySet<Table>;
  readonly #envOf: () => Env;
  #env: Env | null = null;
  #instant: Instant | null = null;

  constructor(line: Line, table: Table, pick: Pick, time: TimeSense, inner: ReadonlySet<Table>, envOf: () => Env) {
    this.line = line;
    this.table = table;
    this.pick = pick;
    this.time = time;
    this.inner = inner;
    this.#envOf = envOf;
  }

  /** What a look reads in an instant. Constants outlast it while the clock stands; inner reads never do. */
  env(instant: Instant): Env {
    const kept = this.#env;
    if (kept !== null && (instant === this.#instant || (kept.now === instant.now && this.inner.size === 0)))
      return kept;
    const env = this.#envOf();
    this.#env = env;
    this.#instant = instant;
    return env;
  }
}

/** The requests of a line that need the same, in the order they were held. */
class Queue {
  first: Waiter | null = null;
  last: Waiter | null = null;
  unmet = false;
}

export class Line {
  readonly key: string;
  readonly watches: Watch[] = [];
  /** By need. */
  readonly #queues = new Map<string, Queue>();
  #turn: Waiter | undefined;

  constructor(key: string) {
    this.key = key;
  }

  get empty(): boolean {
    return this.#queues.size === 0;
  }

  /** Who is to run: the one held longest, of those whose need was not found unmet. */
  get turn(): Waiter | undefined {
    return this.#turn;
  }

  /** A need was found unmet, and nothing was written since. */
  get isUnmet(): boolean {
    for (const queue of this.#queues.values()) if (queue.unmet) return true;
    return false;
  }

  join(waiter: Waiter): void {
    waiter.line = this;
    let queue = this.#queues.get(waiter.need);
    if (queue === undefined) {
      queue = new Queue();
      this.#queues.set(waiter.need, queue);
    }
    waiter.before = queue.last;
    if (queue.last === null) queue.first = waiter;
    else queue.last.after = waiter;
    queue.last = waiter;
    if (this.#turn === undefined && !queue.unmet) this.#turn = waiter;
  }

  leave(waiter: Waiter): void {
    const queue = this.#queues.get(waiter.need);
    if (queue === undefined) return;
    if (waiter.before === null) queue.first = waiter.after;
    else waiter.before.after = waiter.after;
    if (waiter.after === null) queue.last = waiter.before;
    else waiter.after.before = waiter.before;
    waiter.before = null;
    waiter.after = null;
    waiter.line = null;
    if (queue.first === null) this.#queues.delete(waiter.need);
    if (this.#turn === waiter) this.#pass();
  }

  /** The rows there are do not meet this need: the turn passes on. */
  miss(need: string): void {
    const queue = this.#queues.get(need);
    if (queue === undefined) return;
    queue.unmet = true;
    if (this.#turn?.need === need) this.#pass();
  }

  /** The rows are others now: every need is good for another try. */
  retry(): void {
    for (const queue of this.#queues.values()) queue.unmet = false;
    this.#pass();
  }

  /** In the order they were held, those of one need after the other. */
  *waiters(): Iterable<Waiter> {
    for (const queue of this.#queues.values()) {
      for (let waiter = queue.first; waiter !== null; waiter = waiter.after) yield waiter;
    }
  }

  #pass(): void {
    let turn: Waiter | undefined;
    for (const { first, unmet } of this.#queues.values()) {
      if (unmet || first === null) continue;
      if (turn === undefined || first.order < turn.order) turn = first;
    }
    this.#turn = turn;
  }
}
