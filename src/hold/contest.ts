/**
 * Who gets a row that several lines would take. Each line bids with its best row, ranked by its own order: a field ranks
 * a row alike for all, so the claim held longest has it; a distance from a point of its own goes to the nearest. Orders
 * that rank on different scales do not compare, and there too the claim held longest wins.
 */

import { distance } from "../geo/distance.ts";
import type { Env } from "../plan/env.ts";
import { attempt } from "../plan/filter.ts";
import type { Point, Row, Value } from "../value/value.ts";
import type { Watch } from "./line.ts";

export interface Bid {
  readonly watch: Watch;
  readonly row: Row;
  /** On one scale ranks compare. */
  readonly scale: string;
  readonly metres: number;
  readonly keys: readonly Value[];
}

export function bidOf(watch: Watch, row: Row, env: Env): Bid {
  const { order } = watch.pick;
  const point = attempt(() => order.nearness?.point(env)) ?? null;
  if (order.nearness === null || point === null) {
    const keys = attempt(() => order.keysOf(row, env));
    // An order that is refused over the row ranks it against no other: the run says why.
    if (keys === undefined) return { watch, row, scale: `refused ${watch.line.key}`, metres: 0, keys: [] };
    return { watch, row, scale: order.shape, metres: 0, keys };
  }
  const { slot } = order.nearness;
  const at = row[slot] as Point | null;
  // A row without a point has a null key, and comes first.
  const metres = at === null ? -1 : distance(at.lon, at.lat, point.lon, point.lat);
  return { watch, row, scale: nearScale(slot), metres, keys: [] };
}

export function nearScale(slot: number): string {
  return `near ${slot}`;
}

/** When the bid's line was held: of its request whose turn it is. */
export function heldOrder(bid: Bid): number {
  return bid.watch.line.turn?.order ?? Number.POSITIVE_INFINITY;
}

/** Less than 0: `a` beats `b` for the one row both want. */
export function compareBids(a: Bid, b: Bid): number {
  if (a.scale === b.scale) {
    const rank = a.metres - b.metres || a.watch.pick.order.compareKeys(a.keys, b.keys);
    if (rank !== 0) return rank;
  }
  return heldOrder(a) - heldOrder(b);
}

/** The winner among bids for one row: the best of each scale, and of those the one held longest. */
export function winnerOf(bids: readonly Bid[]): Bid | undefined {
  const byScale = new Map<string, Bid>();
  for (const bid of bids) {
    const best = byScale.get(bid.scale);
    if (best === undefined || compareBids(bid, best) < 0) byScale.set(bid.scale, bid);
  }
  let winner: Bid | undefined;
  for (const bid of byScale.values()) {
    if (winner === undefined || heldOrder(bid) < heldOrder(winner)) winner = bid;
  }
  return winner;
}
