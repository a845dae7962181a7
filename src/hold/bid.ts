/**
 * Bids, and who wins. Each line bids with its best row, ranked by its own order:
 *
 * - a field ranks a row alike for all, so the claim held longest has it;
 * - the distance from a point of its own goes to the nearest, and any other value of its own to the first by that order;
 * - orders that rank on different scales do not compare, and there too the claim held longest wins.
 *
 * A row goes to the best bid for it. Of the bids that won their rows one runs at a time, chosen by the same rule.
 */

import { distance } from "../geo/distance.ts";
import type { Env } from "../plan/env.ts";
import type { Order } from "../plan/order.ts";
import type { Table } from "../store/table.ts";
import type { Point, Row, Value } from "../value/value.ts";
import type { Instant, Line, Watch } from "./line.ts";
import { tried } from "./tried.ts";

export interface Bid {
  readonly line: Line;
  /** The row it is for; null where the look itself was refused, and the run is to say so. */
  readonly table: Table | null;
  readonly id: number;
  /** On one scale ranks compare. */
  readonly scale: string;
  /** How far the row is from the claim's point; 0 where the order is another. */
  readonly metres: number;
  readonly order: Order | null;
  readonly keys: readonly Value[];
}

/** All whose order ranks rows as everybody's does: they only ever tie. */
const ALIKE = "";
const REFUSED = "refused";
const NO_KEYS: readonly Value[] = [];

/** A row without a point has a null key, and comes first. */
export const UNPLACED = -1;

/** How a claim ranks rows: as everybody does, by distance from a point of its own, by another value of its own. */
export type Ranking = "alike" | "near" | "own";

export function rankingOf(order: Order): Ranking {
  if (order.nearness !== null) return "near";
  return order.parts.every((part) => part.compiled.field !== null) ? "alike" : "own";
}

/** The point a claim measures from; null where it has none, and then its order is a value like any other. */
export function ownPoint(order: Order, env: Env): Point | null {
  return tried(() => order.nearness?.point(env)) ?? null;
}

/** What a look of a line finds: the first of its statements that would write bids. */
export function lookOf(line: Line, instant: Instant): Bid | undefined {
  for (const watch of line.watches) {
    const found = tried(() => ({ row: watch.pick.first(watch.env(instant)) }));
    if (found === undefined) return refusedBid(line);
    if (found.row !== undefined) return bidOf(watch, found.row, instant);
  }
  return undefined;
}

export function bidOf(watch: Watch, row: Row, instant: Instant): Bid {
  const { line, table } = watch;
  const { order } = watch.pick;
  const id = row[0] as number;
  const base = { line, table, id, metres: 0, order: null, keys: NO_KEYS };
  if (rankingOf(order) === "alike") return { ...base, scale: ALIKE };
  const env = watch.env(instant);
  const point = ownPoint(order, env);
  if (order.nearness !== null && point !== null) {
    const { slot } = order.nearness;
    return nearBid(watch, slot, id, metresTo(row[slot] as Point | null, point));
  }
  const keys = tried(() => order.keysOf(row, env));
  if (keys === undefined) return refusedBid(line);
  return { ...base, scale: `${table.cid} ${order.shape}`, order, keys };
}

export function nearBid({ line, table }: Watch, slot: number, id: number, metres: number): Bid {
  return { line, table, id, scale: `${table.cid} near ${slot}`, metres, order: null, keys: NO_KEYS };
}

function refusedBid(line: Line): Bid {
  return { line, table: null, id: 0, scale: REFUSED, metres: 0, order: null, keys: NO_KEYS };
}

export function metresTo(at: Point | null, point: Point): number {
  return at === null ? UNPLACED : distance(at.lon, at.lat, point.lon, point.lat);
}

/** Since when a line's claim is held: that of its turn. */
export function heldOrder(line: Line): number {
  return line.turn?.order ?? Number.POSITIVE_INFINITY;
}

/** Whether `a` is the better of two bids on one scale. */
function beats(a: Bid, b: Bid): boolean {
  const rank = a.metres - b.metres || (a.order?.compareKeys(a.keys, b.keys) ?? 0);
  return rank < 0 || (rank === 0 && heldOrder(a.line) < heldOrder(b.line));
}

/** Of bids for one row, and of bids that won their rows: the best on each scale, and of those the one held longest. */
export function winnerOf(bids: readonly Bid[]): Bid | undefined {
  const [only, second] = bids;
  if (second === undefined) return only;
  const best = new Map<string, Bid>();
  for (const bid of bids) {
    const other = best.get(bid.scale);
    if (other === undefined || beats(bid, other)) best.set(bid.scale, bid);
  }
  let winner: Bid | undefined;
  for (const bid of best.values()) {
    if (winner === undefined || heldOrder(bid.line) < heldOrder(winner.line)) winner = bid;
  }
  return winner;
}
