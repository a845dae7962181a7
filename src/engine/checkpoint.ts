/**
 * Snapshots while statements run: the store is walked in slices, one a turn of the event loop, so that no statement waits
 * for longer than a slice takes. When it stands, the older snapshots and the log that only they needed are removed.
 *
 * Statements between two slices leave rows of several moments in the file; the frames of that time go behind them (see
 * `log/snapshot.ts`), which `Store.replay` brings to one moment. A change of schema in between would leave rows of two
 * shapes, so the snapshot is begun anew; after `RESTARTS` of that it is written in one go, and statements wait for it.
 *
 * | state   | what it is | what leads out |
 * | ------- | ---------- | -------------- |
 * | idle    | looks every so often whether it is time | enough log or time since the last snapshot, or somebody asks |
 * | writing | one snapshot is being written; whoever asks now gets another one behind it | done, or the disk refused: idle |
 * | stopped | | |
 */

import { AssertionFailure, assert } from "../base/assert.ts";
import { ByteWriter } from "../base/bytes.ts";
import { CHECKPOINT_LOG_BYTES, CHECKPOINT_MS } from "../base/limits.ts";
import { Refusal } from "../base/refusal.ts";
import { type Clock, type Scheduled, WallClock } from "../clock/clock.ts";
import { type Disk, saysFull } from "../log/disk.ts";
import type { Log } from "../log/log.ts";
import { SnapshotWriter, snapshotNames } from "../log/snapshot.ts";
import { encodeHead, encodeSlice, type Place, START } from "../store/state.ts";
import type { Store } from "../store/store.ts";

/** Tags of a snapshot's blocks. Numbers on disk: only ever append. */
export const STATE_HEAD = 1;
export const STATE_SLICE = 2;

/** A slice: about a millisecond of work. */
const SLICE_ROWS = 1_000;
const SLICE_BYTES = 256 * 1024;
/** Between two tries after the disk refused one. */
const RETRY_MS = 60_000;
/** Frames copied in one turn: a millisecond or two of work as well. */
const TURN_FRAMES = 1_000;
const TURN_FRAME_BYTES = 128 * 1024;
const RESTARTS = 3;
/** How often it is looked whether it is time. */
const LOOK_MS = 1_000;

/** What else belongs in a snapshot, written behind the rows. */
export interface SnapshotPart {
  /** From 16 on. */
  readonly tag: number;
  /**
   * Begins to write it; the answer writes a piece at a time, as a block each, and says false when there was nothing more
   * to write. What is changed between two pieces comes again with the frames of that time.
   */
  begin(): (w: ByteWriter) => boolean;
}

export interface CheckpointOptions {
  readonly disk: Disk;
  readonly log: Log;
  readonly store: Store;
  readonly parts?: readonly SnapshotPart[];
  /** Name and size of the newest whole snapshot there is. */
  readonly newest: { readonly name: string; readonly position: number; readonly bytes: number } | null;
  /** A snapshot is due once this much was logged since the last one, or half of its size, whichever is more. */
  readonly logBytes?: number;
  /** And once this time has gone by, if anything was logged. */
  readonly intervalMs?: number;
  /** Gives the times in the heads of files. */
  readonly clock?: Clock;
  /** When to look and how long it has been. The real clock, also where statements run on another. */
  readonly wall?: Clock;
  /** Rows walked in one turn. */
  readonly sliceRows?: number;
  readonly onTaken?: (taken: Taken) => void;
  /** A snapshot that could not be written: the log goes on, and it is tried again. Or an assertion that broke. */
  readonly onFailed?: (why: unknown) => void;
}

export interface Taken {
  readonly name: string;
  readonly position: number;
  readonly bytes: number;
  readonly tookMs: number;
}

export class Checkpoint {
  readonly #disk: Disk;
  readonly #log: Log;
  readonly #store: Store;
  readonly #parts: readonly SnapshotPart[];
  readonly #logBytes: number;
  readonly #intervalMs: number;
  readonly #clock: Clock;
  readonly #wall: Clock;
  readonly #sliceRows: number;
  readonly #onTaken: (taken: Taken) => void;
  readonly #onFailed: (why: unknown) => void;
  #newest: CheckpointOptions["newest"];
  #writing: Promise<void> | null = null;
  #queued: Promise<void> | null = null;
  #timer: Scheduled | null = null;
  #lastMs: number;
  #failedMs = -Infinity;
  #stopped = false;
  #taken = 0;

  constructor(options: CheckpointOptions) {
    this.#disk = options.disk;
    this.#log = options.log;
    this.#store = options.store;
    this.#parts = options.parts ?? [];
    this.#newest = options.newest;
    this.#logBytes = options.logBytes ?? CHECKPOINT_LOG_BYTES;
    this.#intervalMs = options.intervalMs ?? CHECKPOINT_MS;
    this.#wall = options.wall ?? new WallClock();
    this.#clock = options.clock ?? this.#wall;
    this.#sliceRows = options.sliceRows ?? SLICE_ROWS;
    this.#onTaken = options.onTaken ?? (() => {});
    this.#onFailed = options.onFailed ?? (() => {});
    this.#lastMs = this.#wall.now();
  }

  /** Snapshots written in this run. */
  get taken(): number {
    return this.#taken;
  }

