/**
 * The data directory, as the log room sees it: the one place that touches files. `fileDisk` is the real one; tests put a
 * simulated disk in its place that tears, loses and refuses.
 *
 * Errors are the system's own, with their `code` (`ENOSPC`, `EIO`, ...); what they mean is the log's to say.
 */

import * as fs from "node:fs";
import { join } from "node:path";
import { takeLock } from "./lock.ts";

/** An open file. Offsets and sizes in bytes. */
export interface DiskFile {
  readonly name: string;
  size(): number;
  /** Fills `into` from `offset`; answers how many bytes there were, fewer only at the end of the file. */
  read(offset: number, into: Uint8Array): number;
  /** Writes all of it or throws; having thrown, it may have written a part. */
  write(bytes: Uint8Array, offset: number): void;
  truncate(size: number): void;
  /** On disk when it returns: contents and size, not necessarily the file's times. */
  sync(): void;
  /** The same off the event loop; `done` is called in a later turn. The file must not be closed meanwhile. */
  syncLater(done: (error: Error | null) => void): void;
  close(): void;
}

export interface Disk {
  /** For words: the directory's path. */
  readonly where: string;
  /** Names of the plain files in it, sorted. */
  list(): string[];
  /** Names of all else in it, sorted: directories, links and the like. */
  others(): string[];
  size(name: string): number;
  /**
   * All of a file that nobody will ever cut or overwrite in place, mapped where that is possible: a mapped file that is
   * cut short kills the process at the next touch, so the log's segments are read through `open`.
   */
  map(name: string): Uint8Array;
  open(name: string): DiskFile;
  /** A new file; throws when there is one of that name. */
  create(name: string): DiskFile;
  rename(from: string, to: string): void;
  remove(name: string): void;
  /** Makes creations, renames and removals last. */
  sync(): void;
  syncLater(done: (error: Error | null) => void): void;
  /** Lets go of the directory, and with it of the lock. */
  close(): void;
}

/** True when it says that no space is left, whoever counts it. */
export function saysFull(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code;
  return code === "ENOSPC" || code === "EDQUOT";
}

class RealFile implements DiskFile {
  readonly name: string;
  readonly #fd: number;

  constructor(name: string, fd: number) {
    this.name = name;
    this.#fd = fd;
  }

  size(): number {
    return fs.fstatSync(this.#fd).size;
  }

  read(offset: number, into: Uint8Array): number {
    let done = 0;
    while (done < into.length) {
      const count = fs.readSync(this.#fd, into, done, into.length - done, offset + done);
      if (count === 0) break;
      done += count;
    }
    return done;
  }

  write(bytes: Uint8Array, offset: number): void {
    let done = 0;
    // A nearly full disk takes the first part and refuses the rest at the next call.
    while (done < bytes.length) done += fs.writeSync(this.#fd, bytes, done, bytes.length - done, offset + done);
  }

  truncate(size: number): void {
    fs.ftruncateSync(this.#fd, size);
  }

  sync(): void {
    fs.fdatasyncSync(this.#fd);
  }

  syncLater(done: (error: Error | null) => void): void {
    fs.fdatasync(this.#fd, (error) => done(error ?? null));
  }

  close(): void {
    fs.closeSync(this.#fd);
  }
}

class FileDisk implements Disk {
  readonly where: string;
  readonly #directory: number;
  readonly #release: () => void;
  readonly #flags: "r" | "r+";

  constructor(where: string, directory: number, flags: "r" | "r+", release: () => void) {
    this.where = where;
    this.#directory = directory;
    this.#flags = flags;
    this.#release = release;
  }

  list(): string[] {
    return this.#names(true);
  }

  others(): string[] {
    return this.#names(false);
  }

  #names(files: boolean): string[] {
    const names: string[] = [];
    for (const entry of fs.readdirSync(this.where, { withFileTypes: true })) {
      if (entry.isFile() === files) names.push(entry.name);
    }
    return names.sort();
  }

  size(name: string): number {
    return fs.statSync(join(this.where, name)).size;
  }

  map(name: string): Uint8Array {
    const path = join(this.where, name);
    // An empty file cannot be mapped.
    if (fs.statSync(path).size === 0) return new Uint8Array(0);
    // Not shared: a shared mapping can be written through.
    return Bun.mmap(path, { shared: false });
  }

  open(name: string): DiskFile {
    return new RealFile(name, fs.openSync(join(this.where, name), this.#flags));
  }

  create(name: string): DiskFile {
    return new RealFile(name, fs.openSync(join(this.where, name), "wx+", 0o600));
  }

  rename(from: string, to: string): void {
    fs.renameSync(join(this.where, from), join(this.where, to));
  }

  remove(name: string): void {
    const path = join(this.where, name);
    // The system gives a file's space back when its last user lets go, which for a large one takes a tenth of a second:
    // that is left to the thread pool.
    const fd = fs.openSync(path, "r");
    try {
      fs.unlinkSync(path);
    } finally {
      fs.close(fd, () => {});
    }
  }

  sync(): void {
    fs.fsyncSync(this.#directory);
  }

  syncLater(done: (error: Error | null) => void): void {
    fs.fsync(this.#directory, (error) => done(error ?? null));
  }

  close(): void {
    this.#release();
    fs.closeSync(this.#directory);
  }
}

/**
 * The directory, made when it is not there, held for this process alone until `close` or until the process is gone.
 *
 * @throws DirectoryTaken when another process holds it
 */
export function fileDisk(directory: string): Disk {
  fs.mkdirSync(directory, { recursive: true, mode: 0o700 });
  const release = takeLock(directory);
  return new FileDisk(directory, fs.openSync(directory, "r"), "r+", release);
}

/** The directory without the lock, for scripts that look and do not write; a server may be writing to it meanwhile. */
export function diskToRead(directory: string): Disk {
  return new FileDisk(directory, fs.openSync(directory, "r"), "r", () => {});
}
