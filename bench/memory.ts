/** Resident memory of a store of jobs, as one json line; run in a process of its own by `engine.ts`. */

import { TestClock } from "../src/clock/clock.ts";
import { Engine } from "../src/engine/engine.ts";
import { KeptAnswers } from "../src/engine/idempotency.ts";
import { MemoryJournal } from "../src/engine/journal.ts";
import { Store } from "../src/store/store.ts";
import { Json } from "../src/value/value.ts";

const rows = Number(process.argv[2]);
const startMs = Date.UTC(2027, 0, 1);
const asked = { scope: null, idempotencyKey: null, requestHash: "" };
const engine = new Engine({
  store: new Store(),
  journal: new MemoryJournal(),
  clock: new TestClock(startMs),
  seq: 0,
  readOnly: false,
  maxMemoryBytes: Number.POSITIVE_INFINITY,
  answers: new KeptAnswers(1_000),
  compact: () => {},
});
engine.query(
  "create collection jobs (payload json, run_at timestamp @sorted, owner text, attempts int, error text)",
  [],
  asked,
);

let payloadBytes = 0;
function page(from: number): string {
  const documents: string[] = [];
  for (let n = from; n < from + 1_000; n++) {
    const payload = `{"to":"user${n}@example.com","n":${n}}`;
    payloadBytes += payload.length;
    documents.push(`{"payload":${payload},"run_at":${startMs + n},"attempts":0}`);
  }
  return `[${documents.join(",")}]`;
}

// Warm up what is compiled and pooled, and take it out again, before the floor is read.
for (let from = 0; from < 20_000; from += 1_000) engine.query("put jobs $1", [new Json(page(from))], asked);
engine.query("del jobs", [], asked);
payloadBytes = 0;
Bun.gc(true);
const floor = process.memoryUsage.rss();
for (let from = 0; from < rows; from += 1_000) engine.query("put jobs $1", [new Json(page(from))], asked);
Bun.gc(true);
// The allocator gives pages back some time after they are free.
await Bun.sleep(3_000);
Bun.gc(true);
// Asked of the store itself, so that it is still there when memory is read.
const held = engine.store.table("jobs")?.count ?? 0;
const bytesARow = (process.memoryUsage.rss() - floor - payloadBytes) / held;
process.stdout.write(JSON.stringify({ bytesARow, payloadBytes: payloadBytes / rows }));
