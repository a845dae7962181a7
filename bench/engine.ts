/**
 * The engine in process: parse cache, plan, change encoding and answer, with no disk and no socket. `bun run bench`.
 *
 * Claims are measured in a steady state: a claimed job gets `run_at: now()`, which puts it last among the ready ones, so
 * every claim finds the same million. Percentiles are of single calls; of several rounds the best is kept, because other
 * work on the machine only ever adds. The figures beside are the original's own, measured on an M1 Air.
 */

import { join } from "node:path";
import { measure } from "mitata";
import { TestClock } from "../src/clock/clock.ts";
import { Engine } from "../src/engine/engine.ts";
import { KeptAnswers } from "../src/engine/idempotency.ts";
import { MemoryJournal } from "../src/engine/journal.ts";
import { Store } from "../src/store/store.ts";
import { Json, type Value } from "../src/value/value.ts";
import { machine, machineWords } from "./machine.ts";
import { writeResults } from "./results.ts";
import { rounded, tableText } from "./table.ts";

const ROWS = Number(process.env["FENEC_BENCH_ROWS"] ?? 1_000_000);
const ROUNDS = Number(process.env["FENEC_BENCH_ROUNDS"] ?? 3);
/** Calls of a round, so that no round of acks runs out of jobs. */
const SAMPLES = Math.floor(ROWS / 40);
const START_MS = Date.UTC(2027, 0, 1);
const ASKED = { scope: null, idempotencyKey: null, requestHash: "" };

interface Figure {
  readonly name: string;
  /** Microseconds a call; of a page of documents, a row. */
  readonly p50: number;
  readonly p99: number;
  readonly reference: string;
}

const figures: Figure[] = [];

function engineOf(): Engine {
  return new Engine({
    store: new Store(),
    journal: new MemoryJournal(),
    clock: new TestClock(START_MS),
    seq: 0,
    readOnly: false,
    maxMemoryBytes: Number.POSITIVE_INFINITY,
    answers: new KeptAnswers(1_000),
    compact: () => {},
  });
}

const FIELDS = "payload json, run_at timestamp @sorted, owner text, attempts int, error text";

/** Puts `count` jobs; `runAt` is in ms from the clock's now. */
function fill(engine: Engine, collection: string, count: number, runAt: (n: number) => number): void {
  for (let from = 0; from < count; from += 1_000) {
    const documents: string[] = [];
    for (let n = from; n < Math.min(count, from + 1_000); n++) {
      documents.push(`{"payload":{"to":"user${n}@example.com","n":${n}},"run_at":${START_MS + runAt(n)},"attempts":0}`);
    }
    engine.query(`put ${collection} $1`, [new Json(`[${documents.join(",")}]`)], ASKED);
  }
}

/** Measures single calls; a call that does as much as `perCall` counts for so many. */
async function time(name: string, run: () => unknown, reference = "", perCall = 1): Promise<void> {
  let p50 = Number.POSITIVE_INFINITY;
  let p99 = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS; round++) {
    const stats = await measure(run, {
      batch_samples: 1,
      batch_threshold: 0,
      min_cpu_time: 1e9,
      samples_threshold: 12,
      max_samples: SAMPLES,
    });
    p50 = Math.min(p50, stats.p50);
    p99 = Math.min(p99, stats.p99);
  }
  figures.push({ name, p50: p50 / 1_000 / perCall, p99: p99 / 1_000 / perCall, reference });
  process.stderr.write(`${name}\n`);
}

const CLAIM = `set jobs {owner: $1, run_at: now(), attempts: attempts + 1}
  where run_at <= now() order run_at limit 10 returning *`;

const where = machine();

