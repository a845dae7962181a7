/**
 * A real server killed in the middle of its work, again and again: eight writers put, claim, ack, move and batch, each
 * under an idempotency key. After each start every confirmed write is there, no batch is there by half, and the one
 * request each writer did not hear of is sent again: it is answered once more or run now, never twice.
 *
 * FENEC_ROUNDS asks for more rounds than the usual run.
 */

import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { check } from "../../scripts/data/check.ts";
import { Server } from "../harness/server.ts";
import { Random } from "../store/random.ts";

const { FENEC_SEED: givenSeed, FENEC_ROUNDS: givenRounds = "20" } = process.env;
const seed = givenSeed === undefined ? Math.floor(Math.random() * 2 ** 32) : Number(givenSeed);
const WRITERS = 8;
const ACCOUNTS = 6;
const ACCOUNT_START = 1_000;

setDefaultTimeout(Math.max(600_000, Number(givenRounds) * 10_000));

const root = fs.mkdtempSync(join(tmpdir(), "fenec-kill-"));
afterAll(() => fs.rmSync(root, { recursive: true, force: true }));

type Json = Record<string, unknown>;

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

interface Request {
  readonly path: "/query" | "/batch";
  readonly body: string;
  readonly key: string;
  /** What it does to the model once it is known to have been run. */
  readonly confirmed: (answer: Answer, model: Model) => void;
}

interface Job {
  readonly owner: string | null;
  readonly attempts: number;
}

/** What must be there: all that was confirmed. */
class Model {
  readonly jobs = new Map<string, Job>();
  /** Jobs that were claimed, perhaps before the answer to their put was heard. */
  readonly claimed = new Set<string>();
  readonly pairs = new Set<string>();
  readonly accounts = Array.from({ length: ACCOUNTS }, () => ACCOUNT_START);
}

async function send(url: string, request: Request): Promise<Answer> {
  const response = await fetch(`${url}${request.path}`, {
    method: "POST",
    body: request.body,
    headers: { "Idempotency-Key": request.key },
  });
  return { status: response.status, body: await response.json() };
}

async function rows(url: string, query: string): Promise<Json[]> {
  const response = await fetch(`${url}/query`, { method: "POST", body: JSON.stringify({ query }) });
  expect(response.status).toBe(200);
  return (await response.json()) as Json[];
}

async function start(): Promise<Server> {
  return Server.start({ flags: ["--data", join(root, "data")] });
}

/** The requests of one writer; every one of them succeeds once it is run. */
class Writer {
  readonly name: string;
  readonly #random: Random;
  #count = 0;
  /** Jobs it holds, by what it was told. */
  readonly held: string[] = [];
  /** The request whose answer never came. */
  open: Request | null = null;

  constructor(name: string, random: Random) {
    this.name = name;
    this.#random = random;
  }

  next(): Request {
    this.#count++;
    const id = `${this.name}-${this.#count}`;
    const dice = this.#random.next();
    if (dice < 0.35) return this.#put(id);
    if (dice < 0.6) return this.#claim(id);
    if (dice < 0.8 && this.held.length > 0) return this.#ack(id, this.held.shift()!);
    if (dice < 0.9) return this.#move(id);
    if (dice < 0.99) return this.#pair(id);
    return {
      path: "/query",
      body: JSON.stringify({ query: "compact" }),
      key: id,
      confirmed: ({ status }) => expect(status).toBe(200),
    };
  }

