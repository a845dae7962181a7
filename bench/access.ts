/**
 * What a token's rules and an idempotency key cost, in process and over HTTP: `bun run bench:access`, and with
 * `FENEC_BENCH_ROUNDS=10` before it a quick look.
 *
 * Two ways are taken in turns, a small batch of each, so that what else the machine does falls on both alike. Shown are
 * microseconds of CPU of all threads a run: of this process, or over HTTP of the server. Of each way it is the middle of its
 * batches, and "more" the middle of the differences between neighbours; a batch that a collection of garbage fell into
 * counts as any other, so few of them are left out: the cheapest and the dearest quarter.
 *
 * - A claim by a token under a policy, against the same claim by the server's token with the filter written out.
 * - A write under a key of its own, against the same write without one.
 */

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { SignJWT } from "jose";
import { Gate } from "../src/auth/gate.ts";
import { Keys } from "../src/auth/keys.ts";
import { parsePolicy } from "../src/auth/policy.ts";
import { Tokens } from "../src/auth/tokens.ts";
import { TestClock } from "../src/clock/clock.ts";
import { Engine } from "../src/engine/engine.ts";
import { KeptAnswers } from "../src/engine/idempotency.ts";
import type { Journal } from "../src/engine/journal.ts";
import { MemoryJournal } from "../src/engine/journal.ts";
import { openStore } from "../src/engine/recovery.ts";
import { contextOf } from "../src/http/request_headers.ts";
import { fileDisk } from "../src/log/disk.ts";
import { FUNCTION_NAMES } from "../src/plan/functions.ts";
import { Store } from "../src/store/store.ts";
import { Json } from "../src/value/value.ts";
import { startServer } from "./child_server.ts";
import { LoadConnection } from "./load_connection.ts";

const ROUNDS = Number(process.env["FENEC_BENCH_ROUNDS"] ?? 200);
const JOBS = 20_000;
const START_MS = Date.now();
const SECRET = "a secret of more than thirty-two bytes";
const POLICY = `
jobs read                             where queue = $jwt.queue
jobs update(owner, run_at, attempts)  where queue = $jwt.queue and run_at <= now() and new.owner = $jwt.sub and new.attempts = attempts + 1  for worker
`;
const CREATE = "create collection jobs (queue text, payload json, run_at timestamp @sorted, owner text, attempts int)";
/** A claimed job comes last among those that are ready, so each claim finds as many. */
const claim = (filter: string, page: number): string =>
  `set jobs {owner: $1, run_at: now(), attempts: attempts + 1} where ${filter}run_at <= now() order run_at limit ${page} returning id, payload`;
const PUT = "put jobs {queue: $1, payload: $2, run_at: $3, attempts: 0}";

/** Makes ready to do it so many times, and answers what does; that alone is measured. */
type Way = (times: number) => () => unknown;

interface Compared {
  readonly plain: number;
  readonly dearer: number;
  readonly more: number;
}

/** Microseconds of CPU of one run. */
async function compare(plain: Way, dearer: Way, batch: number, cpu: () => number): Promise<Compared> {
  const took = async (way: Way): Promise<number> => {
    const run = way(batch);
    const from = cpu();
    const done = run();
    if (done instanceof Promise) await done;
    return (cpu() - from) / batch;
  };
  const pairs: (readonly [number, number])[] = [];
  for (let round = -ROUNDS / 10; round < ROUNDS; round++) {
    // Whoever comes first has the caches that the other left.
    const swapped = round % 2 === 0;
    const first = await took(swapped ? dearer : plain);
    const second = await took(swapped ? plain : dearer);
    if (round >= 0) pairs.push(swapped ? [second, first] : [first, second]);
  }
  return {
    plain: middle(pairs.map(([one]) => one)),
    dearer: middle(pairs.map(([, other]) => other)),
    more: middle(pairs.map(([one, other]) => other - one)),
  };
}