{
  const engine = engineOf();
  engine.query(`create collection jobs (${FIELDS})`, [], ASKED);
  fill(engine, "jobs", ROWS, (n) => n - ROWS - 1);
  let claim = 0;
  await time("claim of ten, a million ready", () => engine.query(CLAIM, [`w1:${claim++}`], ASKED).body, "18.7 / 25.8");
  let id = 0;
  const one = "set jobs {attempts: 0} where id = $1 and run_at <= now() require 1";
  await time("one row by id, guarded", () => engine.query(one, [1 + (id++ % ROWS)], ASKED).body);
  const document = new Json('{"to":"ada@example.com"}');
  const put = "put jobs {payload: $1, run_at: now() + 3600000, attempts: 0}";
  await time("put of one, parameters", () => engine.query(put, [document], ASKED).body);
  let n = 0;
  await time("put of one, its values in the text", () => {
    const text = `put jobs {payload: {"to": "user${n++}@example.com"}, run_at: now() + 3600000, attempts: 0}`;
    return engine.query(text, [], ASKED).body;
  });
}
Bun.gc(true);
{
  const engine = engineOf();
  engine.query(`create collection jobs (${FIELDS})`, [], ASKED);
  fill(engine, "jobs", ROWS + 3, (at) => (at < 3 ? -10 : 1_000 + at));
  let claim = 0;
  await time(
    "claim of ten, three ready among a million leased",
    () => engine.query(CLAIM, [`w1:${claim++}`], ASKED).body,
    "18.7 / 25.8",
  );
  engine.query("set jobs {run_at: null} where id > $1", [ROWS - (ROWS >> 2)], ASKED);
  for (const [what, filter] of [
    ["ready", "run_at <= now()"],
    ["ahead", "run_at > now()"],
    ["dead", "run_at is null"],
  ]) {
    const text = `get jobs where ${filter} count`;
    await time(`count of the ${what} ones among a million`, () => engine.query(text, [], ASKED).body);
  }
  let last = ROWS + 3;
  const del = "del jobs where id = $1 and attempts = $2 require 1";
  await time("ack: one job deleted by id", () => engine.query(del, [last--, 0], ASKED).body);
  const acks = (): { text: string; params: Value[] }[] =>
    Array.from({ length: 10 }, () => ({ text: del, params: [last--, 0] }));
  await time("ack of ten in a batch", () => engine.batch(acks(), ASKED).outcomes.map((outcome) => outcome.batchBody));
}
Bun.gc(true);
{
  const engine = engineOf();
  engine.query(`create collection jobs (${FIELDS.replace(" @sorted", "")})`, [], ASKED);
  fill(engine, "jobs", ROWS, (n) => n - ROWS - 1);
  await time("claim of ten, no index", () => engine.query(CLAIM, ["w1"], ASKED).body, "133 000");
}
Bun.gc(true);
{
  const engine = engineOf();
  engine.query(`create collection jobs (${FIELDS})`, [], ASKED);
  const documents = Array.from(
    { length: 1_000 },
    (_, n) => `{"payload":{"to":"user${n}@example.com"},"run_at":${START_MS + n},"attempts":0}`,
  );
  const page = `[${documents.join(",")}]`;
  await time("put $1 of 1 000 rows, a row", () => engine.query("put jobs $1", [new Json(page)], ASKED).body, "", 1_000);
}
Bun.gc(true);
{
  const engine = engineOf();
  engine.query(
    "create collection rides (pickup geo @geo, run_at timestamp @sorted, owner text, attempts int, kind int)",
    [],
    ASKED,
  );
  let state = 12_345;
  const random = (): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return state / 2 ** 32;
  };
  for (let from = 0; from < 100_000; from += 1_000) {
    const documents = Array.from(
      { length: 1_000 },
      (_, n) =>
        `{"pickup":[${28.5 + random()},${40.7 + random() * 0.6}],"run_at":${START_MS - 1},"attempts":0,"kind":${n % 100}}`,
    );
    engine.query("put rides $1", [new Json(`[${documents.join(",")}]`)], ASKED);
  }
  const nearest = (filter: string): string =>
    `set rides {owner: $1, run_at: now(), attempts: attempts + 1} where run_at <= now()${filter} order distance(pickup, $2) limit 1 returning *`;
  const all = nearest("");
  const some = nearest(" and kind = 7");
  const point = (): Json => new Json(`[${28.5 + random()},${40.7 + random() * 0.6}]`);
  await time("claim of the nearest among 100 000", () => engine.query(all, ["c", point()], ASKED).body);
  await time("claim of the nearest, one in a hundred fits", () => engine.query(some, ["c", point()], ASKED).body);
}
Bun.gc(true);
{
  const engine = engineOf();
  engine.query(
    "create collection tasks (payload json, run_at timestamp @sorted, priority int @sorted, owner text, attempts int)",
    [],
    ASKED,
  );
  for (let from = 0; from < ROWS; from += 1_000) {
    const documents = Array.from(
      { length: 1_000 },
      (_, n) => `{"run_at":${START_MS - 1},"priority":${(from / 1_000 + n) % 10},"attempts":0}`,
    );
    engine.query("put tasks $1", [new Json(`[${documents.join(",")}]`)], ASKED);
  }
  const text =
    "set tasks {owner: $1, run_at: now(), attempts: attempts + 1} where run_at <= now() order priority desc limit 10 returning *";
  await time("claim of ten by priority, a million ready", () => engine.query(text, ["w"], ASKED).body);
}

/** What a row takes besides its payload's own text, in a process of its own. */
const child = Bun.spawnSync([process.execPath, join(import.meta.dir, "memory.ts"), String(ROWS)], {
  stderr: "inherit",
});
const memory = JSON.parse(child.stdout.toString()) as { bytesARow: number; payloadBytes: number };

const table = figures.map(({ name, p50, p99, reference }) => [
  name,
  rounded(p50),
  rounded(p99),
  rounded(1e6 / p50),
  reference,
]);
process.stdout.write(`${machineWords(where)}\n${ROWS} rows, best of ${ROUNDS} rounds\n\n`);
process.stdout.write(`${tableText(["in process", "p50 us", "p99 us", "a second", "reference us"], table)}\n\n`);
process.stdout.write(
  `memory a row besides its payload: ${memory.bytesARow.toFixed(0)} bytes (payload ${memory.payloadBytes.toFixed(0)})\n`,
);
process.stdout.write(`${writeResults("engine", { machine: where, rows: ROWS, rounds: ROUNDS, figures, memory })}\n`);
