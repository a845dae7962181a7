/**
 * A disk in memory that does what disks do on bad days: it is full, fails a sync, dies in the middle of a write, and
 * after a power loss has kept of what was not synced whatever it liked, sector by sector.
 *
 * What a power loss may do here: of each file, every sector written since its last sync is the new or the old one, and
 * its size lies between the two; of the directory, of the creations, renames and removals since its last sync the first so
 * many were made, or any of them.
 *
 * What a failed sync does: it forgets that these sectors were to be written. They read as they were written, and a later
 * sync succeeds without them.
 */

import type { Disk, DiskFile } from "../../src/log/disk.ts";
import type { Random } from "../store/random.ts";

const SECTOR_BYTES = 512;

/** Thrown by every call once the machine is off. */
export class PoweredOff extends Error {
  override readonly name = "PoweredOff";
}

class DiskError extends Error {
  readonly code: string;

  constructor(code: string, words: string) {
    super(`${code}: ${words}`);
    this.code = code;
  }
}

class Contents {
  bytes: Buffer;
  size: number;
  /** As of the last sync. */
  synced: Buffer;
  /** First byte of each sector written since. */
  readonly dirty = new Set<number>();
  /** Of each sector that a failed sync forgot, and nobody has written since. */
  readonly forgotten = new Set<number>();

  constructor(bytes: Buffer) {
    this.bytes = Buffer.from(bytes);
    this.size = bytes.length;
    this.synced = Buffer.from(bytes);
  }

  write(bytes: Uint8Array, offset: number): void {
    const end = offset + bytes.length;
    if (end > this.bytes.length) {
      const grown = Buffer.alloc(Math.max(end, this.bytes.length * 2));
      grown.set(this.bytes.subarray(0, this.size));
      this.bytes = grown;
    }
    if (offset > this.size) this.bytes.fill(0, this.size, offset);
    this.bytes.set(bytes, offset);
    this.#touch(Math.min(offset, this.size), end);
    this.size = Math.max(this.size, end);
  }

  truncate(size: number): void {
    if (size > this.size) this.write(new Uint8Array(size - this.size), this.size);
    else {
      this.bytes.fill(0, size, this.size);
      this.#touch(size, this.size);
      this.size = size;
    }
  }

  view(): Buffer {
    return this.bytes.subarray(0, this.size);
  }

  copy(): Buffer {
    return Buffer.from(this.view());
  }

  /** What is on disk from now on: the contents as they were when the sync began. */
  settle(as: Buffer, dirty: readonly number[]): void {
    for (const sector of this.forgotten) {
      if (sector >= as.length) continue;
      as.fill(0, sector, sector + SECTOR_BYTES);
      as.set(this.synced.subarray(sector, Math.min(sector + SECTOR_BYTES, as.length)), sector);
    }
    this.synced = as;
    for (const sector of dirty) {
      const now = this.view().subarray(sector, sector + SECTOR_BYTES);
      if (now.equals(as.subarray(sector, sector + SECTOR_BYTES))) this.dirty.delete(sector);
    }
  }

  /** A sync of these failed. */
  forget(dirty: readonly number[]): void {
    for (const sector of dirty) {
      this.dirty.delete(sector);
      this.forgotten.add(sector);
    }
  }

  afterPowerLoss(random: Random): Buffer {
    const low = Math.min(this.synced.length, this.size);
    const high = Math.max(this.synced.length, this.size);
    const size = low + random.below(high - low + 1);
    const kept = Buffer.alloc(size);
    kept.set(this.synced.subarray(0, size));
    for (const sector of this.dirty) {
      if (sector >= size || random.chance(0.5)) continue;
      kept.fill(0, sector, Math.min(size, sector + SECTOR_BYTES));
      kept.set(this.view().subarray(sector, Math.min(size, sector + SECTOR_BYTES)), sector);
    }
    return kept;
  }

  #touch(from: number, to: number): void {
    for (let at = Math.floor(from / SECTOR_BYTES) * SECTOR_BYTES; at < to; at += SECTOR_BYTES) {
      this.dirty.add(at);
      this.forgotten.delete(at);
    }
  }
}

