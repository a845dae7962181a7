/**
 * Who gets a job that several held claims would take. The judge has every line look over all rows before each run, as the
 * rule says it: a row goes to the best bid for it, ranked by the claims' own orders, and in a tie to the claim held longest;
 * of the bids that won their rows the best by the same rule runs, and then all look again.
 */

import { expect, test } from "bun:test";
import { Refusal } from "../../src/base/refusal.ts";
import type { BatchRequest } from "../../src/engine/contract.ts";
import { BOUNDS } from "../../src/hold/bounds.ts";
import { Random } from "../store/random.ts";
import { ANYBODY, engineOn, type Guest, Hall, ran, START_MS, sayingOf, settled } from "./hall.ts";

const { FENEC_SEED: given, FENEC_ROUNDS: rounds } = process.env;
const seed = given === undefined ? Math.floor(Math.random() * 2 ** 32) : Number(given);
/** `FENEC_ROUNDS=2000` for a long run. */
const ROUNDS = Number(rounds ?? 30);
const STEPS = 40;

const TABLES = ["jobs", "tasks"];
const FIELDS = "kind text, size int, run_at timestamp @sorted, priority int @sorted, owner text, pos geo @geo";

/** One statement of a claim, as the judge sees it: values written out. */
interface Wish {
  readonly table: string;
  readonly where: string;
  readonly order: string;
  /** What ranks its rows, and on which scale; null: every row as everybody does. */
  readonly rank: {
    readonly scale: string;
    readonly value: string;
    readonly sign: 1 | -1;
    readonly near: boolean;
  } | null;
  readonly limit: number | null;
  readonly require: number | null;
}

interface Waiting {
  readonly name: string;
  readonly order: number;
  readonly wishes: readonly Wish[];
  readonly requests: readonly BatchRequest[];
  readonly guest: Guest;
}

interface JudgedBid {
  readonly waiting: Waiting;
  readonly row: string;
  readonly scale: string;
  readonly rank: number;
}

function wishOf(random: Random, table: string, near: boolean): Wish {
  const point = `[${random.below(4)}, ${random.below(4)}]`;
  const where = random.pick([
    "run_at <= now()",
    "run_at <= now()",
    `run_at <= now() and kind = ${random.pick(['"a"', '"b"'])}`,
    `run_at <= now() and size < ${1 + random.below(3)}`,
    `kind in [${random.pick(['"a", "b"', '"b", null', '"b"', '"a", "a"', '"a", 1', ""])}] and run_at <= now()`,
    `run_at <= now() and size in [0, ${random.below(3)}] and kind in ["a", "b", null]`,
    "run_at <= now() and pos is not null",
    `kind = ${random.pick(['"a"', "null"])} and run_at < now() + ${random.below(3)}`,
    `run_at <= now() and owner is null and size = ${random.below(3)}`,
    `(run_at <= now() or priority > 2) and owner is null`,
    `run_at <= now() and not (owner is null and size = ${random.below(3)})`,
    `owner is null and size in (get tasks select priority where run_at <= now() - ${random.below(3)})`,
  ]);
  const away = `distance(pos, ${point})`;
  const many = random.below(3);
  const orders: readonly (readonly [string, Wish["rank"]])[] = [
    ["", null],
    ["run_at", null],
    ["priority desc", null],
    ["priority, run_at", null],
    [away, { scale: "near", value: away, sign: 1, near: true }],
    [`distance(${point}, pos)`, { scale: "near", value: away, sign: 1, near: true }],
    [`${away} desc`, { scale: "far", value: away, sign: -1, near: false }],
    [`size * ${many}`, { scale: "size", value: `size * ${many}`, sign: 1, near: false }],
    [`${away} + ${many}`, { scale: "near and", value: `${away} + ${many}`, sign: 1, near: false }],
  ];
  const [order, rank] = near || random.chance(0.5) ? (orders[4] as (typeof orders)[0]) : random.pick(orders);
  return {
    table,
    where,
    order,
    rank,
    limit: random.pick([null, 1, 1, 1, 2, 3]),
    require: random.pick([null, null, null, null, 1, 2]),
  };
}

function textOf({ table, where, order, limit, require }: Wish, name: string): string {
  const ordered = order === "" ? "" : ` order ${order}`;
  const most = limit === null ? "" : ` limit ${limit}`;
  const wanted = require === null ? "" : ` require ${require}`;
  const patch = `{owner: "${name}", run_at: now() + 20, kind: "taken", priority: 0}`;
  return `set ${table} ${patch} where ${where}${ordered}${most} returning id${wanted}`;
}

