/**
 * The redo log: every change as a frame, written the moment it is appended and on disk when `whenDurable` says so.
 *
 * `append` writes before it returns, so a full disk refuses a change that memory has not seen. The sync runs in the
 * thread pool, one at a time; it starts when the turn of the event loop ends, so that all of a turn's frames share it,
 * and frames appended while one runs share the next. Waiting costs one promise a sync, not one a request.
 *
 * | state     | what it is | what leads out |
 * | --------- | ---------- | -------------- |
 * | running   | all is well | |
 * | full      | the disk refused for want of space: only `essential` frames are written, into the reserve | room for the whole reserve again, looked for at the next append |
 * | failed    | a write or a sync failed otherwise: nothing is written or confirmed any more | a restart |
 * | closed    | | |
 *
 * After a failed sync the system may drop what it could not write and report success the next time, so a second try
 * would prove nothing. For the same reason `open` writes the frames whose sync nobody vouches for once more before it
 * syncs them.
 */

import { assert } from "../base/assert.ts";
import { LOG_FRAME_BYTES, LOG_PREALLOCATED_BYTES, LOG_RESERVE_BYTES, LOG_SEGMENT_BYTES } from "../base/limits.ts";
import { Refusal } from "../base/refusal.ts";
import { type Clock, WallClock } from "../clock/clock.ts";
import { type Disk, type DiskFile, saysFull } from "./disk.ts";
import { encodeFrame, FRAME_HEAD_BYTES, type Frame, UNKNOWN_BEHIND } from "./frame.ts";
import { Reserve } from "./reserve.ts";
import { MARK_BYTES, type Mark, scanInSteps } from "./scan.ts";
import { encodeSegmentHead, SEGMENT_HEAD_BYTES, type SegmentHead, segmentName } from "./segment.ts";
import { SegmentReader } from "./segment_reader.ts";

/** `always`: an answer waits for its sync. A number: a sync every so many ms. `off`: only when the log is closed. */
export type SyncPolicy = "always" | "off" | number;

export interface LogOptions {
  /** Default `always`. */
  readonly sync?: SyncPolicy;
  /** A segment is done once it has grown past this. */
  readonly segmentBytes?: number;
  /** Space kept back for essential frames. */
  readonly reserveBytes?: number;
  /** Frames up to this position are in a snapshot: not handed on, and none of them need be there. Default 0. */
  readonly after?: number;
  /** The change counter of that snapshot. Default 0. */
  readonly afterSeq?: number;
  /** The history of that snapshot; null: the log's own, or a new one. */
  readonly history?: string | null;
  /** Gives the times in the heads of files. */
  readonly clock?: Clock;
  /** When the policy's syncs are due. The real clock, also where statements run on another: a disk waits for no test. */
  readonly wall?: Clock;
}

/** What recovery cut off the end of the newest segment: never confirmed, as no sync of it was over. */
export interface TornTail {
  readonly file: string;
  readonly offset: number;
  readonly bytes: number;
}

/** Counted since `open`, for the metrics. */
export interface LogCounters {
  readonly frames: number;
  /** Frames with their heads. */
  readonly bytes: number;
  readonly syncs: number;
  /** From the start of each sync to its end. */
  readonly syncMs: number;
}

/** One file of the log. */
export interface LogSegment {
  readonly name: string;
  readonly first: number;
  /** Position of its last frame; `first - 1` when it has none. */
  readonly last: number;
  readonly bytes: number;
}

interface Segment {
  readonly name: string;
  readonly head: SegmentHead;
  last: number;
  lastSeq: number;
  /** Behind its last frame. */
  end: number;
  readonly marks: Mark[];
}

/** The waiters of one sync: made when the first of them comes. */
interface Group {
  readonly promise: Promise<void>;
  readonly resolve: () => void;
  readonly reject: (why: Refusal) => void;
}

const SCRATCH_BYTES = 64 * 1024;
const ZEROS = Buffer.alloc(LOG_PREALLOCATED_BYTES);

export class Log {
  readonly history: string;
  /** What `open` cut off; null: the log ended well. */
  readonly tornTail: TornTail | null;
  /** Frames `open` handed on. */
  readonly replayed: number;
  /** Told of each step of `durable`. */
  onDurable: ((position: number) => void) | null = null;

