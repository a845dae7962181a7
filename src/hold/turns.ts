/**
 * Moments at which time alone brings rows to waiting lines. Lines whose filters compare the same field with the same
 * distance from `now()` turn at the same moments, so they share one: a thousand couriers waiting by `run_at <= now()` have
 * one moment in the wheel, not a thousand, and no job has one of its own.
 *
 * | state | what it is | what leads out |
 * | ----- | ---------- | -------------- |
 * | armed | a moment in the wheel: the next turn of any row | it comes: `due` is told, and the next is looked for; a write brings an earlier one |
 * | idle  | no row turns later | a write brings one |
 */

import type { Moment, TimerWheel } from "../clock/wheel.ts";
import { nextTurn, type Turn } from "../plan/moment.ts";
import type { Row } from "../value/value.ts";
import type { Watch } from "./line.ts";

export class TurnGroup {
  readonly key: string;
  readonly turn: Turn;
  readonly k: number;
  readonly watches = new Map<Watch, number>();
  /** Every turn up to here has been told. */
  sinceMs: number;
  armed: Moment | null = null;

  constructor(key: string, turn: Turn, k: number, sinceMs: number) {
    this.key = key;
    this.turn = turn;
    this.k = k;
    this.sinceMs = sinceMs;
  }

  /** When a row with this cell turns. */
  momentOf(cell: unknown): number | undefined {
    return cell === null || cell === undefined ? undefined : Number(cell) - this.k + this.turn.later;
  }
}

export class Turns {
  readonly #wheel: TimerWheel;
  readonly #due: (group: TurnGroup, fromMs: number, momentMs: number) => void;
  readonly #byTable = new Map<number, Map<string, TurnGroup>>();

  /** `due` is told of turns after `fromMs` up to now; `momentMs` is when the first of them was to be. */
  constructor(wheel: TimerWheel, due: (group: TurnGroup, fromMs: number, momentMs: number) => void) {
    this.#wheel = wheel;
    this.#due = due;
  }

  /** @param sinceMs the `now()` of the run that found nothing */
  add(watch: Watch, turns: readonly Turn[], sinceMs: number): void {
    const env = watch.env(sinceMs);
    for (const turn of turns) {
      const k = turn.k(env);
      if (k === undefined) continue;
      const key = `${turn.slot}/${k}/${turn.later}`;
      let groups = this.#byTable.get(turn.table.cid);
      if (groups === undefined) {
        groups = new Map();
        this.#byTable.set(turn.table.cid, groups);
      }
      let group = groups.get(key);
      if (group === undefined) {
        group = new TurnGroup(key, turn, k, sinceMs);
        groups.set(key, group);
        this.#arm(group);
      }
      group.watches.set(watch, (group.watches.get(watch) ?? 0) + 1);
    }
  }

  remove(watch: Watch): void {
    for (const [cid, groups] of this.#byTable) {
      for (const group of groups.values()) {
        if (!group.watches.delete(watch) || group.watches.size > 0) continue;
        if (group.armed !== null) this.#wheel.cancel(group.armed);
        groups.delete(group.key);
      }
      if (groups.size === 0) this.#byTable.delete(cid);
    }
  }

  /** A row was written: its turn may come before the one armed. One that was armed and is no more is found out then. */
  wrote(cid: number, row: Row): void {
    const groups = this.#byTable.get(cid);
    if (groups === undefined) return;
    for (const group of groups.values()) {
      const moment = group.momentOf(row[group.turn.slot]);
      if (moment === undefined || moment <= group.sinceMs) continue;
      if (group.armed === null || moment < group.armed.atMs) this.#armAt(group, moment);
    }
  }

  /** Tells at once what is due by now, where somebody must not run ahead of it. */
  catchUp(now: number): void {
    for (const groups of this.#byTable.values()) {
      for (const group of groups.values()) if (group.armed !== null && group.armed.atMs <= now) this.#fire(group, now);
    }
  }

  #arm(group: TurnGroup): void {
    const next = nextTurn(group.turn, group.k, group.sinceMs);
    if (next !== undefined) this.#armAt(group, next);
  }

  #armAt(group: TurnGroup, atMs: number): void {
    if (group.armed !== null) this.#wheel.cancel(group.armed);
    group.armed = this.#wheel.add(atMs, () => this.#fire(group, this.#wheel.now));
  }

  #fire(group: TurnGroup, now: number): void {
    if (group.armed === null) return;
    const momentMs = group.armed.atMs;
    this.#wheel.cancel(group.armed);
    group.armed = null;
    const fromMs = group.sinceMs;
    group.sinceMs = Math.max(now, fromMs);
    this.#arm(group);
    this.#due(group, fromMs, momentMs);
  }
}
