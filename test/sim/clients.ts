/**
 * Clients of the simulated server: each sends one request at a time, made by chance, and holds every answer to what the
 * server did. A request has a tag that stands in every row it writes, so it can be told whether it was run, and how often.
 */

import { expect } from "bun:test";
import type { Random } from "../store/random.ts";
import type { History } from "./history.ts";
import type { Answer, Machine, Request } from "./machine.ts";

export const ACCOUNTS = 4;
export const ACCOUNT_START = 1_000;
/** Statuses of refusals that a client here may meet; after each nothing of the request is there. */
const REFUSED = [400, 404, 409, 412, 507];

/** What is there before the first client comes. */
export const BEGINNING: readonly string[] = [
  "create collection jobs (k text, payload json, run_at timestamp @sorted, owner text @hash, attempts int, gone timestamp @ttl(30s))",
  "create collection accounts (name text @unique, n int)",
  "create collection pairs (p text, side int)",
  ...Array.from({ length: ACCOUNTS }, (_, n) => `put accounts {name: "a${n}", n: ${ACCOUNT_START}}`),
];

/** What all clients share. */
export interface World {
  readonly random: Random;
  readonly history: History;
  machine: Machine;
  /** Whether an answer waits for the disk. */
  readonly strict: boolean;
  /** The change counter that some answer showed: under a strict policy no crash takes it back. */
  shownSeq: number;
  /** How many requests of each kind ended how, so that a test sees that it tested something. */
  readonly tally: Map<string, number>;
}

interface Sent {
  readonly kind: string;
  readonly tag: string;
  readonly request: Request;
  /** Takes what it was told, the first time it is told; throws when that cannot be. */
  readonly taken: (body: unknown) => void;
  /** Changes that a 200 says were made, and the tag stands in. */
  readonly wrote: (body: unknown) => number;
  /** Whether this answer is kept under the request's key: what wrote nothing runs anew. */
  readonly isKept: (body: unknown) => boolean;
}

interface Job {
  readonly id: number;
  readonly owner: string;
}

export class Client {
  readonly name: string;
  busy = false;
  readonly #world: World;
  #count = 0;
  #lastPut = "";
  #jobs: Job[] = [];
  /** Under a key, and never answered: it is sent again. */
  #open: Sent | null = null;
  /** Under a key, and answered so. */
  #answered: { readonly sent: Sent; readonly answer: Answer } | null = null;

  constructor(name: string, world: World) {
    this.name = name;
    this.#world = world;
  }

  /** What it was told may be gone: the server died, and its answers did not wait for the disk. */
  forget(): void {
    this.#answered = null;
  }

  /** Sends one request and judges its answer. */
  async act(): Promise<void> {
    const { random } = this.#world;
    this.busy = true;
    try {
      if (this.#open !== null) await this.#send(this.#open);
      else if (this.#answered !== null && random.chance(0.2)) await this.#sendAgain(this.#answered);
      else await this.#send(this.#next());
    } finally {
      this.busy = false;
    }
  }

  async #send(sent: Sent): Promise<void> {
    const { random, history, tally } = this.#world;
    const leaving = sent.request.waitMs > 0 && random.chance(0.1) ? new AbortController() : null;
    const asking = this.#world.machine.ask(sent.request, leaving?.signal);
    leaving?.abort();
    const answer = await asking;
    const count = (how: string): void =>
      void tally.set(`${sent.kind} ${how}`, (tally.get(`${sent.kind} ${how}`) ?? 0) + 1);
    if (answer === null) {
      count("unheard");
      this.#open = sent.request.key === null ? null : sent;
      return;
    }
    this.#see(answer, sent.kind);
    count(String(answer.status));
    const open = this.#open === sent;
    if (answer.status === 500) {
      // The disk failed: whether it is there will be seen after a restart.
      expect(codeOf(answer), answer.body).toBe("disk_failed");
      this.#open = sent.request.key === null ? null : sent;
      return;
    }
    this.#open = null;
    const changes = history.bringing(sent.tag);
    if (answer.status !== 200) {
      expect(REFUSED, `${sent.kind}: ${answer.body}`).toContain(answer.status);
      expect(changes, `a refused ${sent.kind} left something`).toEqual([]);
      return;
    }
    const body: unknown = JSON.parse(answer.body);
    expect(changes.length, `${sent.kind} ${sent.tag} ${answer.body} ${answer.replayed}`).toBe(sent.wrote(body));
    if (!answer.replayed && changes.length > 0) {
      const frame = history.frameOf(answer.seq ?? -1);
      for (const change of changes) expect(frame?.changes.includes(change), "its number is its frame's").toBe(true);
    }
    if (answer.replayed && !open) throw new Error(`${sent.kind} ${sent.tag} is told again, and was never sent before`);
    sent.taken(body);
    if (sent.request.key !== null && sent.isKept(body)) this.#answered = { sent, answer };
  }

  /** A request whose answer came, sent once more: the same answer, and nothing is run. */
  async #sendAgain({ sent, answer }: { sent: Sent; answer: Answer }): Promise<void> {
    const before = this.#world.history.bringing(sent.tag).length;
    const again = await this.#world.machine.ask(sent.request);
    if (again === null) return;
    this.#see(again, sent.kind);
    if (again.status === 500) {
      expect(codeOf(again)).toBe("disk_failed");
      return;
    }
    expect([again.status, again.body, again.replayed]).toEqual([answer.status, answer.body, true]);
    expect(this.#world.history.bringing(sent.tag).length).toBe(before);
  }

  /** Under a strict policy nothing is shown that is not on disk. */
  #see(answer: Answer, kind: string): void {
    const { machine, strict, history } = this.#world;
    if (answer.seq === null) return;
    expect(answer.seq).toBeLessThanOrEqual(history.seq);
    const { log } = machine.database;
    if (!strict || log === null || log.failure !== null) return;
    const frame = history.frameOf(answer.seq);
    if (frame !== undefined)
      expect(frame.position, `${kind}: answered before it was on disk`).toBeLessThanOrEqual(log.durable);
    this.#world.shownSeq = Math.max(this.#world.shownSeq, answer.seq);
  }