  readonly #disk: Disk;
  readonly #clock: Clock;
  readonly #wall: Clock;
  readonly #policy: SyncPolicy;
  readonly #segmentBytes: number;
  readonly #reserve: Reserve;
  readonly #segments: Segment[];
  #segment: Segment;
  #file: DiskFile;
  /** The newest segment's size; what lies behind its end are zeros. */
  #allocated: number;
  #preallocates: boolean;
  #durable: number;
  #scratch: Buffer = Buffer.alloc(SCRATCH_BYTES);
  #scratchView = new DataView(this.#scratch.buffer, this.#scratch.byteOffset, this.#scratch.length);

  #syncing = false;
  /** The position the sync under way is for. */
  #target = 0;
  /** A sync starts at the end of this turn; or when the policy's time is up. */
  #armed = false;
  #timed = false;
  /** Waits for the sync under way to be over, however it ends. */
  #idle: (() => void) | null = null;
  /** A sync was asked for whatever the policy says. */
  #asked = false;
  /** A new segment was asked for. */
  #rotating = false;
  /** Who waits for the sync under way, and who for the one behind it. */
  #current: Group | null = null;
  #next: Group | null = null;
  #failure: string | null = null;
  #full: string | null = null;
  #closed = false;
  #bytesSinceSnapshot = 0;
  #frames = 0;
  #bytes = 0;
  #syncs = 0;
  #syncMs = 0;

  /**
   * Reads what there is, handing each frame behind `options.after` to `onFrame` (its payload is good only during the
   * call), cuts a torn tail off, and makes sure that all it has read is on disk.
   *
   * @throws Damage (`damage.ts`) where going on would lose something that was confirmed; nothing is changed then
   */
  static open(disk: Disk, options: LogOptions, onFrame: (frame: Frame) => void): Log {
    const steps = Log.openInSteps(disk, options, onFrame);
    for (;;) {
      const step = steps.next();
      if (step.done) return step.value;
    }
  }

  /** The same a piece at a time, so that others get their turn meanwhile; gives the bytes read of each piece. */
  static *openInSteps(
    disk: Disk,
    options: LogOptions,
    onFrame: (frame: Frame) => void,
  ): Generator<number, Log, undefined> {
    const after = options.after ?? 0;
    const scan = yield* scanInSteps(disk, after, options.history ?? null, onFrame, (damage) => {
      throw damage;
    });
    if (scan.unfinished !== null) disk.remove(scan.unfinished);
    const segments: Segment[] = scan.segments.map((found) => ({
      name: found.name,
      head: found.head,
      last: found.last,
      lastSeq: found.lastSeq,
      end: found.end.offset,
      marks: [...found.marks],
    }));
    const found = scan.segments[scan.segments.length - 1];
    let file: DiskFile | undefined;
    let tornTail: TornTail | null = null;
    if (found !== undefined && scan.unfinished === null) {
      file = disk.open(found.name);
      if (found.end.ending === "torn" || found.end.ending === "lost") {
        tornTail = { file: found.name, offset: found.end.offset, bytes: found.end.size - found.end.offset };
      }
      if (found.end.size > found.end.offset) file.truncate(found.end.offset);
      writeAgain(file, scan.doubtOffset, found.end.offset);
      file.sync();
    }
    const history = scan.history ?? Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString("hex");
    const clock = options.clock ?? new WallClock();
    if (file === undefined || scan.position < after) {
      file?.close();
      const seq = scan.position < after ? (options.afterSeq ?? 0) : scan.seq;
      const made = createSegment(disk, Math.max(scan.position, after) + 1, seq, history, clock.now());
      segments.push(made.segment);
      file = made.file;
    }
    disk.sync();
    return new Log(disk, options, clock, segments, file, history, tornTail, scan.frames);
  }

