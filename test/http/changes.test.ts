import { describe, expect, test } from "bun:test";
import { RECENT_WRITES, STREAM_BUFFER_BYTES, STREAM_STALL_MS } from "../../src/base/limits.ts";
import { RecentChanges } from "../../src/http/recent_changes.ts";
import type { Op } from "../../src/store/change.ts";
import { Asked } from "./parts.ts";

interface Event {
  readonly name: string;
  readonly data: Record<string, unknown>;
}

/** A reader of a stream, as a page's `EventSource` is one. */
class Reader {
  readonly events: Event[] = [];
  readonly comments: string[] = [];
  over: "" | "ended" | "broken" = "";
  readonly status: number;
  readonly headers: Headers;
  readonly #source: ReadableStreamDefaultReader<Uint8Array>;
  #unread = "";

  constructor(response: Response) {
    this.status = response.status;
    this.headers = response.headers;
    this.#source = response.body!.getReader();
  }

  /** Takes all that comes from now on. */
  pump(): this {
    void this.#pump();
    return this;
  }

  async #pump(): Promise<void> {
    const decoder = new TextDecoder();
    try {
      for (;;) {
        const { done, value } = await this.#source.read();
        if (done) break;
        this.#take(decoder.decode(value, { stream: true }));
      }
      this.over = "ended";
    } catch {
      this.over = "broken";
    }
  }

  cancel(): Promise<void> {
    return this.#source.cancel();
  }

  #take(text: string): void {
    this.#unread += text;
    for (let end = this.#unread.indexOf("\n\n"); end >= 0; end = this.#unread.indexOf("\n\n")) {
      const block = this.#unread.slice(0, end);
      this.#unread = this.#unread.slice(end + 2);
      if (block.startsWith(": ")) this.comments.push(block.slice(2));
      else {
        const [, name = "", data = ""] = /^event: (\w+)\ndata: (.+)$/.exec(block)!;
        this.events.push({ name, data: JSON.parse(data) as Record<string, unknown> });
      }
    }
  }
}

