/**
 * A held claim is answered at exactly the first instant at which the same claim, tried at every millisecond and after every
 * write, would have taken something, and with what it would have taken. The judge does just that, on an engine of its own.
 */

import { expect, test } from "bun:test";
import { Refusal } from "../../src/base/refusal.ts";
import type { BatchRequest } from "../../src/engine/contract.ts";
import { BOUNDS } from "../../src/hold/bounds.ts";
import { Random } from "../store/random.ts";
import { ANYBODY, engineOn, type Guest, Hall, ran, START_MS, sayingOf } from "./hall.ts";

const { FENEC_SEED: given, FENEC_ROUNDS: rounds } = process.env;
const seed = given === undefined ? Math.floor(Math.random() * 2 ** 32) : Number(given);
/** `FENEC_ROUNDS=5000` for a long run. */
const ROUNDS = Number(rounds ?? 60);
const STEPS = 80;
/** Steps after which a claim that took nothing is given up for another. */
const PATIENCE = 10;
/** A claim that is a try of the judge: it wrote, or failed with something other than an unmet require. */
const WAITS = "waits";

const SCHEMAS = [
  "create collection jobs (kind text, run_at timestamp @sorted, until timestamp @sorted, n int, owner text, pos geo @geo)",
  "create collection jobs (kind text @hash, run_at timestamp, until int, n int @sorted, owner text, pos geo)",
  "create collection jobs (kind text, run_at timestamp @sorted, until timestamp, n int, owner text, pos geo, at timestamp @ttl(15ms))",
  "create collection jobs (kind text, run_at int @sorted, until timestamp @ttl(9ms), n int @unique, owner text, pos geo @geo)",
];
const PICKS = "create collection picks (job int, at timestamp @sorted, name text)";

function condition(random: Random, hasTtl: boolean, depth = 0): string {
  const k = random.below(9) - 4;
  const offset = k === 0 ? "" : k < 0 ? ` - ${-k}` : ` + ${k}`;
  const field = random.pick(["run_at", "until"]);
  const op = random.pick(["<=", "<", ">", ">="]);
  switch (random.below(depth > 2 ? 9 : 13)) {
    case 0:
    case 1:
    case 2:
      return `run_at <= now()${offset}`;
    case 3:
      return `${field} ${op} now()${offset}`;
    case 4:
      return `${k} + now() ${op} ${field}`;
    case 5:
      return `kind = ${random.pick(['"a"', '"b"', "null"])}`;
    case 6:
      return `n ${random.pick(["<", "=", ">", "!="])} ${random.below(5)}`;
    case 7:
      return random.pick(["owner is null", "pos is not null", "owner = null", "id > 2"]);
    case 8:
      return hasTtl ? "expired()" : "owner is null";
    case 9:
      return `not (${condition(random, hasTtl, depth + 1)})`;
    case 10:
      return `(${condition(random, hasTtl, depth + 1)} or ${condition(random, hasTtl, depth + 1)})`;
    case 11:
      return `id in (get picks select job where at ${op} now()${offset})`;
    default:
      return `id in (get jobs select n where ${condition(random, false, 3)})`;
  }
}

function claim(random: Random, hasTtl: boolean): string {
  const parts = Array.from({ length: random.pick([0, 1, 1, 1, 2, 2, 3]) }, () => condition(random, hasTtl));
  const where = parts.length === 0 ? "" : ` where ${parts.join(" and ")}`;
  const order = random.pick([
    "",
    " order run_at",
    " order n desc, id",
    " order distance(pos, [1.5, 1.5])",
    " order n * 2",
  ]);
  const limit = random.pick(["", " limit 1", " limit 2", " limit 0"]);
  const returning = random.pick([" returning *", " returning id, n", ""]);
  const require = random.pick(["", "", "", " require 1", " require 2", " require 3"]);
  if (random.chance(0.3)) return `del jobs${where}${order}${limit}${returning}${require}`;
  const patch = random.pick([
    '{owner: "w", run_at: now() + 7}',
    '{owner: "w"}',
    "{until: now() + 3, n: null}",
    "{run_at: null}",
    '{owner: "x", run_at: now() - 1}',
  ]);
  return `set jobs ${patch}${where}${order}${limit}${returning}${require}`;
}

function requestOf(random: Random, hasTtl: boolean): readonly BatchRequest[] {
  const alone = [{ text: claim(random, hasTtl), params: [] }];
  if (random.chance(0.75)) return alone;
  const reads = [
    "get jobs count",
    "get picks select job require 1",
    `get jobs select id where ${condition(random, hasTtl, 3)} require 2`,
    "explain set jobs {n: 1} where n = 2",
  ];
  const more: BatchRequest[] = [...alone];
  if (random.chance(0.6)) more.push({ text: claim(random, hasTtl), params: [] });
  more.splice(random.below(more.length + 1), 0, { text: random.pick(reads), params: [] });
  return more;
}

