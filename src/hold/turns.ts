/**
 * Moments at which time alone brings rows to waiting lines. Lines whose filters compare the same field with the same
 * distance from `now()` turn at the same moments, so they share one: a thousand couriers waiting by `run_at <= now()` have
 * one moment in the wheel, not a thousand, and no job has one of its own.
 *
 * | state | what it is | what leads out |
 * | ----- | ---------- | -------------- |
 * | armed | a moment in the wheel: the next turn of any row | it comes: `due` is told, and the next is looked for; a write brings an earlier one |
 * | idle  | no row turns later | a write brings one |
 *
 * A write that moves the armed row on, or deletes it, leaves the moment where it is: when it comes nothing is due, nobody
 * looks, and the next is looked for then.
 */

import type { Moment, TimerWheel } from "../clock/wheel.ts";
import type { Env } from "../plan/env.ts";
import { nextTurn, reachable, type Turn } from "../plan/moment.ts";
import type { Row } from "../value/value.ts";
import type { Watch } from "./line.ts";

export class TurnGroup {
  readonly key: string;
  readonly turn: Turn;
  readonly k: number;
  /** Those that may want the row that turns, and those of which any row's answer may change with it. */
  readonly watches = new Set<Watch>();
  readonly readers = new Set<Watch>();
  /** Every turn up to here has been told, or was to be seen when it was written. */
  sinceMs: number;
  armed: Moment | null = null;

  constructor(key: string, turn: Turn, k: number, sinceMs: number) {
    this.key = key;
    this.turn = turn;
    this.k = k;
    this.sinceMs = sinceMs;
  }

  /** When a row with this cell turns; undefined when it never does. */
  momentOf(cell: unknown): number | undefined {
    if (cell === null || cell === undefined) return undefined;
    return reachable(Number(cell) - this.k + this.turn.later);
  }
}

export class Turns {
  readonly #wheel: TimerWheel;
  readonly #due: (group: TurnGroup, fromMs: number, momentMs: number) => void;
  readonly #byTable = new Map<number, Map<string, TurnGroup>>();
  readonly #groupsOf = new Map<Watch, Set<TurnGroup>>();

  /** `due` is told of turns after `fromMs` up to now; `momentMs` is when the first of them was to be. */
  constructor(wheel: TimerWheel, due: (group: TurnGroup, fromMs: number, momentMs: number) => void) {
    this.#wheel = wheel;
    this.#due = due;
  }

  /**
   * @param own whether rows that turn are the watch's own, where the turn says so
   * @param sinceMs the `now()` of the run that found nothing
   */
  add(watch: Watch, turns: readonly Turn[], env: Env, own: boolean, sinceMs: number): void {
    for (const turn of turns) {
      const k = turn.k(env);
      if (k === undefined) continue;
      const group = this.#groupOf(turn, k, sinceMs);
      if (own && turn.own) group.watches.add(watch);
      else group.readers.add(watch);
      const mine = this.#groupsOf.get(watch) ?? new Set();
      mine.add(group);
      this.#groupsOf.set(watch, mine);
    }
  }

  remove(watch: Watch): void {
    for (const group of this.#groupsOf.get(watch) ?? []) {
      group.watches.delete(watch);
      group.readers.delete(watch);
      if (group.watches.size + group.readers.size > 0) continue;
      if (group.armed !== null) this.#wheel.cancel(group.armed);
      const { cid } = group.turn.table;
      const groups = this.#byTable.get(cid);
      groups?.delete(group.key);
      if (groups?.size === 0) this.#byTable.delete(cid);
    }
    this.#groupsOf.delete(watch);
  }

  /** A row was written: its turn may come before the one armed. One that is past is seen with the write itself. */
  wrote(cid: number, row: Row): void {
    const groups = this.#byTable.get(cid);
    if (groups === undefined) return;
    const now = this.#wheel.now;
    for (const group of groups.values()) {
      // No turn up to now is left to tell of: what came due was told, and what was written past was seen.
      if (group.armed === null || group.armed.atMs > now) group.sinceMs = Math.max(now, group.sinceMs);
      const moment = group.momentOf(row[group.turn.slot]);
      // After an alter that nobody here knows of yet the slot may hold anything.
      if (moment === undefined || !(moment > now)) continue;
      if (group.armed === null || moment < group.armed.atMs) this.#armAt(group, moment);
    }
  }

  #groupOf(turn: Turn, k: number, sinceMs: number): TurnGroup {
    const { cid } = turn.table;
    const key = `${turn.slot}/${k}/${turn.later}`;
    let groups = this.#byTable.get(cid);
    if (groups === undefined) {
      groups = new Map();
      this.#byTable.set(cid, groups);
    }
    let group = groups.get(key);
    if (group === undefined) {
      group = new TurnGroup(key, turn, k, sinceMs);
      groups.set(key, group);
      this.#arm(group);
    }
    return group;
  }

  #arm(group: TurnGroup): void {
    const next = nextTurn(group.turn, group.k, group.sinceMs);
    if (next !== undefined) this.#armAt(group, next);
  }

  #armAt(group: TurnGroup, atMs: number): void {
    if (group.armed !== null) this.#wheel.cancel(group.armed);
    group.armed = this.#wheel.add(atMs, () => this.#fire(group));
  }

  #fire(group: TurnGroup): void {
    if (group.armed === null) return;
    const momentMs = group.armed.atMs;
    group.armed = null;
    const fromMs = group.sinceMs;
    group.sinceMs = Math.max(this.#wheel.now, fromMs);
    this.#arm(group);
    this.#due(group, fromMs, momentMs);
  }
}
