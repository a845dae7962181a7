/** What `explain` tells of a claim: the jobs it would take now, or when the next could come and what keeps the others. */

import { expect, test } from "bun:test";
import { formatTime } from "../../src/value/time.ts";
import { contextOf, tokenOf } from "../auth/world.ts";
import { ANYBODY, Hall, START_MS } from "../hold/hall.ts";
import { Random } from "../store/random.ts";

const CREATE = "create collection jobs (kind text, run_at timestamp @sorted, owner text, attempts int)";
const CLAIM = 'set jobs {owner: "w", run_at: now() + 30000} where run_at <= now() order run_at limit 2';

function lines(hall: Hall, text: string): string[] {
  const { body } = hall.engine.query(`explain ${text}`, [], ANYBODY);
  return (JSON.parse(body) as { plan: string }[]).map(({ plan }) => plan);
}

function at(ms: number): string {
  return formatTime(START_MS + ms);
}

async function queue(...rows: readonly string[]): Promise<Hall> {
  const hall = new Hall();
  await hall.run(CREATE);
  for (const row of rows) await hall.run(`put jobs ${row}`);
  return hall;
}

test("the jobs it would take, in their order, and nothing is taken", async () => {
  const hall = await queue("{run_at: now() - 1}", "{run_at: now() - 2}", "{run_at: now() - 3}");
  expect(lines(hall, CLAIM).slice(-2)).toEqual(["takes: 3, 2", "rows: 2"]);
  expect(lines(hall, CLAIM).slice(-2)).toEqual(["takes: 3, 2", "rows: 2"]);
  expect(await hall.run("get jobs where owner is not null count")).toBe('[{"count":0}]');
});

test("none: what is leased until when, delayed, dead, or shut out by the rest of the filter", async () => {
  const hall = await queue(
    '{kind: "a", run_at: now() + 9000, owner: "w1:1"}',
    '{kind: "a", run_at: now() + 7000, owner: "w2:1"}',
    '{kind: "a", run_at: now() + 8000}',
    '{kind: "a", run_at: null, owner: null}',
    '{kind: "b", run_at: now()}',
    '{kind: "b", run_at: now() + 1}',
  );
  const text = 'set jobs {owner: "w"} where kind = "a" and run_at <= now() limit 1';
  expect(lines(hall, text).slice(2)).toEqual([
    "takes: none",
    `next: ${at(7_000)}, in 7000 ms`,
    `leased: 2, the first until ${at(7_000)} by w2:1`,
    `delayed: 1, until ${at(8_000)}`,
    "dead: 1",
    "shut out by the rest of the filter: 2",
    "rows: 0",
  ]);
});

test("an empty queue waits for a write; a require that is not met says so", async () => {
  const hall = await queue();
  expect(lines(hall, CLAIM).slice(2)).toEqual(["takes: none", "next: when a write brings one", "rows: 0"]);
  await hall.run("put jobs {run_at: now()}");
  expect(lines(hall, `${CLAIM} require 2`).slice(2)).toEqual(["takes: 1", "require 2 is not met", "rows: 1"]);
});

test("a filter whose other parts change with time, or that has no time of its own", async () => {
  const hall = await queue("{run_at: now() + 40, attempts: 1}", "{run_at: now() + 60, attempts: 2}");
  const late = 'set jobs {owner: "w"} where not (run_at > now() - 10) and attempts = 2';
  expect(lines(hall, late).slice(2)).toEqual([
    "takes: none",
    `next: ${at(70)}, in 70 ms`,
    "shut out by the filter: 2",
    "rows: 0",
  ]);
  const never = 'del jobs where not (run_at > now()) and kind = "c"';
  expect(lines(hall, never)).toContain("next: when a write brings one");
});

test("strictly past is a millisecond later", async () => {
  const hall = await queue("{run_at: now() + 10}");
  expect(lines(hall, "del jobs where run_at < now()")).toContain(`next: ${at(11)}, in 11 ms`);
  expect(lines(hall, "del jobs where run_at <= now() - 5")).toContain(`next: ${at(15)}, in 15 ms`);
});

test("where nobody can tell what time brings, nothing is promised", async () => {
  const hall = await queue("{run_at: now() + 10}");
  for (const where of ["run_at = now()", "bucket(run_at, 60000) < now()", "run_at <= now() and run_at != now() + 10"]) {
    expect(lines(hall, `del jobs where ${where}`)).toContain("next: nobody can tell, so it cannot be held");
  }
});

test("rows past their ttl are no jobs", async () => {
  const hall = new Hall();
  await hall.run("create collection jobs (run_at timestamp @sorted, at timestamp @ttl(20ms))");
  await hall.run("put jobs {run_at: now() + 30, at: now()}");
  await hall.advance(20);
  expect(lines(hall, "del jobs where run_at <= now()").slice(2)).toEqual([
    "takes: none",
    "next: when a write brings one",
    "expired: 1",
    "rows: 0",
  ]);
});

