/**
 * Random rules, tokens and statements. Each answer is judged by plain loops over arrays, and compared, to the letter of its
 * refusals and plans, with that of a second database which differs in nothing but the rows the token's rules hide.
 */

import { expect, setDefaultTimeout, test } from "bun:test";
import type { ScopedToken } from "../../src/auth/tokens.ts";
import { Random } from "../store/random.ts";
import {
  createText,
  emptyTable,
  type Name,
  NOW_MS,
  policyText,
  randomAsked,
  randomClaims,
  randomPolicy,
  randomRow,
  statementText,
} from "./chance.ts";
import { type Claims, Judge, type JudgedPolicy, type JudgedRow, type JudgedTable } from "./judge.ts";
import { agrees, judgedRows, tokenOf, World } from "./world.ts";

setDefaultTimeout(600_000);

const { FENEC_SEED, FENEC_STATEMENTS, FENEC_COUNTS } = process.env;
const SEED = FENEC_SEED === undefined ? Math.floor(Math.random() * 2 ** 32) : Number(FENEC_SEED);
/** `bun run test:access` for a long run, of 20 000 and more. */
const STATEMENTS = Number(FENEC_STATEMENTS ?? 4_000);
/** Databases of one policy and token, and statements of one database. */
const WORLDS = 4;
const TURNS = 10;
const OFTEN = [
  "get rows",
  "get count",
  "get sum",
  "get forbidden",
  "get division_by_zero",
  "set division_by_zero",
  "set rows",
  "set affected",
  "set count",
  "set forbidden",
  "del affected",
  "put affected",
  "put forbidden",
];
const NAMES: readonly Name[] = ["jobs", "rooms"];
const FIRST_HIDDEN_ID = 20;
const NEXT_ID = 200;

/** A row that the token's rules hide; undefined where chance finds none. */
function hiddenRow(random: Random, judge: Judge, name: Name, id: number): JudgedRow | undefined {
  for (let tries = 0; tries < 20; tries++) {
    const row = randomRow(random, name, id, true);
    if (judge.hides(name, row)) return row;
  }
  return undefined;
}

interface Told {
  readonly counts: Map<string, number>;
  readonly story: string[];
}

/** Two databases that differ in hidden rows, and the judge's own of the first. */
function twins(random: Random, policy: JudgedPolicy, claims: Claims, { story }: Told) {
  const tables = new Map<string, JudgedTable>(NAMES.map((name) => [name, emptyTable(name)]));
  const judge = new Judge(tables, policy, claims, NOW_MS);
  const worlds = [new World(), new World()] as const;
  for (const name of NAMES) {
    const create = createText(random, name);
    story.push(create);
    for (const world of worlds) world.root(create);
    const known: JudgedRow[] = [];
    const codes = new Set<unknown>();
    for (let id = 1; id <= 12; id++) {
      const row = randomRow(random, name, id, false);
      const code = row.cells.get("code") ?? null;
      if (judge.hides(name, row) || (code !== null && codes.has(code))) continue;
      codes.add(code);
      known.push(row);
    }
    for (const [at, world] of worlds.entries()) {
      const hidden: JudgedRow[] = [];
      for (let many = random.pick([0, 3, 20]); many > 0; many--) {
        const row = hiddenRow(random, judge, name, FIRST_HIDDEN_ID + hidden.length);
        if (row === undefined) break;
        hidden.push(row);
      }
      world.fill(name, [...known, ...hidden], NEXT_ID);
      if (at === 0) tables.set(name, { ...emptyTable(name), rows: [...known, ...hidden], nextId: NEXT_ID });
    }
  }
  return { judge, tables, worlds };
}

function turn(random: Random, claims: Claims, token: ScopedToken, pair: ReturnType<typeof twins>, told: Told): void {
  const { judge, tables, worlds } = pair;
  const ask = randomAsked(random, claims);
  const statement = statementText(random, ask);
  told.story.push(`${statement.text}   ${JSON.stringify(statement.params)}`);
  const verdict = judge.run(ask);
  const answers = worlds.map((world) => world.ask(statement, token));
  const [answer = ""] = answers;
  told.story.push(`  -> ${answer}`, `  judged ${JSON.stringify(verdict)}`);
  if (answers[1] !== answer) throw new Error(`what is hidden shows: ${answers[1]}`);
  if (!agrees(answer, verdict)) throw new Error("the judge disagrees");
  const kind = `${ask.do} ${"refused" in verdict ? verdict.refused : Object.keys(verdict)[0]}`;
  told.counts.set(kind, (told.counts.get(kind) ?? 0) + 1);
  if (ask.do === "get" || "refused" in verdict) return;
  for (const [name, table] of tables) expect(worlds[0].rows(name)).toEqual(judgedRows(table));
}

test("no answer differs from the judge's, nor by what is hidden", async () => {
  const counts = new Map<string, number>();
  for (let round = 0; round * WORLDS * TURNS < STATEMENTS; round++) {
    const seed = (SEED + round) >>> 0;
    const random = new Random(seed);
    const policy = randomPolicy(random);
    const claims = randomClaims(random);
    const text = policyText(policy);
    const token = await tokenOf(text, claims);
    for (let at = 0; at < WORLDS; at++) {
      const story = [`FENEC_SEED=${seed} repeats this`, text, JSON.stringify([...claims])];
      const told = { counts, story };
      try {
        const pair = twins(random, policy, claims, told);
        for (let turns = 0; turns < TURNS; turns++) turn(random, claims, token, pair, told);
      } catch (error) {
        console.error(story.join("\n"));
        throw error;
      }
    }
  }
  if (FENEC_COUNTS !== undefined) console.log(Object.fromEntries([...counts].sort()));
  // Chance has been to all of it.
  for (const kind of OFTEN) {
    expect({ kind, seen: (counts.get(kind) ?? 0) > STATEMENTS / 2_000 }).toEqual({ kind, seen: true });
  }
});
