/**
 * Random histories: every statement is put to the engine and to the model, and what the engine answers must be what the model
 * holds to be right. `FENEC_STEPS` sets how many statements there are, `FENEC_SEED` repeats a failure.
 */

import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { Refusal } from "../../src/base/refusal.ts";
import { parseStatement } from "../../src/lang/parse.ts";
import { readJson } from "../../src/value/json.ts";
import { Random } from "../store/random.ts";
import { Writer, type Written } from "./chance.ts";
import { Database, type Verdict } from "./database.ts";
import { readPlain } from "./plain.ts";
import { ANYBODY, contentsOf, RecordedEngine } from "./recorded_engine.ts";

const { FENEC_STEPS: steps = "15000", FENEC_SEED: givenSeed } = process.env;
const STEPS = Number(steps);
const EPISODE_STEPS = 1_000;
const START_MS = Date.parse("2030-01-31T12:00:00Z");

setDefaultTimeout(60_000 + STEPS * 20);

/** How large collections get, and how much is wrong on purpose. */
const KINDS = [
  { name: "small collections, much that is wrong", most: 12, wrong: 0.12 },
  { name: "collections of some dozens", most: 50, wrong: 0.03 },
  { name: "collections of some hundreds", most: 400, wrong: 0.02 },
] as const;

/** Statements of a history that may be sent again. */
const REMEMBERED = 30;
/** How much of a collection a failure shows. */
const SHOWN_LENGTH = 6_000;
/** A number of the text itself: of no name, parameter, longer number or duration. */
const LONE_DIGIT = /(?<![\p{L}\d_$.:-])\d(?![\p{L}\d_.])/gu;

type Told =
  | { readonly status: number; readonly words: string; readonly at: number }
  | { readonly bodies: readonly string[] };

class History {
  readonly #random: Random;
  readonly #most: number;
  readonly #wrong: number;
  readonly recorded = new RecordedEngine(START_MS);
  #database = new Database();
  /** Some of the statements sent, holes among them. */
  readonly #sent: Written[] = [];
  readonly #log: string[] = [];

  constructor(random: Random, most: number, wrong: number) {
    this.#random = random;
    this.#most = most;
    this.#wrong = wrong;
  }

  get now(): number {
    return this.recorded.clock.nowMs;
  }

  step(): void {
    const random = this.#random;
    const dice = random.next();
    if (dice < 0.05) {
      this.recorded.clock.nowMs += random.chance(0.5) ? random.below(2000) : 1000 * random.below(60);
      this.#log.push(`-- clock at ${this.now}`);
    } else if (dice < 0.06) {
      this.recorded.sweep();
      this.#database.sweep(this.now);
      this.#log.push("-- swept");
    } else if (dice < 0.1)
      this.#run(
        Array.from({ length: 1 + random.below(4) }, () => this.#written()),
        true,
      );
    else this.#run([this.#written()], false);
  }

  /** A new statement, or one that was sent before: as it was, or with other numbers in it. */
  #written(): Written {
    const random = this.#random;
    const known = random.chance(0.25) ? this.#sent[random.below(REMEMBERED)] : undefined;
    if (known !== undefined) {
      const { text, params } = known;
      const other = random.chance(0.5) ? text : text.replace(LONE_DIGIT, () => String(random.below(8)));
      return { text: other, params };
    }
    const written = new Writer(random, this.#database, this.now, this.#wrong).statement(this.#most);
    this.#sent[random.below(REMEMBERED)] = written;
    return written;
  }

