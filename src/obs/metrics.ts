/**
 * What the server counts about itself, and `GET /_metrics`. What rises is counted here as it happens; what stands (rows,
 * queues, memory) is read when it is asked for.
 */

import type { Store } from "../store/store.ts";
import { Exposition } from "./exposition.ts";
import { Histogram } from "./histogram.ts";
import type { QueueState } from "./queue_gauges.ts";

/** A statement that may write counts as a write, whether it wrote or not. A batch is one statement. */
export type StatementKind = "read" | "write";

export interface HeldCounts {
  readonly held: number;
  readonly looks: number;
  readonly runs: number;
}

/** What the redo log has written since the start. */
export interface LoggedCounts {
  readonly frames: number;
  readonly bytes: number;
  readonly syncs: number;
  readonly syncMs: number;
  readonly fileBytes: number;
}

/** What stands at the moment of a scrape. */
export interface MetricsSource {
  readonly version: string;
  /** Requests being answered, held ones too. */
  readonly connections: number;
  readonly streams: number;
  readonly store: Store;
  readonly queues: readonly QueueState[];
  readonly seq: number;
  readonly storageFailed: boolean;
  /** Null: nothing is logged. */
  readonly logged: LoggedCounts | null;
  readonly held: HeldCounts;
}

const TRANSPORT = ["transport", "http"] as const;

class KindCounts {
  statements = 0;
  errors = 0;
  readonly seconds = new Histogram();
}

export class Metrics {
  readonly #startMs: number;
  readonly #read = new KindCounts();
  readonly #write = new KindCounts();
  readonly #wakes = new Histogram();
  #slow = 0;

  constructor(startMs: number) {
    this.#startMs = startMs;
  }

  /** One statement answered, after this long. */
  statement(kind: StatementKind, seconds: number): void {
    const counts = kind === "write" ? this.#write : this.#read;
    counts.statements++;
    counts.seconds.observe(seconds);
  }

  /** One statement answered that was held: how long it waited says nothing about the server. */
  heldStatement(): void {
    this.#write.statements++;
  }

  /** A held claim that took something could be answered so long after it could take it. */
  heldWoken(seconds: number): void {
    this.#wakes.observe(seconds);
  }

  /** One statement refused. */
  error(kind: StatementKind): void {
    const counts = kind === "write" ? this.#write : this.#read;
    counts.statements++;
    counts.errors++;
  }

  slow(): void {
    this.#slow++;
  }

  render(source: MetricsSource): string {
    const out = new Exposition();
    this.#statements(out);
    out.single("fenec_change_sequence", "gauge", "The change counter.", source.seq);
    out.single(
      "fenec_storage_failed",
      "gauge",
      "1 once the disk refused a write or a sync.",
      source.storageFailed ? 1 : 0,
    );
    if (source.logged !== null) logged(out, source.logged);
    out.family("fenec_connections", "gauge", "Requests being answered, held claims and streams included.");
    out.sample("fenec_connections", [TRANSPORT], source.connections);
    out.single("fenec_streams", "gauge", "Open change streams.", source.streams);
    out.single("fenec_held_claims", "gauge", "Requests held for a job now.", source.held.held);
    out.single("fenec_held_looks_total", "counter", "Looks of held requests for a job.", source.held.looks);
    out.single("fenec_held_runs_total", "counter", "Times a held request was run again.", source.held.runs);
    const wake = "fenec_held_wake_seconds";
    out.family(wake, "histogram", "From a job being there for a held request to its answer, the disk included.");
    this.#wakes.write(out, wake, []);
    tables(out, source.store);
    queues(out, source.queues);
    out.single("fenec_memory_bytes", "gauge", "Resident memory of the process.", process.memoryUsage.rss());
    out.family("fenec_build_info", "gauge", "1, under the version that runs.");
    out.sample("fenec_build_info", [["version", source.version]], 1);
    out.single("fenec_start_time_seconds", "gauge", "When the server started, epoch seconds.", this.#startMs / 1_000);
    return out.toString();
  }

  #statements(out: Exposition): void {
    const kinds = [
      [[TRANSPORT, ["kind", "read"]], this.#read],
      [[TRANSPORT, ["kind", "write"]], this.#write],
    ] as const;
    out.family("fenec_statements_total", "counter", "Statements, refused ones too; a batch is one.");
    for (const [labels, counts] of kinds) out.sample("fenec_statements_total", labels, counts.statements);
    out.family("fenec_statement_errors_total", "counter", "Statements refused.");
    for (const [labels, counts] of kinds) out.sample("fenec_statement_errors_total", labels, counts.errors);
    const duration = "fenec_statement_duration_seconds";
    out.family(duration, "histogram", "From the request read to its answer on disk; held requests are left out.");
    for (const [labels, counts] of kinds) counts.seconds.write(out, duration, labels);
    out.family("fenec_slow_statements_total", "counter", "Statements that took longer than --slow-ms.");
    out.sample("fenec_slow_statements_total", [TRANSPORT], this.#slow);
  }
}

function logged(out: Exposition, { frames, bytes, syncs, syncMs, fileBytes }: LoggedCounts): void {
  out.single("fenec_log_frames_total", "counter", "Changes written to the redo log.", frames);
  out.single("fenec_log_bytes_total", "counter", "Bytes of those.", bytes);
  out.single("fenec_log_syncs_total", "counter", "Syncs of the redo log; one does for all changes before it.", syncs);
  out.single("fenec_log_sync_seconds_total", "counter", "How long those took together.", syncMs / 1_000);
  out.single("fenec_file_bytes", "gauge", "Size of the files of the data directory.", fileBytes);
}

function tables(out: Exposition, store: Store): void {
  const all = store.tables();
  out.family("fenec_documents", "gauge", "Rows of a collection, expired ones not yet swept included.");
  for (const table of all) out.sample("fenec_documents", [["collection", table.schema.name]], table.count);
  out.family("fenec_data_bytes", "gauge", "Memory of a collection's rows and indexes; an estimate.");
  for (const table of all) out.sample("fenec_data_bytes", [["collection", table.schema.name]], table.memoryBytes);
}

const QUEUE_FAMILIES: readonly (readonly [name: string, help: string, of: (state: QueueState) => number])[] = [
  ["fenec_queue_ready", "Jobs a claim could take now.", (state) => state.ready],
  ["fenec_queue_delayed", "Jobs whose time is ahead and that nobody holds.", (state) => state.delayed],
  ["fenec_queue_leased", "Jobs somebody holds.", (state) => state.leased],
  ["fenec_queue_dead", "Jobs without a ready time: done, or dead letters.", (state) => state.dead],
  [
    "fenec_queue_oldest_ready_seconds",
    "How long the oldest ready job has been ready; 0 when none is.",
    (state) => state.oldestReadySeconds,
  ],
];

function queues(out: Exposition, states: readonly QueueState[]): void {
  for (const [name, help, of] of QUEUE_FAMILIES) {
    out.family(name, "gauge", help);
    for (const state of states) out.sample(name, [["collection", state.collection]], of(state));
  }
}
