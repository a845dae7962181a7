/**
 * From a data directory to a running store: the newest whole snapshot, then the log behind it. It gives others their turn
 * every few milliseconds, so that a server answers that it is loading, and how far it is.
 *
 * A newest snapshot that is not whole is passed over where the one before it and the log since, or the whole log alone,
 * lead to the same state; otherwise the start stops there.
 */

import { ByteReader } from "../base/bytes.ts";
import type { Clock, RunningClock } from "../clock/clock.ts";
import { Damage, REPAIR_NAME } from "../log/damage.ts";
import { misplaced } from "../log/data_files.ts";
import type { Disk } from "../log/disk.ts";
import type { Frame } from "../log/frame.ts";
import { Log, type SyncPolicy } from "../log/log.ts";
import { segmentFirst } from "../log/segment.ts";
import { isUnfinishedSnapshot, Snapshot, snapshotNames } from "../log/snapshot.ts";
import type { Change } from "../store/change.ts";
import { Catalog } from "../store/encoding.ts";
import { StateLoader } from "../store/state.ts";
import { Store } from "../store/store.ts";
import { STATE_HEAD, STATE_SLICE } from "./checkpoint.ts";
import type { KeptAnswer } from "./idempotency.ts";
import { PayloadReader } from "./payload.ts";

export interface RecoveryOptions {
  readonly sync?: SyncPolicy;
  readonly segmentBytes?: number;
  readonly reserveBytes?: number;
  readonly standStillMs?: number;
  readonly clock?: Clock;
  readonly wall?: RunningClock;
  /** Blocks of a snapshot that are not the store's: see `SnapshotPart`. */
  readonly onBlock?: (tag: number, data: Uint8Array) => void;
  /** Records of idempotency keys, in the order they were kept. */
  readonly onRecord?: (record: KeptAnswer) => void;
  /** From 0 to 1, never less than before. */
  readonly onProgress?: (share: number) => void;
}

export interface Opened {
  readonly store: Store;
  readonly log: Log;
  /** The change counter. */
  readonly seq: number;
  /** The snapshot it began with. */
  readonly snapshot: { readonly name: string; readonly position: number; readonly bytes: number } | null;
  /** Snapshots that were passed over as they are not whole. */
  readonly passedOver: readonly Damage[];
}

/** Work between two turns of the event loop. */
const TURN_MS = 10;

/**
 * @throws Damage where going on would lose something that was confirmed; nothing is changed then
 */
export async function openStore(disk: Disk, options: RecoveryOptions = {}): Promise<Opened> {
  const steps = openInSteps(disk, options);
  let turnAt = performance.now() + TURN_MS;
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
    if (performance.now() < turnAt) continue;
    await new Promise<void>((resolve) => setImmediate(resolve));
    turnAt = performance.now() + TURN_MS;
  }
}

function* openInSteps(disk: Disk, options: RecoveryOptions): Generator<void, Opened, undefined> {
  if (disk.list().includes(REPAIR_NAME)) {
    throw new Damage(REPAIR_NAME, 0, "a repair was begun and not finished; `scripts/repair DIR --cut` finishes it");
  }
  const [other] = misplaced(disk);
  if (other !== undefined) throw other;
  const passedOver: Damage[] = [];
  const snapshot = newestWhole(disk, passedOver);
  const progress = progressOf(disk, snapshot, options.onProgress ?? (() => {}));

  const store = new Store();
  if (snapshot !== null) {
    for (const bytes of loadSnapshot(snapshot, store, options.onBlock ?? (() => {}), options.onRecord)) {
      progress(bytes);
      yield;
    }
  }

  const catalog = new Catalog(store.tables().map((table) => table.schema));
  const reader = new PayloadReader();
  const apply = (change: Change): void => store.apply(change);
  const logSteps = openLog(disk, options, snapshot, passedOver, (frame) =>
    reader.read(frame.payload, catalog, apply, options.onRecord),
  );
  for (;;) {
    const step = logSteps.next();
    if (step.done) {
      const log = step.value;
      for (const name of disk.list()) if (isUnfinishedSnapshot(name)) disk.remove(name);
      progress(Infinity);
      return {
        store,
        log,
        seq: log.seq,
        snapshot:
          snapshot === null ? null : { name: snapshot.name, position: snapshot.position, bytes: snapshot.bytes },
        passedOver,
      };
    }
    progress(step.value);
    yield;
  }
}

/** Fills an empty store; gives the bytes of each step. */
export function* loadSnapshot(
  snapshot: Snapshot,
  store: Store,
  onBlock: (tag: number, data: Uint8Array) => void,
  onRecord?: (record: KeptAnswer) => void,
): Generator<number, void, undefined> {
  const loader = new StateLoader();
  yield* snapshot.blocks((tag, data) => {
    if (tag === STATE_HEAD) loader.head(new ByteReader(data));
    else if (tag === STATE_SLICE) loader.slice(new ByteReader(data));
    else onBlock(tag, data);
  });
  for (const _ of loader.finish(store)) yield 0;
  const catalog = new Catalog(store.tables().map((table) => table.schema));
  const replay = (change: Change): void => store.replay(change);
  const reader = new PayloadReader();
  yield* snapshot.frames((frame) => reader.read(frame.payload, catalog, replay, onRecord));
}

/** The newest snapshot that is whole; those before it go to `passedOver`. */
export function newestWhole(disk: Disk, passedOver: Damage[]): Snapshot | null {
  for (const name of snapshotNames(disk)) {
    try {
      return Snapshot.open(disk, name);
    } catch (error) {
      if (!(error instanceof Damage)) throw error;
      passedOver.push(error);
    }
  }
  return null;
}

function* openLog(
  disk: Disk,
  options: RecoveryOptions,
  snapshot: Snapshot | null,
  passedOver: readonly Damage[],
  onFrame: (frame: Frame) => void,
): Generator<number, Log, undefined> {
  const { sync, segmentBytes, reserveBytes, standStillMs, clock, wall } = options;
  const log = Log.openInSteps(
    disk,
    {
      after: snapshot?.position ?? 0,
      afterSeq: snapshot?.seq ?? 0,
      history: snapshot?.head.history ?? null,
      ...(sync === undefined ? {} : { sync }),
      ...(segmentBytes === undefined ? {} : { segmentBytes }),
      ...(reserveBytes === undefined ? {} : { reserveBytes }),
      ...(standStillMs === undefined ? {} : { standStillMs }),
      ...(clock === undefined ? {} : { clock }),
      ...(wall === undefined ? {} : { wall }),
    },
    onFrame,
  );
  const [first] = passedOver;
  if (first === undefined) return yield* log;
  // The log must be there to make up for the snapshot: an empty directory beside a broken snapshot is a loss.
  if (!disk.list().some((name) => segmentFirst(name) !== undefined)) throw first;
  try {
    return yield* log;
  } catch (error) {
    if (!(error instanceof Damage)) throw error;
    const found = `${first.found}; nor does the log make up for it: ${error.file} at offset ${error.offset}: ${error.found}`;
    throw new Damage(first.file, first.offset, found);
  }
}

/** Takes the bytes of each step and tells the share done. */
function progressOf(disk: Disk, snapshot: Snapshot | null, tell: (share: number) => void): (bytes: number) => void {
  let total = snapshot?.bytes ?? 0;
  for (const name of disk.list()) if (segmentFirst(name) !== undefined) total += disk.size(name);
  let done = 0;
  return (bytes) => {
    done = Math.min(total, done + bytes);
    tell(total === 0 ? 1 : done / total);
  };
}
