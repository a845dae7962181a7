/** A service over a real engine in memory, or over one that answers as a test tells it. */

import type { Audit } from "../../src/auth/audit.ts";
import { TestClock } from "../../src/clock/clock.ts";
import type {
  BatchOutcome,
  BatchRequest,
  ChangeObserver,
  EngineContract,
  Health,
  Outcome,
  RequestContext,
} from "../../src/engine/contract.ts";
import { Engine } from "../../src/engine/engine.ts";
import { KeptAnswers } from "../../src/engine/idempotency.ts";
import { MemoryJournal } from "../../src/engine/journal.ts";
import { appOf } from "../../src/http/app.ts";
import type { Gate, Hold } from "../../src/http/seams.ts";
import { Service, type Settings } from "../../src/http/service.ts";
import type { LogCounters } from "../../src/log/log.ts";
import { Log } from "../../src/obs/log.ts";
import { Metrics } from "../../src/obs/metrics.ts";
import { Store } from "../../src/store/store.ts";
import type { Value } from "../../src/value/value.ts";

export const START_MS = Date.parse("2026-03-01T12:00:00Z");

export const OPEN_CONTEXT: RequestContext = { scope: null, idempotencyKey: null, requestHash: "" };

interface Options {
  readonly engine?: EngineContract | null;
  readonly hold?: Hold;
  readonly gate?: Gate;
  readonly audit?: Audit;
  readonly settings?: Partial<Settings>;
}

/** An app that is asked without a socket. */
export class Asked {
  readonly clock = new TestClock(START_MS);
  readonly lines: string[] = [];
  readonly service: Service;
  readonly broken: Error[] = [];
  readonly #app: ReturnType<typeof appOf>;

  constructor(options: Options = {}) {
    this.service = new Service({
      settings: {
        version: "9.9.9",
        maxBodyBytes: 1_000,
        maxConnections: 10,
        maxStreams: 2,
        keepaliveMs: 20_000,
        cors: null,
        slowMs: null,
        ...options.settings,
      },
      clock: this.clock,
      testClock: this.clock,
      log: new Log((line) => this.lines.push(line)),
      metrics: new Metrics(START_MS),
      gate: options.gate ?? null,
      audit: options.audit ?? null,
      broken: (failure) => this.broken.push(failure),
    });
    if (options.engine !== null) this.service.ready(options.engine ?? memoryEngine(this.clock), options.hold ?? null);
    this.#app = appOf(this.service);
  }

  async ask(method: string, path: string, body?: string, headers: Record<string, string> = {}): Promise<Answer> {
    const init: RequestInit = { method, headers: { ...headers } };
    if (body !== undefined) {
      init.body = body;
      init.headers = { "content-length": String(Buffer.byteLength(body)), ...headers };
    }
    const response = await this.#app.handle(new Request(`http://127.0.0.1${path}`, init));
    return { status: response.status, headers: response.headers, body: await response.text() };
  }

  /** An answer whose body is left to the test. */
  open(path: string, signal?: AbortSignal): Promise<Response> {
    return this.#app.handle(new Request(`http://127.0.0.1${path}`, signal === undefined ? {} : { signal }));
  }

  query(text: string, params: readonly unknown[] = [], headers: Record<string, string> = {}): Promise<Answer> {
    return this.ask("POST", "/query", JSON.stringify({ query: text, params }), headers);
  }
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
}

export function memoryEngine(clock: TestClock, readOnly = false): Engine {
  return new Engine({
    store: new Store(),
    journal: new MemoryJournal(),
    clock,
    seq: 0,
    readOnly,
    maxMemoryBytes: Infinity,
    answers: new KeptAnswers(86_400_000),
    compact: () => {},
  });
}

/** Answers `answer`, or throws `failure`; remembers what it was asked. */
export class ToldEngine implements EngineContract {
  answer: Outcome = {
    kind: "rows",
    body: "[]",
    batchBody: '{"rows":[]}',
    count: 0,
    wrote: 0,
    isWrite: false,
    isRead: true,
    seq: 0,
  };
  failure: unknown = undefined;
  onDisk: Promise<void> | undefined = undefined;
  unwell: string | null = null;
  seq = 0;
  tag: number | undefined = undefined;
  readonly readOnly = false;
  logged: LogCounters | null = null;
  readonly store = new Store();
  readonly asked: { text: string; params: readonly Value[]; context: RequestContext }[] = [];
  readonly #observers: ChangeObserver[] = [];

  query(text: string, params: readonly Value[], context: RequestContext): Outcome {
    this.asked.push({ text, params, context });
    if (this.failure !== undefined) throw this.failure;
    return this.answer;
  }

  batch(requests: readonly BatchRequest[], context: RequestContext): BatchOutcome {
    const outcomes = requests.map(({ text, params }) => this.query(text, params, context));
    return { outcomes, seq: this.seq, wrote: 0, isRead: true };
  }

  durable(isRead = false): Promise<void> | undefined {
    return isRead && this.unwell !== null ? undefined : this.onDisk;
  }

  collections(): string {
    return "[]";
  }

  names(): readonly string[] {
    return [];
  }

  schemaOf(): undefined {
    return undefined;
  }

  health(): Health {
    return this.unwell === null ? { ok: true } : { ok: false, code: "disk_failed", why: this.unwell };
  }

  watch(observer: ChangeObserver): () => void {
    this.#observers.push(observer);
    return () => {};
  }

  change(seq: number): void {
    this.seq = seq;
    for (const observer of this.#observers) observer([], seq);
  }

  readTag(): number | undefined {
    return this.tag;
  }

  async close(): Promise<void> {}
}