  /** Looks every second from now on whether one is due. */
  start(): void {
    this.#timer = this.#wall.after(LOOK_MS, () => {
      if (this.#stopped) return;
      if (this.#isDue()) void this.take().catch(() => {});
      this.start();
    });
  }

  /** No more snapshots; resolves when none is being written any longer. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    await this.#writing?.catch(() => {});
  }

  /**
   * Writes a snapshot of a moment not before this call. Resolves when it stands and what it replaces is gone; rejects
   * with a Refusal (`disk_full`, `disk_failed`), or a broken assertion, after `onFailed` was told what went wrong.
   */
  take(): Promise<void> {
    if (this.#writing === null) {
      this.#writing = this.#take().finally(() => {
        this.#writing = null;
      });
      return this.#writing;
    }
    // The one under way may have passed rows that were written since.
    this.#queued ??= this.#writing
      .catch(() => {})
      .then(() => {
        this.#queued = null;
        return this.take();
      });
    return this.#queued;
  }

  #isDue(): boolean {
    const bytes = this.#log.bytesSinceSnapshot;
    if (bytes === 0 || this.#writing !== null || this.#log.failure !== null) return false;
    if (this.#wall.now() - this.#failedMs < RETRY_MS) return false;
    if (bytes >= Math.max(this.#logBytes, (this.#newest?.bytes ?? 0) / 2)) return true;
    return this.#wall.now() - this.#lastMs >= this.#intervalMs;
  }

  async #take(): Promise<void> {
    if (this.#stopped) return;
    this.#lastMs = this.#wall.now();
    const calm = this.#log.crowd();
    try {
      await this.#log.rotate();
      if (this.#log.appended === (this.#newest?.position ?? 0)) return;
      const startedMs = performance.now();
      const previous = this.#newest;
      let taken: { name: string; position: number; bytes: number } | null = null;
      for (let tries = 0; taken === null; tries++) {
        if (this.#stopped) return;
        taken = await this.#write(tries >= RESTARTS);
      }
      this.#newest = taken;
      this.#taken++;
      this.#log.snapshotTaken(taken.position);
      this.#prune(previous);
      this.#onTaken({ ...taken, tookMs: performance.now() - startedMs });
    } catch (error) {
      this.#failedMs = this.#wall.now();
      this.#onFailed(error);
      throw error instanceof Refusal || error instanceof AssertionFailure ? error : refusalOf(error);
    } finally {
      calm();
    }
  }

  /** Null when a change of schema came in between. */
  async #write(atOnce: boolean): Promise<{ name: string; position: number; bytes: number } | null> {
    const begun = this.#log.appended;
    const { schemaVersion } = this.#store;
    const writer = new SnapshotWriter(this.#disk, { begun, createdMs: this.#clock.now(), history: this.#log.history });
    try {
      const w = new ByteWriter(2 * SLICE_BYTES);
      const write = (tag: number): void => {
        writer.write(tag, w.view());
        w.reset();
      };
      encodeHead(w, this.#store);
      write(STATE_HEAD);
      const stale = (): boolean => this.#stopped || this.#store.schemaVersion !== schemaVersion;
      let place: Place | undefined = START;
      for (;;) {
        place = encodeSlice(w, this.#store, place, this.#sliceRows, SLICE_BYTES);
        if (place === undefined) break;
        write(STATE_SLICE);
        if (atOnce) continue;
        await (writer.pace() ?? turn());
        if (stale()) return null;
      }
      for (const part of this.#parts) {
        const next = part.begin();
        while (next(w)) {
          write(part.tag);
          if (atOnce) continue;
          await (writer.pace() ?? turn());
          if (stale()) return null;
        }
      }
      // From here on the rows are written: what comes later is the log's alone.
      const position = this.#log.appended;
      const { seq } = this.#log;
      await this.#log.sync();
      let copied = begun;
      while (copied < position) {
        const from = copied;
        let bytes = 0;
        this.#log.read(copied + 1, (frame) => {
          writer.writeFrame(frame);
          copied = frame.position;
          bytes += frame.payload.length;
          return copied < position && copied - from < TURN_FRAMES && bytes < TURN_FRAME_BYTES;
        });
        assert(copied > from, "the log reads back what a sync of it covered");
        await (writer.pace() ?? turn());
      }
      const name = await writer.finish(position, seq, this.#timeOf(position), turn);
      return { name, position, bytes: writer.bytes };
    } finally {
      // Nothing is left to abandon once it has its name.
      writer.abandon();
    }
  }

  #timeOf(position: number): number {
    let atMs = this.#clock.now();
    if (position < this.#log.first) return atMs;
    this.#log.read(position, (frame) => {
      atMs = frame.atMs;
      return false;
    });
    return atMs;
  }

  /** Keeps the newest two, and the log from the older one on. */
  #prune(previous: CheckpointOptions["newest"]): void {
    const kept = [this.#newest, previous];
    for (const name of snapshotNames(this.#disk)) {
      if (!kept.some((snapshot) => snapshot?.name === name)) this.#disk.remove(name);
    }
    // Without an older snapshot the whole log stands in for it.
    if (previous !== null) this.#log.removeUpTo(previous.position);
  }
}

function refusalOf(error: unknown): Refusal {
  const why = error instanceof Error ? error.message : String(error);
  const code = saysFull(error) ? "disk_full" : "disk_failed";
  return new Refusal(code, `the snapshot could not be written, the log is as it was: ${why}`);
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