class Judge {
  nowMs = START_MS;
  readonly engine = engineOn({ now: () => this.nowMs });
  waiting: Waiting[] = [];
  /** Who was answered what, in order. */
  answered: { readonly name: string; readonly said: string }[] = [];

  /** Runs a request; undefined: it would wait. */
  run(requests: readonly BatchRequest[]): string | undefined {
    const [only, second] = requests;
    try {
      const alone = second === undefined && only !== undefined;
      const answer = alone ? this.engine.query(only.text, [], ANYBODY) : this.engine.batch(requests, ANYBODY);
      return answer.wrote > 0 ? sayingOf(answer) : undefined;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      return error.code === "unmet" ? undefined : error.code;
    }
  }

  serve(): void {
    const unmet = new Map<string, Set<string>>();
    for (;;) {
      const winner = this.#winner(unmet);
      if (winner === undefined) return;
      const said = this.run(winner.requests);
      if (said === undefined) {
        const line = lineOf(winner);
        unmet.set(line, (unmet.get(line) ?? new Set()).add(needOf(winner)));
        continue;
      }
      this.answered.push({ name: winner.name, said });
      this.waiting = this.waiting.filter((waiting) => waiting !== winner);
      unmet.clear();
    }
  }

  #winner(unmet: ReadonlyMap<string, ReadonlySet<string>>): Waiting | undefined {
    const heads = new Map<string, Waiting>();
    for (const waiting of this.waiting) {
      const line = lineOf(waiting);
      if (!heads.has(line) && unmet.get(line)?.has(needOf(waiting)) !== true) heads.set(line, waiting);
    }
    const byRow = new Map<string, JudgedBid[]>();
    for (const head of heads.values()) {
      const bid = this.#bidOf(head);
      if (bid === undefined) continue;
      const bids = byRow.get(bid.row) ?? [];
      bids.push(bid);
      byRow.set(bid.row, bids);
    }
    return bestOf([...byRow.values()].map((bids) => bestOf(bids) as JudgedBid))?.waiting;
  }

  #bidOf(waiting: Waiting): JudgedBid | undefined {
    for (const { table, where, order, rank } of waiting.wishes) {
      const ordered = order === "" ? "" : `order ${order}`;
      const value = rank === null ? "id" : rank.value;
      const text = `get ${table} select id, ${value} as rank where ${where} ${ordered} limit 1`;
      const [row] = JSON.parse(this.engine.query(text, [], ANYBODY).body) as { id: number; rank: number | null }[];
      if (row === undefined) continue;
      const first = row.rank === null ? (rank?.near === true ? -1 : Number.NEGATIVE_INFINITY) : row.rank;
      return {
        waiting,
        row: `${table} ${row.id}`,
        scale: rank === null ? "" : `${table} ${rank.scale}`,
        rank: rank === null ? 0 : first * rank.sign,
      };
    }
    return undefined;
  }
}

function bestOf(bids: readonly JudgedBid[]): JudgedBid | undefined {
  const best = new Map<string, JudgedBid>();
  for (const bid of bids) {
    const other = best.get(bid.scale);
    const better =
      other === undefined ||
      bid.rank < other.rank ||
      (bid.rank === other.rank && bid.waiting.order < other.waiting.order);
    if (better) best.set(bid.scale, bid);
  }
  return [...best.values()].sort((a, b) => a.waiting.order - b.waiting.order)[0];
}

function lineOf({ wishes }: Waiting): string {
  return [...new Set(wishes.map(({ table, where, order }) => `${table}|${where}|${order}`))].join("#");
}

function needOf({ wishes }: Waiting): string {
  return wishes.map(({ limit, require }) => `${limit}/${require}`).join("#");
}

function rowText(random: Random): string {
  const at = random.pick(["now()", "now()", `now() + ${1 + random.below(6)}`, "null"]);
  const pos = random.chance(0.15) ? "null" : `[${random.below(4)}, ${random.below(4)}]`;
  const kind = random.pick(['"a"', '"b"', "null"]);
  return `{kind: ${kind}, size: ${random.below(3)}, run_at: ${at}, priority: ${random.below(4)}, pos: ${pos}}`;
}

