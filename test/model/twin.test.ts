/**
 * Twins: two collections with the same rows, one with every index there can be and one with none. Whatever is asked of both is
 * answered the same, whichever way the plan of each goes; they hold enough rows for walks, budgets and counts to matter.
 */

import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { Refusal } from "../../src/base/refusal.ts";
import { readJson } from "../../src/value/json.ts";
import { Random } from "../store/random.ts";
import { Writer, type Written } from "./chance.ts";
import { Collection, Database, type Field } from "./database.ts";
import { int, type NULL, readPlain, time } from "./plain.ts";
import { ANYBODY, RecordedEngine } from "./recorded_engine.ts";

const { FENEC_TWINS: statements = "250", FENEC_SEED: givenSeed } = process.env;
const STATEMENTS = Number(statements);
setDefaultTimeout(120_000 + STATEMENTS * 200);
const ROWS = 2_000;
const START_MS = Date.parse("2030-01-31T12:00:00Z");

const FIELDS: readonly (readonly [name: string, type: string, index: string])[] = [
  ["payload", "json", ""],
  ["run_at", "timestamp", "@sorted"],
  ["owner", "text", "@hash"],
  ["priority", "int", "@sorted"],
  ["score", "float", "@sorted"],
  ["name", "text", "@sorted"],
  ["done", "bool", "@hash"],
  ["key", "bytes", "@hash"],
  ["pickup", "geo", "@geo"],
  ["attempts", "int", "@hash"],
  ["tags", "[text]", ""],
  ["serial", "int", "@unique"],
];
const PATHS = ["payload.k @sorted", "payload.o @hash", "payload.o.k @sorted"];

/** Names that no text holds but as the collection's. */
const INDEXED = "zzindexed";
const BARE = "zzbare";

class Twins {
  readonly #random: Random;
  readonly #recorded = new RecordedEngine(START_MS);
  readonly #database = new Database();
  readonly #shadow: Collection;
  /** What may be written: not what is unique in one of them alone. */
  readonly #writable: Collection;
  #skipped = 0;
  #met = 0;

  /** @param ttl what a further field that makes rows expire is declared as, in both */
  constructor(random: Random, ttl: string) {
    this.#random = random;
    const { engine } = this.#recorded;
    const declared = (withIndexes: boolean): string =>
      [
        ...FIELDS.map(([name, type, index]) => `${name} ${type} ${withIndexes ? index : ""}`),
        `seen timestamp ${ttl}`,
      ].join(", ");
    engine.query(`create collection ${INDEXED} (${declared(true)})`, [], ANYBODY);
    engine.query(`create collection ${BARE} (${declared(false)})`, [], ANYBODY);
    for (const path of PATHS) {
      const [name = "", kind = ""] = path.split(" ");
      engine.query(`create index on ${INDEXED} (${name}) ${kind}`, [], ANYBODY);
    }
    const fields = [...FIELDS, ["seen", "timestamp", ""] as const].map(([name, type]): Field => {
      const kind = type.replace(/[[\]]/g, "") as "text";
      return { name, type: type.startsWith("[") ? { kind: "list", of: { kind } } : { kind }, required: false };
    });
    this.#shadow = new Collection(INDEXED, fields);
    if (ttl !== "") {
      const clause = { kind: "ttl", ttlMs: 30_000, ttlText: "30s" } as const;
      this.#shadow.indexes = [{ field: "seen", keys: [], clause }];
    }
    this.#database.collections.set(INDEXED, this.#shadow);
    this.#writable = this.#shadow.copy();
    this.#writable.fields = fields.filter((field) => field.name !== "serial");
    this.#fill();
  }