export class SimDisk implements Disk {
  readonly where = "the simulated disk";
  /** Bytes all files may have together. */
  capacityBytes = Infinity;
  /** Bytes still written before the machine goes off, in the middle of a write. */
  bytesToLive = Infinity;
  /** Calls that change something still made before it goes off. */
  callsToLive = Infinity;
  /** Syncs of files whose name this matches fail. */
  failsSync: RegExp | null = null;
  /** Writes to files whose name this matches fail, and not for want of space. */
  failsWrite: RegExp | null = null;
  /** Any other call, by its name, on files whose name it matches: `rename`, `sync directory`, `create`, `truncate`. */
  failsCall: { readonly call: string; readonly name: RegExp } | null = null;
  /** Syncs off the event loop wait for `releaseSync`. */
  holdsSyncs = false;
  /** Syncs that were done. */
  syncs = 0;

  #files = new Map<string, Contents>();
  /** The directory as of its last sync, and what was done to it since. */
  #entries = new Map<string, Contents>();
  #journal: ((entries: Map<string, Contents>) => void)[] = [];
  #off = false;
  readonly #goneOff = Promise.withResolvers<void>();
  readonly #held: (() => void)[] = [];

  static of(files: ReadonlyMap<string, Buffer>): SimDisk {
    const disk = new SimDisk();
    for (const [name, bytes] of files) disk.#files.set(name, new Contents(bytes));
    disk.#entries = new Map(disk.#files);
    return disk;
  }

