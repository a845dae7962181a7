/** What the log tests share: a log on a simulated disk, and the frames it hands on. */

import type { RunningClock, Scheduled } from "../../src/clock/clock.ts";
import { Log, type LogOptions } from "../../src/log/log.ts";
import { SimDisk } from "../sim/disk.ts";

export const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

export interface Opened {
  readonly disk: SimDisk;
  readonly log: Log;
  /** `<position>:<payload>` of each frame handed on. */
  readonly frames: string[];
}

export function openLog(disk: SimDisk, options: LogOptions = {}): Opened {
  const frames: string[] = [];
  const log = Log.open(disk, { reserveBytes: 0, ...options }, (frame) =>
    frames.push(`${frame.position}:${new TextDecoder().decode(frame.payload)}`),
  );
  return { disk, log, frames };
}

/** Appends and waits until it is on disk. */
export async function put(log: Log, text: string, essential = false): Promise<void> {
  const position = log.append(encode(text), log.seq + 1, 1_000, essential);
  await log.whenDurable(position);
}

/** The files of a log with these payloads, each synced alone, as a process that was killed leaves them. */
export async function filesOf(...payloads: string[]): Promise<Map<string, Buffer>> {
  const { disk, log } = openLog(new SimDisk());
  for (const payload of payloads) await put(log, payload);
  return disk.files();
}

/** The same, closed in good order. */
export async function closedFilesOf(...payloads: string[]): Promise<Map<string, Buffer>> {
  const { disk, log } = openLog(new SimDisk());
  for (const payload of payloads) await put(log, payload);
  await log.close();
  return disk.files();
}

/** Another start on the same files, as a process after one that was killed. */
export function again(files: ReadonlyMap<string, Buffer>, options: LogOptions = {}): Opened {
  return openLog(SimDisk.of(files), options);
}

/** A clock that a test sets, whose timers go off when it says so. */
export class Timers implements RunningClock {
  nowMs = 0;
  readonly waiting: { readonly delayMs: number; readonly run: () => void }[] = [];

  now(): number {
    return this.nowMs;
  }

  elapsed(): number {
    return this.nowMs;
  }

  at(_atMs: number, run: () => void): Scheduled {
    return this.after(0, run);
  }

  after(delayMs: number, run: () => void): Scheduled {
    const timer = { delayMs, run };
    this.waiting.push(timer);
    return { cancel: () => this.#take(timer) };
  }

  /** Sets off those that wait for so long. */
  fire(delayMs: number): void {
    for (const timer of this.waiting.filter((one) => one.delayMs === delayMs)) {
      this.#take(timer);
      timer.run();
    }
  }

  #take(timer: { readonly delayMs: number; readonly run: () => void }): void {
    const at = this.waiting.indexOf(timer);
    if (at >= 0) this.waiting.splice(at, 1);
  }
}

/** After so long without a frame a log is sealed. */
export const REST_MS = 1_000;

export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

export const FIRST = "redo-0000000000000001.log";
