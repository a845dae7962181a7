/**
 * A queue as small as can be, behind a `fetch`: it understands the few statements a worker and a producer send, by their
 * text, and nothing else. It can lose an answer after the work is done, refuse, or be down.
 */

import type { Fetch } from "../../src/client/index.ts";
import type { ManualClock } from "./manual_clock.ts";

export interface FakeRow {
  id: number;
  payload: unknown;
  run_at: number | null;
  owner: string | null;
  attempts: number;
  error: string | null;
  key?: string;
}

export interface Sent {
  readonly path: string;
  readonly statements: readonly { readonly query: string; readonly params: readonly unknown[] }[];
  readonly key: string | undefined;
  readonly wait: number;
}

export type Fault =
  | "lose the answer"
  | "swallow"
  | { readonly status: number; readonly code: string }
  /** The answer is on its way for so long. */
  | { readonly delayMs: number };

class Refused extends Error {
  readonly status: number;
  readonly at: number | undefined;
  constructor(status: number, at?: number) {
    super(`refused: ${status}`);
    this.status = status;
    this.at = at;
  }
}

const CLAIM =
  /^set jobs \{owner: \$1, run_at: now\(\) \+ \$2, attempts: coalesce\(attempts, 0\) \+ \$3\} where run_at <= now\(\) order run_at asc limit (\d+) returning \*$/;
const GUARDED =
  /^(?:set jobs \{(.*)\}|del jobs) where id = \$(\d+) and owner = \$(\d+) and run_at > now\(\)( require 1)?$/;
const PUT = /^put jobs \[?(\{.*\})\]?( if absent)?$/;

export class FakeQueue {
  rows: FakeRow[] = [];
  readonly sent: Sent[] = [];
  /** Taken one a request, before it is looked at; undefined lets it pass. */
  readonly faults: (Fault | undefined)[] = [];
  down = false;
  /** Claims held at this moment. */
  held = 0;
  /** Told before a claim takes a job whose lease has lapsed. */
  onTake: (row: Readonly<FakeRow>) => void = () => undefined;
  readonly #clock: ManualClock;
  readonly #answers = new Map<string, { body: string; request: string }>();
  #nextId = 1;
  #wake: (() => void)[] = [];

  constructor(clock: ManualClock) {
    this.#clock = clock;
  }

  /** How many there have been. */
  get jobs(): number {
    return this.#nextId - 1;
  }

  put(payload: unknown, more: Partial<FakeRow> = {}): FakeRow {
    const row = {
      id: this.#nextId++,
      payload,
      run_at: this.#clock.now(),
      owner: null,
      attempts: 0,
      error: null,
      ...more,
    };
    this.rows.push(row);
    this.wake();
    return row;
  }

  /** Held claims look again. */
  wake(): void {
    const waiting = this.#wake;
    this.#wake = [];
    for (const wake of waiting) wake();
  }

  requests(word: string): readonly Sent[] {
    return this.sent.filter((request) => request.statements.some(({ query }) => query.includes(word)));
  }

  readonly fetch: Fetch = async (url, { headers, body, signal }) => {
    signal?.throwIfAborted();
    const path = new URL(url).pathname;
    const statements = body.split("\n").map((line) => JSON.parse(line) as { query: string; params: unknown[] });
    const key = headers["Idempotency-Key"];
    const wait = Number(headers["Fenec-Wait"] ?? 0);
    this.sent.push({ path, statements, key, wait });
    const fault = this.faults.shift();
    if (this.down) throw new TypeError("connection refused");
    if (fault === "swallow")
      await new Promise((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
    if (typeof fault === "object" && "status" in fault)
      return answer({ error: "no", code: fault.code }, {}, fault.status);

    const kept = key === undefined ? undefined : this.#answers.get(key);
    if (kept !== undefined) {
      if (kept.request !== path + body) return answer({ error: "key_reused", code: "key_reused" }, {}, 422);
      return new Response(kept.body, { headers: { "Idempotent-Replayed": "true", "Fenec-Seq": "1" } });
    }
    const until = this.#clock.now() + wait;
    try {
      for (;;) {
        const { results, wrote } = this.#runAll(statements);
        if (!wrote && wait > 0) {
          if (this.#clock.now() >= until) break;
          await this.#hold(until, signal);
          continue;
        }
        const out = path === "/batch" ? { ok: results.length, results } : single(results[0] ?? {});
        const text = JSON.stringify(out);
        if (wrote && key !== undefined) this.#answers.set(key, { body: text, request: path + body });
        if (fault === "lose the answer") throw new TypeError("connection reset");
        if (typeof fault === "object") await this.#travel(fault.delayMs, signal);
        return new Response(text, { headers: wrote ? { "Fenec-Seq": "1" } : {} });
      }
      return answer([], {}, 200);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      const code = error.status === 412 ? "unmet" : "bad_value";
      return answer(
        { error: error.message, code, ...(path === "/batch" ? { at: error.at, completed: 0 } : {}) },
        {},
        error.status,
      );
    }
  };

  #travel(delayMs: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const cancel = this.#clock.after(delayMs, resolve);
      signal?.addEventListener("abort", () => {
        cancel();
        reject(signal.reason);
      });
    });
  }

