/**
 * The redo log: every change as a frame, on disk when `whenDurable` says so.
 *
 * A full disk refuses a change that memory has not seen: `append` writes before it returns, or puts the frame aside for
 * space that the file has taken already. A sync starts when the turn of the event loop ends, so that all of a turn's
 * frames share it. Frames put aside are written in one piece when their sync starts: a write while another sync runs
 * waits for that, 20 us of the event loop a frame here. Where answers do not wait for a sync, none is put aside: a killed
 * process loses what it wrote nowhere. Waiting costs one promise a sync, not one a request.
 *
 * A large group is synced in the thread pool, one sync at a time, while the next group gathers. On a quick disk a small
 * one is synced where it stands (`standstill.ts`), once a turn has brought nothing more. The sync of a large frame begins
 * when it is appended, so that the disk takes it while memory does.
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
 *
 * A log with nothing to do for a while is sealed (`seal.ts`), and so is one just opened or closed.
 */

import { assert } from "../base/assert.ts";
import { LOG_FRAME_BYTES, LOG_RESERVE_BYTES, LOG_SEGMENT_BYTES } from "../base/limits.ts";
import { once } from "../base/once.ts";
import { Refusal } from "../base/refusal.ts";
import { type Steps, toEnd } from "../base/steps.ts";
import { type Clock, type RunningClock, type Scheduled, WallClock } from "../clock/clock.ts";
import { type Disk, saysFull } from "./disk.ts";
import { FRAME_HEAD_BYTES, type Frame, UNKNOWN_BEHIND } from "./frame.ts";
import { Marks } from "./marks.ts";
import { Reserve } from "./reserve.ts";
import { type LogScan, scanInSteps } from "./scan.ts";
import { SEAL_BYTES } from "./seal.ts";
import { SEGMENT_HEAD_BYTES, type SegmentHead, segmentName } from "./segment.ts";
import { SegmentReader } from "./segment_reader.ts";
import { SMALL_BYTES, Standstill } from "./standstill.ts";
import { Tail } from "./tail.ts";
import { Unwritten } from "./unwritten.ts";
import { Waiters } from "./waiters.ts";

/** `always`: an answer waits for its sync. A number: a sync every so many ms. `off`: only when the log is closed. */
export type SyncPolicy = "always" | "off" | number;

export interface LogOptions {
  /** Default `always`. */
  readonly sync?: SyncPolicy;
  /** A segment is done once it has grown past this. */
  readonly segmentBytes?: number;
  /** Space kept back for essential frames. */
  readonly reserveBytes?: number;
  /** A small group may stop the event loop for a sync of so many ms; 0: never. Default 2. */
  readonly standStillMs?: number;
  /** Frames up to this position are in a snapshot: not handed on, and none of them need be there. Default 0. */
  readonly after?: number;
  /** The change counter of that snapshot. Default 0. */
  readonly afterSeq?: number;
  /** The history of that snapshot; null: the log's own, or a new one. */
  readonly history?: string | null;
  /** Gives the times in the heads of files. */
  readonly clock?: Clock;
  /** When the policy's syncs are due, and how long they take. The real clock, also where statements run on another: a disk waits for no test. */
  readonly wall?: RunningClock;
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
  /** Of all files of the directory now. */
  readonly fileBytes: number;
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
  readonly marks: Marks;
}

/** Frames are gathered up to this: a piece that is written while others wait for its sync. */
const GATHERED_BYTES = 1024 * 1024;
const STAND_STILL_MS = 2;
/** A log that has been still for this long is sealed. */
const REST_MS = 1_000;

export class Log {
  readonly history: string;
  /** What `open` cut off; null: the log ended well. */
  readonly tornTail: TornTail | null;
  /** A newest segment `open` removed, as it had no whole head: a crash while it was made, or somebody emptied it. */
  readonly unfinished: string | null;
  /** Frames `open` handed on. */
  readonly replayed: number;
  /** Told of each step of `durable`. */
  onDurable: ((position: number) => void) | null = null;

  readonly #disk: Disk;
  readonly #clock: Clock;
  readonly #wall: RunningClock;
  readonly #policy: SyncPolicy;
  readonly #segmentBytes: number;
  readonly #standstill: Standstill;
  readonly #reserve: Reserve;
  readonly #segments: Segment[];
  #segment: Segment;
  #tail: Tail;
  #durable: number;
  readonly #unwritten = new Unwritten();

