/**
 * Bids, and who wins. Each line bids with its best row, ranked by its own order:
 *
 * - a field ranks a row alike for all, so the claim held longest has it;
 * - the distance from a point of its own goes to the nearest, and any other value of its own to the first by that order;
 * - orders that rank on different scales do not compare, and there too the claim held longest wins.
 *
 * A row goes to the best bid for it. Of the bids that won their rows one runs at a time, chosen by the same rule.
 */

import { attempt } from "../base/refusal.ts";
import { distance } from "../geo/distance.ts";
import type { Env } from "../plan/env.ts";
import type { Order } from "../plan/order.ts";
import type { Table } from "../store/table.ts";
import type { Point, Row, Value } from "../value/value.ts";
import type { Instant, Line, Watch } from "./line.ts";
import { type Candidate, Standing } from "./standing.ts";

/** How often a row was written in the drain under way. */
export type TouchOf = (table: Table, id: number) => number;

export interface Bid {
  readonly line: Line;
  /** The row it is for; null where it does not matter which, or the look itself was refused. */
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
  return attempt(() => order.nearness?.point(env)) ?? null;
}

/** How a line ranks a row; undefined where its order is refused over it, and the run is to say so. */
export function candidateOf(watch: Watch, row: Row, instant: Instant, touch: number): Candidate | undefined {
  const { order } = watch.pick;
  const id = row[0] as number;
  const env = watch.env(instant);
  const point = ownPoint(order, env);
  if (order.nearness !== null && point !== null) {
    return { id, touch, metres: metresTo(row[order.nearness.slot] as Point | null, point), keys: NO_KEYS };
  }
  const keys = attempt(() => order.keysOf(row, env));
  return keys === undefined ? undefined : { id, touch, metres: 0, keys };
}

/** What ranks a claim's rows, where that is not their distance. */
export function rankOf(watch: Watch, instant: Instant): Order | null {
  const { order } = watch.pick;
  return order.nearness !== null && ownPoint(order, watch.env(instant)) !== null ? null : order;
}

/**
 * A look of a line at all rows: the best of those that the first of its statements would write which would write any.
 * Undefined: there are none; null: the look itself was refused, and the run is to say so.
 *
 * @param most how many rows are kept, so that the next is known when the first goes to another
 */
export function lookOf(line: Line, instant: Instant, most: number, touchOf: TouchOf): Standing | undefined | null {
  for (const watch of line.watches) {
    const rows = attempt(() => watch.pick.top(watch.env(instant), most));
    if (rows === undefined) return null;
    if (rows.length === 0) continue;
    const candidates: Candidate[] = [];
    for (const row of rows) {
      const candidate = candidateOf(watch, row, instant, touchOf(watch.table, row[0] as number));
      if (candidate === undefined) return null;
      candidates.push(candidate);
    }
    // When these are gone, another of its statements may have some.
    const isWhole = rows.length < most && line.watches.length === 1;
    return new Standing(watch, rankOf(watch, instant), candidates, isWhole);
  }
  return undefined;
}

/** Whether there is a row the line would take, or the look was refused: cheaper than knowing which. */
export function finds(line: Line, instant: Instant): boolean {
  for (const watch of line.watches) {
    const found = attempt(() => ({ row: watch.pick.first(watch.env(instant)) }));
    if (found === undefined || found.row !== undefined) return true;
  }
  return false;
}

/** A bid of a line whose order ranks rows as everybody's does. */
export function alikeBid(line: Line): Bid {
  return { line, table: null, id: 0, scale: ALIKE, metres: 0, order: null, keys: NO_KEYS };
}

export function standingBid({ watch, order }: Standing, { id, metres, keys }: Candidate): Bid {
  const { line, table } = watch;
  if (order === null) return nearBid(watch, watch.pick.order.nearness?.slot ?? 0, id, metres);
  if (rankingOf(order) === "alike") return { ...alikeBid(line), table, id };
  return { line, table, id, scale: `${table.cid} ${order.shape}`, metres, order, keys };
}

export function nearBid({ line, table }: Watch, slot: number, id: number, metres: number): Bid {
  return { line, table, id, scale: `${table.cid} near ${slot}`, metres, order: null, keys: NO_KEYS };
}

export function refusedBid(line: Line): Bid {
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