  #next(): Sent {
    const { random } = this.#world;
    const tag = `${this.name}-${++this.#count}`;
    const dice = random.next();
    if (dice < 0.22) return this.#put(tag);
    if (dice < 0.3) return this.#putMany(tag);
    if (dice < 0.42) return this.#claim(tag, 0);
    if (dice < 0.54) return this.#claim(tag, 1 + random.below(30_000));
    if (dice < 0.7) return this.#settle(tag);
    if (dice < 0.78) return this.#transfer(tag);
    if (dice < 0.84) return this.#brokenBatch(tag);
    if (dice < 0.88) return this.#cancel(tag);
    if (dice < 0.92) return this.#reads(tag);
    if (dice < 0.96) return this.#define(tag);
    if (dice < 0.98) return this.#query("compact", tag, "compact", []);
    return this.#query("pop", tag, "del jobs where run_at <= now() order run_at limit 1 returning id", []);
  }

  #key(tag: string): string | null {
    return this.#world.random.chance(0.4) ? tag : null;
  }

  #query(
    kind: string,
    tag: string,
    query: string,
    params: readonly unknown[],
    more: Partial<Pick<Sent, "taken" | "wrote" | "isKept">> & { key?: string | null; waitMs?: number } = {},
  ): Sent {
    return {
      kind,
      tag,
      request: {
        path: "/query",
        body: JSON.stringify({ query, params }),
        key: more.key ?? null,
        waitMs: more.waitMs ?? 0,
      },
      taken: more.taken ?? (() => {}),
      wrote: more.wrote ?? (() => 0),
      isKept: more.isKept ?? (() => true),
    };
  }

  #batch(
    kind: string,
    tag: string,
    key: string | null,
    lines: readonly (readonly [string, readonly unknown[]])[],
    wrote: number,
  ): Sent {
    const body = lines.map(([query, params]) => JSON.stringify({ query, params })).join("\n");
    const request: Request = { path: "/batch", body, key, waitMs: 0 };
    return { kind, tag, request, taken: () => {}, wrote: () => wrote, isKept: () => true };
  }

  #row(tag: string): Record<string, unknown> {
    const { random, machine } = this.#world;
    const now = machine.clock.now();
    return {
      k: tag,
      payload: { n: random.below(100), text: "x".repeat(random.chance(0.1) ? random.below(3_000) : random.below(60)) },
      run_at: now + (random.chance(0.3) ? random.below(20_000) : 0),
      attempts: 0,
      gone: random.chance(0.1) ? now + random.below(20_000) : null,
    };
  }

  #put(tag: string): Sent {
    this.#lastPut = tag;
    const { k, payload, run_at, gone } = this.#row(tag);
    const query = "put jobs {k: $1, payload: $2, run_at: $3, attempts: 0, gone: $4}";
    return this.#query("put", tag, query, [k, payload, run_at, gone], {
      key: this.#key(tag),
      taken: (body) => expect(body).toEqual({ affected: 1 }),
      wrote: () => 1,
    });
  }

  /** Takes back what it put last: often the newest row there is, whose id must not be given again. */
  #cancel(tag: string): Sent {
    return this.#query("cancel", tag, "del jobs where k = $1", [this.#lastPut], {
      key: this.#key(tag),
      isKept: (body) => (body as { affected: number }).affected > 0,
    });
  }

  #putMany(tag: string): Sent {
    const rows = Array.from({ length: 1 + this.#world.random.below(30) }, () => this.#row(tag));
    return this.#query("putMany", tag, "put jobs $1", [rows], {
      key: this.#key(tag),
      taken: (body) => {
        expect(body).toEqual({ affected: rows.length });
        const [change] = this.#world.history.bringing(tag);
        expect(change?.length).toBe(rows.length);
      },
      wrote: () => 1,
    });
  }

  #claim(tag: string, waitMs: number): Sent {
    const { random } = this.#world;
    const limit = 1 + random.below(4);
    const leaseMs = 100 + random.below(20_000);
    const query = `set jobs {owner: $1, run_at: now() + $2, attempts: attempts + 1} where run_at <= now() order run_at limit ${limit}${random.chance(0.2) ? " require 1" : ""} returning id`;
    return this.#query(waitMs > 0 ? "held" : "claim", tag, query, [tag, leaseMs], {
      key: this.#key(tag),
      waitMs,
      taken: (body) => {
        const rows = body as { id: number }[];
        for (const { id } of rows) this.#jobs.push({ id, owner: tag });
        const [change] = this.#world.history.bringing(tag);
        expect(change?.length ?? 0).toBe(rows.length);
      },
      wrote: (body) => ((body as unknown[]).length > 0 ? 1 : 0),
      isKept: (body) => (body as unknown[]).length > 0,
    });
  }

  /** Acks a job it was told it holds, gives it back, or keeps it longer; the lease may have lapsed. */
  #settle(tag: string): Sent {
    const { random } = this.#world;
    const job = this.#jobs.shift();
    if (job === undefined) return this.#put(tag);
    const where = "where id = $1 and owner = $2 require 1";
    if (random.chance(0.6))
      return this.#query("ack", tag, `del jobs ${where}`, [job.id, job.owner], { key: this.#key(tag) });
    if (random.chance(0.5)) {
      return this.#query("fail", tag, `set jobs {owner: null, run_at: now() + 1000} ${where}`, [job.id, job.owner]);
    }
    this.#jobs.push(job);
    return this.#query("extend", tag, `set jobs {run_at: now() + 20000} ${where}`, [job.id, job.owner]);
  }

  /** Moves an account's unit to another, with two rows to tell of it. */
  #transfer(tag: string): Sent {
    const { random } = this.#world;
    const pair = (side: number): [string, unknown[]] => ["put pairs {p: $1, side: $2}", [tag, side]];
    return this.#batch(
      "transfer",
      tag,
      this.#key(tag),
      [
        pair(0),
        ["set accounts {n: n - 1} where name = $1 require 1", [`a${random.below(ACCOUNTS)}`]],
        ["set accounts {n: n + 1} where name = $1 require 1", [`a${random.below(ACCOUNTS)}`]],
        pair(1),
      ],
      2,
    );
  }

  /** Its last statement is refused, so nothing of it may stay. */
  #brokenBatch(tag: string): Sent {
    return this.#batch(
      "brokenBatch",
      tag,
      this.#key(tag),
      [
        ["put pairs {p: $1, side: 0}", [tag]],
        ["set accounts {n: n - 1} where name = $1", ["a0"]],
        ["del jobs where k = $1 require 1", [tag]],
      ],
      Number.NaN,
    );
  }

  #reads(tag: string): Sent {
    return this.#batch(
      "reads",
      tag,
      null,
      [
        ["get jobs count", []],
        ["get accounts", []],
      ],
      0,
    );
  }

  /** Changes of schema, some of them refused: the extra collection may be there or not. */
  #define(tag: string): Sent {
    const text = this.#world.random.pick([
      "create collection if not exists extra (a int, b text @sorted)",
      "drop collection if exists extra",
      "create index if not exists on jobs (payload.n) @sorted",
      "create index if not exists on jobs (k) @hash",
      "create collection if not exists other (a int @unique)",
      "drop collection if exists other",
      `alter collection pairs add field f${this.#count % 7} int`,
      "alter collection extra rename b to c",
    ]);
    return this.#query("define", tag, text, []);
  }
}

function codeOf(answer: Answer): unknown {
  return (JSON.parse(answer.body) as { code?: unknown }).code;
}