function writeOf(random: Random): string {
  const table = random.pick(["jobs", "jobs", "jobs", "tasks"]);
  const id = 1 + random.below(12);
  switch (random.below(6)) {
    case 0:
      return `set ${table} {run_at: now(), owner: null, kind: "a"} where id = ${id}`;
    case 1:
      return `set ${table} {run_at: now() + ${random.below(5)}, pos: [${random.below(4)}, ${random.below(4)}]} where id = ${id}`;
    case 2:
      return `del ${table} where id = ${id}`;
    default: {
      const rows = Array.from({ length: random.pick([1, 1, 1, 2, 3, 5]) }, () => rowText(random));
      return `put ${table} [${rows.join(", ")}]`;
    }
  }
}

async function round(random: Random, log: string[]): Promise<number> {
  // Bounds only say what is worked out how: the winner is the same whatever they are.
  const bound = (most: number): number => (random.chance(0.5) ? random.below(4) : most);
  const hall = new Hall({
    asks: bound(BOUNDS.asks),
    rowsALine: bound(BOUNDS.rowsALine),
    mixedRows: bound(BOUNDS.mixedRows),
    keptRows: 1 + bound(BOUNDS.keptRows),
    dueRows: bound(BOUNDS.dueRows),
    writtenRows: bound(BOUNDS.writtenRows),
  });
  const judge = new Judge();
  const guests = new Map<string, Guest>();
  const note = (text: string): void => {
    log.push(`${judge.nowMs - START_MS}: ${text}`);
  };
  const check = (): void => {
    const answered = [...guests].filter(([, { answer }]) => answer !== undefined);
    answered.sort(([, a], [, b]) => (a.answer?.order ?? 0) - (b.answer?.order ?? 0));
    const seen = answered.map(([name, { said }]) => ({ name, said: said ?? "" }));
    expect(seen).toEqual(judge.answered);
    for (const [, { answers }] of answered) expect(answers).toBe(1);
    expect(hall.held.held).toBe(judge.waiting.length);
  };
  for (const table of TABLES) {
    const text = `create collection ${table} (${FIELDS})`;
    judge.engine.query(text, [], ANYBODY);
    hall.engine.query(text, [], ANYBODY);
  }
  const nearOnly = random.chance(0.3);
  for (let step = 0; step < STEPS; step++) {
    const dice = random.next();
    if (dice < 0.5) {
      const name = `g${step}`;
      const wishes = [wishOf(random, random.pick(["jobs", "jobs", "jobs", "tasks"]), nearOnly)];
      if (!nearOnly && random.chance(0.1)) wishes.push(wishOf(random, random.pick(TABLES), false));
      const requests = wishes.map((wish) => ({ text: textOf(wish, name), params: [] }));
      note(`${name}: ${requests.map(({ text }) => text).join(" ;; ")}`);
      const guest = wishes.length === 1 ? hall.hold(requests[0]?.text ?? "") : hall.holdBatch(requests);
      await settled();
      const said = judge.run(requests);
      if (said === undefined) {
        guests.set(name, guest);
        judge.waiting.push({ name, order: step, wishes, requests, guest });
      } else expect(guest.said).toBe(said);
    } else if (dice < 0.85) {
      const writes = Array.from({ length: random.pick([1, 1, 1, 2]) }, () => writeOf(random));
      note(writes.join(" ;; "));
      for (const text of writes) {
        const expected = ran(() => judge.engine.query(text, [], ANYBODY));
        expect(ran(() => hall.engine.query(text, [], ANYBODY))).toBe(expected);
      }
      await settled();
    } else if (dice < 0.9) {
      const [gone] = judge.waiting.splice(random.below(Math.max(1, judge.waiting.length)), 1);
      if (gone === undefined) continue;
      note(`${gone.name} leaves`);
      guests.delete(gone.name);
      gone.guest.leave();
      await settled();
    } else {
      const byMs = 1 + random.below(8);
      note(`${byMs} ms later`);
      await hall.advance(byMs);
      for (let ms = 0; ms < byMs; ms++) {
        judge.nowMs++;
        judge.serve();
      }
    }
    judge.serve();
    check();
  }
  return judge.answered.length;
}

test(`the winner is who wins when all look (FENEC_SEED=${seed})`, async () => {
  let served = 0;
  for (let at = 0; at < ROUNDS; at++) {
    const log: string[] = [];
    try {
      served += await round(new Random(seed + at), log);
    } catch (failure) {
      console.error(`FENEC_SEED=${seed + at} FENEC_ROUNDS=1 repeats this failure\n${log.join("\n")}`);
      throw failure;
    }
  }
  expect(served).toBeGreaterThan(ROUNDS);
}, 600_000);
