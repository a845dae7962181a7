/**
 * Mutated statements in process: whatever a text says, the engine answers it or refuses it. An answer is json; a refusal has a
 * status from 400 to 499; anything else that is thrown is a defect. `FENEC_MUTATIONS` sets how many, `FENEC_SEED` repeats.
 */

import { expect, setDefaultTimeout, test } from "bun:test";
import { Refusal } from "../../src/base/refusal.ts";
import { printExpr } from "../../src/lang/print.ts";
import { nextTurn } from "../../src/plan/moment.ts";
import { readJson } from "../../src/value/json.ts";
import type { Value } from "../../src/value/value.ts";
import { readCases, textOf } from "../harness/case_file.ts";
import { writeExact } from "../harness/exact_json.ts";
import { stepsOf } from "../harness/language_case.ts";
import { ANYBODY, contentsOf, RecordedEngine } from "../model/recorded_engine.ts";
import { Random } from "../store/random.ts";
import { mutated, mutatedParams } from "./mutation.ts";

const { FENEC_MUTATIONS: mutations = "100000", FENEC_SEED: givenSeed } = process.env;
const MUTATIONS = Number(mutations);
const START_MS = Date.parse("2030-01-31T12:00:00Z");

setDefaultTimeout(120_000 + MUTATIONS * 10);

interface Sent {
  readonly text: string;
  readonly params: readonly string[];
}

const cases: readonly (readonly Sent[])[] = readCases("language.jsonl").map((one) =>
  stepsOf(one).flatMap((step) => {
    if (!step.has("q")) return [];
    const params = step.get("params");
    return [{ text: textOf(step, "q"), params: Array.isArray(params) ? params.map(writeExact) : [] }];
  }),
);
const texts = cases.flatMap((steps) => steps.map(({ text }) => text));

/** Parameters that are no json are the body's fault, and not asked of the engine. */
function valuesOf(params: readonly string[]): Value[] | undefined {
  try {
    return params.map((json) => readJson(json));
  } catch (error) {
    if (error instanceof Refusal) return undefined;
    throw error;
  }
}

/** All that is asked of a statement: its answer, and what a held claim is told by. */
function ask(recorded: RecordedEngine, text: string, params: readonly Value[]): "answered" | "refused" {
  const { engine } = recorded;
  try {
    const { plan, env } = engine.prepare({ text, params }, ANYBODY);
    plan.line?.(env());
    if (plan.time !== null) {
      if (plan.time.problem !== null) printExpr(plan.time.problem);
      for (const turn of plan.time.turns) {
        const k = turn.k(env());
        if (k !== undefined) nextTurn(turn, k, recorded.clock.now());
      }
    }
    plan.pick?.first(env());
    const outcome = engine.query(text, params, ANYBODY);
    JSON.parse(outcome.body);
    JSON.parse(outcome.batchBody);
    return "answered";
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    if (error.status < 400 || error.status > 499) throw error;
    JSON.stringify({ error: error.message, ...error.data });
    return "refused";
  }
}

test(`${MUTATIONS} mutated statements are answered or refused`, () => {
  const seed = givenSeed === undefined ? Math.floor(Math.random() * 2 ** 32) : Number(givenSeed);
  const random = new Random(seed);
  const counts = { answered: 0, refused: 0 };
  let left = MUTATIONS;
  while (left > 0) {
    const steps = random.pick(cases);
    const recorded = new RecordedEngine(START_MS);
    for (const { text, params } of steps) {
      for (let again = 0; again < 12 && left > 0; again++, left--) {
        const wrong = mutated(random, text, texts);
        const sent = mutatedParams(random, params);
        const values = valuesOf(sent);
        if (values === undefined) continue;
        try {
          counts[ask(recorded, wrong, values)]++;
        } catch (error) {
          console.error(`FENEC_SEED=${seed}: ${JSON.stringify(wrong.slice(0, 2_000))} [${sent.join(", ")}]`);
          throw error;
        }
      }
      // On to where the case would be.
      ask(recorded, text, valuesOf(params) ?? []);
    }
    recorded.engine.store.check();
    expect(contentsOf(recorded.replayed())).toBe(contentsOf(recorded.engine.store));
  }
  // Both must come up, or the mutations are of no use.
  expect(counts.answered).toBeGreaterThan(MUTATIONS / 50);
  expect(counts.refused).toBeGreaterThan(MUTATIONS / 4);
  expect(Object.keys(Object.prototype)).toEqual([]);
  expect(({} as Record<string, unknown>)["x"]).toBeUndefined();
});
