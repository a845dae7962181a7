/**
 * One server a data directory. The lock is the kernel's (`flock` on the file `lock`): it is gone the moment the process
 * is, however it ends, so a start after `kill -9` waits for nothing and no stale file has to be judged. The runtime has
 * no call for it, hence the C library.
 *
 * The file also holds the process id, for the words of the refusal only.
 */

import { dlopen, FFIType } from "bun:ffi";
import * as fs from "node:fs";
import { join } from "node:path";
import { saysFull } from "./disk.ts";

export const LOCK_NAME = "lock";

/** Another process has the directory. */
export class DirectoryTaken extends Error {
  override readonly name = "DirectoryTaken";
}

const LOCK_EXCLUSIVE = 2;
const LOCK_NO_WAIT = 4;
const PID_LENGTH = 20;

/** glibc, musl, macOS. */
const LIBRARIES = ["libc.so.6", "libc.so", "libSystem.B.dylib"];

type Flock = (fd: number, operation: number) => number;

let loaded: Flock | undefined;

function flock(): Flock {
  if (loaded !== undefined) return loaded;
  for (const library of LIBRARIES) {
    try {
      const { symbols } = dlopen(library, { flock: { args: [FFIType.i32, FFIType.i32], returns: FFIType.i32 } });
      loaded = symbols.flock;
      return loaded;
    } catch {
      // The next name, then.
    }
  }
  throw new Error(`no C library to lock a directory with: tried ${LIBRARIES.join(", ")}`);
}

/**
 * @returns what lets go of it again
 * @throws DirectoryTaken
 */
export function takeLock(directory: string): () => void {
  const lock = flock();
  // Read and write without cutting: the holder's number must still be there when we turn out to be second.
  const fd = fs.openSync(join(directory, LOCK_NAME), fs.constants.O_RDWR | fs.constants.O_CREAT, 0o600);
  if (lock(fd, LOCK_EXCLUSIVE | LOCK_NO_WAIT) !== 0) {
    const holder = Buffer.alloc(32);
    const length = fs.readSync(fd, holder, 0, holder.length, 0);
    fs.closeSync(fd);
    const text = holder.toString("latin1", 0, length).trim();
    const by = /^\d+$/.test(text) ? ` (process ${text})` : "";
    throw new DirectoryTaken(
      `the data directory ${directory} is in use by another server${by}: stop it, or name another`,
    );
  }
  // Always the same length, so that it needs no space on a full disk but the first time, and that time is let go.
  try {
    fs.writeSync(fd, `${process.pid}`.padEnd(PID_LENGTH), 0);
  } catch (error) {
    if (!saysFull(error)) throw error;
  }
  return () => fs.closeSync(fd);
}
