/**
 * `GET /<c>/changes`: the rows of a filter as they are, then as they change. A stream notes the ids that were written and
 * asks at the end of the turn which of them its filter holds now, by a statement like any other, so filter, `select` and a
 * token's rules mean here what they mean everywhere. Several writes may so become one event.
 *
 * | event    | data |
 * | -------- | ---- |
 * | `seed`   | `{"seq":n,"rows":[...]}`: all rows of the filter |
 * | `change` | `{"seq":n,"puts":[rows],"dels":[ids],"schema":bool}`: rows written that the filter holds, rows that left it |
 * | `error`  | `{"error":words,"code":code,"status":n}`: the stream is over |
 *
 * A row is told to have left only if it was told to be there, so a token hears of no row it may not read. No event shows
 * what is not on disk yet. A reader that is behind is sent nothing; its ids gather, a row once.
 *
 * A filter `false` holds no row: such a stream is a bell, rung with an empty `change` when a row is written that could be
 * read.
 */

import { STREAM_LOOK_ROWS } from "../base/limits.ts";
import { Refusal } from "../base/refusal.ts";
import type { Clock, Scheduled } from "../clock/clock.ts";
import type { EngineContract, RequestContext } from "../engine/contract.ts";
import { IdSet } from "../obs/id_set.ts";
import type { CollectionSchema } from "../schema/schema.ts";
import { listValues } from "../value/json.ts";
import { Json } from "../value/value.ts";
import { EventStream } from "./event_stream.ts";
import { type Change, RecentChanges } from "./recent_changes.ts";
import type { StreamShape } from "./rest.ts";

export class ChangeStreams {
  readonly #engine: EngineContract;
  readonly #clock: Clock;
  readonly #keepaliveMs: number;
  readonly #failed: (error: unknown) => Refusal;
  readonly #recent: RecentChanges;
  /** By cid. */
  readonly #followers = new Map<number, Set<Follower>>();
  #count = 0;
  #draining = false;

  /** `failed` makes a refusal of whatever was thrown. */
  constructor(engine: EngineContract, clock: Clock, keepaliveMs: number, failed: (error: unknown) => Refusal) {
    this.#engine = engine;
    this.#clock = clock;
    this.#keepaliveMs = keepaliveMs;
    this.#failed = failed;
    this.#recent = new RecentChanges(engine.seq);
    engine.watch((change, seq) => this.#changed(change, seq));
  }

  get count(): number {
    return this.#count;
  }

  /** The body of the stream, begun; `gone` aborts when its reader does. Refuses what its statement refuses. */
  async open(
    schema: CollectionSchema,
    shape: StreamShape,
    context: RequestContext,
    gone: AbortSignal,
  ): Promise<ReadableStream<Uint8Array>> {
    const { scope } = context;
    const { cid } = schema;
    const follower: Follower = new Follower(
      this.#engine,
      schema,
      shape,
      context,
      (onRoom, onEnd) => new EventStream(this.#clock, this.#keepaliveMs, onRoom, onEnd),
      () => this.#drain(),
      () => this.#leave(cid, follower),
    );
    // What a token held to rules was told is not known any more, and it must hear of no row it was not.
    const goesOn = shape.since !== undefined && scope === null;
    const missed = goesOn ? this.#recent.since(shape.since ?? 0, cid, this.#engine.seq) : undefined;
    const first = missed === undefined ? follower.seed() : follower.resume(missed);
    let followers = this.#followers.get(cid);
    if (followers === undefined) {
      followers = new Set();
      this.#followers.set(cid, followers);
    }
    followers.add(follower);
    this.#count++;
    gone.addEventListener("abort", () => follower.stream.end());
    try {
      await this.#engine.durable(true);
    } catch (error) {
      follower.stream.end();
      throw error;
    }
    first();
    follower.begun = true;
    if (scope !== null && scope.expiresAtMs < Infinity) {
      follower.expiry = this.#clock.at(scope.expiresAtMs, () => {
        follower.fail(new Refusal("unauthorized", "the token has expired"));
      });
    }
    this.#drain();
    return follower.stream.body;
  }

