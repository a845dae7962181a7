/**
 * Held claims of tokens, over two databases that differ in hidden rows, and are written to differently where the tokens
 * may not see: no claim is answered in one and not in the other, nor otherwise, whatever time and writes do.
 */

import { setDefaultTimeout, test } from "bun:test";
import type { ScopedToken } from "../../src/auth/tokens.ts";
import { Refusal } from "../../src/base/refusal.ts";
import { HeldClaims } from "../../src/hold/held_claims.ts";
import { Random } from "../store/random.ts";
import {
  createText,
  emptyTable,
  NOW_MS,
  policyText,
  randomAsked,
  randomClaims,
  randomPolicy,
  randomRow,
  statementText,
} from "./chance.ts";
import { type Claims, Judge, type JudgedPolicy, type JudgedRow } from "./judge.ts";
import { contextOf, tokenOf, World } from "./world.ts";

setDefaultTimeout(600_000);

const { FENEC_SEED, FENEC_ROUNDS } = process.env;
const SEED = FENEC_SEED === undefined ? Math.floor(Math.random() * 2 ** 32) : Number(FENEC_SEED);
/** `bun run test:access` for a long run. */
const ROUNDS = Number(FENEC_ROUNDS ?? 120);
const CLAIMS = 8;
const EVENTS = 12;
const SECOND_MS = 1_000;
/** The clock goes no further: at whole seconds, and one millisecond past them, is when time changes a filter. */
const SECONDS = 8;
const FIRST_HIDDEN_ID = 50;
const NEXT_ID = 200;

class HeldWorld extends World {
  readonly hold = new HeldClaims(this.engine, this.clock);
  readonly gone = new AbortController();
  readonly answers: string[] = [];
  readonly #asked: (() => number)[] = [];

