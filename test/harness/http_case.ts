/** Runs one case of test/cases/http.jsonl (its form: test/cases/README.md) against servers of its own. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  listOf,
  type Members,
  membersOf,
  numberOf,
  optionalMembers,
  optionalText,
  textOf,
  textsOf,
} from "./case_file.ts";
import { EventStream } from "./event_stream.ts";
import { Digits, difference, type Exact, isList, isMembers, readExact, writeExact } from "./exact_json.ts";
import { stepsOf } from "./language_case.ts";
import { type Pool, Scratch, Server, startRefused } from "./server.ts";
import { signToken } from "./token.ts";
import type { Answer, Exchange, Request } from "./wire.ts";

/** The next event of a stream comes within this. */
const EVENT_MS = 3_000;
/** A held request that a step waits for is answered within this: the longest wait there is and some. */
const AWAIT_MS = 35_000;
const HOUR_S = 3_600;
/** A second is young until then. */
const YOUNG_MS = 100;
const NONE: Members = new Map();

/** Whether a server that ran other cases will do: keys of requests outlive the collections they wrote to. */
export function canShare(one: Members): boolean {
  return !one.has("server") && !writeExact(one).includes("Idempotency-Key");
}

/** Throws with the step and what was answered where the case does not hold. `pool` has open servers in memory. */
export async function runHttpCase(one: Members, pool: Pool): Promise<void> {
  using scratch = new Scratch();
  const run = new HttpCase(one, scratch.path, pool);
  if (one.get("start_fails") === true) {
    const { status, words } = await startRefused({ flags: run.flags(run.settings) });
    if (status === null) throw new Error("the server started, and was to refuse");
    if (status === 0) throw new Error(`the server ended with status 0: ${words}`);
    await run.provePolicy();
    return;
  }
  let well = false;
  try {
    await run.begin();
    for (const [index, step] of stepsOf(one).entries()) {
      try {
        await run.step(step);
      } catch (error) {
        const words = error instanceof Error ? error.message : String(error);
        throw new Error(`step ${index}, ${writeExact(step).slice(0, 600)}\n  ${words}`);
      }
    }
    well = true;
  } finally {
    await run.end(well);
  }
}

class HttpCase {
  readonly settings: Members;
  readonly #case: Members;
  readonly #directory: string;
  readonly #pool: Pool;
  readonly #values = new Map<string, string>();
  readonly #sentAt = new Map<string, number>();
  readonly #held = new Map<string, Exchange>();
  readonly #streams = new Map<string, EventStream>();
  #primary: Server | undefined;
  #replica: Server | undefined;

  constructor(one: Members, directory: string, pool: Pool) {
    this.#pool = pool;
    this.#case = one;
    this.#directory = directory;
    this.#values.set("tmp", directory);
    this.settings = optionalMembers(one, "server") ?? NONE;
  }

