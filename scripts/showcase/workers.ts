/**
 * Sixteen workers in a process of their own, over HTTP. They claim tens, held while there is nothing; ack most jobs, fail
 * some with a backoff, and die on some: those are left to their leases. Prints a line of json for every job done, and
 * ends when its standard input does.
 *
 * Called with the server's address, the lease in ms and a seed.
 */

import { listValues, objectEntries, readJson } from "../../src/value/json.ts";
import { Json, type Value } from "../../src/value/value.ts";
import { randomFrom } from "./random.ts";
import { ask, askBatch } from "./server.ts";

const WORKERS = 16;
/** Of each hundred jobs claimed: so many fail, and so many are died on. */
const FAIL = 8;
const DIE = 4;
/** Jobs that fail whenever they are run: one in so many. They end as dead letters. */
const POISON = 97;

const CLAIM = `set deliveries {owner: $1, run_at: now() + $2, attempts: attempts + 1}
  where run_at <= now() order priority desc limit 10 returning *`;
const ACK = "del deliveries where id = $1 and owner = $2 and run_at > now() require 1";
const FAILED = `set deliveries {owner: null, error: "it failed",
  run_at: case when attempts >= 5 then null else now() + 20 * attempts * attempts end}
  where id = $1 and owner = $2 and run_at > now() require 1`;

const [url = "", lease = "1000", seed = "1"] = process.argv.slice(2);
let going = true;

function say(line: Readonly<Record<string, unknown>>): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

function members(row: Value): Map<string, Value> {
  return new Map(row instanceof Json ? objectEntries(row) : []);
}

async function work(worker: number): Promise<void> {
  const random = randomFrom(Number(seed) * 1_000 + worker);
  for (let claim = 0; going; claim++) {
    const owner = `w${worker}:${claim}`;
    const startMs = performance.now();
    const answer = await ask(url, CLAIM, `["${owner}",${lease}]`, { "Fenec-Wait": "500" });
    const claimMs = performance.now() - startMs;
    const jobs = listValues(readJson(answer) as Json).map(members);
    if (jobs.length > 0) say({ kind: "claimed", jobs: jobs.length, ms: claimMs });
    for (const job of jobs) {
      const id = job.get("id") as number;
      const number = job.get("number") as number;
      const dice = random() * 100;
      if (dice < DIE) {
        say({ kind: "died" });
        continue;
      }
      const poison = number % POISON === 0;
      if (poison || dice < DIE + FAIL) {
        if ((await askBatch(url, [[FAILED, `[${id},"${owner}"]`]])) === 200) say({ kind: "failed" });
        continue;
      }
      const status = await askBatch(url, [[ACK, `[${id},"${owner}"]`]]);
      if (status !== 200) {
        say({ kind: "late" });
        continue;
      }
      const payload = job.get("payload");
      const hash = new Bun.CryptoHasher("sha256").update(payload instanceof Json ? payload.text : "").digest("hex");
      say({ kind: "done", number, hash, attempts: job.get("attempts"), atMs: Date.now() });
    }
  }
}

const all = Promise.all(Array.from({ length: WORKERS }, (_, worker) => work(worker)));
for await (const _line of console) {
  // Only its end is waited for.
}
going = false;
await all;
