/**
 * A server without its sockets: routes, held claims, engine, log, snapshots and sweeper over the simulated disk, all of
 * them on the test clock. It may die at any call to the disk, or at the very moment an answer leaves it; who waits for an
 * answer then hears nothing.
 */

import { TestClock } from "../../src/clock/clock.ts";
import { Database, type DirectoryOptions } from "../../src/engine/database.ts";
import { HeldClaims } from "../../src/hold/held_claims.ts";
import { answerBatch, answerQuery } from "../../src/http/query.ts";
import { Service } from "../../src/http/service.ts";
import { Log } from "../../src/obs/log.ts";
import { Metrics } from "../../src/obs/metrics.ts";
import { PoweredOff, type SimDisk } from "./disk.ts";

export interface Request {
  readonly path: "/query" | "/batch";
  readonly body: string;
  /** `Idempotency-Key`. */
  readonly key: string | null;
  /** `Fenec-Wait`; 0: not sent. */
  readonly waitMs: number;
}

export interface Answer {
  readonly status: number;
  readonly body: string;
  /** `Fenec-Seq`. */
  readonly seq: number | null;
  readonly replayed: boolean;
}

export type MachineOptions = Omit<DirectoryOptions, "clock" | "wall" | "readOnly" | "maxMemoryBytes">;

const CLIENT_BODY_BYTES = 1 << 20;

export class Machine {
  readonly disk: SimDisk;
  readonly clock: TestClock;
  readonly database: Database;
  /** Answers that left it. */
  answers = 0;
  /** It dies when this many have left it. */
  answersToLive = Infinity;
  readonly #service: Service;
  readonly #died: Promise<null>;
  readonly #die: () => void;

  private constructor(disk: SimDisk, clock: TestClock, database: Database) {
    this.disk = disk;
    this.clock = clock;
    this.database = database;
    const { promise, resolve } = Promise.withResolvers<null>();
    this.#died = promise;
    this.#die = () => resolve(null);
    this.#service = new Service({
      settings: {
        version: "0",
        maxBodyBytes: CLIENT_BODY_BYTES,
        maxConnections: 0,
        maxStreams: 0,
        keepaliveMs: 20_000,
        cors: null,
        slowMs: null,
      },
      clock,
      testClock: clock,
      log: new Log(() => {}),
      metrics: new Metrics(clock.now()),
      gate: null,
      audit: null,
      broken: (failure) => {
        throw failure;
      },
    });
    this.#service.ready(database.engine, new HeldClaims(database.engine, clock));
  }

  static async start(disk: SimDisk, nowMs: number, options: MachineOptions): Promise<Machine> {
    const clock = new TestClock(nowMs);
    const database = await Database.open(disk, {
      ...options,
      clock,
      wall: clock,
      readOnly: false,
      maxMemoryBytes: Infinity,
    });
    return new Machine(disk, clock, database);
  }

  /** Null: it died before it answered, or the client had gone away. */
  async ask(request: Request, gone?: AbortSignal): Promise<Answer | null> {
    const headers: Record<string, string> = { "content-length": String(Buffer.byteLength(request.body)) };
    if (request.key !== null) headers["idempotency-key"] = request.key;
    if (request.waitMs > 0) headers["fenec-wait"] = String(request.waitMs);
    const sent = new globalThis.Request(`http://127.0.0.1${request.path}`, {
      method: "POST",
      body: request.body,
      headers,
      ...(gone === undefined ? {} : { signal: gone }),
    });
    const answering = request.path === "/query" ? answerQuery(this.#service, sent) : answerBatch(this.#service, sent);
    const response = await Promise.race([answering, this.#died]);
    if (response === null || this.disk.isOff || gone?.aborted === true) return null;
    // This is the moment it leaves: whatever is not on disk now must not be in it.
    if (++this.answers >= this.answersToLive) this.disk.powerOff();
    const seq = response.headers.get("fenec-seq");
    return {
      status: response.status,
      body: await response.text(),
      seq: seq === null ? null : Number(seq),
      replayed: response.headers.get("idempotent-replayed") === "true",
    };
  }

  /** Nobody hears of it any more. */
  die(): void {
    this.disk.powerOff();
    this.#die();
  }

  /** In good order: what is held is answered, and all of it is on disk. Rejects when that was cut short. */
  async stop(): Promise<void> {
    this.#service.stop();
    await turns(4);
    this.#service.letGo();
    const died = this.disk.whenOff.then(() => {
      throw new PoweredOff();
    });
    try {
      await Promise.race([this.database.close(), died]);
    } finally {
      this.#die();
    }
  }
}

export async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise<void>((resolve) => setImmediate(resolve));
}
