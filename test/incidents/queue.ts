/** The queue all incidents are about, and its statements as calls. */

import { Digits, type Exact, isList, isMembers, writeExact } from "../harness/exact_json.ts";
import { Server } from "../harness/server.ts";
import type { Answer, Exchange } from "../harness/wire.ts";

export const CREATE =
  "create collection jobs (payload json, run_at timestamp @sorted, owner text, attempts int, error text)";

export interface Job {
  readonly id: number;
  readonly attempts: number;
  readonly owner: string | null;
  readonly payload: Exact;
}

/** A server in memory on a test clock, its queue empty. */
export async function startOnTestClock(): Promise<Queue> {
  return await Queue.create(await Server.start({ flags: ["--in-memory", "--test-clock"] }));
}

/** A server in memory on the wall clock, its queue empty. */
export async function startInMemory(): Promise<Queue> {
  return await Queue.create(await Server.start({ flags: ["--in-memory"] }));
}

/** A server over a directory that answers only what is on disk; its queue is whatever the directory holds. */
export async function startOnDisk(directory: string): Promise<Queue> {
  return new Queue(await Server.start({ flags: ["--data", directory, "--sync", "always"] }));
}

export class Queue implements AsyncDisposable {
  readonly server: Server;

  constructor(server: Server) {
    this.server = server;
  }

  static async create(server: Server): Promise<Queue> {
    await server.run(CREATE);
    return new Queue(server);
  }

  /** Takes all there is away, and makes the queue anew. */
  async renew(): Promise<void> {
    await this.server.dropAll();
    await this.server.run(CREATE);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server.kill();
  }

  /** Puts one ready job; `payload` is json text. */
  put(payload: string): Promise<Answer> {
    return this.server.query("put jobs {payload: $1, run_at: now(), attempts: 0}", `[${payload}]`);
  }

  async claim(owner: string, limit: number, leaseMs: number): Promise<readonly Job[]> {
    return jobsOf(await this.server.run(claimText(limit), [owner, leaseMs]));
  }

  /** The same claim, kept at the server for so long while there is nothing to take. */
  hold(owner: string, limit: number, leaseMs: number, waitMs: number): Exchange {
    return this.server.hold(claimText(limit), [owner, leaseMs], waitMs);
  }

  ack(id: number, owner: string, guard = ""): Promise<Answer> {
    return this.server.query(`del jobs where id = $1 and owner = $2 ${guard} require 1`, [id, owner]);
  }

  extend(id: number, owner: string, leaseMs: number, guard = ""): Promise<Answer> {
    const text = `set jobs {run_at: now() + $3} where id = $1 and owner = $2 ${guard} require 1`;
    return this.server.query(text, [id, owner, leaseMs]);
  }

  async all(): Promise<readonly Job[]> {
    return jobsOf(await this.server.run("get jobs"));
  }
}

function claimText(limit: number): string {
  const values = "{owner: $1, run_at: now() + $2, attempts: attempts + 1}";
  return `set jobs ${values} where run_at <= now() order run_at limit ${limit} returning *`;
}

/** Rows of the queue from an answer. */
export function jobsOf(answer: Exact): readonly Job[] {
  if (!isList(answer)) throw new Error(`no rows: ${writeExact(answer)}`);
  return answer.map((row) => {
    if (!isMembers(row)) throw new Error(`no row: ${writeExact(row)}`);
    const owner = row.get("owner");
    return {
      id: numberOf(row.get("id")),
      attempts: numberOf(row.get("attempts")),
      owner: typeof owner === "string" ? owner : null,
      payload: row.get("payload") ?? null,
    };
  });
}

export function idsOf(jobs: readonly { readonly id: number }[]): readonly number[] {
  return jobs.map(({ id }) => id);
}

function numberOf(value: Exact | undefined): number {
  if (!(value instanceof Digits)) throw new Error("not a number");
  return Number(value.text);
}
