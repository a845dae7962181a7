/**
 * The waiting lines of one collection, laid out so that a row just written finds those it may concern without asking
 * each: by the fields their filters pin to constants, by the conditions on time they share, and among lines that want the
 * nearest row by where they wait.
 *
 * Lines whose filters pin the same fields and ask the same of the time make a shape; of a shape, those with the same
 * values make a group, and one whose filter names several values of a field is in the group of each. A row meets a shape's conditions on time or none of its lines, and has one group in it. The lease a
 * claim has just written is ahead, so it concerns nobody after one comparison, however many wait.
 */

import { attempt } from "../base/refusal.ts";
import { GeoIndex } from "../geo/geo.ts";
import { PIN_KEYS } from "../plan/filter.ts";
import { NO_KEY } from "../plan/key.ts";
import type { TimeGate } from "../plan/moment.ts";
import type { Table } from "../store/table.ts";
import type { Point, Row } from "../value/value.ts";
import { ownPoint, type Ranking, rankingOf } from "./bid.ts";
import type { Instant, Line, Watch } from "./line.ts";

/** `[number, watch]`: what the index of waiting points keeps. */
export type Post = readonly [number, Watch];

/** Lines that a row concerns together, by how they rank it. */
export class Group {
  /** As everybody does. */
  readonly alike = new Set<Watch>();
  /** By a value of their own. */
  readonly own = new Set<Watch>();
  /** By the distance from a point of their own. */
  readonly near = new GeoIndex<Post>();

  get empty(): boolean {
    return this.alike.size + this.own.size + this.near.size === 0;
  }
}

interface Gate {
  readonly slot: number;
  readonly op: TimeGate["op"];
  readonly k: number;
}

/** A step of the way from a shape's pinned cells to their group. */
class Step {
  readonly next = new Map<unknown, Step>();
  readonly group = new Group();
}

class Shape {
  readonly slots: readonly number[];
  readonly gates: readonly Gate[];
  readonly root = new Step();

  constructor(slots: readonly number[], gates: readonly Gate[]) {
    this.slots = slots;
    this.gates = gates;
  }

  groupOf(row: Row, now: number): Group | undefined {
    for (const { slot, op, k } of this.gates) if (!holds(row[slot] as number | null, op, now + k)) return undefined;
    let step: Step | undefined = this.root;
    for (const slot of this.slots) {
      step = step.next.get(row[slot]);
      if (step === undefined) return undefined;
    }
    return step.group;
  }

  get empty(): boolean {
    return this.root.next.size === 0 && this.root.group.empty;
  }

  /** The step at the end of a way, made where there is none. */
  step(way: readonly unknown[]): Step {
    let step = this.root;
    for (const key of way) {
      const next = step.next.get(key) ?? new Step();
      step.next.set(key, next);
      step = next;
    }
    return step;
  }

  /** Takes the way to a group that nobody is in any more apart. */
  clear(way: readonly unknown[]): void {
    const steps: Step[] = [this.root];
    for (const key of way) {
      const step = steps.at(-1)?.next.get(key);
      if (step === undefined) return;
      steps.push(step);
    }
    for (let at = way.length - 1; at >= 0 && steps[at + 1]?.next.size === 0; at--) steps[at]?.next.delete(way[at]);
  }
}

/** Where a watch sits, so that it is found again when its line goes. */
interface Seat {
  readonly shape: string;
  /** The keys of each of its groups: several where its filter names several values of a field. */
  readonly ways: readonly (readonly unknown[])[];
  readonly ranking: Ranking;
  readonly place: { readonly post: Post; readonly point: Point } | null;
}

/** Pins of a filter that lines are told apart by; more would not make a group smaller by much. */
const PINS = 4;

export class Board {
  readonly table: Table;
  /** Lines that rows there now concern, but whose needs they do not meet: any change may be the one they wait for. */
  readonly restless = new Set<Line>();
  readonly #seats = new Map<Watch, Seat>();
  readonly #shapes = new Map<string, Shape>();
  #posts = 0;
  #near = 0;
  #own = 0;
  #nearSlot = 0;

  constructor(table: Table) {
    this.table = table;
  }

  get empty(): boolean {
    return this.#seats.size === 0;
  }

  /** All lines here rank rows alike: whoever was held longest wins whatever it wants. */
  get isAlike(): boolean {
    return this.#near + this.#own === 0;
  }

