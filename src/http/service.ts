/**
 * The server as its routes see it. It is in one of three states:
 *
 * - `loading`: it listens, and has no data yet. Health says how far it is; all else is refused (503, `loading`).
 *   `ready` leads out of it.
 * - `ready`: it answers. `stop` leads out of it.
 * - `stopping`: what is being answered is answered, held requests at once; a new connection finds nobody. Requests on
 *   connections there were are still run until the data is let go of, and then refused (503, `stopping`).
 */

import type { Audit } from "../auth/audit.ts";
import { AssertionFailure } from "../base/assert.ts";
import { Refusal } from "../base/refusal.ts";
import type { Clock, TestClock } from "../clock/clock.ts";
import type { EngineContract, Outcome } from "../engine/contract.ts";
import type { Log } from "../obs/log.ts";
import type { Metrics, StatementKind } from "../obs/metrics.ts";
import { QueueGauges } from "../obs/queue_gauges.ts";
import { Answers } from "./answer.ts";
import { ChangeStreams } from "./change_streams.ts";
import { type Gate, type Hold, type Identity, OPEN } from "./seams.ts";
import { SequenceWait } from "./sequence_wait.ts";

export interface Settings {
  readonly version: string;
  readonly maxBodyBytes: number;
  /** Requests answered at once; 0: no bound. Streams have a bound of their own. */
  readonly maxConnections: number;
  readonly maxStreams: number;
  /** Between two comments on a stream that has nothing to say. */
  readonly keepaliveMs: number;
  /** The origin that may read answers, `*` for any, null for none. */
  readonly cors: string | null;
  /** A statement that takes longer is logged; null: none is. */
  readonly slowMs: number | null;
}

export interface Parts {
  readonly settings: Settings;
  readonly clock: Clock;
  /** The same clock when it is one that is moved by `POST /_clock`. */
  readonly testClock: TestClock | null;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly gate: Gate | null;
  /** Told of refusals of 401 and 403, and of changes to collections. */
  readonly audit: Audit | null;
  /** Ends the process: an assumption of the server is broken, and what it holds in memory cannot be trusted. */
  readonly broken: (failure: AssertionFailure) => void;
}

/** What of Bun's server the routes ask. */
interface Listener {
  /** Requests being answered. Bun tells of no sockets: a connection between two requests is not counted. */
  readonly pendingRequests: number;
  /** After how many silent seconds the request's connection is closed; 0: never. */
  timeout(request: Request, seconds: number): void;
}

/** Characters of a slow statement's text in the log. */
const LOGGED_TEXT = 500;

export class Service {
  readonly settings: Settings;
  readonly clock: Clock;
  readonly testClock: TestClock | null;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly gate: Gate | null;
  readonly audit: Audit | null;
  readonly answers: Answers;
  /** Undefined until the app listens. */
  listener: Listener | undefined;
  #state: "loading" | "ready" | "stopping" = "loading";
  #data: Data | undefined;
  #progress: () => number = () => 0;
  readonly #broken: (failure: AssertionFailure) => void;
  /** Who sent what is being answered, for the audit. */
  readonly #askers = new WeakMap<Request, Identity>();

  constructor(parts: Parts) {
    this.settings = parts.settings;
    this.clock = parts.clock;
    this.testClock = parts.testClock;
    this.log = parts.log;
    this.metrics = parts.metrics;
    this.gate = parts.gate;
    this.audit = parts.audit;
    this.answers = new Answers(parts.settings.cors);
    this.#broken = parts.broken;
  }

  /** While loading: how far it is, from 0 to 1. */
  loading(progress: () => number): void {
    this.#progress = progress;
  }

  ready(engine: EngineContract, hold: Hold | null): void {
    const queues = new QueueGauges(engine.store);
    engine.watch((change) => queues.changed(change));
    const streams = new ChangeStreams(engine, this.clock, this.settings.keepaliveMs, (error) => this.refusalOf(error));
    this.#data = { engine, hold, queues, streams, sequence: new SequenceWait(this.clock, engine) };
    this.#state = "ready";
  }

  /** Answers what is held, and holds nothing from now on. */
  stop(): void {
    this.#state = "stopping";
    this.#data?.hold?.release();
    this.#data?.sequence.release();
    this.#data?.streams.release();
  }

  /** Nothing is run from now on. */
  letGo(): void {
    this.#data = undefined;
  }

  get stopping(): boolean {
    return this.#state === "stopping";
  }

  /** What a request is run against. Refuses it (503) when there is no data yet, or too many are being answered. */
  data(): Data {
    const data = this.#data;
    if (data === undefined) {
      if (this.#state === "loading") throw new Refusal("loading", `loading: ${this.progressWords()}`);
      throw new Refusal("stopping", "the server is stopping");
    }
    const most = this.settings.maxConnections;
    if (most > 0 && this.connections - data.streams.count > most) {
      throw new Refusal("overloaded", `${most} requests are being answered, the most this server takes at once`);
    }
    return data;
  }

  /** The data, if it is there. */
  get open(): Data | undefined {
    return this.#data;
  }

  progressWords(): string {
    return `${Math.floor(Math.min(1, this.#progress()) * 100)} %`;
  }

  get connections(): number {
    return this.listener?.pendingRequests ?? 0;
  }

  identity(request: Request): Identity | Promise<Identity> {
    const who = this.gate === null ? OPEN : this.gate.authorize(request);
    if (this.audit === null) return who;
    const noted = (identity: Identity): Identity => {
      this.#askers.set(request, identity);
      return identity;
    };
    return who instanceof Promise ? who.then(noted) : noted(who);
  }

  /** Counts a statement that was answered, and logs a slow one. */
  answered(kind: StatementKind, startMs: number, text: string): void {
    const tookMs = performance.now() - startMs;
    this.metrics.statement(kind, tookMs / 1_000);
    if (this.settings.slowMs !== null && tookMs >= this.settings.slowMs) {
      this.metrics.slow();
      this.log.warn("slow statement", { ms: Math.round(tookMs), kind, text: text.slice(0, LOGGED_TEXT) });
    }
  }

  /** Tells the audit of a statement that was run, where it was about a collection and not its rows. */
  audited(request: Request, text: string, { kind, replayed, wrote }: Outcome): void {
    if (this.audit === null || kind !== "message" || replayed === true) return;
    this.audit.ran(request, this.#askers.get(request) ?? null, text, wrote > 0);
  }

  /** The answer to a request that failed, whatever was thrown. */
  failed(error: unknown, request: Request): Response {
    const refusal = this.refusalOf(error);
    if (this.audit !== null && (refusal.status === 401 || refusal.status === 403)) {
      this.audit.refused(request, this.#askers.get(request) ?? null, refusal);
    }
    return this.answers.refusal(refusal);
  }

  refusalOf(error: unknown): Refusal {
    if (error instanceof Refusal) return error;
    this.log.error("a request failed in a way it never should", {}, error);
    if (error instanceof AssertionFailure) this.#broken(error);
    return new Refusal("internal", "the server failed; its log says how");
  }
}

export interface Data {
  readonly engine: EngineContract;
  readonly hold: Hold | null;
  readonly queues: QueueGauges;
  readonly sequence: SequenceWait;
  readonly streams: ChangeStreams;
}