  #fill(): void {
    const random = this.#random;
    for (let at = 0; at < ROWS; at += 500) {
      const documents = Array.from({ length: 500 }, (_, place) => {
        const n = at + place;
        const some = (share: number, value: () => unknown): unknown => (random.chance(share) ? value() : null);
        const document = {
          payload: some(0.9, () => ({
            k: some(0.8, () => random.below(40)),
            o: some(0.6, () => ({ k: random.below(5) })),
          })),
          // Half ready, half ahead, many at the same moment.
          run_at: some(0.9, () => START_MS + 1000 * (random.below(1200) - 600)),
          owner: some(0.5, () => `w${random.below(12)}`),
          priority: some(0.9, () => (random.chance(0.8) ? random.below(6) : random.below(5000))),
          score: some(0.9, () => random.below(2000) / 8),
          name: some(0.9, () => random.pick(["a", "b", "B", "é", "😀", "Z"]) + random.below(300)),
          done: some(0.8, () => random.chance(0.3)),
          key: some(0.5, () => [random.below(3), random.below(256)]),
          pickup: some(0.8, () => [random.below(36_000) / 100 - 180, random.below(18_000) / 100 - 90]),
          attempts: random.below(7),
          tags: some(0.5, () => Array.from({ length: random.below(4) }, () => random.pick(["a", "b", "é"]))),
          serial: n,
          seen: some(0.5, () => START_MS - 1000 * random.below(40)),
        };
        if (n % 50 === 0) this.#remember(document, n + 1);
        return JSON.stringify(document);
      });
      for (const name of [INDEXED, BARE]) {
        this.#recorded.engine.query(`put ${name} $1`, [readJson(`[${documents.join(",")}]`, 66)], ANYBODY);
      }
    }
    this.#shadow.nextId = ROWS + 1;
  }

  /** Some of the rows are known to the writer of statements, so that it asks for what there is. */
  #remember(document: Readonly<Record<string, unknown>>, id: number): void {
    const row = new Map([["id", int(id)]].concat([]) as [string, typeof NULL][]);
    for (const field of this.#shadow.fields) {
      const plain = readPlain(JSON.stringify(document[field.name]));
      row.set(field.name, field.type.kind === "timestamp" && plain.kind === "int" ? time(Number(plain.n)) : plain);
    }
    this.#shadow.rows.set(id, row);
  }

  step(): void {
    const random = this.#random;
    if (random.chance(0.1)) this.#recorded.clock.nowMs += random.below(4000);
    const writer = new Writer(random, this.#database, this.#recorded.clock.nowMs, 0.004);
    const dice = random.next();
    let text: string;
    if (dice < 0.35) text = writer.get(this.#shadow);
    else if (dice < 0.7) text = this.#walk(writer);
    else if (dice < 0.9) text = writer.set(this.#writable);
    else if (dice < 0.95) text = writer.put(this.#writable);
    else text = writer.del(this.#writable, 0);
    // A delete of many would leave nothing to ask for.
    if (/^del/.test(text) && !/limit \d/.test(text)) text = `get ${INDEXED} count`;
    this.#both({ text, params: writer.params });
  }

  /** In one batch, so that both do it or none. */
  /** A page in an order that an index has. */
  #walk(writer: Writer): string {
    const random = this.#random;
    const point = random.pick(["[0, 0]", "[29.01, 41.04]", "[179.9, -45]", "[-180, 90]"]);
    const key = random.pick([
      "run_at",
      "priority",
      "score",
      "name",
      "payload.k",
      "payload.o.k",
      "id",
      `distance(pickup, ${point})`,
    ]);
    const filter = random.pick([
      () => writer.condition(this.#shadow, 1),
      () => `tags has "a" and ${writer.condition(this.#shadow, 0)}`,
      () => `done and len(name) = ${random.below(5)}`,
      () => `run_at <= now() and attempts = ${random.below(8)}`,
      () => `pickup is not null and priority >= ${random.below(6)}`,
      () => `pickup is not null and done and tags has "a" and len(name) = ${2 + random.below(3)}`,
      () => `payload.o.k = ${random.below(6)} and not done`,
    ])();
    const desc = random.chance(0.4) && !key.startsWith("distance") ? " desc" : "";
    return `get ${INDEXED} where ${filter} order ${key}${desc} limit ${1 + random.below(random.chance(0.2) ? 400 : 12)}`;
  }

  #both({ text, params }: Written): void {
    const { engine } = this.#recorded;
    const values = params.map((json) => readJson(json));
    const bare = { text: text.replaceAll(INDEXED, BARE), params: values };
    const indexed = { text, params: values };
    const poison = { text: "get zznowhere", params: [] };
    const first = this.#batch([bare, indexed]);
    if ("bodies" in first) {
      this.#met++;
      const [expected, answered] = first.bodies;
      if (answered !== expected) {
        const how = this.#batch([{ text: `explain ${text}`, params: values }]);
        throw new Error(
          `${text} [${params.join(", ")}]\nwithout: ${expected}\nwith:    ${answered}\n${JSON.stringify(how)}`,
        );
      }
      expect(engine.store.table(INDEXED)?.count).toBe(engine.store.table(BARE)?.count as number);
      return;
    }
    // An error in some row is met by one and may be passed by the other; any other refusal is both's.
    this.#skipped++;
    const other = this.#batch(first.at === 0 ? [indexed, poison] : [bare, poison]);
    const otherStatus = "bodies" in other ? 200 : other.at === 1 ? 200 : other.status;
    if (first.status === otherStatus || (first.status === 400 && otherStatus === 200)) return;
    throw new Error(`${text} [${params.join(", ")}]\nrefused with ${first.status} by one, ${otherStatus} by the other`);
  }

  #batch(
    requests: readonly { readonly text: string; readonly params: ReturnType<typeof readJson>[] }[],
  ): { readonly bodies: readonly string[] } | { readonly status: number; readonly at: number } {
    try {
      return { bodies: this.#recorded.engine.batch(requests, ANYBODY).outcomes.map((outcome) => outcome.body) };
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      return { status: error.status, at: Number(error.data["at"]) };
    }
  }

  finish(): void {
    this.#recorded.engine.store.check();
    // Most statements say something.
    expect(this.#met).toBeGreaterThan(this.#skipped * 2);
  }
}

describe(`${STATEMENTS} statements`, () => {
  const seed = givenSeed === undefined ? Math.floor(Math.random() * 2 ** 32) : Number(givenSeed);
  for (const [name, ttl] of [
    ["no rows that expire", ""],
    ["rows that expire", "@ttl(30s)"],
  ] as const) {
    test(`${name}, FENEC_SEED=${seed}`, () => {
      const twins = new Twins(new Random(seed), ttl);
      for (let step = 0; step < STATEMENTS; step++) twins.step();
      twins.finish();
    });
  }
});
