/** `scripts/fuzz`: lives of the simulated server one after another, until one fails or it is told to stop. */

import { commandOf, runScript, UsageError } from "../../scripts/data/command.ts";
import { life, type Tally } from "./life.ts";

const HELP = `Usage: sh scripts/fuzz [--seed N] [--lives N] [--seconds N]

  Lets a simulated server live and die again and again, on a disk that tears, loses, fills up and fails, and holds it to
  what it answered. Each life is made from one number, its seed; the seed of one that fails is printed.

  --seed N      this life alone, or with --lives the first of them
  --lives N     so many lives
  --seconds N   for so long; without either it goes on until it is stopped

  Exit status: 0 all kept their word, 1 one did not, 2 the command line is wrong.`;

const TELL_MS = 10_000;

function numberOf(options: ReadonlyMap<string, string>, name: string): number | undefined {
  const text = options.get(name);
  if (text === undefined) return undefined;
  if (!/^\d{1,10}$/.test(text)) throw new UsageError(`${name} takes a whole number, not ${text}`);
  return Number(text);
}

async function fuzz(options: ReadonlyMap<string, string>, print: (line: string) => void): Promise<number> {
  const seed = numberOf(options, "--seed");
  const seconds = numberOf(options, "--seconds");
  const lives = numberOf(options, "--lives") ?? (seed !== undefined && seconds === undefined ? 1 : Infinity);
  const first = seed ?? Math.floor(Math.random() * 2 ** 32);
  const tally: Tally = new Map();
  const startedMs = performance.now();
  let toldMs = startedMs;
  const until = startedMs + (seconds ?? Infinity) * 1_000;
  let done = 0;
  const tell = (): void => {
    const spent = ((performance.now() - startedMs) / 1_000).toFixed(0);
    print(`${done} lives in ${spent} s, seeds from ${first} on`);
  };
  for (; done < lives && performance.now() < until; done++) {
    const one = (first + done) % 2 ** 32;
    try {
      await life(one, tally);
    } catch (error) {
      print(error instanceof Error ? (error.stack ?? error.message) : String(error));
      print(`failed; sh scripts/fuzz --seed ${one} repeats it`);
      return 1;
    }
    if (performance.now() - toldMs < TELL_MS) continue;
    toldMs = performance.now();
    tell();
  }
  tell();
  for (const [what, count] of [...tally].sort()) print(`  ${what}: ${count}`);
  return 0;
}

process.exitCode = await runScript(
  HELP,
  () => commandOf(process.argv.slice(2), [], [], ["--seed", "--lives", "--seconds"]),
  (command, print) => fuzz(command.options, print),
);