  #syncing = false;
  /** The position the sync under way is for. */
  #target = 0;
  /** Bytes of the frames whose sync has not begun. */
  #groupBytes = 0;
  /** A sync starts at the end of this turn; or when the policy's time is up. */
  #armed = false;
  #timed = false;
  /** How many have said that more frames are on their way, and whether a sync waits for those. */
  #gathering = 0;
  #gathered = false;
  /** Waits for the sync under way to be over, however it ends. */
  #idle: (() => void) | null = null;
  /** A sync was asked for whatever the policy says. */
  #asked = false;
  /** A new segment was asked for. */
  #rotating = false;
  readonly #waiters = new Waiters();
  /** Looks whether it rests by now. */
  #resting: Scheduled | null = null;
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
    return toEnd(Log.openInSteps(disk, options, onFrame));
  }

  /** The same a piece at a time, so that others get their turn meanwhile; gives the bytes read of each piece. */
  static *openInSteps(disk: Disk, options: LogOptions, onFrame: (frame: Frame) => void): Steps<Log, number> {
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
      marks: found.marks,
    }));
    const preallocates = options.sync !== "off";
    let tail = scan.unfinished === null ? openTail(disk, scan, preallocates) : null;
    const history = scan.history ?? Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString("hex");
    const clock = options.clock ?? new WallClock();
    if (tail === null || scan.position < after) {
      tail?.close();
      const seq = scan.position < after ? (options.afterSeq ?? 0) : scan.seq;
      const head = newHead(Math.max(scan.position, after) + 1, seq, history, clock.now());
      tail = Tail.create(disk, head, preallocates);
      segments.push(newSegment(head));
    }
    disk.sync();
    return new Log(disk, options, clock, segments, tail, history, scan);
  }

  private constructor(
    disk: Disk,
    options: LogOptions,
    clock: Clock,
    segments: Segment[],
    tail: Tail,
    history: string,
    scan: LogScan,
  ) {
    this.#disk = disk;
    this.#clock = clock;
    this.#wall = options.wall ?? new WallClock();
    this.#policy = options.sync ?? "always";
    this.#segmentBytes = options.segmentBytes ?? LOG_SEGMENT_BYTES;
    this.#standstill = new Standstill(this.#wall, options.standStillMs ?? STAND_STILL_MS);
    this.#segments = segments;
    this.#segment = segments[segments.length - 1]!;
    this.#tail = tail;
    this.#durable = this.#segment.last;
    this.history = history;
    this.tornTail = tornTailOf(scan);
    this.unfinished = scan.unfinished;
    this.replayed = scan.frames;
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
    const fileBytes = this.#disk.list().reduce((sum, name) => sum + this.#disk.size(name), 0);
    return { frames: this.#frames, bytes: this.#bytes, syncs: this.#syncs, syncMs: this.#syncMs, fileBytes };
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
   * @param essential it gives space or lets work go on (a delete, a claim): it may use the reserve of a full disk
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
    const waits = this.#mayWait(bytes);
    if (!waits) this.#writeOut();
    const behind = this.#policy === "off" ? UNKNOWN_BEHIND : Math.min(segment.last - this.#durable, UNKNOWN_BEHIND - 1);
    this.#unwritten.add(segment.head.salt, behind, position, atMs, seq, payload);
    if (!waits) this.#write(this.#unwritten.take(), essential);
    segment.marks.note(position, seq, segment.end);
    segment.last = position;
    segment.lastSeq = seq;
    segment.end += bytes;
    this.#frames++;
    this.#bytes += bytes;
    this.#bytesSinceSnapshot += bytes;
    this.#groupBytes += bytes;
    if (this.#syncing) return position;
    // Memory has a large change still to take: the disk may have it meanwhile.
    if (bytes > SMALL_BYTES && this.#policy === "always") this.#start();
    else this.#arm();
    return position;
  }

  /**
   * Undefined when the frame is on disk already, or when the policy does not wait for it. The promise is shared by all
   * who wait for the same sync; it rejects with Refusal `disk_failed` when that fails.
   */
  whenDurable(position: number): Promise<void> | undefined {
    if (position <= this.#durable || this.#policy !== "always") return undefined;
    if (this.#failure !== null) return Promise.reject(this.#failed());
    return this.#promiseOf(position);
  }

  /**
   * More frames are on their way in this turn or the next: no sync begins until the function it answers is called, so that
   * one sync does for all of them.
   */
  gather(): () => void {
    this.#gathering++;
    return once(() => {
      this.#gathering--;
      if (this.#gathering > 0 || !this.#gathered) return;
      this.#gathered = false;
      this.#startUnlessBusy();
    });
  }

  /**
   * Much is about to be written to the disk besides: until the function it answers is called, and for a moment more, no
   * sync is done on the event loop.
   */
  crowd(): () => void {
    return this.#standstill.crowd();
  }

  /** Resolves when everything appended so far is on disk, whatever the policy. Rejects with Refusal `disk_failed`. */
  sync(): Promise<void> {
    if (this.#failure !== null) return Promise.reject(this.#failed());
    if (this.appended <= this.#durable) return Promise.resolve();
    const done = this.#promiseOf(this.appended);
    this.#asked = true;
    if (!this.#syncing) this.#arm();
    return done;
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
        this.#bytesSinceSnapshot += segment.end - (segment.marks.at(position)?.offset ?? 0);
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
      const mark = segment.marks.at(position);
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
      position = segment.marks.before(seq)?.position ?? segment.head.first;
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
    this.#resting?.cancel();
    if (this.#failure === null) this.#trim();
    this.#tail.close();
    this.#reserve.close();
  }

  #failed(): Refusal {
    return new Refusal("disk_failed", `the disk failed, and nothing is written until a restart: ${this.#failure}`);
  }

  /**
   * Whether a frame may be written later, with the others of its sync. Once it is appended memory holds its change, so
   * the disk must not refuse it then: it may where its space is taken already, and where its answer waits for the sync.
   */
  #mayWait(bytes: number): boolean {
    if (this.#policy !== "always" || this.#full !== null) return false;
    return this.#unwritten.bytes + bytes <= Math.min(this.#tail.room, GATHERED_BYTES);
  }

  /** Writes what waits. Memory holds it already: if the disk does refuse it (one that copies on write may), the log failed. */
  #writeOut(): void {
    if (this.#unwritten.bytes === 0) return;
    try {
      this.#write(this.#unwritten.take(), true);
    } catch (error) {
      throw this.#failure === null ? this.#fail("a write", error) : error;
    }
  }

  #write(frame: Buffer, essential: boolean): void {
    if (this.#full !== null && !essential) {
      // What the reserve gave to a delete must not go to the next put.
      if (!this.#fillReserve()) throw this.#fullRefusal();
    }
    for (;;) {
      try {
        this.#tail.write(frame);
        break;
      } catch (error) {
        if (!saysFull(error)) throw this.#fail("a write", error);
        this.#full = (error as Error).message;
        try {
          this.#tail.cutForRoom();
          if (essential && this.#reserve.give(frame.length)) continue;
        } catch (cutting) {
          throw this.#fail("cutting a torn frame off", cutting);
        }
        throw this.#fullRefusal();
      }
    }
    if (!essential) this.#full = null;
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
      "the disk is full: nothing was written; reads, claims and deletes go on, and all writes will once there is space",
    );
  }

  #promiseOf(position: number): Promise<void> {
    return this.#syncing && position <= this.#target ? this.#waiters.current() : this.#waiters.next();
  }

  /** Sees to it that a sync starts at the end of the turn, or when the policy wants it. */
  #arm(): void {
    if (this.#policy === "always" || this.#asked || this.#rotating || this.#isGrown()) {
      if (this.#armed) return;
      this.#armed = true;
      this.#startSoon();
    } else if (this.#policy !== "off") {
      if (this.#timed) return;
      this.#timed = true;
      this.#wall.after(this.#policy, () => {
        this.#timed = false;
        this.#startUnlessBusy();
      });
    }
  }

  /** At the end of this turn, or of the first that brings a small group nothing more. */
  #startSoon(): void {
    const { appended } = this;
    setImmediate(() => {
      if (this.appended > appended && this.#standsStill()) {
        this.#startSoon();
        return;
      }
      this.#armed = false;
      this.#startUnlessBusy();
    });
  }

  #startUnlessBusy(): void {
    if (!this.#syncing && !this.#closed && this.#failure === null) this.#start();
  }

  /** Whether what waits now is to be synced on the event loop. */
  #standsStill(): boolean {
    return this.#policy === "always" && this.#standstill.isFor(this.appended - this.#durable, this.#groupBytes);
  }

  #isGrown(): boolean {
    return this.#segment.end >= this.#segmentBytes;
  }

  #start(): void {
    if (this.#gathering > 0) {
      this.#gathered = true;
      return;
    }
    const standsStill = this.#standsStill();
    try {
      this.#writeOut();
    } catch {
      // All who wait have been told.
      return;
    }
    this.#target = this.appended;
    this.#groupBytes = 0;
    if (this.#target === this.#durable) {
      this.#settle();
      return;
    }
    this.#syncing = true;
    this.#asked = false;
    this.#waiters.begun();
    const startedMs = this.#wall.elapsed();
    const synced = (error: unknown): void => this.#synced(error, this.#wall.elapsed() - startedMs, standsStill);
    if (!standsStill) {
      this.#tail.syncLater(synced);
      return;
    }
    try {
      this.#tail.sync();
    } catch (error) {
      synced(error);
      return;
    }
    synced(null);
  }

  #synced(error: unknown, tookMs: number, stoodStill: boolean): void {
    this.#syncing = false;
    this.#syncs++;
    this.#syncMs += tookMs;
    if (stoodStill) this.#standstill.took(tookMs);
    this.#idle?.();
    if (error !== null) {
      this.#fail("a sync", error);
      return;
    }
    // A write that failed meanwhile leaves no doubt about this sync's frames, but nothing is confirmed any more.
    if (this.#failure !== null) return;
    this.#reached(this.#target);
    this.#settle();
  }

  /** Tells those who wait that all up to `position` is on disk. */
  #reached(position: number): void {
    this.#durable = position;
    this.#waiters.reached(position === this.appended);
    this.onDurable?.(position);
  }

  /** Between two syncs: the moment to begin a new segment, and to look who has come meanwhile. */
  #settle(): void {
    if (this.#rotating || this.#isGrown()) this.#rotate();
    if (this.#failure !== null) return;
    if (this.appended === this.#durable) this.#rest();
    else if (!this.#standsStill() && (this.#policy === "always" || this.#asked)) this.#start();
    else this.#arm();
  }

  /** Seals it if nothing has come by then. */
  #rest(): void {
    this.#resting ??= this.#wall.after(REST_MS, () => {
      this.#resting = null;
      if (this.#closed || this.#failure !== null || this.#syncing || this.appended > this.#durable) return;
      this.#seal();
    });
  }

  /** Also on a full disk: what it takes of the reserve the next frame takes over. */
  #seal(): void {
    if (this.#segment.last < this.#segment.head.first) return;
    for (;;) {
      try {
        this.#tail.seal(this.#durable);
        return;
      } catch (error) {
        if (!saysFull(error)) {
          this.#fail("a write", error);
          return;
        }
      }
      this.#cut();
      if (this.#failure !== null || !this.#giveUpReserve()) return;
    }
  }

  #giveUpReserve(): boolean {
    try {
      return this.#reserve.give(SEAL_BYTES);
    } catch (error) {
      this.#fail("cutting the reserve", error);
      return false;
    }
  }

  #cut(): void {
    try {
      this.#tail.cut();
    } catch (error) {
      this.#fail("cutting a torn frame off", error);
    }
  }

  /** For good order at the end: nothing behind the last frame but its seal. */
  #trim(): void {
    if (!this.#tail.isTrim) this.#cut();
    if (this.#failure === null) this.#seal();
    try {
      if (this.#failure === null) this.#tail.sync();
    } catch (error) {
      this.#fail("a sync", error);
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
      this.#writeOut();
      this.#tail.cut();
      this.#tail.sync();
    } catch (error) {
      this.#fail("a sync", error);
      return;
    }
    if (this.appended > this.#durable) this.#reached(this.appended);
    try {
      const head = newHead(old.last + 1, old.lastSeq, this.history, this.#clock.now());
      const tail = Tail.create(this.#disk, head, this.#policy !== "off");
      this.#tail.close();
      this.#tail = tail;
      this.#segment = newSegment(head);
      this.#segments.push(this.#segment);
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
    this.#waiters.failed(why);
    return why;
  }
}

/** The newest segment there is, its torn end cut off, and all of it on disk; null when there is none. */
function openTail(disk: Disk, scan: LogScan, preallocates: boolean): Tail | null {
  const found = scan.segments[scan.segments.length - 1];
  if (found === undefined) return null;
  const file = disk.open(found.name);
  const sealed = found.end.ending === "sealed";
  const tail = Tail.open(file, found.head.salt, found.end.offset, sealed, preallocates);
  const isDone = (sealed || found.last < found.head.first) && tail.isTrim;
  if (!isDone) tail.cut();
  tail.writeAgain(scan.doubtOffset);
  tail.sync();
  if (isDone) return tail;
  try {
    // After the sync: it says what is so.
    if (found.last >= found.head.first) tail.seal(found.last);
    tail.sync();
  } catch (error) {
    if (!saysFull(error)) throw error;
    tail.cut();
  }
  return tail;
}

function tornTailOf({ segments, unfinished }: LogScan): TornTail | null {
  const newest = segments[segments.length - 1];
  if (newest === undefined || unfinished !== null) return null;
  const { ending, offset, size } = newest.end;
  if (ending !== "torn" && ending !== "lost") return null;
  return { file: newest.name, offset, bytes: size - offset };
}

function newHead(first: number, baseSeq: number, history: string, createdMs: number): SegmentHead {
  const salt = crypto.getRandomValues(new Uint32Array(1))[0]! || 1;
  return { salt, first, baseSeq, createdMs, history };
}

function newSegment(head: SegmentHead): Segment {
  return {
    name: segmentName(head.first),
    head,
    last: head.first - 1,
    lastSeq: head.baseSeq,
    end: SEGMENT_HEAD_BYTES,
    marks: new Marks(),
  };
}