  async begin(): Promise<void> {
    if (this.#case.has("setup_offline")) await this.#setUpOffline();
    const own = this.settings.size > 0;
    this.#primary = own ? await Server.start({ flags: this.flags(this.settings) }) : await this.#pool.take();
    this.#values.set("primary", this.#primary.url);
    const replica = optionalMembers(this.settings, "replica");
    if (replica !== undefined) this.#replica = await Server.start({ flags: this.flags(replica) });
    await setUp(this.#primary, textsOf(this.#case, "setup"), this.#bearer("root"));
  }

  async end(well: boolean): Promise<void> {
    for (const stream of this.#streams.values()) stream.close();
    for (const exchange of this.#held.values()) exchange.drop();
    await this.#replica?.kill();
    if (this.#primary === undefined) return;
    if (this.settings.size > 0) await this.#primary.kill();
    else await this.#pool.giveBack(this.#primary, well);
  }

  /** The command line for a server of the case. */
  flags(settings: Members): string[] {
    const flags = textsOf(settings, "flags").map((word) => this.#fill(word));
    if (!flags.includes("--data")) flags.push("--in-memory");
    const token = optionalText(settings, "token");
    if (token !== undefined) flags.push("--token", token);
    for (const [setting, flag] of [
      ["secret", "--jwt-secret-file"],
      ["policy", "--policy"],
    ] as const) {
      const text = optionalText(settings, setting);
      if (text === undefined) continue;
      const file = join(this.#directory, setting);
      writeFileSync(file, text);
      flags.push(flag, file);
    }
    return flags;
  }

  /** That it was the policy the server refused: with another one it starts. */
  async provePolicy(): Promise<void> {
    const server = await Server.start({ flags: this.flags(new Map([...this.settings, ["policy", "a read\n"]])) });
    await server.kill();
  }

  async #setUpOffline(): Promise<void> {
    const flags = this.flags(this.settings);
    const data = flags[flags.indexOf("--data") + 1] ?? "";
    const server = await Server.start({ flags: ["--data", data] });
    await setUp(server, textsOf(this.#case, "setup_offline"), {});
    await server.stop();
  }

  async step(step: Members): Promise<void> {
    if (step.has("sleep_ms")) await Bun.sleep(numberOf(step, "sleep_ms") ?? 0);
    else if (step.has("await")) await this.#await(textOf(step, "await"), step);
    else if (step.has("still_held")) this.#stillHeld(textsOf(step, "still_held"));
    else if (step.has("drop")) this.#exchange(textOf(step, "drop")).drop();
    else if (step.has("sse")) await this.#subscribe(step);
    else if (step.has("event")) await this.#event(step);
    else if (step.has("no_event")) await this.#noEvent(step);
    else if (step.has("closed")) await this.#closed(textOf(step, "closed"));
    else await this.#request(step);
  }

  async #request(step: Members): Promise<void> {
    if (endsSoon(step)) await secondBegun();
    const exchange = this.#server(step).open(this.#requestOf(step));
    const id = optionalText(step, "id");
    if (id !== undefined) this.#sentAt.set(id, exchange.sentAt);
    if (step.get("hold") === true) {
      this.#held.set(id ?? "", exchange);
      return;
    }
    const answer = await within(AWAIT_MS, exchange.answer);
    for (const [name, source] of optionalMembers(step, "save") ?? NONE) {
      const [, header = ""] = /^header:(.+)$/.exec(String(source)) ?? [];
      const value = answer.headers.get(header.toLowerCase());
      if (value === undefined) throw new Error(`no header ${header} to save, answered ${show(answer)}`);
      this.#values.set(name, value);
    }
    this.#judge(step, exchange, exchange.sentAt, answer);
  }

  async #await(id: string, step: Members): Promise<void> {
    const exchange = this.#exchange(id);
    const answer = await within(AWAIT_MS, exchange.answer);
    const since = optionalText(step, "since");
    const from = since === undefined ? exchange.sentAt : this.#sentAt.get(since);
    if (from === undefined) throw new Error(`no step was called ${since}`);
    this.#judge(step, exchange, from, answer);
  }

  #stillHeld(ids: readonly string[]): void {
    const answered = ids.filter((id) => this.#exchange(id).answered);
    if (answered.length > 0) throw new Error(`already answered: ${answered}`);
  }

  async #subscribe(step: Members): Promise<void> {
    const path = this.#fill(textOf(step, "sse"));
    const stream = new EventStream(this.#server(step).port, { path, headers: this.#headersOf(step) });
    this.#streams.set(textOf(step, "id"), stream);
    const status = await within(EVENT_MS, stream.status);
    const expected = numberOf(step, "status") ?? 200;
    if (status !== expected) throw new Error(`expected ${expected}, answered ${status}`);
  }

  async #event(step: Members): Promise<void> {
    const event = await this.#stream(textOf(step, "event")).next(EVENT_MS);
    if (event === undefined) throw new Error(`no event within ${EVENT_MS} ms`);
    const came = `got ${event.name} ${event.data}`;
    if (event.name !== textOf(step, "name")) throw new Error(`expected a ${textOf(step, "name")}, ${came}`);
    judgePieces(step, event.data, came);
    const count = numberOf(step, "rows");
    if (count === undefined) return;
    const rows = membersOf(readExact(event.data)).get("rows");
    if (!isList(rows) || rows.length !== count) throw new Error(`expected ${count} rows, ${came}`);
  }

  async #noEvent(step: Members): Promise<void> {
    const event = await this.#stream(textOf(step, "no_event")).next(numberOf(step, "ms") ?? 0);
    if (event !== undefined) throw new Error(`expected no event, got ${event.name} ${event.data}`);
  }

  async #closed(id: string): Promise<void> {
    if (!(await this.#stream(id).isClosed(EVENT_MS))) throw new Error("the stream is still open");
  }

  #judge(step: Members, exchange: Exchange, from: number, answer: Answer): void {
    const expect = optionalMembers(step, "expect");
    if (expect === undefined) return;
    const said = `answered ${show(answer)}`;
    const statuses = listOf(expect, "status").map((status) => (status instanceof Digits ? Number(status.text) : 0));
    if (statuses.length > 0 && !statuses.includes(answer.status)) throw new Error(`expected ${statuses}, ${said}`);

    const body = expect.get("body");
    const wrong = body === undefined ? undefined : difference(this.#filled(body), readExact(answer.body));
    if (wrong !== undefined) throw new Error(`${wrong}, ${said}`);
    const text = optionalText(expect, "body_text");
    if (text !== undefined && answer.body !== text) throw new Error(`expected exactly ${text}, ${said}`);
    judgePieces(expect, answer.body, said);
    for (const [name, wanted] of optionalMembers(expect, "headers") ?? NONE) {
      const got = answer.headers.get(name.toLowerCase());
      if (!headerFits(wanted, got)) throw new Error(`header ${name}: expected ${writeExact(wanted)}, got ${got}`);
    }

    const tookMs = (exchange.answeredAt ?? Number.POSITIVE_INFINITY) - from;
    const notBeforeMs = numberOf(expect, "not_before_ms") ?? 0;
    const withinMs = numberOf(expect, "within_ms") ?? Number.POSITIVE_INFINITY;
    if (tookMs < notBeforeMs) throw new Error(`came after ${tookMs} ms, before ${notBeforeMs}, ${said}`);
    if (tookMs > withinMs) throw new Error(`came after ${tookMs} ms, expected within ${withinMs}, ${said}`);
  }

  #requestOf(step: Members): Request {
    const path = this.#fill(textOf(step, "path"));
    const request = { method: textOf(step, "method"), path, headers: this.#headersOf(step) };
    const body = this.#bodyOf(step);
    return body === undefined ? request : { ...request, body };
  }

  #bodyOf(step: Members): string | undefined {
    const body = step.get("body");
    if (typeof body === "string") return this.#fill(body);
    if (body !== undefined) return writeExact(this.#filled(body));
    const fill = optionalMembers(step, "body_fill");
    if (fill !== undefined) return textOf(fill, "char").repeat(numberOf(fill, "bytes") ?? 0);
    if (!step.has("body_lines")) return undefined;
    return listOf(step, "body_lines")
      .map((line) => writeExact(this.#filled(line)))
      .join("\n");
  }

  #headersOf(step: Members): Record<string, string> {
    const replica = optionalText(step, "on") === "replica";
    const headers = replica && !step.has("as") && !step.has("as_raw") ? {} : this.#authorization(step);
    for (const [name, value] of optionalMembers(step, "headers") ?? NONE) {
      if (value === null) delete headers[name];
      else headers[name] = this.#fill(String(value));
    }
    return headers;
  }

  #authorization(step: Members): Record<string, string> {
    const raw = optionalMembers(step, "as_raw");
    if (raw !== undefined) {
      const claims = membersOf(raw.get("claims"));
      const token = this.#sign(
        raw.get("exp") === false ? claims : withExpiry(claims),
        optionalText(raw, "secret") ?? textOf(this.settings, "secret"),
        optionalText(raw, "alg"),
      );
      return { Authorization: `Bearer ${token}` };
    }
    const as = step.has("as") ? (step.get("as") ?? null) : "root";
    if (isMembers(as)) {
      return { Authorization: `Bearer ${this.#sign(withExpiry(as), textOf(this.settings, "secret"))}` };
    }
    return as === null ? {} : this.#bearer(String(as));
  }

  /** The header of the server's own token, where it has one. */
  #bearer(name: string): Record<string, string> {
    if (name !== "root") throw new Error(`nobody is called ${name}`);
    const token = optionalText(this.settings, "token");
    return token === undefined ? {} : { Authorization: `Bearer ${token}` };
  }

  #sign(claims: Members, secret: string, algorithm?: string): string {
    return signToken(writeExact(this.#filled(claims)), secret, algorithm);
  }

  /** A value with its placeholders replaced; a text that is one placeholder for a number becomes that number. */
  #filled(value: Exact): Exact {
    if (typeof value === "string") {
      const number = /^\{\{(now|now_s|\w+:int|\w+)(?:[+-]\d+)?\}\}$/.test(value) ? this.#fill(value) : undefined;
      return number !== undefined && /^-?\d+$/.test(number) ? new Digits(number) : this.#fill(value);
    }
    if (isList(value)) return value.map((item) => this.#filled(item));
    if (!isMembers(value)) return value;
    const repeat = value.size === 1 ? value.get("repeat") : undefined;
    if (isList(repeat)) return repeated(repeat);
    return new Map([...value].map(([key, item]) => [key, this.#filled(item)]));
  }

  #fill(text: string): string {
    return text.replace(/\{\{(\w+)(?::int)?([+-]\d+)?\}\}/g, (_, name: string, by: string | undefined) => {
      const value = this.#value(name);
      return by === undefined ? value : String(Number(value) + Number(by));
    });
  }

  #value(name: string): string {
    if (name === "now") return String(Date.now());
    if (name === "now_s") return String(Math.floor(Date.now() / 1_000));
    const value = this.#values.get(name);
    if (value === undefined) throw new Error(`nothing was saved as ${name}`);
    return value;
  }

  #server(step: Members): Server {
    const server = optionalText(step, "on") === "replica" ? this.#replica : this.#primary;
    if (server === undefined) throw new Error("the case has no such server");
    return server;
  }

  #exchange(id: string): Exchange {
    const exchange = this.#held.get(id);
    if (exchange === undefined) throw new Error(`nothing is held as ${id}`);
    return exchange;
  }

  #stream(id: string): EventStream {
    const stream = this.#streams.get(id);
    if (stream === undefined) throw new Error(`no stream is called ${id}`);
    return stream;
  }
}

async function setUp(server: Server, statements: readonly string[], headers: Record<string, string>): Promise<void> {
  for (const statement of statements) {
    const answer = await server.query(statement, [], headers);
    if (answer.status !== 200) throw new Error(`setup ${statement}: ${show(answer)}`);
  }
}

/** Whether its token ends a counted time from now: whole seconds, as a token tells them. */
function endsSoon(step: Members): boolean {
  return ["as", "as_raw"].some((who) => step.has(who) && writeExact(step.get(who) ?? null).includes("{{now_s"));
}

/** A second is young: a token that ends when the next begins has nearly all of it, and is not over before it is sent. */
async function secondBegun(): Promise<void> {
  const pastMs = Date.now() % 1_000;
  if (pastMs > YOUNG_MS) await Bun.sleep(1_000 - pastMs);
}

function withExpiry(claims: Members): Members {
  if (claims.has("exp")) return claims;
  return new Map([...claims, ["exp", new Digits(String(Math.floor(Date.now() / 1_000) + HOUR_S))]]);
}

/** `[pattern, n]` as n texts, `{{i}}` in the pattern the number of each from 0. */
function repeated([pattern, count]: readonly Exact[]): Exact {
  const length = count instanceof Digits ? Number(count.text) : 0;
  return Array.from({ length }, (_, index) => String(pattern).replaceAll("{{i}}", String(index)));
}

function headerFits(wanted: Exact, got: string | undefined): boolean {
  if (wanted === null) return got === undefined;
  if (got === undefined || typeof wanted !== "string") return false;
  if (wanted === "*") return true;
  return wanted.startsWith("~") ? got.includes(wanted.slice(1)) : got === wanted;
}

function judgePieces(expect: Members, text: string, said: string): void {
  const missing = textsOf(expect, "contains").find((piece) => !text.includes(piece));
  if (missing !== undefined) throw new Error(`expected a piece ${missing}, ${said}`);
  const present = textsOf(expect, "absent").find((piece) => text.includes(piece));
  if (present !== undefined) throw new Error(`expected no piece ${present}, ${said}`);
}

async function within<T>(ms: number, promise: Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`no answer within ${ms} ms`)), ms);
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

function show(answer: Answer): string {
  return `${answer.status} ${answer.body.slice(0, 500)}`;
}