test("a table of many takes names a hundred", async () => {
  const hall = await queue();
  const rows = Array.from({ length: 130 }, () => "{run_at: now()}").join(", ");
  await hall.run(`put jobs [${rows}]`);
  const [taken] = lines(hall, "del jobs where run_at <= now()").slice(-2);
  expect(taken?.endsWith("100 and 30 more")).toBe(true);
});

const POLICY = `
jobs read where owner is null or owner = $jwt.sub
jobs update(owner, run_at) where kind = $jwt.kind
`;

test("a token is told of the rows that it may read and reach, and of no others", async () => {
  const token = await tokenOf(
    POLICY,
    new Map([
      ["sub", "me"],
      ["kind", "a"],
    ]),
  );
  const told = async (...hidden: readonly string[]): Promise<readonly string[]> => {
    const hall = await queue(
      '{kind: "a", run_at: now() + 50}',
      '{kind: "a", run_at: now() + 60, owner: "me"}',
      ...hidden,
    );
    const text = 'explain set jobs {owner: "me"} where run_at <= now()';
    const { body } = hall.engine.query(text, [], contextOf(token));
    return (JSON.parse(body) as { plan: string }[]).map(({ plan }) => plan);
  };
  const expected = [
    "jobs, the rows of this token",
    "takes: none",
    `next: ${at(50)}, in 50 ms`,
    `leased: 1, until ${at(60)} by me`,
    `delayed: 1, until ${at(50)}`,
    "rows: 0",
  ];
  expect(await told()).toEqual(expected);
  expect(await told('{kind: "b", run_at: now() + 5}', '{kind: "a", run_at: now() + 7, owner: "you"}', "{}")).toEqual(
    expected,
  );
});

const { FENEC_SEED: given } = process.env;
const seed = given === undefined ? Math.floor(Math.random() * 2 ** 32) : Number(given);

test(`it is right: what it names is taken, and the moment it names is the first (FENEC_SEED=${seed})`, async () => {
  const random = new Random(seed);
  for (let round = 0; round < 60; round++) {
    const hall = await queue();
    for (let row = 0; row < random.below(8); row++) {
      const runAt = random.pick(["null", "now()", `now() + ${random.below(40)}`]);
      const owner = random.pick(["null", '"w"']);
      await hall.run(`put jobs {kind: "${random.pick(["a", "b"])}", run_at: ${runAt}, owner: ${owner}}`);
    }
    const filter = random.pick([
      "run_at <= now()",
      'run_at < now() and kind = "a"',
      `run_at <= now() - ${random.below(5)} and (owner is null or run_at < now() - 9)`,
    ]);
    const claim = `set jobs {owner: "x"} where ${filter} limit ${1 + random.below(3)} returning id`;
    const said = lines(hall, claim);
    const [, ids] = /^takes: ([\d, ]+)$/m.exec(said.join("\n")) ?? [];
    const [, afterMs] = /^next: .* in (\d+) ms$/m.exec(said.join("\n")) ?? [];
    if (ids !== undefined) {
      expect(await hall.run(claim)).toBe(JSON.stringify(ids.split(", ").map((id) => ({ id: Number(id) }))));
      continue;
    }
    const guest = hall.hold(claim, [], 1_000);
    await hall.advance(afterMs === undefined ? 999 : Number(afterMs) - 1);
    expect(guest.said).toBeUndefined();
    if (afterMs === undefined) guest.leave();
    else {
      await hall.advance(1);
      expect(guest.said).toMatch(/"id":/);
    }
  }
});

test("a time behind the last year there is comes never, and explains no worse than none", async () => {
  const hall = new Hall();
  await hall.run("create collection jobs (n int @unique, run_at int @sorted, due timestamp, owner text)");
  await hall.run("put jobs {n: 9223372036854775807, run_at: 9223372036854775807}");
  await hall.run('put jobs {n: 1, run_at: 253402300800000, due: "9999-12-31T23:59:59.999Z", owner: "w"}');
  const never = ["takes: none", "next: when a write brings one"];
  expect(lines(hall, "set jobs {owner: null} where run_at <= now()").slice(2)).toEqual([
    ...never,
    "dead: 2",
    "rows: 0",
  ]);
  expect(lines(hall, "del jobs where n >= now() - 1000 and n < now()").slice(2, 4)).toEqual(never);
  expect(lines(hall, "del jobs where due < now() - 1000").slice(2)).toEqual([...never, "dead: 2", "rows: 0"]);
});

test("parentheses around some of the conditions change nothing of it, nor of the way to the rows", async () => {
  const hall = await queue('{kind: "a", run_at: now() + 5000}', '{kind: "b", run_at: now() + 1000}', "{run_at: null}");
  const told = (where: string): string[] => lines(hall, `set jobs {owner: "w"} where ${where} limit 1`);
  const plain = told('kind = "a" and run_at <= now() and attempts is null');
  expect(plain[0]).toContain("index of run_at");
  expect(told('(kind = "a" and run_at <= now()) and attempts is null')).toEqual(plain);
  expect(told('kind = "a" and (run_at <= now() and (attempts is null))')).toEqual(plain);
});
