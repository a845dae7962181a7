/** Results as they are kept: `bench/results/<name>.json`. */

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const DIRECTORY = join(import.meta.dir, "results");

/** Writes the file and answers its path from the project. */
export function writeResults(name: string, results: unknown): string {
  mkdirSync(DIRECTORY, { recursive: true });
  writeFileSync(join(DIRECTORY, `${name}.json`), `${JSON.stringify(results, null, 2)}\n`);
  return `bench/results/${name}.json`;
}
