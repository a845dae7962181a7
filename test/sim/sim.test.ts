/**
 * Some hundred lives of a simulated server, each from a seed of its own. FENEC_SEED repeats one of them; `scripts/fuzz`
 * runs them for as long as it is let.
 */

import { expect, test } from "bun:test";
import { life, type Tally } from "./life.ts";

const { FENEC_SEED: givenSeed, FENEC_ROUNDS: givenRounds = "200" } = process.env;

test("whatever happens to it, a server keeps its word", async () => {
  const first = givenSeed === undefined ? Math.floor(Math.random() * 2 ** 32) : Number(givenSeed);
  const rounds = givenSeed === undefined ? Number(givenRounds) : 1;
  const tally: Tally = new Map();
  for (let round = 0; round < rounds; round++) {
    const seed = (first + round) % 2 ** 32;
    try {
      await life(seed, tally);
    } catch (error) {
      console.error(`FENEC_SEED=${seed} repeats this failure`);
      throw error;
    }
  }
  if (givenSeed !== undefined) return;
  console.log(
    [...tally]
      .sort()
      .map(([what, count]) => `${what}: ${count}`)
      .join(", "),
  );
  expect(tally.size).toBeGreaterThan(0);
}, 600_000);
