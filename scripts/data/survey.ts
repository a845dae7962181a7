/** What is in a data directory, found without changing anything: snapshots whole or not, and the log behind one. */

import { existsSync, readdirSync, statSync } from "node:fs";
import { readPayload } from "../../src/engine/payload.ts";
import { loadSnapshot } from "../../src/engine/recovery.ts";
import { Damage } from "../../src/log/damage.ts";
import type { Disk } from "../../src/log/disk.ts";
import type { Frame } from "../../src/log/frame.ts";
import { LOCK_NAME } from "../../src/log/lock.ts";
import { type LogScan, scanLog } from "../../src/log/scan.ts";
import { segmentFirst } from "../../src/log/segment.ts";
import { Snapshot, snapshotNames, snapshotPosition } from "../../src/log/snapshot.ts";
import { Catalog } from "../../src/store/encoding.ts";
import { Store } from "../../src/store/store.ts";
import { CannotDo } from "./command.ts";

export interface Snapshots {
  /** Newest first. */
  readonly whole: readonly Snapshot[];
  readonly broken: readonly Damage[];
}

export function snapshotsOf(disk: Disk): Snapshots {
  const whole: Snapshot[] = [];
  const broken: Damage[] = [];
  for (const name of snapshotNames(disk)) {
    try {
      whole.push(Snapshot.open(disk, name));
    } catch (error) {
      if (!(error instanceof Damage)) throw error;
      broken.push(error);
    }
  }
  return { whole, broken };
}

/** A run of frames: how many, and the first and the last. */
export interface Span {
  frames: number;
  first: number;
  last: number;
  firstMs: number;
  lastMs: number;
}

export interface Followed {
  readonly scan: LogScan;
  readonly damages: readonly Damage[];
  /** Frames that follow the snapshot without a gap. */
  readonly kept: Span | null;
  /** Good frames behind a gap: nothing leads to them. */
  readonly lost: Span | null;
}

/** Reads the log behind a snapshot (null: from its beginning), past all damage; `onFrame` gets the frames kept. */
export function followLog(disk: Disk, snapshot: Snapshot | null, onFrame: (frame: Frame) => void): Followed {
  const damages: Damage[] = [];
  let next = (snapshot?.position ?? 0) + 1;
  let kept: Span | null = null;
  let lost: Span | null = null;
  const scan = scanLog(
    disk,
    snapshot?.position ?? 0,
    snapshot?.head.history ?? null,
    (frame) => {
      if (frame.position === next) {
        kept = extended(kept, frame);
        next++;
        onFrame(frame);
      } else lost = extended(lost, frame);
    },
    (damage) => damages.push(damage),
  );
  return { scan, damages, kept, lost };
}

function extended(span: Span | null, frame: Frame): Span {
  if (span === null) {
    const { position, atMs } = frame;
    return { frames: 1, first: position, last: position, firstMs: atMs, lastMs: atMs };
  }
  span.frames++;
  span.last = frame.position;
  span.lastMs = frame.atMs;
  return span;
}

export function spanText(span: Span): string {
  const time = (ms: number): string => new Date(ms).toISOString();
  return `${span.frames} frames, positions ${span.first} to ${span.last}, written ${time(span.firstMs)} to ${time(span.lastMs)}`;
}

/** A store that frames are applied to as they are read. */
export class Replayed {
  readonly store = new Store();
  readonly #catalog: Catalog;
  /** The first frame that could not be applied: bytes in order, contents not. */
  wrong: string | null = null;

  constructor(snapshot: Snapshot | null) {
    if (snapshot !== null) for (const _ of loadSnapshot(snapshot, this.store, () => {}));
    this.#catalog = new Catalog(this.store.tables().map((table) => table.schema));
  }

  apply(frame: Frame): void {
    if (this.wrong !== null) return;
    try {
      readPayload(frame.payload, this.#catalog, (change) => this.store.apply(change));
    } catch (error) {
      this.wrong = `the frame of position ${frame.position} does not apply: ${error instanceof Error ? error.message : error}`;
    }
  }

  get text(): string {
    const tables = this.store.tables();
    const rows = tables.reduce((sum, table) => sum + table.count, 0);
    return `${rows} rows in ${tables.length} collections`;
  }
}

/** The path again, if a server has ever begun to keep data there: its lock is the first file it makes. */
export function directoryAt(path: string): string {
  if (!existsSync(path) || !statSync(path).isDirectory()) throw new CannotDo(`${path} is no directory`);
  const isOurs = (name: string): boolean =>
    segmentFirst(name) !== undefined || snapshotPosition(name) !== undefined || name === LOCK_NAME;
  if (!readdirSync(path).some(isOurs)) {
    throw new CannotDo(`${path} is no data directory: it holds no log (redo-*.log) and no snapshot (snapshot-*.fsnap)`);
  }
  return path;
}
