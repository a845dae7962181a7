/**
 * The rows just written or just due that waiting lines want by distance, and which line is nearest to each. None of the
 * lines looks: each row asks the index of waiting points who is nearest, of those whose filter it meets. That is exactly
 * what all looks together would find, because a line asleep wants no other row than these.
 *
 * A row keeps the nearest line it found until that line's turn is another's: lines only leave while a drain is under way.
 * The distance it kept is then still a lower bound, so the pair closest of all is found by asking few rows anew.
 */

import type { Point, Row } from "../value/value.ts";
import { type Bid, heldOrder, metresTo, nearBid, ownPoint, UNPLACED } from "./bid.ts";
import type { Board, Group, Post } from "./board.ts";
import { Heap } from "./heap.ts";
import type { Instant, Line, Watch } from "./line.ts";
import type { Waiter } from "./waiter.ts";

/** What a lane asks of the contest it is part of. */
export interface Referee {
  readonly instant: Instant;
  /** Whether a line is none that looks for itself just now. */
  isQuiet(line: Line): boolean;
  /** One look of a line at one row. */
  wants(watch: Watch, row: Row): boolean;
}

interface Nearest {
  readonly watch: Watch;
  /** Whose turn it was when it was found. */
  readonly turn: Waiter;
  readonly metres: number;
}

interface Placed {
  readonly id: number;
  /** Undefined until it is asked for. */
  nearest: Nearest | undefined;
  /** The distance it was pushed with, or less than it can be. */
  metres: number;
}

const WORLD = [-180, -90, 180, 90] as const;

export class NearestLane {
  readonly board: Board;
  readonly #referee: Referee;
  readonly #rows = new Map<number, Placed>();
  readonly #heap = new Heap<Placed>(comesFirst);

  constructor(board: Board, referee: Referee) {
    this.board = board;
    this.#referee = referee;
  }

  get size(): number {
    return this.#rows.size;
  }

  ids(): Iterable<number> {
    return this.#rows.keys();
  }

  has(id: number): boolean {
    return this.#rows.has(id);
  }

  /** A row that lines here may want. */
  place(id: number): void {
    const placed: Placed = { id, nearest: undefined, metres: UNPLACED };
    this.#rows.set(id, placed);
    this.#heap.push(placed);
  }

  /** A row that is another now, or no more. */
  drop(id: number): void {
    this.#rows.delete(id);
  }

  clear(): void {
    this.#rows.clear();
    this.#heap.clear();
  }

  /** Of all rows and lines here the two closest to each other: the row is the line's best, and the line the row's. */
  closest(): Bid | undefined {
    for (let first = this.#heap.first; first !== undefined; first = this.#heap.first) {
      const { id } = first;
      if (this.#rows.get(id) === first && first.nearest !== undefined && this.#stands(first.nearest)) {
        return this.#bid(first.nearest, id);
      }
      this.#heap.pop();
      const row = this.board.table.get(id);
      if (this.#rows.get(id) !== first) continue;
      const nearest = row === undefined ? undefined : this.#nearestTo(row, () => true);
      if (nearest === undefined) {
        this.#rows.delete(id);
        continue;
      }
      first.nearest = nearest;
      first.metres = nearest.metres;
      this.#heap.push(first);
    }
    return undefined;
  }

  /** The best bid for one row: the nearest of the lines to which no other row here comes first. */
  bidFor(id: number): Bid | undefined {
    const row = this.board.table.get(id);
    if (row === undefined) return undefined;
    const nearest = this.#nearestTo(row, (watch) => this.#rows.size === 1 || this.#preferred(watch) === id);
    return nearest === undefined ? undefined : this.#bid(nearest, id);
  }

  /** The lines that may want any of the rows placed. */
  lines(): Set<Line> {
    const groups = new Set<Group>();
    for (const id of this.#rows.keys()) {
      const row = this.board.table.get(id);
      if (row === undefined) continue;
      for (const group of this.board.groupsOf(row, this.#referee.instant.now)) groups.add(group);
    }
    const lines = new Set<Line>();
    for (const { near } of groups) for (const { line } of postedIn(near)) lines.add(line);
    return lines;
  }

  #bid({ watch, metres }: Nearest, id: number): Bid {
    return nearBid(watch, this.board.nearSlot, id, metres);
  }

  #stands({ watch: { line }, turn }: Nearest): boolean {
    return line.turn === turn && this.#referee.isQuiet(line);
  }

  /** The nearest line that wants a row; as near, the one held longest. */
  #nearestTo(row: Row, admits: (watch: Watch) => boolean): Nearest | undefined {
    let best: Nearest | undefined;
    const visit = (watch: Watch, metres: number): void => {
      const { line } = watch;
      if (best !== undefined && metres === best.metres && heldOrder(line) > best.turn.order) return;
      const { turn } = line;
      if (turn === undefined || !this.#referee.isQuiet(line)) return;
      if (this.#referee.wants(watch, row) && admits(watch)) best = { watch, turn, metres };
    };
    const at = row[this.board.nearSlot] as Point | null;
    for (const { near } of this.board.groupsOf(row, this.#referee.instant.now)) {
      if (near.size === 0) continue;
      if (at === null) for (const watch of postedIn(near)) visit(watch, UNPLACED);
      else {
        near.nearest(at.lon, at.lat, ([, watch], metres) => {
          if (best !== undefined && metres > best.metres) return false;
          visit(watch, metres);
          return true;
        });
      }
    }
    return best;
  }

  /** The row a line would bid for: the nearest that it wants, of equally near ones the first. */
  #preferred(watch: Watch): number | undefined {
    const point = ownPoint(watch.pick.order, watch.env(this.#referee.instant));
    if (point === null) return undefined;
    let best: number | undefined;
    let bestMetres = Number.POSITIVE_INFINITY;
    for (const id of this.#rows.keys()) {
      const row = this.board.table.get(id);
      if (row === undefined) continue;
      const metres = metresTo(row[this.board.nearSlot] as Point | null, point);
      if (metres > bestMetres || (metres === bestMetres && best !== undefined && id > best)) continue;
      if (!this.#referee.wants(watch, row)) continue;
      best = id;
      bestMetres = metres;
    }
    return best;
  }
}

function postedIn(near: Group["near"]): Watch[] {
  const watches: Watch[] = [];
  near.within(WORLD, ([, watch]: Post) => {
    watches.push(watch);
    return true;
  });
  return watches;
}

function comesFirst(a: Placed, b: Placed): boolean {
  if (a.metres !== b.metres) return a.metres < b.metres;
  const heldA = a.nearest?.turn.order ?? UNPLACED;
  const heldB = b.nearest?.turn.order ?? UNPLACED;
  return heldA !== heldB ? heldA < heldB : a.id < b.id;
}