  /** Whether a line here is one of those that want the nearest row. */
  isPosted(watch: Watch): boolean {
    return this.#seats.get(watch)?.place != null;
  }

  /** How many lines want the nearest row. */
  get near(): number {
    return this.#near;
  }

  /** The point those measure to. */
  get nearSlot(): number {
    return this.#nearSlot;
  }

  watches(): Iterable<Watch> {
    return this.#seats.keys();
  }

  /** @param instant that of the run which found nothing */
  add(watch: Watch, instant: Instant): void {
    const env = watch.env(instant);
    const { filter, order } = watch.pick;
    const slots: number[] = [];
    let ways: (readonly unknown[])[] = [[]];
    for (const { slot, keys: keysOf } of filter.pins) {
      if (slots.length === PINS || slots.includes(slot)) continue;
      const keys = new Set(attempt(() => keysOf(env)) ?? [NO_KEY]);
      if (ways.length * keys.size > PIN_KEYS || ![...keys].every(isExact)) continue;
      slots.push(slot);
      ways = ways.flatMap((way) => [...keys].map((key) => [...way, key]));
    }
    const gates: Gate[] = [];
    for (const { slot, op, k: kOf } of watch.time.gates) {
      const k = kOf(env);
      if (k !== undefined) gates.push({ slot, op, k });
    }
    let ranking = watch.line.watches.length > 1 ? "own" : rankingOf(order);
    const point = ranking === "near" ? ownPoint(order, env) : null;
    const slot = order.nearness?.slot ?? 0;
    let place: Seat["place"] = null;
    if (point !== null && (this.#near === 0 || slot === this.#nearSlot)) {
      place = { post: [++this.#posts, watch], point };
      this.#near++;
      this.#nearSlot = slot;
    } else if (ranking !== "alike") {
      // One that measures from elsewhere than the others, too: it looks for itself.
      ranking = "own";
      this.#own++;
    }
    const shape = nameOf(slots, gates);
    const seat: Seat = { shape, ways, ranking, place };
    for (const way of ways) {
      const { group } = this.#shapeOf(shape, slots, gates).step(way);
      if (place !== null) group.near.insert(place.post, place.point);
      else if (ranking === "alike") group.alike.add(watch);
      else group.own.add(watch);
    }
    this.#seats.set(watch, seat);
  }

  remove(watch: Watch): void {
    const seat = this.#seats.get(watch);
    if (seat === undefined) return;
    this.#seats.delete(watch);
    this.restless.delete(watch.line);
    const { ways, ranking, place } = seat;
    if (place !== null) this.#near--;
    else if (ranking === "own") this.#own--;
    const shape = this.#shapes.get(seat.shape);
    if (shape === undefined) return;
    for (const way of ways) {
      const { group } = shape.step(way);
      if (place !== null) group.near.remove(place.post, place.point);
      else if (ranking === "alike") group.alike.delete(watch);
      else group.own.delete(watch);
      if (group.empty) shape.clear(way);
    }
    if (shape.empty) this.#shapes.delete(seat.shape);
  }

  /** The groups a row may concern: no line outside them has a filter it meets. */
  groupsOf(row: Row, now: number): Group[] {
    const groups: Group[] = [];
    for (const shape of this.#shapes.values()) {
      const group = shape.groupOf(row, now);
      if (group !== undefined) groups.push(group);
    }
    return groups;
  }

  #shapeOf(name: string, slots: readonly number[], gates: readonly Gate[]): Shape {
    let shape = this.#shapes.get(name);
    if (shape === undefined) {
      shape = new Shape(slots, gates);
      this.#shapes.set(name, shape);
    }
    return shape;
  }
}

function nameOf(slots: readonly number[], gates: readonly Gate[]): string {
  return `${slots.join()};${gates.map(({ slot, op, k }) => `${slot}${op}${k}`).join()}`;
}

/** A key that a Map finds a cell by: a whole double that no safe int is could be a bigint in the row. */
function isExact(key: unknown): boolean {
  return key !== undefined && key !== NO_KEY && !(typeof key === "number" && !Number.isSafeInteger(key));
}

function holds(cell: number | null, op: TimeGate["op"], bound: number): boolean {
  if (cell === null) return false;
  switch (op) {
    case "<":
      return cell < bound;
    case "<=":
      return cell <= bound;
    case ">":
      return cell > bound;
    case ">=":
      return cell >= bound;
  }
}
