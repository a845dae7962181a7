/**
 * A server as a child process on a port of its own, as a user runs it: started by its flags, known to be ready by its
 * start line, ended by its process id.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Digits, type Exact, isList, isMembers, readExact, writeExact } from "./exact_json.ts";
import { type Answer, ask, Exchange, type Request } from "./wire.ts";

export const PROJECT = join(import.meta.dir, "..", "..");

/** For tests that start servers (`setDefaultTimeout`): a busy machine makes a start a matter of seconds. */
export const PATIENCE_MS = 60_000;

/** Longer than any start seen, also on a busy machine; a server that has not answered by then is taken for broken. */
const START_MS = 20_000;

export interface StartOptions {
  /** Command-line words besides `--listen`. */
  readonly flags?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

type Child = Bun.Subprocess<"ignore", "pipe", "pipe">;

function spawn(options: StartOptions): Child {
  const flags = options.flags ?? [];
  return Bun.spawn([process.execPath, join(PROJECT, "src", "server.ts"), "--listen", "127.0.0.1:0", ...flags], {
    cwd: PROJECT,
    env: { ...process.env, ...options.env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
}

/** Started, expected to refuse: its exit status and what it said. Killed, and its status null, when it did start. */
export async function startRefused(options: StartOptions): Promise<{ status: number | null; words: string }> {
  const child = spawn(options);
  const words = new Response(child.stderr).text();
  const firstLine = readLine(child.stdout);
  const started = await Promise.race([firstLine.then((line) => line !== undefined), child.exited.then(() => false)]);
  if (started) child.kill("SIGKILL");
  const status = await child.exited;
  return { status: started ? null : status, words: await words };
}

async function readLine(stream: ReadableStream<Uint8Array>): Promise<string | undefined> {
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  let text = "";
  while (!text.includes("\n")) {
    const { done, value } = await reader.read();
    if (done) return undefined;
    text += decoder.decode(value, { stream: true });
  }
  // Whatever follows is read and left, so that the child never waits for a full pipe.
  void (async () => {
    while (!(await reader.read()).done);
  })().catch(() => undefined);
  return text.slice(0, text.indexOf("\n"));
}

export class Server {
  readonly port: number;
  readonly startLine: string;
  readonly #child: Child;
  readonly #log: Promise<string>;

  private constructor(child: Child, startLine: string, log: Promise<string>) {
    this.#child = child;
    this.startLine = startLine;
    this.port = Number(/http:\/\/127\.0\.0\.1:(\d+)/.exec(startLine)?.[1]);
    this.#log = log;
  }

  static async start(options: StartOptions = {}): Promise<Server> {
    const child = spawn(options);
    const log = new Response(child.stderr).text();
    const late = setTimeout(() => child.kill("SIGKILL"), START_MS);
    const line = await readLine(child.stdout);
    clearTimeout(late);
    if (line === undefined) {
      const status = await child.exited;
      throw new Error(`the server did not start (status ${status}): ${await log}`);
    }
    const server = new Server(child, line, log);
    if (!(server.port > 0)) {
      await server.kill();
      throw new Error(`no port in the start line: ${line}`);
    }
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get pid(): number {
    return this.#child.pid;
  }

  /** Asks it to end (SIGTERM) and answers its exit status. */
  async stop(): Promise<number> {
    this.#child.kill("SIGTERM");
    return await this.#child.exited;
  }

  /** Ends it as a crash does (SIGKILL). */
  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#child.exited;
  }

  /** What it wrote to its log; whole only once it has ended. */
  log(): Promise<string> {
    return this.#log;
  }

  ask(request: Request): Promise<Answer> {
    return ask(this.port, request);
  }

  open(request: Request): Exchange {
    return new Exchange(this.port, request);
  }

  /** `POST /query`, whatever it answers. `params` may be json text, for values a double cannot carry. */
  query(text: string, params: readonly unknown[] | string = [], headers: Record<string, string> = {}): Promise<Answer> {
    return this.ask(queryRequest(text, params, headers));
  }

  /** `POST /query` on a connection that is not waited for. */
  hold(text: string, params: readonly unknown[] | string, waitMs: number): Exchange {
    return this.open(queryRequest(text, params, { "Fenec-Wait": String(waitMs) }));
  }

  /** `POST /query` that must be answered 200: its body. */
  async run(text: string, params: readonly unknown[] | string = []): Promise<Exact> {
    const answer = await this.query(text, params);
    if (answer.status !== 200) throw new Error(`${text}: ${answer.status} ${answer.body}`);
    return readExact(answer.body);
  }

  /** Moves the test clock on, and comes back when everything that came due has run. */
  async advance(ms: number): Promise<void> {
    await this.#clock({ advance_ms: ms });
  }

  /** Sets the test clock to an ISO time. */
  async setClock(iso: string): Promise<void> {
    await this.#clock({ set: iso });
  }

  async #clock(body: Record<string, unknown>): Promise<void> {
    const answer = await this.ask({ method: "POST", path: "/_clock", body: JSON.stringify(body) });
    if (answer.status !== 200) throw new Error(`/_clock: ${answer.status} ${answer.body}`);
  }

  /** The test clock, epoch milliseconds. */
  async now(): Promise<number> {
    const answer = readExact((await this.ask({ path: "/_clock" })).body);
    const now = isMembers(answer) ? answer.get("now") : undefined;
    if (!(now instanceof Digits)) throw new Error(`/_clock: ${writeExact(answer)}`);
    return Number(now.text);
  }

  /** The value of a metric without labels, or with exactly these (`{collection="jobs"}`); undefined when it is absent. */
  async metric(name: string, labels = ""): Promise<number | undefined> {
    const { body } = await this.ask({ path: "/_metrics" });
    const line = body.split("\n").find((candidate) => candidate.startsWith(`${name}${labels} `));
    return line === undefined ? undefined : Number(line.slice(line.lastIndexOf(" ")));
  }

  /** Takes every collection away. */
  async dropAll(): Promise<void> {
    const listed = readExact((await this.ask({ path: "/" })).body);
    const names = isMembers(listed) ? listed.get("collections") : undefined;
    if (!isList(names)) throw new Error(`GET /: ${writeExact(listed)}`);
    for (const name of names) await this.run(`drop collection ${String(name)}`);
  }
}

function queryRequest(text: string, params: readonly unknown[] | string, headers: Record<string, string>): Request {
  const list = typeof params === "string" ? params : JSON.stringify(params);
  return { method: "POST", path: "/query", headers, body: `{"query":${JSON.stringify(text)},"params":${list}}` };
}

/** Where a test gets a server, and gives it back: `well` says whether it may still be trusted. */
export interface Pool {
  take(): Promise<Server>;
  giveBack(server: Server, well: boolean): Promise<void>;
  close(): Promise<void>;
}

/** Servers started ahead of the test that will want one, each used once: a start overlaps with the test before it. */
export class Spares implements Pool {
  readonly #options: StartOptions;
  #next: Promise<Server> | undefined;

  constructor(options: StartOptions) {
    this.#options = options;
  }

  async take(): Promise<Server> {
    const server = await (this.#next ?? Server.start(this.#options));
    this.#next = Server.start(this.#options);
    this.#next.catch(() => undefined);
    return server;
  }

  giveBack(server: Server): Promise<void> {
    return server.kill();
  }

  async close(): Promise<void> {
    const spare = await this.#next?.catch(() => undefined);
    this.#next = undefined;
    await spare?.kill();
  }
}

/** One server for test after test, its collections dropped between them; another one after a test that failed. */
export class Shared implements Pool {
  readonly #options: StartOptions;
  #server: Server | undefined;

  constructor(options: StartOptions) {
    this.#options = options;
  }

  async take(): Promise<Server> {
    this.#server ??= await Server.start(this.#options);
    return this.#server;
  }

  async giveBack(server: Server, well: boolean): Promise<void> {
    if (well) return await server.dropAll();
    this.#server = undefined;
    await server.kill();
  }

  async close(): Promise<void> {
    await this.#server?.kill();
    this.#server = undefined;
  }
}

/** A directory that is gone again when the test has ended. */
export class Scratch {
  readonly path: string;

  constructor() {
    this.path = mkdtempSync(join(tmpdir(), "fenec-"));
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}
