/**
 * The waiting lines of one collection, laid out so that a row just written finds those it may concern without asking
 * each: by a field the line's filter pins to a constant, and among lines that want the nearest row by where they wait.
 */

import { GeoIndex } from "../geo/geo.ts";
import { attempt } from "../plan/filter.ts";
import { NO_KEY } from "../plan/key.ts";
import type { Table } from "../store/table.ts";
import type { Point, Row } from "../value/value.ts";
import type { Watch } from "./line.ts";

/** `[number, watch]`: what the index of waiting points keeps. */
type Post = readonly [number, Watch];

/** Lines of one pin: those that rank by a field, and those that rank by distance from a point of their own. */
export class Group {
  readonly plain = new Set<Watch>();
  /** By the slot of the point they measure from. */
  readonly places = new Map<number, GeoIndex<Post>>();

  get empty(): boolean {
    return this.plain.size === 0 && this.places.size === 0;
  }
}

interface Seat {
  readonly group: Group;
  readonly pin: { readonly slot: number; readonly key: unknown } | null;
  readonly place: { readonly slot: number; readonly point: Point; readonly post: Post } | null;
}

const EMPTY_ROW: Row = [];

export class Board {
  readonly table: Table;
  readonly #seats = new Map<Watch, Seat>();
  readonly #open = new Group();
  readonly #pinned = new Map<number, Map<unknown, Group>>();
  #posts = 0;

  constructor(table: Table) {
    this.table = table;
  }

  get empty(): boolean {
    return this.#seats.size === 0;
  }

  watches(): Iterable<Watch> {
    return this.#seats.keys();
  }

  add(watch: Watch, now: number): void {
    const env = watch.env(now);
    const { filter, order } = watch.pick;
    let pin: Seat["pin"] = null;
    for (const candidate of filter.pins) {
      const key = attempt(() => candidate.key(EMPTY_ROW, env));
      // A whole double that no safe int is could be a bigint in the row.
      if (key === undefined || key === NO_KEY || (typeof key === "number" && !Number.isSafeInteger(key))) continue;
      pin = { slot: candidate.slot, key };
      break;
    }
    const group = pin === null ? this.#open : this.#pinnedGroup(pin.slot, pin.key);
    const point = attempt(() => order.nearness?.point(env)) ?? null;
    if (order.nearness === null || point === null) {
      group.plain.add(watch);
      this.#seats.set(watch, { group, pin, place: null });
      return;
    }
    const { slot } = order.nearness;
    const post: Post = [++this.#posts, watch];
    let places = group.places.get(slot);
    if (places === undefined) {
      places = new GeoIndex<Post>();
      group.places.set(slot, places);
    }
    places.insert(post, point);
    this.#seats.set(watch, { group, pin, place: { slot, point, post } });
  }

  remove(watch: Watch): void {
    const seat = this.#seats.get(watch);
    if (seat === undefined) return;
    this.#seats.delete(watch);
    const { group, pin, place } = seat;
    group.plain.delete(watch);
    if (place !== null) {
      const places = group.places.get(place.slot);
      places?.remove(place.post, place.point);
      if (places?.size === 0) group.places.delete(place.slot);
    }
    if (pin === null || !group.empty) return;
    const bySlot = this.#pinned.get(pin.slot);
    bySlot?.delete(pin.key);
    if (bySlot?.size === 0) this.#pinned.delete(pin.slot);
  }

  /** The groups a row may concern: no line outside them has a filter it meets. */
  groupsOf(row: Row): Group[] {
    const groups = [this.#open];
    for (const [slot, byKey] of this.#pinned) {
      const group = byKey.get(row[slot]);
      if (group !== undefined) groups.push(group);
    }
    return groups;
  }

  #pinnedGroup(slot: number, key: unknown): Group {
    let byKey = this.#pinned.get(slot);
    if (byKey === undefined) {
      byKey = new Map();
      this.#pinned.set(slot, byKey);
    }
    let group = byKey.get(key);
    if (group === undefined) {
      group = new Group();
      byKey.set(key, group);
    }
    return group;
  }
}
