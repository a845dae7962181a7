/**
 * The load generator: clients that drain a queue over HTTP, each claiming a page of jobs and acking it, until nothing is
 * left. It counts every job handed out and every job acked, and fails when one was not, or was twice.
 *
 * Run as a program it is the other process of a benchmark: `bun bench/load.ts '<DrainOptions as json>'` prints a
 * `DrainResult` as json.
 */

import { LoadConnection } from "./load_connection.ts";

export interface DrainOptions {
  readonly port: number;
  readonly clients: number;
  /** Jobs a claim takes at most. */
  readonly page: number;
  /** Jobs there are, with ids from `firstId`. */
  readonly jobs: number;
  readonly firstId: number;
  /**
   * `claim`: one statement takes a page and answers it. `read-set-read`: what a client does without `returning`: read a
   * page, set what of it is still ready, read back what it won.
   */
  readonly take: "claim" | "read-set-read";
  /** `batch`: a `/batch` of one `del ... require 1` a job. `list`: one `del ... where id in [...] require n`. */
  readonly ack: "batch" | "list";
}

/** A collection for the jobs, as the pages of the docs declare it. */
export const CREATE = "create collection jobs (payload json, run_at timestamp @sorted, owner text, attempts int)";
const FILL_PAGE = 1_000;

/** About 40 bytes of json. */
export function payloadOf(job: number): string {
  return `{"to":"user${String(job).padStart(7, "0")}@example.com","n":1}`;
}

/** Puts jobs that are ready, a thousand a statement. */
export async function fill(connection: LoadConnection, jobs: number): Promise<void> {
  for (let from = 0; from < jobs; from += FILL_PAGE) {
    const runAt = Date.now() - 1_000;
    const rows: string[] = [];
    for (let job = from; job < Math.min(jobs, from + FILL_PAGE); job++) {
      rows.push(`{"payload":${payloadOf(job)},"run_at":${runAt},"attempts":0}`);
    }
    const { status, body } = await connection.ask("/query", queryText("put jobs $1", `[${rows.join(",")}]`));
    if (status !== 200) throw new Error(`a put was answered ${status} ${body}`);
  }
}

export interface DrainResult {
  readonly seconds: number;
  readonly jobs: number;
  readonly requests: number;
  /** Jobs read that another client's set had taken: only of `read-set-read`. */
  readonly lost: number;
  readonly read: number;
  /** Of this process: what the clients cost. */
  readonly cpuSeconds: number;
  readonly takeMs: Percentiles;
  readonly ackMs: Percentiles;
}

export interface Percentiles {
  readonly p50: number;
  readonly p99: number;
}

export const CLAIM =
  "set jobs {owner: $1, run_at: now() + 30000, attempts: attempts + 1} where run_at <= now() order run_at limit $2 returning id, payload";
export const READ_PAGE = "get jobs select id, payload where run_at <= now() order run_at limit $1";
export const ACK = "del jobs where id = $1 and owner = $2 require 1";

/** Statements over some ids, the first of them `$2`; `$1` is the owner. */
export const takePage = statementsOf(
  (ids) =>
    `set jobs {owner: $1, run_at: now() + 30000, attempts: attempts + 1} where id in [${ids}] and run_at <= now()`,
);
export const readBack = statementsOf((ids) => `get jobs select id where id in [${ids}] and owner = $1`);
export const ackList = statementsOf((ids, count) => `del jobs where id in [${ids}] and owner = $1 require ${count}`);

/** A text for each number of ids, each made once. */
function statementsOf(text: (ids: string, count: number) => string): (count: number) => string {
  const texts: string[] = [];
  return (count) => {
    texts[count] ??= text(Array.from({ length: count }, (_, at) => `$${at + 2}`).join(", "), count);
    return texts[count];
  };
}

/** What every client of one drain counts together. */
class Ledger {
  readonly #firstId: number;
  readonly #taken: Uint8Array;
  readonly #acked: Uint8Array;
  requests = 0;
  read = 0;
  lost = 0;
  readonly takeMs: number[] = [];
  readonly ackMs: number[] = [];

  constructor(firstId: number, jobs: number) {
    this.#firstId = firstId;
    this.#taken = new Uint8Array(jobs);
    this.#acked = new Uint8Array(jobs);
  }

  take(ids: readonly number[]): void {
    for (const id of ids) this.#count(this.#taken, id, "handed out");
  }

  ack(ids: readonly number[]): void {
    for (const id of ids) this.#count(this.#acked, id, "acked");
  }

  check(): void {
    const missing = this.#taken.indexOf(0);
    if (missing >= 0) throw new Error(`job ${missing + this.#firstId} was never handed out`);
    const unacked = this.#acked.indexOf(0);
    if (unacked >= 0) throw new Error(`job ${unacked + this.#firstId} was never acked`);
  }

  #count(counts: Uint8Array, id: number, what: string): void {
    const at = id - this.#firstId;
    if (counts[at] !== 0)
      throw new Error(`job ${id} was ${what} ${counts[at] === undefined ? "from nowhere" : "twice"}`);
    counts[at] = 1;
  }
}

/** One worker: takes a page, acks it, until there is none. */
class Client {
  readonly #connection: LoadConnection;
  readonly #options: DrainOptions;
  readonly #ledger: Ledger;
  readonly #name: string;
  readonly #done: (error: Error | null) => void;
  #claims = 0;
  #owner = "";
  #startedMs = 0;

  constructor(
    connection: LoadConnection,
    options: DrainOptions,
    ledger: Ledger,
    name: string,
    done: (error: Error | null) => void,
  ) {
    this.#connection = connection;
    this.#options = options;
    this.#ledger = ledger;
    this.#name = name;
    this.#done = done;
  }

