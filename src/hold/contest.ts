/**
 * One drain's contest: rows that were written or came due go in, the claim that is to run comes out, again and again until
 * no waiting claim has anything to take. What it names is what would be named if every line looked over all rows each
 * time (`bid.ts` says who wins then); most lines are spared that look.
 *
 * | a line is | it bids | how its best row is known |
 * | --------- | ------- | ------------------------- |
 * | quiet     | through its board's lane | it wants the nearest row, and none but those just shown |
 * | eager     | when its turn in time comes | on a board where all rank rows alike; it looks when all held longer have nothing |
 * | loud      | always | it has looked, or has been shown it, and keeps those behind it for when it goes to another |
 *
 * A line that is shown a row it wants becomes eager or loud, one that wants rows by distance stays quiet. Where a lane
 * gets too many rows, or lines of both kinds meet over many rows, its lines look for themselves and are loud.
 */

import { attempt } from "../base/refusal.ts";
import type { Table } from "../store/table.ts";
import type { Row } from "../value/value.ts";
import {
  alikeBid,
  type Bid,
  candidateOf,
  finds,
  heldOrder,
  lookOf,
  rankOf,
  refusedBid,
  standingBid,
  type TouchOf,
  winnerOf,
} from "./bid.ts";
import type { Board } from "./board.ts";
import type { Bounds } from "./bounds.ts";
import { Heap } from "./heap.ts";
import type { Instant, Line, Watch } from "./line.ts";
import { NearestLane, type Referee } from "./nearest.ts";
import { Standing } from "./standing.ts";

/** By how much more a line keeps of its next look when what it kept did not last. */
const KEEP_FACTOR = 4;

/** A line that may have something to take on a board where all rank rows alike. */
interface Eager {
  readonly line: Line;
  /** `heldOrder` as it was pushed. */
  order: number;
  /** A row it was shown and wanted; null: it is to look. */
  shown: { readonly watch: Watch; readonly id: number } | null;
}

export class Contest implements Referee {
  /** Looks of lines. */
  looks = 0;
  instant: Instant;
  readonly #eager = new Map<Line, Eager>();
  readonly #byTurn = new Heap<Eager>((a, b) => a.order < b.order);
  /** Loud lines that are to look. */
  readonly #unsure = new Set<Line>();
  readonly #standings = new Map<Line, Standing>();
  /** How many rows a line keeps of its next look: more each time they did not last. */
  readonly #keeps = new Map<Line, number>();
  readonly #bids = new Map<Line, Bid>();
  /** How often each row was written: by collection, then id. */
  readonly #touches = new Map<number, Map<number, number>>();
  readonly #touchOf: TouchOf = (table, id) => this.#touches.get(table.cid)?.get(id) ?? 0;
  /** The bids by the row they are for: by collection, then id. */
  readonly #byRow = new Map<number, Map<number, Map<Line, Bid>>>();
  readonly #lanes = new Map<Board, NearestLane>();
  readonly #looked = new Set<Line>();
  readonly #bounds: Bounds;
  #asks = 0;

  constructor(instant: Instant, bounds: Bounds) {
    this.instant = instant;
    this.#bounds = bounds;
  }

  isQuiet(line: Line): boolean {
    return !this.#unsure.has(line) && !this.#bids.has(line);
  }

  /** Begins a round: something was written or came due since the last. */
  begin(instant: Instant): void {
    this.instant = instant;
    this.#asks = 0;
  }