  private constructor(
    disk: Disk,
    options: LogOptions,
    clock: Clock,
    segments: Segment[],
    file: DiskFile,
    history: string,
    tornTail: TornTail | null,
    replayed: number,
  ) {
    this.#disk = disk;
    this.#clock = clock;
    this.#wall = options.wall ?? new WallClock();
    this.#policy = options.sync ?? "always";
    this.#segmentBytes = options.segmentBytes ?? LOG_SEGMENT_BYTES;
    this.#segments = segments;
    this.#segment = segments[segments.length - 1]!;
    this.#file = file;
    this.#allocated = this.#segment.end;
    this.#preallocates = this.#policy !== "off";
    this.#durable = this.#segment.last;
    this.history = history;
    this.tornTail = tornTail;
    this.replayed = replayed;
    this.#reserve = Reserve.open(disk, options.reserveBytes ?? LOG_RESERVE_BYTES);
    if (!this.#reserve.whole) this.#full = "there is no room for the log's reserve";
    this.snapshotTaken(options.after ?? 0);
  }

  /** Position of the last frame appended; 0 before the first. */
  get appended(): number {
    return this.#segment.last;
  }

  /** The last position known to be on disk. */
  get durable(): number {
    return this.#durable;
  }

  /** The change counter after the last frame. */
  get seq(): number {
    return this.#segment.lastSeq;
  }

  /** Why nothing is written or confirmed any more until a restart; null: all is well. */
  get failure(): string | null {
    return this.#failure;
  }

  /** Why only essential frames are written; null once a write has gone through again. */
  get full(): string | null {
    return this.#full;
  }

  get policy(): SyncPolicy {
    return this.#policy;
  }

  /** Bytes of frames no snapshot holds; `snapshotTaken` starts it anew. */
  get bytesSinceSnapshot(): number {
    return this.#bytesSinceSnapshot;
  }

  get counters(): LogCounters {
    return { frames: this.#frames, bytes: this.#bytes, syncs: this.#syncs, syncMs: this.#syncMs };
  }

  /** Oldest first. */
  get segments(): readonly LogSegment[] {
    return this.#segments.map((segment) => ({
      name: segment.name,
      first: segment.head.first,
      last: segment.last,
      bytes: segment.end,
    }));
  }

  /** The oldest position that can still be read. */
  get first(): number {
    return this.#segments[0]!.head.first;
  }

  /**
   * Writes a frame, whole, and answers its position.
   *
   * @param seq the change counter after it
   * @param atMs wall time
   * @param essential it gives space or ends work (a delete, an ack): it may use the reserve of a full disk
   * @throws Refusal `disk_full`: nothing was written, and later appends may go through; `disk_failed`: none will;
   *   `limit_passed`: the change is larger than a frame may be
   */
  append(payload: Uint8Array, seq: number, atMs: number, essential: boolean): number {
    assert(!this.#closed, "the log is closed");
    if (this.#failure !== null) throw this.#failed();
    if (payload.length > LOG_FRAME_BYTES) {
      throw new Refusal(
        "limit_passed",
        `one change may be ${LOG_FRAME_BYTES} bytes, this is ${payload.length}: make it several`,
      );
    }
    const segment = this.#segment;
    const position = segment.last + 1;
    const bytes = FRAME_HEAD_BYTES + payload.length;
    if (this.#scratch.length < bytes) this.#scratchOf(bytes);
    const behind = this.#policy === "off" ? UNKNOWN_BEHIND : Math.min(segment.last - this.#durable, UNKNOWN_BEHIND - 1);
    encodeFrame(this.#scratch, this.#scratchView, segment.head.salt, behind, position, atMs, seq, payload);
    this.#write(this.#scratch.subarray(0, bytes), essential);
    if (this.#scratch.length > SCRATCH_BYTES && bytes <= SCRATCH_BYTES) this.#scratchOf(SCRATCH_BYTES);
    const mark = segment.marks[segment.marks.length - 1];
    if (mark === undefined || segment.end >= mark.offset + MARK_BYTES)
      segment.marks.push({ position, seq, offset: segment.end });
    segment.last = position;
    segment.lastSeq = seq;
    segment.end += bytes;
    this.#frames++;
    this.#bytes += bytes;
    this.#bytesSinceSnapshot += bytes;
    if (!this.#syncing) this.#arm();
    return position;
  }

  /**
   * Undefined when the frame is on disk already, or when the policy does not wait for it. The promise is shared by all
   * who wait for the same sync; it rejects with Refusal `disk_failed` when that fails.
   */
  whenDurable(position: number): Promise<void> | undefined {
    if (position <= this.#durable || this.#policy !== "always") return undefined;
    if (this.#failure !== null) return Promise.reject(this.#failed());
    return this.#groupOf(position).promise;
  }

  /** Resolves when everything appended so far is on disk, whatever the policy. Rejects with Refusal `disk_failed`. */
  sync(): Promise<void> {
    if (this.#failure !== null) return Promise.reject(this.#failed());
    if (this.appended <= this.#durable) return Promise.resolve();
    const group = this.#groupOf(this.appended);
    this.#asked = true;
    if (!this.#syncing) this.#arm();
    return group.promise;
  }

  /**
   * Begins a new segment once all before it is on disk; resolves when that was done. Does nothing when the newest one has
   * no frame yet, or when the disk has no room for another.
   */
  async rotate(): Promise<void> {
    if (this.#segment.last < this.#segment.head.first) return;
    this.#rotating = true;
    if (this.appended > this.#durable || this.#syncing) await this.sync();
    else this.#rotate();
    if (this.#failure !== null) throw this.#failed();
  }

  /** What is wrong with the disk, looked at anew: why it takes no frame, or only essential ones. Null: nothing. */
  get trouble(): string | null {
    if (this.#full !== null && this.#failure === null && !this.#closed) {
      try {
        if (this.#reserve.probe()) this.#full = null;
      } catch (error) {
        this.#fail("a write", error);
      }
    }
    return this.#failure ?? this.#full;
  }

  /** A snapshot of everything up to `position` is safe: the frames before it need no longer be counted. */
  snapshotTaken(position: number): void {
    this.#bytesSinceSnapshot = 0;
    for (const segment of this.#segments) {
      if (segment.head.first > position) this.#bytesSinceSnapshot += segment.end - SEGMENT_HEAD_BYTES;
      else if (segment.last > position)
        this.#bytesSinceSnapshot += segment.end - (markOf(segment, position)?.offset ?? 0);
    }
  }

  /** Removes the segments that hold only frames up to `position`; never the newest one. */
  removeUpTo(position: number): void {
    let removed = false;
    while (this.#segments.length > 1 && this.#segments[1]!.head.first <= position + 1) {
      this.#disk.remove(this.#segments[0]!.name);
      this.#segments.shift();
      removed = true;
    }
    // Not synced at once: a segment that comes back after a crash does no harm.
    if (removed) this.#disk.syncLater(() => {});
  }

  /**
   * Reads frames that are on disk from `position` on, in order, until `visit` answers false or there are no more.
   *
   * @param visit must not append; the payload is good only during the call
   */
  read(position: number, visit: (frame: Frame) => boolean): void {
    assert(position >= this.first, "positions that old are no longer kept");
    const durable = this.#durable;
    let go = true;
    for (const segment of this.#segments) {
      if (!go || segment.head.first > durable) break;
      const mark = markOf(segment, position);
      if (segment.last < position || mark === undefined) continue;
      const file = this.#disk.open(segment.name);
      try {
        new SegmentReader(file, segment.head.salt).walk(mark.offset, mark.position, (frame) => {
          if (frame.position > durable) go = false;
          else if (frame.position >= position) go = visit(frame);
          return go && frame.position < segment.last;
        });
      } finally {
        file.close();
      }
    }
  }

  /** The furthest position known to lie at or before the first frame whose change counter is past `seq`; at least `first`. */
  positionNear(seq: number): number {
    let position = this.first;
    for (const segment of this.#segments) {
      if (segment.head.baseSeq > seq) break;
      let low = 0;
      let high = segment.marks.length;
      while (low < high) {
        const middle = (low + high) >>> 1;
        if (segment.marks[middle]!.seq <= seq) low = middle + 1;
        else high = middle;
      }
      if (low > 0) position = segment.marks[low - 1]!.position;
      else position = segment.head.first;
    }
    return position;
  }

  /** The change counter before the oldest frame that is kept. */
  get firstSeq(): number {
    return this.#segments[0]!.head.baseSeq;
  }

  /** Syncs what was written and lets go of the files, not of the directory. Resolves also when the disk failed before. */
  async close(): Promise<void> {
    if (this.#closed) return;
    await this.sync().catch(() => {});
    // A write may have failed while a sync is still under way, and its file must not be closed then.
    while (this.#syncing) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#idle = resolve;
      await promise;
    }
    this.#closed = true;
    if (this.#failure === null && this.#allocated > this.#segment.end) {
      this.#file.truncate(this.#segment.end);
      this.#file.sync();
    }
    this.#file.close();
    this.#reserve.close();
  }

  #failed(): Refusal {
    return new Refusal("disk_failed", `the disk failed, and nothing is written until a restart: ${this.#failure}`);
  }

  #scratchOf(bytes: number): void {
    this.#scratch = Buffer.alloc(bytes);
    this.#scratchView = new DataView(this.#scratch.buffer, this.#scratch.byteOffset, bytes);
  }

  #write(frame: Buffer, essential: boolean): void {
    const { end } = this.#segment;
    if (this.#full !== null && !essential) {
      // What the reserve gave to a delete must not go to the next put.
      if (!this.#fillReserve()) throw this.#fullRefusal();
    }
    for (;;) {
      try {
        this.#file.write(frame, end);
        break;
      } catch (error) {
        if (!saysFull(error)) throw this.#fail("a write", error);
        this.#full = (error as Error).message;
        this.#preallocates = false;
        try {
          this.#file.truncate(end);
          this.#allocated = end;
          if (essential && this.#reserve.give(frame.length)) continue;
        } catch (cutting) {
          throw this.#fail("cutting a torn frame off", cutting);
        }
        throw this.#fullRefusal();
      }
    }
    if (!essential) this.#full = null;
    if (end + frame.length > this.#allocated) {
      this.#allocated = end + frame.length;
      if (this.#preallocates) this.#preallocate();
    }
  }

  #fillReserve(): boolean {
    try {
      return this.#reserve.fill();
    } catch (error) {
      throw this.#fail("a write", error);
    }
  }

  #fullRefusal(): Refusal {
    return new Refusal(
      "disk_full",
      "the disk is full: nothing was written; reads and deletes go on, and writes will once there is space",
    );
  }

  /**
   * Takes space behind the end, a quarter of what is there: a sync that need not move the file's end takes 0.19 ms
   * instead of 0.32 here. In proportion, so that a small log is as long as its frames.
   */
  #preallocate(): void {
    const bytes = Math.min(LOG_PREALLOCATED_BYTES, Math.floor(this.#allocated / 4 / 4096) * 4096);
    if (bytes === 0) return;
    try {
      this.#file.write(ZEROS.subarray(0, bytes), this.#allocated);
      this.#allocated += bytes;
    } catch (error) {
      if (!saysFull(error)) throw this.#fail("a write", error);
      this.#preallocates = false;
      this.#file.truncate(this.#allocated);
    }
  }

  #groupOf(position: number): Group {
    if (this.#syncing && position <= this.#target) {
      this.#current ??= newGroup();
      return this.#current;
    }
    this.#next ??= newGroup();
    return this.#next;
  }

  /** Sees to it that a sync starts at the end of the turn, or when the policy wants it. */
  #arm(): void {
    if (this.#policy === "always" || this.#asked || this.#rotating || this.#isGrown()) {
      if (this.#armed) return;
      this.#armed = true;
      setImmediate(() => {
        this.#armed = false;
        if (!this.#syncing && !this.#closed && this.#failure === null) this.#start();
      });
    } else if (this.#policy !== "off") {
      if (this.#timed) return;
      this.#timed = true;
      this.#wall.after(this.#policy, () => {
        this.#timed = false;
        if (!this.#syncing && !this.#closed && this.#failure === null) this.#start();
      });
    }
  }

  #isGrown(): boolean {
    return this.#segment.end >= this.#segmentBytes;
  }

  #start(): void {
    this.#target = this.appended;
    if (this.#target === this.#durable) {
      this.#settle();
      return;
    }
    this.#syncing = true;
    this.#asked = false;
    this.#current = this.#next;
    this.#next = null;
    const startedMs = performance.now();
    this.#file.syncLater((error) => {
      this.#syncing = false;
      this.#syncs++;
      this.#syncMs += performance.now() - startedMs;
      this.#idle?.();
      if (error !== null) {
        this.#fail("a sync", error);
        return;
      }
      // A write that failed meanwhile leaves no doubt about this sync's frames, but nothing is confirmed any more.
      if (this.#failure !== null) return;
      this.#reached(this.#target);
      this.#settle();
    });
  }

  /** Tells those who wait that all up to `position` is on disk. */
  #reached(position: number): void {
    this.#durable = position;
    const group = this.#current;
    this.#current = null;
    group?.resolve();
    if (position === this.appended) {
      const next = this.#next;
      this.#next = null;
      next?.resolve();
    }
    this.onDurable?.(position);
  }

  /** Between two syncs: the moment to begin a new segment, and to look who has come meanwhile. */
  #settle(): void {
    if (this.#rotating || this.#isGrown()) this.#rotate();
    if (this.#failure === null && this.appended > this.#durable) {
      if (this.#policy === "always" || this.#asked) this.#start();
      else this.#arm();
    }
  }

  /**
   * A new segment. The frames that came during the last sync are synced here and now, so that an older segment never
   * has an end that a power loss can tear: they are few, and it happens once a segment.
   */
  #rotate(): void {
    this.#rotating = false;
    const old = this.#segment;
    if (old.last < old.head.first) return;
    try {
      if (this.#allocated > old.end) this.#file.truncate(old.end);
      this.#allocated = old.end;
      this.#file.sync();
    } catch (error) {
      this.#fail("a sync", error);
      return;
    }
    if (this.appended > this.#durable) this.#reached(this.appended);
    try {
      const made = createSegment(this.#disk, old.last + 1, old.lastSeq, this.history, this.#clock.now());
      this.#file.close();
      this.#file = made.file;
      this.#segment = made.segment;
      this.#segments.push(made.segment);
      this.#allocated = made.segment.end;
      this.#preallocates = this.#policy !== "off";
    } catch (error) {
      // Without room for a new segment the old one grows on; the next frame tells who asks.
      if (saysFull(error)) this.#full = (error as Error).message;
      else this.#fail("beginning a new segment", error);
    }
  }

  /** From here on nothing is written or confirmed. */
  #fail(what: string, error: unknown): Refusal {
    this.#failure ??= `${what} failed: ${error instanceof Error ? error.message : String(error)}`;
    const why = this.#failed();
    const groups = [this.#current, this.#next];
    this.#current = null;
    this.#next = null;
    for (const group of groups) group?.reject(why);
    return why;
  }
}

function newGroup(): Group {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  // Whoever waits hears of it; a group all of whose waiters are gone is no unhandled error.
  promise.catch(() => {});
  return { promise, resolve, reject };
}

/** The last mark at or before `position`. */
function markOf(segment: Segment, position: number): Mark | undefined {
  let low = 0;
  let high = segment.marks.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (segment.marks[middle]!.position <= position) low = middle + 1;
    else high = middle;
  }
  return segment.marks[Math.max(0, low - 1)];
}

function createSegment(
  disk: Disk,
  first: number,
  baseSeq: number,
  history: string,
  createdMs: number,
): { file: DiskFile; segment: Segment } {
  const name = segmentName(first);
  const salt = crypto.getRandomValues(new Uint32Array(1))[0]! || 1;
  const head: SegmentHead = { salt, first, baseSeq, createdMs, history };
  const file = disk.create(name);
  try {
    file.write(encodeSegmentHead(head), 0);
    file.sync();
    disk.sync();
  } catch (error) {
    file.close();
    disk.remove(name);
    throw error;
  }
  return { file, segment: { name, head, last: first - 1, lastSeq: baseSeq, end: SEGMENT_HEAD_BYTES, marks: [] } };
}

/** Makes the system write bytes that it may believe written: see the head of this file. */
function writeAgain(file: DiskFile, from: number, to: number): void {
  const piece = Buffer.alloc(Math.min(to - from, 1 << 20));
  for (let at = from; at < to; at += piece.length) {
    const part = piece.subarray(0, Math.min(piece.length, to - at));
    file.read(at, part);
    file.write(part, at);
  }
}