async function settled(): Promise<void> {
  for (let turn = 0; turn < 4; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
}

async function run(asked: Asked, text: string): Promise<string> {
  const answer = await asked.query(text);
  if (answer.status !== 200) throw new Error(`${text}: ${answer.body}`);
  return answer.body;
}

async function follow(asked: Asked, path: string): Promise<Reader> {
  const reader = new Reader(await asked.open(path)).pump();
  await settled();
  return reader;
}

async function items(): Promise<Asked> {
  const asked = new Asked({ settings: { maxStreams: 50, maxBodyBytes: 1_000_000 } });
  await run(asked, "create collection items (name text, year int @hash, meta json)");
  await run(asked, 'put items [{name: "one", year: 2024}, {name: "two", year: 2023}, {name: "old", year: 1999}]');
  return asked;
}

describe("a change stream", () => {
  test("begins with the rows of its filter, then tells what enters, changes and leaves it", async () => {
    const asked = await items();
    const reader = await follow(asked, "/items/changes?year=gte.2023&select=name");
    expect(reader.status).toBe(200);
    expect(reader.headers.get("content-type")).toBe("text/event-stream");
    expect(reader.events).toEqual([
      {
        name: "seed",
        data: {
          seq: 4,
          rows: [
            { id: 1, name: "one" },
            { id: 2, name: "two" },
          ],
        },
      },
    ]);
    const told: [string, unknown[], number[]][] = [
      ['put items {name: "new", year: 2030}', [{ id: 4, name: "new" }], []],
      ['put items {name: "older", year: 1}', [], []],
      ['set items {name: "oldest"} where id = 5', [], []],
      ["set items {year: 2025} where id = 5", [{ id: 5, name: "oldest" }], []],
      ["set items {year: 1} where id = 1", [], [1]],
      ["set items {year: 2} where id = 1", [], []],
      ["del items where id <= 2", [], [2]],
    ];
    for (const [text, puts, dels] of told) {
      const before = reader.events.length;
      await run(asked, text);
      await settled();
      const events = reader.events.slice(before);
      if (puts.length + dels.length === 0) expect(events).toEqual([]);
      else expect(events).toMatchObject([{ name: "change", data: { puts, dels, schema: false } }]);
    }
    await run(asked, "create collection other (x int)");
    await run(asked, "put other {x: 1}");
    await settled();
    expect(reader.events.length).toBe(5);
  });

  test("tells several writes in one event, and keeps digits and keys as they were sent", async () => {
    const asked = await items();
    const response = await asked.open("/items/changes?select=meta&where=id+>+3");
    const source = response.body!.getReader();
    const text = async (): Promise<string> => new TextDecoder().decode((await source.read()).value);
    expect(await text()).toBe('event: seed\ndata: {"seq":4,"rows":[]}\n\n');
    await asked.ask(
      "POST",
      "/batch",
      ['{"query":"put items {meta: $1}","params":[{"b":1.50,"10":9007199254740993}]}', '{"query":"put items {}"}'].join(
        "\n",
      ),
    );
    await asked.ask("POST", "/items", "{}");
    expect(await text()).toBe(
      'event: change\ndata: {"seq":7,"puts":[{"id":4,"meta":{"b":1.50,"10":9007199254740993}},{"id":5,"meta":null},{"id":6,"meta":null}],"dels":[],"schema":false}\n\n',
    );
    await source.cancel();
  });

  test("waits until what it tells is on disk", async () => {
    const asked = await items();
    const { engine } = asked.service.open!;
    const reader = await follow(asked, "/items/changes");
    const disk = Promise.withResolvers<void>();
    engine.durable = () => disk.promise;
    const write = run(asked, "put items {year: 1}");
    await settled();
    expect(reader.events.length).toBe(1);
    disk.resolve();
    await write;
    await settled();
    expect(reader.events.length).toBe(2);
  });

  test("takes a filter and a select, and no window", async () => {
    const asked = await items();
    for (const [path, status] of [
      ["/items/changes?limit=1", 400],
      ["/items/changes?offset=1", 400],
      ["/items/changes?order=year", 400],
      ["/items/changes?count", 400],
      ["/items/changes?group=year", 400],
      ["/items/changes?lookup=x", 400],
      ["/items/changes?year=x", 400],
      ["/items/changes?since=x", 400],
      ["/items/changes?where=year+=+", 400],
      ["/items/changes?nofield=1", 404],
      ["/items/changes?select=nofield", 404],
      ["/items/changes?where=nofield+=+1", 404],
      ["/nosuch/changes", 404],
    ] as const) {
      const response = await asked.open(path);
      expect({ path, status: response.status }).toEqual({ path, status });
      expect(Object.keys((await response.json()) as object)).toContain("error");
    }
    expect(asked.service.open!.streams.count).toBe(0);
  });

  test("rings without rows when its filter is false", async () => {
    const asked = await items();
    const reader = await follow(asked, "/items/changes?where=false");
    expect(reader.events).toEqual([{ name: "seed", data: { seq: 4, rows: [] } }]);
    await run(asked, "set items {year: 5} where id = 1");
    await settled();
    await run(asked, "del items where id = 1");
    await settled();
    expect(reader.events.slice(1)).toEqual([
      { name: "change", data: { seq: 5, puts: [], dels: [], schema: false } },
      { name: "change", data: { seq: 6, puts: [], dels: [], schema: false } },
    ]);
  });

  test("tells of another schema; ends with an error when there is no such collection, or filter, any more", async () => {
    const asked = await items();
    const all = await follow(asked, "/items/changes");
    const byYear = await follow(asked, "/items/changes?year=2024");
    await run(asked, "alter collection items add field extra int");
    await settled();
    expect(all.events.at(-1)!.data).toMatchObject({ puts: [], dels: [], schema: true });
    await run(asked, "alter collection items drop field year");
    await settled();
    expect(byYear.events.at(-1)).toMatchObject({ name: "error", data: { code: "unknown_field", status: 404 } });
    expect(byYear.over).toBe("ended");
    expect(all.over).toBe("");
    await run(asked, "drop collection items");
    await settled();
    expect(all.events.at(-1)).toMatchObject({ name: "error", data: { code: "unknown_collection", status: 404 } });
    expect(all.over).toBe("ended");
    expect(asked.service.open!.streams.count).toBe(0);
  });

  test("goes on from a change while that is remembered", async () => {
    const asked = await items();
    await run(asked, 'set items {name: "uno"} where id = 1');
    await run(asked, "del items where id = 3");
    const reader = await follow(asked, "/items/changes?since=4&select=name");
    expect(reader.comments).toEqual(["goes on"]);
    expect(reader.events).toEqual([
      { name: "change", data: { seq: 6, puts: [{ id: 1, name: "uno" }], dels: [3], schema: false } },
    ]);
    await run(asked, "del items where id = 2");
    await settled();
    expect(reader.events.at(-1)!.data).toMatchObject({ dels: [2] });
    const current = await follow(asked, "/items/changes?since=7");
    expect(current.events).toEqual([]);
    for (const since of ["0", "8", "999999"]) {
      expect((await follow(asked, `/items/changes?since=${since}`)).events[0]!.name).toBe("seed");
    }
  });

  test("is one of a bounded number", async () => {
    const asked = new Asked({ settings: { maxStreams: 2 } });
    await run(asked, "create collection items (a int)");
    const first = await follow(asked, "/items/changes");
    await follow(asked, "/items/changes");
    const refused = await asked.open("/items/changes");
    expect(refused.status).toBe(503);
    expect(refused.headers.get("retry-after")).toBe("1");
    await first.cancel();
    expect((await asked.open("/items/changes")).status).toBe(200);
  });

  test("is forgotten when its reader goes, also before it has begun", async () => {
    const asked = await items();
    const { engine, streams } = asked.service.open!;
    const reader = await follow(asked, "/items/changes");
    expect(streams.count).toBe(1);
    await reader.cancel();
    expect(streams.count).toBe(0);
    const disk = Promise.withResolvers<void>();
    engine.durable = () => disk.promise;
    const gone = new AbortController();
    const opening = asked.open("/items/changes", gone.signal);
    await settled();
    expect(streams.count).toBe(1);
    gone.abort();
    expect(streams.count).toBe(0);
    disk.resolve();
    await opening;
    expect(streams.count).toBe(0);
  });

  test("ends when the server stops", async () => {
    const asked = await items();
    const reader = await follow(asked, "/items/changes");
    asked.service.stop();
    await settled();
    expect(reader.over).toBe("ended");
  });

  test("says that it is there while it is quiet", async () => {
    const asked = await items();
    const reader = await follow(asked, "/items/changes");
    await asked.clock.advance(19_999);
    expect(reader.comments).toEqual([]);
    await asked.clock.advance(1);
    await settled();
    expect(reader.comments).toEqual(["quiet"]);
    await asked.clock.advance(40_000);
    await settled();
    expect(reader.comments.length).toBe(3);
  });

  test("holds nothing for a reader that is behind, tells it each row once, and gives it up in the end", async () => {
    const asked = await items();
    const wide = "x".repeat(STREAM_BUFFER_BYTES);
    await run(asked, `put items {name: "${wide}", year: 7}`);
    const slow = new Reader(await asked.open("/items/changes?year=7"));
    await settled();
    for (let i = 0; i < 20; i++) await run(asked, `set items {meta: {"i": ${i}}} where year = 7`);
    await settled();
    slow.pump();
    await settled();
    expect(slow.events.map(({ name }) => name)).toEqual(["seed", "change"]);
    expect(slow.events[1]!.data).toMatchObject({ puts: [{ meta: { i: 19 } }] });

    const stuck = new Reader(await asked.open("/items/changes?year=7"));
    await settled();
    expect(asked.service.open!.streams.count).toBe(2);
    await asked.clock.advance(STREAM_STALL_MS - 1);
    expect(asked.service.open!.streams.count).toBe(2);
    await asked.clock.advance(1);
    expect(asked.service.open!.streams.count).toBe(1);
    stuck.pump();
    await settled();
    expect(stuck.over).toBe("broken");
  });
});

describe("random histories", () => {
  test("a reader that applies its events has the rows that a read has", async () => {
    const { FENEC_SEED } = process.env;
    const seed = Number(FENEC_SEED ?? Math.floor(Math.random() * 2 ** 31));
    try {
      for (let round = 0; round < 8; round++) await history(random(seed + round));
    } catch (error) {
      console.error(`FENEC_SEED=${seed}`);
      throw error;
    }
  });
});

/** What a page knows: the rows it was told, by id. */
class Page {
  readonly rows = new Map<number, unknown>();
  seq = -1;
  #taken = 0;

  take(reader: Reader): void {
    for (const { name, data } of reader.events.slice(this.#taken)) {
      expect(["seed", "change"]).toContain(name);
      const event = data as { seq: number; rows?: { id: number }[]; puts?: { id: number }[]; dels?: number[] };
      if (name === "seed") this.rows.clear();
      for (const row of event.rows ?? event.puts ?? []) this.rows.set(row.id, row);
      for (const id of event.dels ?? []) this.rows.delete(id);
      expect(event.seq).toBeGreaterThanOrEqual(this.seq);
      this.seq = event.seq;
    }
    this.#taken = reader.events.length;
  }

  reopened(): void {
    this.#taken = 0;
  }
}

const FILTERS = ["", "n=gt.4", "where=n+<+7+and+not+(s+=+'b')", "s=in.(a,c)", "n=is.null"];

async function history(next: (below: number) => number): Promise<void> {
  const asked = new Asked();
  asked.service.listener = { pendingRequests: 0, timeout: () => {} };
  await run(asked, "create collection t (n int @sorted, s text)");
  await run(asked, "create collection other (n int)");
  const filter = FILTERS[next(FILTERS.length)]!;
  let reader = await follow(asked, `/t/changes?${filter}`);
  const page = new Page();
  for (let step = 0; step < 120; step++) {
    const n = next(10);
    const s = ["a", "b", "c"][next(3)]!;
    const id = 1 + next(12);
    const texts = [
      `put t {id: ${id}, n: ${n}, s: "${s}"}`,
      `put t {id: ${id}, s: "${s}"}`,
      `set t {n: ${n}} where s = "${s}"`,
      `del t where id = ${id}`,
      `del t where n = ${n}`,
      `put other {n: ${n}}`,
    ];
    const text = texts[next(texts.length)]!;
    if (next(4) === 0) {
      const lines = [text, texts[next(texts.length)]!].map((query) => JSON.stringify({ query }));
      await asked.ask("POST", "/batch", lines.join("\n"));
    } else await run(asked, text);
    if (next(2) === 0) continue;
    await settled();
    page.take(reader);
    const rows = JSON.parse((await asked.ask("GET", `/t?${filter}`)).body) as { id: number }[];
    expect([...page.rows.values()].sort(byId)).toEqual(rows.sort(byId));
    if (next(6) === 0) {
      await reader.cancel();
      await run(asked, texts[next(texts.length)]!);
      reader = await follow(asked, `/t/changes?${filter}&since=${page.seq}`);
      page.reopened();
    }
  }
}

function byId(a: unknown, b: unknown): number {
  return (a as { id: number }).id - (b as { id: number }).id;
}

function random(seed: number): (below: number) => number {
  let state = seed | 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

describe("recent changes", () => {
  const put = (cid: number, id: number): Op => ({ op: "put", cid, row: [id] });

  test("know what a collection's writes were, as far as the ring goes", () => {
    const recent = new RecentChanges(10);
    expect(recent.since(9, 1, 10)).toBeUndefined();
    expect(recent.since(10, 1, 10)).toEqual(new Set());
    recent.take([put(1, 5), put(1, 6)], 12);
    recent.take([{ op: "del", cid: 1, id: 5 }], 13);
    recent.take([put(2, 7)], 14);
    expect(recent.since(10, 1, 14)).toEqual(new Set([5, 6]));
    expect(recent.since(12, 1, 14)).toEqual(new Set([5]));
    expect(recent.since(13, 1, 14)).toEqual(new Set());
    expect(recent.since(15, 1, 14)).toBeUndefined();
    for (let i = 0; i < RECENT_WRITES - 4; i++) recent.take([put(2, i)], 15 + i);
    const now = 14 + RECENT_WRITES - 4;
    expect(recent.since(10, 1, now)).toEqual(new Set([5, 6]));
    recent.take([put(2, 0)], now + 1);
    expect(recent.since(10, 1, now + 1)).toBeUndefined();
    expect(recent.since(12, 1, now + 1)).toEqual(new Set([5]));
    // Not written since: how long ago that is does not matter.
    expect(recent.since(13, 1, now + 1)).toEqual(new Set());
  });

  test("of a collection begin with its schema", () => {
    const recent = new RecentChanges(0);
    const schema = { cid: 3, name: "x", fields: [], indexes: [] };
    recent.take([{ op: "create", schema }], 1);
    recent.take([put(3, 1)], 2);
    recent.take([{ op: "alter", schema, from: [0] }], 3);
    expect(recent.since(0, 3, 3)).toBeUndefined();
    expect(recent.since(2, 3, 3)).toBeUndefined();
    expect(recent.since(3, 3, 3)).toEqual(new Set());
  });
});