  #put(id: string): Request {
    const query = "put jobs {k: $1, payload: $2, run_at: now(), attempts: 0}";
    return {
      path: "/query",
      body: JSON.stringify({ query, params: [id, { text: "x".repeat(this.#random.below(400)) }] }),
      key: id,
      confirmed: ({ status, body }, model) => {
        expect([status, body]).toEqual([200, { affected: 1 }]);
        if (!model.claimed.has(id)) model.jobs.set(id, { owner: null, attempts: 0 });
      },
    };
  }

  #claim(id: string): Request {
    const query =
      "set jobs {owner: $1, run_at: now() + 3600000, attempts: attempts + 1} where run_at <= now() order run_at limit 3 returning k";
    return {
      path: "/query",
      body: JSON.stringify({ query, params: [this.name] }),
      key: id,
      confirmed: ({ status, body }, model) => {
        expect(status).toBe(200);
        for (const { k } of body as { k: string }[]) {
          expect(model.claimed.has(k)).toBe(false);
          model.claimed.add(k);
          model.jobs.set(k, { owner: this.name, attempts: 1 });
          this.held.push(k);
        }
      },
    };
  }

  #ack(id: string, job: string): Request {
    return {
      path: "/query",
      body: JSON.stringify({ query: "del jobs where k = $1 and owner = $2 require 1", params: [job, this.name] }),
      key: id,
      confirmed: ({ status, body }, model) => {
        expect([status, body]).toEqual([200, { affected: 1 }]);
        model.jobs.delete(job);
      },
    };
  }

  #move(id: string): Request {
    const from = this.#random.below(ACCOUNTS);
    const to = this.#random.below(ACCOUNTS);
    const lines = [
      { query: "set accounts {n: n - 1} where name = $1 require 1", params: [`a${from}`] },
      { query: "set accounts {n: n + 1} where name = $1 require 1", params: [`a${to}`] },
    ];
    return {
      path: "/batch",
      body: lines.map((line) => JSON.stringify(line)).join("\n"),
      key: id,
      confirmed: ({ status }, model) => {
        expect(status).toBe(200);
        model.accounts[from]!--;
        model.accounts[to]!++;
      },
    };
  }

  #pair(id: string): Request {
    const lines = [0, 1].map((side) => ({ query: "put pairs {p: $1, side: $2}", params: [id, side] }));
    return {
      path: "/batch",
      body: lines.map((line) => JSON.stringify(line)).join("\n"),
      key: id,
      confirmed: ({ status }, model) => {
        expect(status).toBe(200);
        model.pairs.add(id);
      },
    };
  }
}

/** Everything that is there, in the model's form; what is there by half fails here. */
async function stateOf(url: string): Promise<Model> {
  const model = new Model();
  for (const { k, owner, attempts } of await rows(url, "get jobs select k, owner, attempts")) {
    expect(model.jobs.has(k as string)).toBe(false);
    model.jobs.set(k as string, { owner: owner as string | null, attempts: attempts as number });
  }
  for (const { p, n } of await rows(url, "get pairs select p, count(*) as n group p")) {
    expect([p, n]).toEqual([p, 2]);
    model.pairs.add(p as string);
  }
  for (const { name, n } of await rows(url, "get accounts"))
    model.accounts[Number(String(name).slice(1))] = n as number;
  expect(model.accounts.reduce((sum, n) => sum + n, 0)).toBe(ACCOUNTS * ACCOUNT_START);
  return model;
}

test("killed at random, it keeps all it confirmed, whole, and runs nothing twice", async () => {
  const random = new Random(seed);
  let server = await start();
  try {
    for (const query of [
      "create collection jobs (k text @unique, payload json, run_at timestamp @sorted, owner text, attempts int)",
      "create collection accounts (name text @unique, n int)",
      "create collection pairs (p text, side int)",
      ...Array.from({ length: ACCOUNTS }, (_, n) => `put accounts {name: "a${n}", n: ${ACCOUNT_START}}`),
    ]) {
      await rows(server.url, query);
    }
    const model = new Model();
    const writers = Array.from({ length: WRITERS }, (_, n) => new Writer(`w${n}`, new Random(seed + n + 1)));
    let confirmed = 0;
    let lost = 0;
    for (let round = 0; round < Number(givenRounds); round++) {
      const until = confirmed + 10 + random.below(200);
      let killed: Promise<void> | null = null;
      const { url } = server;
      const work = async (writer: Writer): Promise<void> => {
        while (killed === null) {
          const request = writer.next();
          let answer: Answer;
          try {
            answer = await send(url, request);
          } catch {
            writer.open = request;
            return;
          }
          request.confirmed(answer, model);
          if (++confirmed >= until) killed ??= server.kill();
        }
      };
      await Promise.all(writers.map(work));
      await killed;
      if (round % 5 === 0) expect(check(join(root, "data"), () => {})).toEqual([]);
      server = await start();
      await stateOf(server.url);
      for (const writer of writers) {
        const { open } = writer;
        writer.open = null;
        if (open === null) continue;
        lost++;
        const answer = await send(server.url, open);
        open.confirmed(answer, model);
        expect(await send(server.url, open)).toEqual(answer);
      }
      const found = await stateOf(server.url);
      const byKey = <V>(map: ReadonlyMap<string, V>): [string, V][] => [...map].sort(([a], [b]) => (a < b ? -1 : 1));
      expect(byKey(found.jobs)).toEqual(byKey(model.jobs));
      expect([...found.pairs].sort()).toEqual([...model.pairs].sort());
      expect(found.accounts).toEqual(model.accounts);
    }
    // Else nothing was tested.
    expect(lost).toBeGreaterThan(0);
  } catch (error) {
    console.error(`FENEC_SEED=${seed}`);
    throw error;
  } finally {
    await server.kill();
  }
});