  /** Until something was put, a job came due, or the wait is over. */
  async #hold(until: number, signal: AbortSignal | undefined): Promise<void> {
    const due = this.rows.map(({ run_at }) => run_at).filter((at) => at !== null && at > this.#clock.now());
    const moment = Math.min(until, ...(due as number[]));
    this.held++;
    await new Promise<void>((resolve, reject) => {
      const cancel = this.#clock.after(moment - this.#clock.now(), resolve);
      const wake = (): void => {
        cancel();
        resolve();
      };
      this.#wake.push(wake);
      signal?.addEventListener("abort", () => {
        cancel();
        this.#wake = this.#wake.filter((other) => other !== wake);
        reject(signal.reason);
      });
    }).finally(() => this.held--);
  }

  #runAll(statements: Sent["statements"]): { results: Record<string, unknown>[]; wrote: boolean } {
    const before = structuredClone(this.rows);
    const nextId = this.#nextId;
    const results: Record<string, unknown>[] = [];
    try {
      for (const [at, { query, params }] of statements.entries()) results.push(this.#run(query, params, at));
    } catch (error) {
      this.rows = before;
      this.#nextId = nextId;
      throw error;
    }
    const wrote = results.some(
      ({ affected, rows }) => Number(affected ?? 0) > 0 || ((rows as unknown[]) ?? []).length > 0,
    );
    return { results, wrote };
  }

  #run(query: string, params: readonly unknown[], at: number): Record<string, unknown> {
    const now = this.#clock.now();
    const claim = CLAIM.exec(query);
    if (claim !== null) {
      const ready = this.rows.filter((row) => row.run_at !== null && row.run_at <= now);
      ready.sort((a, b) => Number(a.run_at) - Number(b.run_at) || a.id - b.id);
      const taken = ready.slice(0, Number(claim[1]));
      for (const row of taken) {
        if (row.owner !== null) this.onTake(row);
        row.owner = params[0] as string;
        row.run_at = now + Number(params[1]);
        row.attempts += Number(params[2]);
      }
      return { rows: structuredClone(taken) };
    }
    const guarded = GUARDED.exec(query);
    if (guarded !== null) {
      const [, patch, idAt, ownerAt, required] = guarded;
      const row = this.rows.find(
        ({ id, owner, run_at }) =>
          id === params[Number(idAt) - 1] && owner === params[Number(ownerAt) - 1] && run_at !== null && run_at > now,
      );
      if (row === undefined) {
        if (required !== undefined) throw new Refused(412, at);
        return { affected: 0 };
      }
      if (patch === undefined) this.rows = this.rows.filter((other) => other !== row);
      else Object.assign(row, this.#object(`{${patch}}`, params, row));
      return { affected: 1 };
    }
    const put = PUT.exec(query);
    if (put === null) throw new Error(`the fake does not know: ${query}`);
    let affected = 0;
    for (const text of (put[1] ?? "").match(/\{[^{}]*\}/g) ?? []) {
      const fields = this.#object(text, params, undefined) as Partial<FakeRow>;
      if (fields.payload === "bad") throw new Refused(400, at);
      if (put[2] !== undefined && this.rows.some(({ key }) => key !== undefined && key === fields.key)) continue;
      this.put(fields.payload, fields);
      affected++;
    }
    return { affected };
  }

  #object(text: string, params: readonly unknown[], row: FakeRow | undefined): Record<string, unknown> {
    const entries = text
      .slice(1, -1)
      .split(", ")
      .map((part): [string, unknown] => {
        const [field = "", value = ""] = part.split(": ");
        const param = /\$(\d+)$/.exec(value);
        const bound = param === null ? undefined : params[Number(param[1]) - 1];
        if (value === "now()") return [field, this.#clock.now()];
        if (value.startsWith("now() + ")) return [field, this.#clock.now() + Number(bound)];
        if (value === "attempts - 1") return [field, Number(row?.attempts) - 1];
        return [field, bound];
      });
    return Object.fromEntries(entries);
  }
}

function single(result: Record<string, unknown>): unknown {
  return result["rows"] ?? result;
}

function answer(body: unknown, headers: Record<string, string>, status: number): Response {
  return new Response(JSON.stringify(body), { status, headers });
}