  start(): void {
    this.#owner = `${this.#name}:${++this.#claims}`;
    this.#startedMs = performance.now();
    const { take, page } = this.#options;
    if (take === "claim") {
      this.#ask("/query", queryText(CLAIM, `"${this.#owner}",${page}`), (body) => {
        const ids = idsIn(body);
        this.#took(ids, ids.length);
      });
    } else this.#readSetRead(page);
  }

  #readSetRead(page: number): void {
    this.#ask("/query", queryText(READ_PAGE, String(page)), (readBody) => {
      const ids = idsIn(readBody);
      if (ids.length === 0) {
        this.#took(ids, 0);
        return;
      }
      const params = `"${this.#owner}",${ids.join(",")}`;
      this.#ask("/query", queryText(takePage(ids.length), params), () => {
        this.#ask("/query", queryText(readBack(ids.length), params), (wonBody) =>
          this.#took(idsIn(wonBody), ids.length),
        );
      });
    });
  }

  #took(ids: readonly number[], read: number): void {
    const ledger = this.#ledger;
    ledger.read += read;
    ledger.lost += read - ids.length;
    if (read === 0) {
      this.#done(null);
      return;
    }
    ledger.takeMs.push(performance.now() - this.#startedMs);
    ledger.take(ids);
    if (ids.length === 0) this.start();
    else this.#ack(ids);
  }

  #ack(ids: readonly number[]): void {
    this.#startedMs = performance.now();
    const owner = this.#owner;
    const acked = (body: string, expected: string): void => {
      if (body !== expected) throw new Error(`an ack was answered ${body}`);
      this.#ledger.ackMs.push(performance.now() - this.#startedMs);
      this.#ledger.ack(ids);
      this.start();
    };
    if (this.#options.ack === "list") {
      const body = queryText(ackList(ids.length), `"${owner}",${ids.join(",")}`);
      this.#ask("/query", body, (answer) => acked(answer, `{"affected":${ids.length}}`));
      return;
    }
    let lines = "";
    for (const id of ids) lines += `${queryText(ACK, `${id},"${owner}"`)}\n`;
    this.#ask("/batch", lines, (answer) => acked(answer, batchAnswer(ids.length)));
  }

  #ask(path: string, body: string, onBody: (body: string) => void): void {
    this.#ledger.requests++;
    this.#connection.post(path, body, (status, answer) => {
      try {
        if (status !== 200) throw new Error(`${path} was answered ${status} ${answer}`);
        onBody(answer);
      } catch (error) {
        this.#done(error as Error);
      }
    });
  }
}

function queryText(statement: string, params: string): string {
  return `{"query":"${statement}","params":[${params}]}`;
}

const batchAnswers: string[] = [];

function batchAnswer(lines: number): string {
  batchAnswers[lines] ??= `{"ok":${lines},"results":[${new Array(lines).fill('{"affected":1}').join(",")}]}`;
  return batchAnswers[lines];
}

/** The ids of an answer's rows, each of which begins with its id. */
function idsIn(body: string): number[] {
  const ids: number[] = [];
  for (let at = body.indexOf('{"id":'); at >= 0; at = body.indexOf('{"id":', at + 1)) {
    let id = 0;
    for (let digit = at + 6; ; digit++) {
      const code = body.charCodeAt(digit) - 48;
      if (code < 0 || code > 9) break;
      id = id * 10 + code;
    }
    ids.push(id);
  }
  return ids;
}

export async function drain(options: DrainOptions): Promise<DrainResult> {
  const ledger = new Ledger(options.firstId, options.jobs);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let running = options.clients;
  const done = (error: Error | null): void => {
    if (error !== null) reject(error);
    else if (--running === 0) resolve();
  };
  const connections: LoadConnection[] = [];
  for (let at = 0; at < options.clients; at++) connections.push(await LoadConnection.open(options.port, reject));
  const clients = connections.map((each, at) => new Client(each, options, ledger, `w${at}`, done));
  const cpuBefore = process.cpuUsage();
  const startedMs = performance.now();
  for (const client of clients) client.start();
  await promise;
  const seconds = (performance.now() - startedMs) / 1_000;
  const cpu = process.cpuUsage(cpuBefore);
  for (const connection of connections) connection.close();
  ledger.check();
  return {
    seconds,
    jobs: options.jobs,
    requests: ledger.requests,
    lost: ledger.lost,
    read: ledger.read,
    cpuSeconds: (cpu.user + cpu.system) / 1e6,
    takeMs: percentiles(ledger.takeMs),
    ackMs: percentiles(ledger.ackMs),
  };
}

/** Sorts the list it is given. */
export function percentiles(list: number[]): Percentiles {
  list.sort((a, b) => a - b);
  const at = (share: number): number => list[Math.min(list.length - 1, Math.floor(list.length * share))] ?? 0;
  return { p50: at(0.5), p99: at(0.99) };
}

/** Runs a drain in a process of its own. */
export async function drainElsewhere(options: DrainOptions): Promise<DrainResult> {
  const child = Bun.spawn([process.execPath, import.meta.path, JSON.stringify(options)], {
    stdout: "pipe",
    stderr: "inherit",
  });
  const text = await new Response(child.stdout).text();
  if ((await child.exited) !== 0) throw new Error("the load generator failed");
  return JSON.parse(text) as DrainResult;
}

if (import.meta.main) {
  const result = await drain(JSON.parse(process.argv[2] ?? "{}") as DrainOptions);
  process.stdout.write(`${JSON.stringify(result)}\n`);
}
