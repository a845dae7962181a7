/**
 * A data directory in use: what recovery found, the log behind it, the snapshots taken of it, and the engine over all of
 * them, put together in one place, so that the simulation of a server runs what a server runs.
 */

import { ByteReader } from "../base/bytes.ts";
import { type Clock, type RunningClock, WallClock } from "../clock/clock.ts";
import type { Damage } from "../log/damage.ts";
import type { Disk } from "../log/disk.ts";
import type { Log, SyncPolicy } from "../log/log.ts";
import { Store } from "../store/store.ts";
import { Checkpoint, type Taken } from "./checkpoint.ts";
import { Engine } from "./engine.ts";
import { ANSWERS_PART, KeptAnswers } from "./idempotency.ts";
import { MemoryJournal } from "./journal.ts";
import { openStore } from "./recovery.ts";
import { Sweeper } from "./sweeper.ts";

export interface DatabaseOptions {
  /** The time statements see. */
  readonly clock: Clock;
  /** The time of the disk: when syncs and snapshots are due. The real clock, also where statements run on another. */
  readonly wall?: RunningClock;
  readonly readOnly: boolean;
  /** Infinity: no ceiling. */
  readonly maxMemoryBytes: number;
  readonly idempotencyTtlMs: number;
}

/** Absent members are the limits of `base/limits.ts`. */
export interface DirectoryOptions extends DatabaseOptions {
  readonly sync: SyncPolicy;
  readonly segmentBytes?: number;
  readonly reserveBytes?: number;
  readonly standStillMs?: number;
  /** A snapshot is due once so much was logged since the last one, or half of its size, whichever is more. */
  readonly snapshotBytes?: number;
  /** And once this time has gone by, if anything was logged. */
  readonly snapshotMs?: number;
  /** Rows of a snapshot written in one turn. */
  readonly sliceRows?: number;
  /** How far it is, from 0 to 1. */
  readonly onProgress?: (share: number) => void;
  readonly onSnapshot?: (taken: Taken) => void;
  /** A snapshot that could not be written: the log goes on, and it is tried again. Or an assertion that broke. */
  readonly onSnapshotFailed?: (why: unknown) => void;
}

export class Database {
  readonly engine: Engine;
  /** What the engine writes to; null when nothing is kept. */
  readonly log: Log | null;
  /** Snapshots that were passed over as they are not whole. */
  readonly passedOver: readonly Damage[];
  readonly #sweeper: Sweeper;
  readonly #letGo: () => Promise<void>;

  private constructor(
    engine: Engine,
    options: DatabaseOptions,
    log: Log | null,
    passedOver: readonly Damage[],
    letGo: () => Promise<void>,
  ) {
    this.engine = engine;
    this.log = log;
    this.passedOver = passedOver;
    this.#sweeper = new Sweeper(engine, options.clock);
    this.#letGo = letGo;
    if (!options.readOnly) this.#sweeper.start();
  }

  /**
   * Opens a directory; the disk is the database's from here on, and stays so when this throws.
   *
   * @throws Damage where going on would lose something that was confirmed
   */
  static async open(disk: Disk, options: DirectoryOptions): Promise<Database> {
    const { clock, sync, segmentBytes, reserveBytes, standStillMs, snapshotBytes, snapshotMs, sliceRows } = options;
    const wall = options.wall ?? new WallClock();
    const answers = new KeptAnswers(options.idempotencyTtlMs);
    const { store, log, seq, snapshot, passedOver } = await openStore(disk, {
      sync,
      clock,
      wall,
      ...(segmentBytes === undefined ? {} : { segmentBytes }),
      ...(reserveBytes === undefined ? {} : { reserveBytes }),
      ...(standStillMs === undefined ? {} : { standStillMs }),
      ...(options.onProgress === undefined ? {} : { onProgress: options.onProgress }),
      onBlock: (tag, data) => {
        if (tag === ANSWERS_PART) answers.restore(new ByteReader(data));
      },
      onRecord: (record) => answers.keep(record),
    });
    const checkpoint = new Checkpoint({
      disk,
      log,
      store,
      parts: [{ tag: ANSWERS_PART, begin: () => answers.begin() }],
      newest: snapshot,
      clock,
      wall,
      ...(snapshotBytes === undefined ? {} : { logBytes: snapshotBytes }),
      ...(snapshotMs === undefined ? {} : { intervalMs: snapshotMs }),
      ...(sliceRows === undefined ? {} : { sliceRows }),
      ...(options.onSnapshot === undefined ? {} : { onTaken: options.onSnapshot }),
      ...(options.onSnapshotFailed === undefined ? {} : { onFailed: options.onSnapshotFailed }),
    });
    const engine = engineOf(options, store, log, seq, answers, () => checkpoint.take());
    if (!options.readOnly) checkpoint.start();
    return new Database(engine, options, log, passedOver, () => closed(disk, log, checkpoint));
  }

  /** One that keeps nothing. */
  static inMemory(options: DatabaseOptions): Database {
    const answers = new KeptAnswers(options.idempotencyTtlMs);
    const engine = engineOf(options, new Store(), new MemoryJournal(), 0, answers, () => {});
    return new Database(engine, options, null, [], async () => {});
  }

  /** Syncs what was written and lets go of the directory. Rejects when not all is on disk. */
  async close(): Promise<void> {
    this.#sweeper.stop();
    await this.#letGo();
  }
}

function engineOf(
  { clock, readOnly, maxMemoryBytes }: DatabaseOptions,
  store: Store,
  journal: Log | MemoryJournal,
  seq: number,
  answers: KeptAnswers,
  compact: () => unknown,
): Engine {
  return new Engine({ store, journal, clock, seq, readOnly, maxMemoryBytes, answers, compact });
}

async function closed(disk: Disk, log: Log, checkpoint: Checkpoint): Promise<void> {
  await checkpoint.stop();
  await log.close();
  disk.close();
  if (log.failure !== null) throw new Error(log.failure);
}