  claim(text: string, params: readonly (null | boolean | number | string)[], token: ScopedToken): void {
    const at = this.answers.push("held") - 1;
    this.#asked.push(() => {
      const { plan, env } = this.engine.prepare({ text, params }, contextOf(token));
      return plan.pick?.run(env()).rows.length ?? 0;
    });
    const told = (answer: string): void => {
      this.answers[at] = answer;
    };
    const refused = (error: unknown): void => {
      if (!(error instanceof Refusal)) throw error;
      told(`${error.code}: ${error.message}`);
    };
    try {
      const outcome = this.hold.query({ text, params }, contextOf(token), 30_000, this.gone.signal);
      if (outcome instanceof Promise) void outcome.then(({ body }) => told(body), refused);
      else told(outcome.body);
    } catch (error) {
      refused(error);
    }
  }

  /** A claim that is held though there is a row it would take. */
  get forgotten(): number | undefined {
    const at = this.answers.findIndex((answer, claim) => answer === "held" && (this.#asked[claim]?.() ?? 0) > 0);
    return at === -1 ? undefined : at;
  }
}

/** Hidden from every token, now and at every moment until the clock stands still. */
function isHidden(judges: readonly Judge[], row: JudgedRow): boolean {
  for (let at = 0; at <= SECONDS * 2 + 1; at++) {
    const now = NOW_MS + (at >> 1) * SECOND_MS + (at & 1);
    for (const judge of judges) {
      judge.now = now;
      if (!judge.hides("jobs", row)) return false;
    }
  }
  return true;
}

function hiddenRow(random: Random, judges: readonly Judge[], id: number): JudgedRow | undefined {
  for (let tries = 0; tries < 20; tries++) {
    const row = randomRow(random, "jobs", id, true);
    if (isHidden(judges, row)) return row;
  }
  return undefined;
}

async function settled(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
}

async function round(random: Random, story: string[], counts: Map<string, number>): Promise<void> {
  const policy: JudgedPolicy = randomPolicy(random);
  const text = policyText(policy);
  const who: Claims[] = [randomClaims(random), randomClaims(random)];
  story.push(text, ...who.map((claims) => JSON.stringify([...claims])));
  const tokens = await Promise.all(who.map((claims) => tokenOf(text, claims)));
  const tables = new Map([
    ["jobs", emptyTable("jobs")],
    ["rooms", emptyTable("rooms")],
  ]);
  const judges = who.map((claims) => new Judge(tables, policy, claims, NOW_MS));
  const worlds = [new HeldWorld(), new HeldWorld()];
  for (const name of ["jobs", "rooms"] as const) {
    const create = createText(random, name);
    story.push(create);
    for (const world of worlds) world.root(create);
  }
  const codes = new Set<unknown>();
  const rows = Array.from({ length: 5 }, (_, at) => randomRow(random, "jobs", at + 1, false)).filter((row) => {
    const code = row.cells.get("code") ?? null;
    if (code !== null && codes.has(code)) return false;
    codes.add(code);
    return !isHidden(judges, row);
  });
  for (const world of worlds) world.fill("jobs", rows, NEXT_ID);

  const same = (what: string): void => {
    const [one, other] = worlds.map((world) => world.answers);
    story.push(`${what}   ${JSON.stringify(one)}`);
    if (JSON.stringify(one) !== JSON.stringify(other))
      throw new Error(`what is hidden shows: ${JSON.stringify(other)}`);
    const forgotten = worlds[0]?.forgotten;
    if (forgotten !== undefined) throw new Error(`claim ${forgotten} is held, and would take a row`);
  };
  for (let at = 0; at < CLAIMS; at++) {
    const by = random.below(2);
    const asked = randomAsked(random, who[by] as Claims);
    if ((asked.do !== "set" && asked.do !== "del") || asked.explain || asked.collection !== "jobs") continue;
    const statement = statementText(random, { ...asked, require: null });
    for (const world of worlds) world.claim(statement.text, statement.params, tokens[by] as ScopedToken);
    await settled();
    same(`${by}: ${statement.text} ${JSON.stringify(statement.params)}`);
  }

  let seconds = 0;
  for (let event = 0; event < EVENTS; event++) {
    const kind = random.below(4);
    if (kind <= 1) {
      // In one of the two alone, or another row in each.
      for (const world of worlds) {
        if (random.chance(0.3)) continue;
        const id = FIRST_HIDDEN_ID + random.below(6);
        const row = random.chance(0.8) ? hiddenRow(random, judges, id) : undefined;
        if (row === undefined) world.root("del jobs where id = $1", [id]);
        else world.root("put jobs $1", [{ id, ...Object.fromEntries([...row.cells].map(plain)) }]);
      }
      await settled();
      same("hidden rows were written");
    } else if (kind === 2) {
      const id = 1 + random.below(8);
      const row = randomRow(random, "jobs", id, false);
      const document = { id, ...Object.fromEntries([...row.cells].map(plain)), code: null };
      for (const world of worlds) world.root("put jobs $1", [document]);
      await settled();
      same(`put ${JSON.stringify(document)}`);
    } else if (seconds < SECONDS) {
      const by = 1 + random.below(Math.min(3, SECONDS - seconds));
      seconds += by;
      for (const world of worlds) await world.clock.advance(by * SECOND_MS);
      await settled();
      same(`${by} s later`);
    }
  }
  for (const answer of worlds[0]?.answers ?? []) {
    const kind = answer === "held" ? "held" : answer.startsWith("[{") ? "rows" : (answer.split(":")[0] as string);
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  for (const world of worlds) {
    world.hold.release();
    world.gone.abort();
  }
}

function plain([name, cell]: readonly [string, unknown]): readonly [string, unknown] {
  return [name, typeof cell === "object" && cell !== null && "ms" in cell ? cell.ms : cell];
}

test("no claim is woken, or answered otherwise, by what is hidden", async () => {
  const counts = new Map<string, number>();
  for (let at = 0; at < ROUNDS; at++) {
    const seed = (SEED + at) >>> 0;
    const story = [`FENEC_SEED=${seed} repeats this`];
    try {
      await round(new Random(seed), story, counts);
    } catch (error) {
      console.error(story.join("\n"));
      throw error;
    }
  }
  if (process.env["FENEC_COUNTS"] !== undefined) console.log(Object.fromEntries([...counts].sort()));
});
