/**
 * The log as the engine knows it: a frame goes in and gets a position; some time later everything up to a position is on
 * disk. Positions are dense and rise by one a frame. The file log is one; `MemoryJournal` keeps nothing.
 */

import type { LogCounters } from "../log/log.ts";

export interface Journal {
  /** What it has written since it was opened; null: it keeps nothing. */
  readonly counters: LogCounters | null;
  /**
   * Takes a frame, before its change is applied. `seq` is the change counter after it, `essential` says that it makes
   * room or that work cannot go on without it, so that it may use the reserve of a full disk. Throws Refusal: then
   * nothing was taken.
   */
  append(payload: Uint8Array, seq: number, atMs: number, essential: boolean): number;
  /** Position of the last frame taken. */
  readonly appended: number;
  /** Undefined when everything up to the position is as safe as the sync policy asks. Rejects when the disk failed. */
  whenDurable(position: number): Promise<void> | undefined;
  /** More frames are about to come: no sync begins until the function it answers is called. Left out: nothing to sync. */
  gather?(): () => void;
  /** Why nothing is written any more, or null. */
  readonly failure: string | null;
  /** What is wrong now: that, or that the disk is full; looked at anew. */
  readonly trouble: string | null;
  close(): Promise<void>;
}

/** For `--in-memory`: positions are given, and nothing is kept. */
export class MemoryJournal implements Journal {
  appended = 0;
  readonly counters = null;
  readonly failure = null;
  readonly trouble = null;

  append(): number {
    this.appended++;
    return this.appended;
  }

  whenDurable(): undefined {
    return undefined;
  }

  async close(): Promise<void> {}
}