  #run(requests: readonly Written[], isBatch: boolean): void {
    this.#log.push(
      `${isBatch ? "-- batch\n" : ""}${requests.map(({ text, params }) => `${text}   -- [${params.join(", ")}]`).join("\n")}`,
    );
    const told = this.#tell(requests, isBatch);
    const wrong = this.#judged(requests, told);
    if (wrong !== undefined) this.fail(wrong);
  }

  fail(words: string): never {
    const last = this.#log.at(-1) ?? "";
    const named = [...this.#database.collections].filter(([name]) => last.includes(name));
    const rows = named.map(([name, { nextId }]) => {
      const everything = this.#database.judge(parseStatement(`get ${name}`), [], this.now).body;
      const schema = this.#database.judge(parseStatement(`describe ${name}`), [], this.now).body;
      return `${schema} next ${nextId}\n${everything?.replaceAll("},{", "},\n{").slice(0, SHOWN_LENGTH)}`;
    });
    throw new Error(`${words}\n${this.#log.slice(-12).join("\n")}\nat ${this.now}\n${rows.join("\n")}`);
  }

  #tell(requests: readonly Written[], isBatch: boolean): Told {
    const { engine } = this.recorded;
    const sent = requests.map(({ text, params }) => ({ text, params: params.map((json) => readJson(json)) }));
    try {
      if (isBatch) return { bodies: engine.batch(sent, ANYBODY).outcomes.map((outcome) => outcome.body) };
      return { bodies: sent.map(({ text, params }) => engine.query(text, params, ANYBODY).body) };
    } catch (error) {
      if (!(error instanceof Refusal)) this.fail(`no refusal but ${error instanceof Error ? error.stack : error}`);
      const { at = 0 } = error.data;
      return { status: error.status, words: error.message, at: at as number };
    }
  }

  /** What is wrong with it; the model goes along with what is right. */
  #judged(requests: readonly Written[], told: Told): string | undefined {
    // Every text is read before any is run.
    const statements = requests.map(({ text }) => {
      try {
        return parseStatement(text);
      } catch (error) {
        if (error instanceof Refusal) return error;
        throw error;
      }
    });
    const unread = statements.findIndex((statement) => statement instanceof Refusal);
    if (unread >= 0) {
      const fits = "status" in told && told.at === unread && told.status === (statements[unread] as Refusal).status;
      return fits ? undefined : `text ${unread} is no statement, and it answered ${JSON.stringify(told)}`;
    }
    const before = requests.length > 1 ? this.#database.copy() : this.#database;
    // A compact cannot be taken back, so beside one each statement stands for itself.
    const stands = statements.some((statement) => !(statement instanceof Refusal) && statement.kind === "compact");
    for (const [at, statement] of statements.entries()) {
      if (statement instanceof Refusal) continue;
      const params = (requests[at] as Written).params.map(readPlain);
      const verdict = this.#database.judge(statement, params, this.now);
      if ("status" in told && told.at === at) {
        if (!stands) this.#database = before;
        if (verdict.statuses.has(told.status)) return undefined;
        return `statement ${at} was refused with ${told.status} (${told.words}); ${shown(verdict)}`;
      }
      if (verdict.body === null) return `statement ${at} was answered ${JSON.stringify(told)}; ${shown(verdict)}`;
      if ("bodies" in told) {
        const body = statement.kind === "explain" ? lastLine(told.bodies[at] as string) : told.bodies[at];
        if (body !== verdict.body) return `statement ${at} answered\n${body}\nand should\n${verdict.body}`;
      }
      verdict.commit();
    }
    return "status" in told ? `refused at ${told.at}: ${told.words}` : undefined;
  }

  /** Everything at once: rows, schemas, the soundness of the store, and what the frames alone make. */
  check(): void {
    const { engine } = this.recorded;
    engine.store.check();
    for (const [name, collection] of this.#database.collections) {
      const everything = collection.ttl === null ? "" : " where expired() or not expired()";
      const statement = parseStatement(`get ${name}${everything}`);
      const { body } = engine.query(`get ${name}${everything}`, [], ANYBODY);
      if (body !== this.#database.judge(statement, [], this.now).body)
        this.fail(`${name} holds other rows than it should`);
    }
    const schemas = this.#database.judge(parseStatement("collections"), [], this.now).body;
    expect(engine.query("collections", [], ANYBODY).body).toBe(schemas as string);
    const replayed = this.recorded.replayed();
    replayed.check();
    expect(contentsOf(replayed)).toBe(contentsOf(engine.store));
  }
}

function shown(verdict: Verdict): string {
  const statuses = [...verdict.statuses].join(" or ");
  if (verdict.body === null) return `right is ${statuses}`;
  return `right is ${verdict.body}${statuses === "" ? "" : `, or ${statuses}`}`;
}

/** The last line of a plan: how many rows. */
function lastLine(body: string): string {
  const lines: readonly { readonly plan: string }[] = JSON.parse(body);
  return lines.at(-1)?.plan ?? "";
}

describe(`${STEPS} statements`, () => {
  const seed = givenSeed === undefined ? Math.floor(Math.random() * 2 ** 32) : Number(givenSeed);
  for (const [at, kind] of KINDS.entries()) {
    test(`${kind.name}, FENEC_SEED=${seed}`, () => {
      const random = new Random(seed + at);
      // What costs more gets fewer.
      const share = [0.5, 0.45, 0.05][at] as number;
      for (let left = STEPS * share; left > 0; left -= EPISODE_STEPS) {
        const history = new History(random, kind.most, kind.wrong);
        const count = Math.min(left, EPISODE_STEPS);
        for (let step = 0; step < count; step++) history.step();
        history.check();
      }
    });
  }
});