  /** The server stops: every stream ends. */
  release(): void {
    for (const followers of [...this.#followers.values()]) for (const follower of [...followers]) follower.stream.end();
  }

  #leave(cid: number, follower: Follower): void {
    const followers = this.#followers.get(cid);
    if (followers?.delete(follower) !== true) return;
    if (followers.size === 0) this.#followers.delete(cid);
    this.#count--;
  }

  #changed(change: Change, seq: number): void {
    this.#recent.take(change, seq);
    if (this.#count === 0) return;
    let noted = false;
    for (const op of change) {
      const followers = this.#followers.get("cid" in op ? op.cid : op.schema.cid);
      if (followers === undefined) continue;
      noted = true;
      for (const follower of followers) {
        if (op.op === "put") follower.written.add(op.row[0] as number);
        else if (op.op === "del") follower.written.add(op.id);
        else if (op.op === "alter") follower.altered = true;
        else follower.dropped = true;
      }
    }
    if (noted) this.#drain();
  }

  /** Looks for every stream, waits until what was seen is on disk, and sends; again while more was written meanwhile. */
  #drain(): void {
    if (this.#draining) return;
    this.#draining = true;
    // At the end of the turn: what came in one burst is one event.
    setImmediate(() => {
      this.#serve()
        .catch((error: unknown) => void this.#failed(error))
        .finally(() => {
          this.#draining = false;
        });
    });
  }

  async #serve(): Promise<void> {
    for (;;) {
      const sends: (() => void)[] = [];
      for (const followers of this.#followers.values()) {
        for (const follower of followers) {
          if (!follower.isDue) continue;
          try {
            const send = follower.look();
            if (send !== undefined) sends.push(send);
          } catch (error) {
            const refusal = this.#failed(error);
            sends.push(() => follower.fail(refusal));
          }
        }
      }
      if (sends.length === 0) break;
      try {
        await this.#engine.durable(true);
      } catch (error) {
        const refusal = this.#failed(error);
        for (const followers of [...this.#followers.values()]) for (const one of [...followers]) one.fail(refusal);
        break;
      }
      for (const send of sends) send();
    }
  }
}

/** One stream: what it follows, what it has told, what it has yet to look at. */
class Follower {
  readonly stream: EventStream;
  /** Ids written since it last looked. */
  readonly written = new Set<number>();
  altered = false;
  dropped = false;
  /** The first event is out. */
  begun = false;
  expiry: Scheduled | undefined;
  readonly #engine: EngineContract;
  readonly #context: RequestContext;
  readonly #shape: StreamShape;
  readonly #rowsText: string;
  readonly #isBell: boolean;
  readonly #told = new IdSet();

  constructor(
    engine: EngineContract,
    schema: CollectionSchema,
    shape: StreamShape,
    context: RequestContext,
    streamOf: (onRoom: () => void, onEnd: () => void) => EventStream,
    onRoom: () => void,
    onEnd: () => void,
  ) {
    this.#engine = engine;
    this.#context = context;
    this.#isBell = shape.isEmpty;
    this.#shape = shape.isEmpty ? { ...shape, where: "", params: [], select: "id" } : shape;
    this.#rowsText = `get ${schema.name} select ${this.#shape.select}\n`;
    this.stream = streamOf(onRoom, () => {
      this.expiry?.cancel();
      onEnd();
    });
  }

  get isDue(): boolean {
    return this.begun && (this.written.size > 0 || this.altered || this.dropped) && this.stream.hasRoom;
  }

  fail(refusal: Refusal): void {
    const data = { error: refusal.message, code: refusal.code, status: refusal.status };
    this.stream.send("error", JSON.stringify(data));
    this.stream.end();
  }

  /** All its rows; the answer sends them. */
  seed(): () => void {
    const body = this.#all();
    const data = `{"seq":${this.#engine.seq},"rows":${this.#isBell ? "[]" : body}}`;
    return () => this.stream.send("seed", data);
  }

  /** What it missed; the answer sends it. Which rows it was told of is not known, so every one that is not there left. */
  resume(missed: ReadonlySet<number>): () => void {
    this.#all();
    for (const id of missed) {
      this.#told.add(id);
      this.written.add(id);
    }
    return () => this.stream.comment("goes on");
  }

  /** The event due, if there is one to tell; the answer sends it. */
  look(): (() => void) | undefined {
    if (this.dropped) throw new Refusal("unknown_collection", "the collection was dropped");
    const schema = this.altered;
    const ids = [...this.written];
    this.written.clear();
    this.altered = false;
    const puts: string[] = [];
    const found = new Set<number>();
    // An altered collection is asked even for no row, as it may lack a field of the filter now.
    for (let from = 0; from < Math.max(ids.length, schema ? 1 : 0); from += STREAM_LOOK_ROWS) {
      for (const row of this.#lookAt(ids.slice(from, from + STREAM_LOOK_ROWS))) {
        found.add(idOf(row));
        puts.push(row.text);
      }
    }
    const dels: number[] = [];
    for (const id of ids) {
      if (found.has(id)) this.#told.add(id);
      else if (this.#told.delete(id)) dels.push(id);
    }
    if (puts.length === 0 && dels.length === 0 && !schema) return undefined;
    const { seq } = this.#engine;
    const data = this.#isBell
      ? `{"seq":${seq},"puts":[],"dels":[],"schema":${schema}}`
      : `{"seq":${seq},"puts":[${puts.join(",")}],"dels":[${dels.join(",")}],"schema":${schema}}`;
    return () => this.stream.send("change", data);
  }

  /** Its rows now, as json; they are told from here on. */
  #all(): string {
    const { where, params } = this.#shape;
    const text = where === "" ? this.#rowsText : `${this.#rowsText} where ${where}`;
    const { body } = this.#engine.query(text, params, this.#context);
    for (const row of rowsOf(body)) this.#told.add(idOf(row));
    return body;
  }

  #lookAt(ids: readonly number[]): Json[] {
    const { where, params } = this.#shape;
    // A list of few lengths, its last id again and again, so that few texts are planned.
    const places = ids.length <= 1 ? 1 : 1 << Math.ceil(Math.log2(ids.length));
    const list: string[] = [];
    const values = [...params];
    for (let i = 0; i < places; i++) list.push(`$${values.push(ids[Math.min(i, ids.length - 1)] ?? null)}`);
    const mine = `id in [${list.join(", ")}]`;
    const text = `${this.#rowsText} where ${where === "" ? mine : `${mine} and (${where})`}`;
    return rowsOf(this.#engine.query(text, values, this.#context).body);
  }
}

function rowsOf(body: string): Json[] {
  return listValues(new Json(body)) as Json[];
}

/** A row begins with its id, as every select of a stream does. */
function idOf(row: Json): number {
  return Number.parseInt(row.text.slice('{"id":'.length), 10);
}