function write(random: Random, ttl: boolean): string {
  const time = (): string => random.pick([`now() + ${random.below(30) - 5}`, "now()", "null", "now() + 3"]);
  const point = (): string => random.pick(["null", `[${random.below(4)}, ${random.below(4)}]`]);
  const id = 1 + random.below(6);
  switch (random.below(8)) {
    case 0:
    case 1:
    case 2: {
      const at = ttl && random.chance(0.7) ? `, at: now() + ${random.below(10) - 5}` : "";
      const kind = random.pick(['"a"', '"b"', "null"]);
      return `put jobs {id: ${id}, kind: ${kind}, run_at: ${time()}, until: ${time()}, n: ${random.pick(["null", String(id % 5)])}, pos: ${point()}${at}}`;
    }
    case 3:
      return `set jobs {run_at: ${time()}} where id = ${id}`;
    case 4:
      return `set jobs {owner: ${random.pick(["null", '"w"'])}, until: ${time()}, pos: ${point()}} where id = ${id}`;
    case 5:
      return `del jobs where id = ${id}`;
    case 6:
      return `put picks {id: ${random.below(3)}, job: ${id}, at: ${time()}}`;
    default:
      return random.pick([
        `del picks where id = ${random.below(3)}`,
        `set jobs {n: ${random.below(5)}} where id = ${id}`,
      ]);
  }
}

/** The same claim tried again and again. */
class Judge {
  nowMs = START_MS;
  readonly engine = engineOn({ now: () => this.nowMs });

  attempt(requests: readonly BatchRequest[]): string {
    const [only, second] = requests;
    try {
      const answer =
        second === undefined && only !== undefined
          ? this.engine.query(only.text, only.params, ANYBODY)
          : this.engine.batch(requests, ANYBODY);
      return answer.wrote > 0 ? sayingOf(answer) : WAITS;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      return error.code === "unmet" ? WAITS : error.code;
    }
  }
}

async function round(random: Random, log: string[]): Promise<number> {
  // Bounds only say what is worked out how.
  const bound = (most: number): number => (random.chance(0.3) ? random.below(3) : most);
  const hall = new Hall({
    ...BOUNDS,
    asks: bound(BOUNDS.asks),
    dueRows: bound(BOUNDS.dueRows),
    writtenRows: bound(BOUNDS.writtenRows),
    keptRows: 1 + bound(BOUNDS.keptRows),
  });
  const judge = new Judge();
  const schema = random.pick(SCHEMAS);
  const ttl = schema.includes("@ttl");
  const both = async (text: string): Promise<void> => {
    log.push(`${judge.nowMs - START_MS}: ${text}`);
    const expected = ran(() => judge.engine.query(text, [], ANYBODY));
    expect(await hall.run(text)).toBe(expected);
  };
  await both(schema);
  await both(PICKS);
  let guest: Guest | undefined;
  let requests: readonly BatchRequest[] = [];
  let expected = "";
  let served = 0;
  /** Tries the claim in the judge's state as it is. */
  const look = (): boolean => {
    if (guest === undefined) return false;
    expected = judge.attempt(requests);
    return expected !== WAITS;
  };
  const check = (due: boolean): void => {
    if (guest === undefined) return;
    if (!due) {
      expect(guest.said).toBeUndefined();
      return;
    }
    expect([guest.said, (guest.answer?.atMs ?? 0) - START_MS, guest.answers]).toEqual([
      expected,
      judge.nowMs - START_MS,
      1,
    ]);
    if (patience < PATIENCE) served++;
    guest = undefined;
  };
  let patience = 0;
  for (let step = 0; step < STEPS; step++) {
    if (guest !== undefined && patience-- === 0) {
      guest.leave();
      guest = undefined;
    }
    if (guest === undefined) {
      patience = PATIENCE;
      requests = requestOf(random, ttl && schema.includes("at timestamp @ttl"));
      log.push(`${judge.nowMs - START_MS}: hold ${requests.map(({ text }) => text).join(" ;; ")}`);
      guest = requests.length === 1 ? hall.hold(requests[0]?.text ?? "") : hall.holdBatch(requests);
      if (guest.said === "not_holdable") {
        guest = undefined;
        continue;
      }
      await Promise.resolve();
      check(look());
      continue;
    }
    if (random.chance(0.5)) {
      await both(write(random, schema.includes("at timestamp @ttl")));
      check(look());
      continue;
    }
    const byMs = 1 + random.below(12);
    let due = false;
    for (let ms = 0; ms < byMs && !due; ms++) {
      judge.nowMs++;
      due = look();
    }
    log.push(`${judge.nowMs - START_MS}: time`);
    // In one jump: where the claim stands still, so does the clock's way there.
    await hall.clock.set(judge.nowMs);
    check(due);
    expect(await hall.run("get jobs")).toBe(ran(() => judge.engine.query("get jobs", [], ANYBODY)));
  }
  guest?.leave();
  expect(hall.held.held).toBe(0);
  return served;
}

test(`answered at the first instant at which it takes something (FENEC_SEED=${seed})`, async () => {
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
  expect(served).toBeGreaterThan(ROUNDS / 4);
}, 600_000);