/** The mean without the least and the greatest quarter. */
function middle(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  const part = sorted.slice(Math.floor(sorted.length / 4), Math.ceil((sorted.length * 3) / 4));
  return part.reduce((sum, number) => sum + number, 0) / part.length;
}

/** Of all threads of a process: finer than the ticks of its stat. */
function cpuMicroseconds(pid: number): number {
  let nanoseconds = 0;
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    nanoseconds += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[0]);
  }
  return nanoseconds / 1_000;
}

function ownCpu(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

function documents(count: number): string {
  const list = Array.from({ length: count }, (_, n) => {
    return `{"queue":"mail","payload":{"to":"user${n}@example.com","n":${n}},"run_at":${START_MS - JOBS + n},"attempts":0}`;
  });
  return `[${list.join(",")}]`;
}

function say(what: string, { plain, dearer, more }: Compared, goal: string, met: boolean): void {
  const share = `${more < 0 ? "" : "+"}${((more / plain) * 100).toFixed(0)} %`;
  const numbers = [plain, dearer, more].map((us) => us.toFixed(2).padStart(9)).join("");
  process.stdout.write(`${what.padEnd(50)}${numbers}  ${share.padStart(6)}  ${goal}${met ? "" : "  MISSED"}\n`);
}

function sayClaim(what: string, took: Compared): void {
  say(what, took, "at most 10 us more", took.more <= 10);
}

function sayWrite(what: string, took: Compared): void {
  say(what, took, "at most 25 % more", took.more <= took.plain * 0.25);
}

async function bearer(): Promise<string> {
  const claims = { sub: "w1", role: "worker", queue: "mail", exp: Math.floor(Date.now() / 1_000) + 3_600 };
  return new SignJWT(claims).setProtectedHeader({ alg: "HS256" }).sign(new TextEncoder().encode(SECRET));
}

function engineOver(store: Store, journal: Journal, clock: TestClock, seq: number): Engine {
  return new Engine({
    store,
    journal,
    clock,
    seq,
    readOnly: false,
    maxMemoryBytes: Number.POSITIVE_INFINITY,
    answers: new KeptAnswers(3_600_000),
    compact: () => {},
  });
}

function ask(authorization: string, key: string | null): Request {
  const headers: Record<string, string> = { authorization: `Bearer ${authorization}` };
  if (key !== null) headers["idempotency-key"] = key;
  return new Request("http://127.0.0.1/query", { method: "POST", headers });
}

/** A claim, from the request's headers to the answer's text. */
async function claimsInProcess(): Promise<void> {
  const clock = new TestClock(START_MS);
  const tokens = new Tokens(Keys.fromSecret(SECRET), parsePolicy(POLICY, FUNCTION_NAMES), {
    requireExp: true,
    maxAgeSeconds: null,
  });
  const gate = new Gate({
    token: "root",
    tokens,
    delayMs: 0,
    now: () => clock.now(),
    addressOf: () => "",
    readOnly: false,
    cors: null,
  });
  const token = await bearer();
  const full = ask("root", null);
  const scoped = ask(token, null);
  await gate.authorize(scoped);
  for (const page of [1, 10]) {
    const engine = engineOver(new Store(), new MemoryJournal(), clock, 0);
    const open = contextOf(full, { kind: "open", scope: null }, "");
    engine.query(CREATE, [], open);
    engine.query("put jobs $1", [new Json(documents(JOBS))], open);
    const written = claim("queue = $2 and ", page);
    const ruled = claim("", page);
    const run = (request: Request, text: string, params: readonly string[]): unknown => {
      const who = gate.authorize(request);
      if (who instanceof Promise) throw new Error("the token is not remembered");
      return engine.query(text, params, contextOf(request, who, "")).body;
    };
    const times =
      (request: Request, text: string, params: readonly string[]): Way =>
      (count) =>
      () => {
        for (let n = 0; n < count; n++) run(request, text, params);
      };
    const took = await compare(times(full, written, ["w1", "mail"]), times(scoped, ruled, ["w1"]), 200, ownCpu);
    sayClaim(`claim of ${page}, in process`, took);
  }
}

/** A put of one job by the engine: its key is looked for, and kept with its answer. */
async function writesInProcess(): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "fenec-bench-"));
  try {
    for (const kept of ["a log, synced at the end", "memory alone"]) {
      const clock = new TestClock(START_MS);
      const opened = kept === "memory alone" ? null : await openStore(fileDisk(directory), { sync: "off" });
      const engine = engineOver(opened?.store ?? new Store(), opened?.log ?? new MemoryJournal(), clock, 0);
      engine.query(CREATE, [], { scope: null, idempotencyKey: null, requestHash: "" });
      const payload = new Json('{"to":"user@example.com","n":1}');
      let keys = 0;
      const writes =
        (keyed: boolean): Way =>
        (count) => {
          const contexts = Array.from({ length: count }, () => {
            const n = keys++;
            return keyed
              ? { scope: null, idempotencyKey: `a-worker-request-${n}`, requestHash: "0123456789abcdefghijklmn" }
              : { scope: null, idempotencyKey: null, requestHash: "" };
          });
          return () => {
            for (const context of contexts) engine.query(PUT, ["mail", payload, START_MS], context);
          };
        };
      sayWrite(`put of one, in process, ${kept}`, await compare(writes(false), writes(true), 500, ownCpu));
      await opened?.log.close();
    }
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function overHttp(): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "fenec-bench-"));
  const secretFile = join(directory, "secret");
  const policyFile = join(directory, "policy");
  writeFileSync(secretFile, SECRET);
  writeFileSync(policyFile, POLICY);
  // The disk's own work is the same for both, and would only blur what differs.
  const server = await startServer({
    sync: "off",
    args: ["--token", "root", "--jwt-secret-file", secretFile, "--policy", policyFile],
  });
  try {
    const connection = await LoadConnection.open(server.port, (why) => {
      throw why;
    });
    const root = "Authorization: Bearer root\r\n";
    const scoped = `Authorization: Bearer ${await bearer()}\r\n`;
    const send = (query: string, params: unknown, headers: string): Promise<void> =>
      new Promise((resolve, reject) => {
        const list = typeof params === "string" ? params : JSON.stringify(params);
        connection.post(
          "/query",
          `{"query":${JSON.stringify(query)},"params":${list}}`,
          (status, answer) => (status === 200 ? resolve() : reject(new Error(`${status} ${answer}`))),
          headers,
        );
      });
    await send(CREATE, [], root);
    await send("put jobs $1", `[${documents(JOBS)}]`, root);
    const cpu = (): number => cpuMicroseconds(server.pid);
    const claims =
      (text: string, params: readonly string[], headers: string): Way =>
      (count) =>
      async () => {
        for (let n = 0; n < count; n++) await send(text, params, headers);
      };
    sayClaim(
      "claim of 10, over HTTP",
      await compare(
        claims(claim("queue = $2 and ", 10), ["w1", "mail"], root),
        claims(claim("", 10), ["w1"], scoped),
        100,
        cpu,
      ),
    );
    let keys = 0;
    const puts =
      (keyed: boolean): Way =>
      (count) =>
      async () => {
        const job = ["mail", { to: "user@example.com", n: 1 }, START_MS];
        for (let n = 0; n < count; n++) {
          await send(PUT, job, keyed ? `${root}Idempotency-Key: a-worker-request-${keys++}\r\n` : root);
        }
      };
    sayWrite("put of one, over HTTP", await compare(puts(false), puts(true), 100, cpu));
    connection.close();
  } finally {
    await server.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

process.stdout.write(`${cpus()[0]?.model ?? "?"}, ${cpus().length} cores, Bun ${Bun.version}\n`);
process.stdout.write(`${"us of CPU".padEnd(50)}${"without".padStart(9)}${"with".padStart(9)}${"more".padStart(9)}\n`);
await claimsInProcess();
await writesInProcess();
await overHttp();