  /** A row is another now, or no more, or has come due. */
  show(board: Board, id: number): void {
    const { table } = board;
    this.#touch(table, id);
    for (const line of [...(this.#byRow.get(table.cid)?.get(id)?.keys() ?? [])]) this.#bidAgain(line);
    const lane = this.#lanes.get(board);
    lane?.drop(id);
    const row = table.get(id);
    if (row === undefined) return;
    let placed = false;
    for (const group of board.groupsOf(row, this.instant.now)) {
      for (const watch of group.alike) this.#ask(watch, row, board);
      for (const watch of group.own) this.#ask(watch, row, board);
      placed ||= group.near.size > 0;
    }
    if (!placed) return;
    for (const { watch } of this.#standings.values()) {
      if (watch.table === table && board.isPosted(watch)) this.#ask(watch, row, board);
    }
    this.#laneOf(board).place(id);
  }

  /** A line is to look over all rows. */
  wake(line: Line, board: Board | undefined): void {
    if (line.turn === undefined) return;
    if (board !== undefined && this.#isEager(line, board)) this.#push(line, null);
    else this.#doubt(line);
  }

  /** A line whose turn has changed, or that is gone. */
  turned(line: Line): void {
    if (line.turn !== undefined) return;
    this.#unsure.delete(line);
    this.#eager.delete(line);
    this.#standings.delete(line);
    this.#withdraw(line);
  }

  /** The claim that is to run now. */
  next(): Bid | undefined {
    for (const lane of this.#lanes.values())
      if (lane.size > this.#bounds.rowsALine * lane.board.near) this.#clear(lane);
    this.#lookAgain();
    const winners: Bid[] = [];
    const eager = this.#longestHeld();
    if (eager !== undefined) winners.push(eager);
    for (const lane of this.#lanes.values())
      if (lane.size > this.#bounds.mixedRows && this.#isMixed(lane)) this.#clear(lane);
    this.#lookAgain();
    for (const [cid, rows] of this.#byRow) {
      const lane = this.#laneWith(cid);
      for (const [id, bids] of rows) {
        const all = [...bids.values()];
        const quiet = lane?.has(id) === true ? lane.bidFor(id) : undefined;
        if (quiet !== undefined) all.push(quiet);
        const winner = winnerOf(all);
        if (winner !== undefined) winners.push(winner);
      }
    }
    for (const bid of this.#bids.values()) if (bid.table === null) winners.push(bid);
    for (const lane of this.#lanes.values()) {
      const closest = this.#isMixed(lane) ? this.#closestUnasked(lane) : lane.closest();
      if (closest !== undefined) winners.push(closest);
    }
    return winnerOf(winners);
  }

  wants(watch: Watch, row: Row): boolean {
    if (!this.#looked.has(watch.line)) {
      this.#looked.add(watch.line);
      this.looks++;
    }
    // Where the question itself is refused, the run is to say so.
    return attempt(() => watch.pick.filter.matches(row, watch.env(this.instant))) ?? true;
  }

  #touch({ cid }: Table, id: number): void {
    let touches = this.#touches.get(cid);
    if (touches === undefined) {
      touches = new Map();
      this.#touches.set(cid, touches);
    }
    touches.set(id, (touches.get(id) ?? 0) + 1);
  }

  #ask(watch: Watch, row: Row, board: Board): void {
    const { line } = watch;
    if (line.turn === undefined || this.#unsure.has(line)) return;
    const eager = this.#eager.get(line);
    if (eager?.shown === null) return;
    if (++this.#asks > this.#bounds.asks) this.wake(line, board);
    else if (this.wants(watch, row)) {
      if (this.#isEager(line, board)) {
        if (eager === undefined) this.#push(line, { watch, id: row[0] as number });
      } else if (line.watches.length > 1) this.#doubt(line);
      else this.#offer(watch, row);
    }
  }

  /** On a board where all rank rows alike a line need not bid before its turn. */
  #isEager(line: Line, board: Board): boolean {
    return line.watches.length === 1 && board.isAlike && !this.#bids.has(line);
  }

  /** A line that has looked, or has nothing but what it is shown, learns of one more row that it would take. */
  #offer(watch: Watch, row: Row): void {
    const { line, table } = watch;
    const candidate = candidateOf(watch, row, this.instant, this.#touchOf(table, row[0] as number));
    if (candidate === undefined) {
      this.#doubt(line);
      return;
    }
    let standing = this.#standings.get(line);
    if (standing === undefined) {
      standing = new Standing(watch, rankOf(watch, this.instant), [], true);
      this.#standings.set(line, standing);
    }
    standing.offer(candidate);
    this.#bidAgain(line);
  }

  #push(line: Line, shown: Eager["shown"]): void {
    const eager: Eager = { line, order: heldOrder(line), shown };
    this.#eager.set(line, eager);
    this.#byTurn.push(eager);
  }

  /** A line is to look before anything is decided. */
  #doubt(line: Line): void {
    if (line.turn === undefined) return;
    this.#withdraw(line);
    this.#standings.delete(line);
    this.#eager.delete(line);
    this.#unsure.add(line);
  }

  #lookAgain(): void {
    for (const line of this.#unsure) {
      this.#unsure.delete(line);
      if (line.turn === undefined) continue;
      this.#looked.add(line);
      this.looks++;
      const standing = lookOf(line, this.instant, this.#keeps.get(line) ?? this.#bounds.keptRows, this.#touchOf);
      if (standing === null) this.#bid(refusedBid(line));
      else if (standing !== undefined) {
        this.#standings.set(line, standing);
        this.#bidAgain(line);
      }
    }
  }

  /** Bids for the best row a line knows of; where that was only some of them it looks again. */
  #bidAgain(line: Line): void {
    this.#withdraw(line);
    const standing = this.#standings.get(line);
    if (standing === undefined) return;
    const { table } = standing.watch;
    const best = standing.best((id) => this.#touchOf(table, id));
    if (best !== undefined) this.#bid(standingBid(standing, best));
    else if (standing.isWhole) this.#standings.delete(line);
    else {
      this.#keeps.set(line, KEEP_FACTOR * (this.#keeps.get(line) ?? this.#bounds.keptRows));
      this.#doubt(line);
    }
  }

  /** The line held longest of those that are eager and find something. */
  #longestHeld(): Bid | undefined {
    for (let first = this.#byTurn.first; first !== undefined; first = this.#byTurn.first) {
      const { line } = first;
      if (this.#eager.get(line) !== first || line.turn === undefined) {
        this.#byTurn.pop();
        continue;
      }
      if (first.order !== heldOrder(line)) {
        this.#byTurn.pop();
        first.order = heldOrder(line);
        this.#byTurn.push(first);
        continue;
      }
      if (first.shown === null) {
        this.#looked.add(line);
        this.looks++;
      }
      if (this.#stands(first.shown) || finds(line, this.instant)) return alikeBid(line);
      this.#byTurn.pop();
      this.#eager.delete(line);
    }
    return undefined;
  }

  #stands(shown: Eager["shown"]): boolean {
    const row = shown?.watch.table.get(shown.id);
    return row !== undefined && shown !== null && this.wants(shown.watch, row);
  }

  #bid(bid: Bid): void {
    this.#bids.set(bid.line, bid);
    if (bid.table === null) return;
    const { cid } = bid.table;
    const rows = this.#byRow.get(cid) ?? new Map<number, Map<Line, Bid>>();
    const bids = rows.get(bid.id) ?? new Map<Line, Bid>();
    bids.set(bid.line, bid);
    rows.set(bid.id, bids);
    this.#byRow.set(cid, rows);
  }

  #withdraw(line: Line): void {
    const bid = this.#bids.get(line);
    if (bid === undefined) return;
    this.#bids.delete(line);
    if (bid.table === null) return;
    const rows = this.#byRow.get(bid.table.cid);
    const bids = rows?.get(bid.id);
    bids?.delete(line);
    if (bids?.size === 0) rows?.delete(bid.id);
    if (rows?.size === 0) this.#byRow.delete(bid.table.cid);
  }

  #laneOf(board: Board): NearestLane {
    let lane = this.#lanes.get(board);
    if (lane === undefined) {
      lane = new NearestLane(board, this);
      this.#lanes.set(board, lane);
    }
    return lane;
  }

  #laneWith(cid: number): NearestLane | undefined {
    for (const lane of this.#lanes.values()) if (lane.board.table.cid === cid) return lane;
    return undefined;
  }

  /** Loud lines bid for rows of the lane. */
  #isMixed(lane: NearestLane): boolean {
    for (const id of this.#byRow.get(lane.board.table.cid)?.keys() ?? []) if (lane.has(id)) return true;
    return false;
  }

  /** The best bid of a lane for rows that nobody loud bids for. */
  #closestUnasked(lane: NearestLane): Bid | undefined {
    const rows = this.#byRow.get(lane.board.table.cid);
    const bids: Bid[] = [];
    for (const id of lane.ids()) {
      const bid = rows?.has(id) === true ? undefined : lane.bidFor(id);
      if (bid !== undefined) bids.push(bid);
    }
    return winnerOf(bids);
  }

  /** Has the lines of a lane look for themselves. */
  #clear(lane: NearestLane): void {
    const lines = lane.lines();
    lane.clear();
    for (const line of lines) this.#doubt(line);
  }
}
