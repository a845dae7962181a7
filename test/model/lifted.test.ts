/**
 * A statement through the cache, its literals lifted out and its plan shared, against the same statement parsed whole and planned
 * anew: a text longer than the cache takes is neither lifted nor kept. Both engines see the same history.
 */

import { expect, setDefaultTimeout, test } from "bun:test";
import { CACHED_TEXT_LENGTH } from "../../src/base/limits.ts";
import { Refusal } from "../../src/base/refusal.ts";
import { lift } from "../../src/lang/lift.ts";
import { readJson } from "../../src/value/json.ts";
import { Random } from "../store/random.ts";
import { Writer, type Written } from "./chance.ts";
import { Collection, Database } from "./database.ts";
import { readPlain } from "./plain.ts";
import { ANYBODY, contentsOf, RecordedEngine } from "./recorded_engine.ts";

setDefaultTimeout(120_000);

const STATEMENTS = 3_000;
const START_MS = Date.parse("2030-01-31T12:00:00Z");
const FILLER = " ".repeat(CACHED_TEXT_LENGTH);

const CREATE = `create collection jobs (payload json, run_at timestamp @sorted, owner text @hash, n int @sorted, score float,
  pickup geo @geo, tags [text], key text @unique, seen timestamp @ttl(30s))`;

/** Digits that stand alone, and short texts in quotes, each made another of its kind. */
const LITERAL = /(?<![\p{L}\d_$.:-])\d(?![\p{L}\d_.])|"[a-z]"/gu;

function told(recorded: RecordedEngine, text: string, params: readonly string[]): string {
  try {
    return recorded.engine.query(
      text,
      params.map((json) => readJson(json)),
      ANYBODY,
    ).body;
  } catch (error) {
    if (error instanceof Refusal) return `${error.status} ${error.code} ${error.message}`;
    throw error;
  }
}

test("a text's answer does not depend on the texts before it", () => {
  const { FENEC_SEED: givenSeed } = process.env;
  const seed = givenSeed === undefined ? Math.floor(Math.random() * 2 ** 32) : Number(givenSeed);
  const random = new Random(seed);
  const cached = new RecordedEngine(START_MS);
  const whole = new RecordedEngine(START_MS);
  const database = new Database();
  for (const recorded of [cached, whole]) recorded.engine.query(CREATE, [], ANYBODY);
  const shadow = new Collection("jobs", [
    { name: "payload", type: { kind: "json" }, required: false },
    { name: "run_at", type: { kind: "timestamp" }, required: false },
    { name: "owner", type: { kind: "text" }, required: false },
    { name: "n", type: { kind: "int" }, required: false },
    { name: "score", type: { kind: "float" }, required: false },
    { name: "pickup", type: { kind: "geo" }, required: false },
    { name: "tags", type: { kind: "list", of: { kind: "text" } }, required: false },
    { name: "key", type: { kind: "text" }, required: false },
    { name: "seen", type: { kind: "timestamp" }, required: false },
  ]);
  shadow.indexes = [{ field: "seen", keys: [], clause: { kind: "ttl", ttlMs: 30_000, ttlText: "30s" } }];
  shadow.nextId = 60;
  database.collections.set("jobs", shadow);
  let known: Written[] = [];
  let shared = 0;
  const keys = new Set<string>();
  for (let step = 0; step < STATEMENTS; step++) {
    if (random.chance(0.05)) {
      cached.clock.nowMs += random.below(3000);
      whole.clock.nowMs = cached.clock.nowMs;
    }
    let written: Written;
    if (known.length > 10 && random.chance(0.6)) {
      const { text, params } = random.pick(known);
      const another = (literal: string): string =>
        literal.startsWith('"') ? `"${random.pick(["a", "b", "x"])}"` : String(random.below(8));
      written = { text: text.replace(LITERAL, another), params };
    } else {
      const writer = new Writer(random, database, cached.clock.nowMs, 0.03);
      const dice = random.next();
      let text =
        dice < 0.4
          ? writer.get(shadow)
          : dice < 0.6
            ? writer.set(shadow)
            : dice < 0.9
              ? writer.put(shadow)
              : writer.del(shadow, 30);
      if (random.chance(0.05)) text = `explain ${text}`;
      written = { text, params: writer.params };
      known.push(written);
      if (known.length > 60) known = known.slice(20);
    }
    const key = lift(written.text)?.key;
    if (key !== undefined) {
      if (keys.has(key)) shared++;
      keys.add(key);
    }
    const answers = [cached, whole].map((recorded, at) =>
      told(recorded, written.text + (at === 0 ? "" : FILLER), written.params),
    );
    if (answers[0] !== answers[1]) {
      throw new Error(
        `FENEC_SEED=${seed}, step ${step}: ${written.text} [${written.params.join(", ")}]\nlifted: ${answers[0]}\nwhole:  ${answers[1]}\nkey: ${key}`,
      );
    }
    if (step % 100 === 0) {
      shadow.nextId = cached.engine.store.table("jobs")?.nextId ?? 1;
      for (const row of JSON.parse(told(cached, "get jobs limit 20", []))) {
        shadow.rows.set(
          row.id,
          new Map(Object.entries(row).map(([name, value]) => [name, readPlain(JSON.stringify(value))])),
        );
      }
    }
  }
  expect(contentsOf(cached.engine.store)).toBe(contentsOf(whole.engine.store));
  expect(shared).toBeGreaterThan(STATEMENTS / 4);
});