  /** What is in the files now: what a process that comes after one that was killed sees. */
  files(): Map<string, Buffer> {
    return new Map([...this.#files].map(([name, contents]) => [name, contents.copy()]));
  }

  /** The disk as the next process finds it when this one is killed: what was not synced still is not. */
  afterKill(): SimDisk {
    const disk = new SimDisk();
    disk.#files = new Map(this.#files);
    disk.#entries = new Map(this.#entries);
    disk.#journal = [...this.#journal];
    this.powerOff();
    return disk;
  }

  /** What is left when the power goes. */
  afterPowerLoss(random: Random): Map<string, Buffer> {
    const entries = new Map(this.#entries);
    const inOrder = random.chance(0.5);
    const made = random.below(this.#journal.length + 1);
    const steps = inOrder ? this.#journal.slice(0, made) : this.#journal.filter(() => random.chance(0.5));
    for (const step of steps) step(entries);
    return new Map([...entries].map(([name, contents]) => [name, contents.afterPowerLoss(random)]));
  }

  powerOff(): void {
    this.#off = true;
    this.#goneOff.resolve();
  }

  /** Resolves when the machine goes off: nobody hears then of a sync that was under way. */
  get whenOff(): Promise<void> {
    return this.#goneOff.promise;
  }

  get isOff(): boolean {
    return this.#off;
  }

  releaseSync(): void {
    this.#held.shift()?.();
  }

  get heldSyncs(): number {
    return this.#held.length;
  }

  list(): string[] {
    this.#live();
    return [...this.#files.keys()].sort();
  }

  others(): string[] {
    return [];
  }

  size(name: string): number {
    this.#live();
    return this.#contents(name).size;
  }

  map(name: string): Uint8Array {
    this.#live();
    return this.#contents(name).copy();
  }

  open(name: string): DiskFile {
    this.#live();
    return new SimFile(name, this.#contents(name), this);
  }

  create(name: string): DiskFile {
    this.#step("create", name);
    if (this.#files.has(name)) throw new DiskError("EEXIST", `${name} is there`);
    const contents = new Contents(Buffer.alloc(0));
    this.#change((entries) => entries.set(name, contents));
    return new SimFile(name, contents, this);
  }

  rename(from: string, to: string): void {
    this.#step("rename", from);
    const contents = this.#contents(from);
    this.#change((entries) => {
      entries.delete(from);
      entries.set(to, contents);
    });
  }

  remove(name: string): void {
    this.#step("remove", name);
    this.#contents(name);
    this.#change((entries) => entries.delete(name));
  }

  sync(): void {
    this.#step("sync directory", "");
    this.#entries = new Map(this.#files);
    this.#journal = [];
  }

  syncLater(done: (error: Error | null) => void): void {
    this.later(() => {
      try {
        this.sync();
      } catch (error) {
        done(error as Error);
        return;
      }
      done(null);
    });
  }

  close(): void {}

  // What the files ask of their disk.

  write(name: string, contents: Contents, bytes: Uint8Array, offset: number): void {
    this.#step("write", name);
    if (this.failsWrite?.test(name)) throw new DiskError("EIO", `write ${name}`);
    let count = bytes.length;
    let refused: Error | null = null;
    const grows = Math.max(0, offset + count - contents.size);
    const room = this.capacityBytes - this.#used();
    if (grows > room) {
      count = Math.max(0, count - (grows - Math.max(0, room)));
      refused = new DiskError("ENOSPC", `no space left on device, write ${name}`);
    }
    // A write that was whole had its return: it is the next one that dies.
    if (count > this.bytesToLive) {
      contents.write(bytes.subarray(0, this.bytesToLive), offset);
      this.powerOff();
      throw new PoweredOff();
    }
    this.bytesToLive -= count;
    contents.write(bytes.subarray(0, count), offset);
    if (refused !== null) throw refused;
  }

  truncate(name: string, contents: Contents, size: number): void {
    this.#step("truncate", name);
    contents.truncate(size);
  }

  syncFile(name: string, contents: Contents): void {
    this.#step("sync", name);
    this.#mayFail(name, contents, [...contents.dirty]);
    contents.settle(contents.copy(), [...contents.dirty]);
    this.syncs++;
  }

  syncFileLater(name: string, contents: Contents, done: (error: Error | null) => void): void {
    // Only what was written before the sync began is sure to be covered by it.
    const as = contents.copy();
    const dirty = [...contents.dirty];
    this.later(() => {
      try {
        this.#step("sync", name);
        this.#mayFail(name, contents, dirty);
      } catch (error) {
        if (!(error instanceof PoweredOff)) done(error as Error);
        return;
      }
      contents.settle(as, dirty);
      this.syncs++;
      done(null);
    });
  }

  #mayFail(name: string, contents: Contents, dirty: readonly number[]): void {
    if (this.failsSync?.test(name) !== true) return;
    contents.forget(dirty);
    throw new DiskError("EIO", `fdatasync ${name}`);
  }

  later(run: () => void): void {
    if (this.holdsSyncs) this.#held.push(run);
    else setImmediate(run);
  }

  #used(): number {
    let bytes = 0;
    for (const contents of this.#files.values()) bytes += contents.size;
    return bytes;
  }

  #contents(name: string): Contents {
    const contents = this.#files.get(name);
    if (contents === undefined) throw new DiskError("ENOENT", `no file ${name}`);
    return contents;
  }

  #change(step: (entries: Map<string, Contents>) => void): void {
    step(this.#files);
    this.#journal.push(step);
  }

  #live(): void {
    if (this.#off) throw new PoweredOff();
  }

  #step(call: string, name: string): void {
    this.#live();
    if (this.failsCall?.call === call && this.failsCall.name.test(name)) throw new DiskError("EIO", `${call} ${name}`);
    if (--this.callsToLive < 0) {
      this.powerOff();
      throw new PoweredOff();
    }
  }
}

class SimFile implements DiskFile {
  readonly name: string;
  readonly #contents: Contents;
  readonly #disk: SimDisk;

  constructor(name: string, contents: Contents, disk: SimDisk) {
    this.name = name;
    this.#contents = contents;
    this.#disk = disk;
  }

  size(): number {
    return this.#contents.size;
  }

  read(offset: number, into: Uint8Array): number {
    const bytes = this.#contents.view().subarray(offset, offset + into.length);
    into.set(bytes);
    return bytes.length;
  }

  write(bytes: Uint8Array, offset: number): void {
    this.#disk.write(this.name, this.#contents, bytes, offset);
  }

  truncate(size: number): void {
    this.#disk.truncate(this.name, this.#contents, size);
  }

  sync(): void {
    this.#disk.syncFile(this.name, this.#contents);
  }

  syncLater(done: (error: Error | null) => void): void {
    this.#disk.syncFileLater(this.name, this.#contents, done);
  }

  close(): void {}
}
