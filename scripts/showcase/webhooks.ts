/**
 * The first part: every example payload of real webhook deliveries as a job, some thousands with repetition, by priority
 * of their event, some delayed; sixteen workers in a second process. At the end every job was done exactly once or is a
 * dead letter, and every payload came back byte for byte.
 */

import { join } from "node:path";
import webhooks from "@octokit/webhooks-examples";
import { ask, type DemoServer, percentile } from "./server.ts";

/** Events people wait for go first. */
const PRIORITIES: ReadonlyMap<string, number> = new Map([
  ["security_advisory", 9],
  ["push", 5],
  ["pull_request", 5],
  ["issues", 3],
]);
const LEASE_MS = 1_000;

export interface WebhookReport {
  readonly jobs: number;
  readonly done: number;
  readonly dead: number;
  readonly failed: number;
  readonly died: number;
  /** Acks that came after another worker had the job. */
  readonly late: number;
  readonly doneTwice: number;
  readonly changedPayloads: number;
  readonly lost: number;
  readonly seconds: number;
  readonly claimMs: { readonly p50: number; readonly p99: number };
  readonly jobMs: { readonly p50: number; readonly p99: number };
}

interface Line {
  readonly kind: "claimed" | "done" | "failed" | "died" | "late";
  readonly number?: number;
  readonly hash?: string;
  readonly ms?: number;
  readonly atMs?: number;
}

/** @param progress told how many jobs are done or dead, of how many */
export async function runWebhooks(
  server: DemoServer,
  jobs: number,
  seed: number,
  progress: (ended: number, of: number) => void,
): Promise<WebhookReport> {
  const { url } = server;
  await ask(
    url,
    `create collection deliveries (number int, event text, payload json, priority int @sorted,
      run_at timestamp @sorted, owner text, attempts int, error text)`,
  );
  const examples = webhooks.flatMap(({ name, examples }) =>
    examples.map((example) => ({ name, text: JSON.stringify(example) })),
  );
  const hashes: string[] = [];
  const readyMs: number[] = [];
  const startMs = performance.now();
  let documents: string[] = [];
  for (let number = 1; number <= jobs; number++) {
    const { name, text } = examples[(number - 1) % examples.length] as { name: string; text: string };
    // One in ten is due a little later.
    const delayMs = number % 10 === 0 ? (number * 37) % 900 : 0;
    const runAt = Date.now() + delayMs;
    hashes[number] = new Bun.CryptoHasher("sha256").update(text).digest("hex");
    readyMs[number] = runAt;
    documents.push(
      `{"number":${number},"event":${JSON.stringify(name)},"payload":${text},"priority":${PRIORITIES.get(name) ?? 1},"run_at":${runAt},"attempts":0}`,
    );
    if (documents.length === 100 || number === jobs) {
      await ask(url, "put deliveries $1", `[[${documents.join(",")}]]`);
      documents = [];
    }
  }

  const workers = Bun.spawn(
    [process.execPath, join(import.meta.dir, "workers.ts"), url, String(LEASE_MS), String(seed)],
    { stdin: "pipe", stdout: "pipe", stderr: "inherit" },
  );
  const done = new Map<number, number>();
  const counts = { failed: 0, died: 0, late: 0 };
  const claimTimes: number[] = [];
  const jobTimes: number[] = [];
  let changedPayloads = 0;
  const take = (line: Line): void => {
    if (line.kind === "claimed") claimTimes.push(line.ms ?? 0);
    else if (line.kind === "done") {
      const number = line.number ?? 0;
      done.set(number, (done.get(number) ?? 0) + 1);
      if (line.hash !== hashes[number]) changedPayloads++;
      jobTimes.push((line.atMs ?? 0) - (readyMs[number] ?? 0));
    } else counts[line.kind]++;
  };
  const reading = readLines(workers.stdout, (text) => take(JSON.parse(text) as Line));

  let dead = 0;
  for (;;) {
    dead = countIn(await ask(url, "get deliveries where run_at is null count"));
    const left = countIn(await ask(url, "get deliveries where run_at is not null count"));
    progress(jobs - left, jobs);
    if (left === 0) break;
    await Bun.sleep(100);
  }
  workers.stdin.end();
  await reading;
  await workers.exited;

  const rest = JSON.parse(await ask(url, "get deliveries select number where run_at is null")) as { number: number }[];
  const ended = new Set([...done.keys(), ...rest.map((row) => row.number)]);
  let doneTwice = 0;
  for (const [number, times] of done) if (times > 1 || rest.some((row) => row.number === number)) doneTwice++;
  claimTimes.sort((a, b) => a - b);
  jobTimes.sort((a, b) => a - b);
  return {
    jobs,
    done: done.size,
    dead,
    ...counts,
    doneTwice,
    changedPayloads,
    lost: jobs - ended.size,
    seconds: (performance.now() - startMs) / 1_000,
    claimMs: { p50: percentile(claimTimes, 0.5), p99: percentile(claimTimes, 0.99) },
    jobMs: { p50: percentile(jobTimes, 0.5), p99: percentile(jobTimes, 0.99) },
  };
}

function countIn(answer: string): number {
  return (JSON.parse(answer) as [{ count: number }])[0].count;
}

async function readLines(stream: ReadableStream<Uint8Array>, take: (line: string) => void): Promise<void> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of stream) {
    text += decoder.decode(bytes, { stream: true });
    const lines = text.split("\n");
    text = lines.pop() ?? "";
    for (const line of lines) if (line !== "") take(line);
  }
}
