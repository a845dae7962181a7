import { describe, expect, test } from "bun:test";
import { QueueGauges, type QueueState } from "../../src/obs/queue_gauges.ts";
import type { CollectionSchema, Field, IndexDef } from "../../src/schema/schema.ts";
import type { Change, Op } from "../../src/store/change.ts";
import { Store } from "../../src/store/store.ts";
import type { Cell, FieldType, Row } from "../../src/value/value.ts";

const TIME: FieldType = { kind: "timestamp" };
const TEXT: FieldType = { kind: "text" };

function schemaOf(
  cid: number,
  name: string,
  types: readonly [string, FieldType][],
  indexes: IndexDef[],
): CollectionSchema {
  const fields: Field[] = types.map(([field, type], i) => ({ name: field, type, required: false, slot: i + 1 }));
  return { cid, name, fields, indexes };
}

const SORTED: IndexDef = { field: "run_at", keys: [], kind: "sorted", ttlMs: 0, ttlText: "" };
const TTL: IndexDef = { field: "at", keys: [], kind: "ttl", ttlMs: 50, ttlText: "50ms" };

const jobs = schemaOf(
  1,
  "jobs",
  [
    ["run_at", TIME],
    ["owner", TEXT],
  ],
  [SORTED],
);

/** A store whose changes the gauges are told of, as the engine does it. */
class Followed {
  readonly store = new Store();
  readonly gauges = new QueueGauges(this.store);

  apply(...ops: Op[]): void {
    const change: Change = ops;
    this.store.apply(change);
    this.gauges.changed(change);
  }

  put(cid: number, row: Row): void {
    this.apply({ op: "put", cid, row });
  }

  async read(nowMs: number): Promise<QueueState> {
    const [state] = await this.gauges.read(() => nowMs);
    if (state === undefined) throw new Error("no queue");
    return state;
  }
}

/** The same by looking at every row. */
function judged(store: Store, name: string, nowMs: number): QueueState {
  const table = store.table(name)!;
  const cell = (row: Row, field: string): Cell => {
    const slot = table.slotOf(field);
    return slot === undefined ? null : (row[slot] ?? null);
  };
  let [ready, delayed, leased, dead, oldest] = [0, 0, 0, 0, nowMs];
  table.scan(-Infinity, (row) => {
    const runAt = cell(row, "run_at") as number | null;
    const at = cell(row, "at") as number | null;
    if (table.ttl !== undefined && at !== null && at <= nowMs - table.ttl.ttlMs) return true;
    if (runAt === null) dead++;
    else if (runAt <= nowMs) {
      ready++;
      oldest = Math.min(oldest, runAt);
    } else if (cell(row, "owner") === null) delayed++;
    else leased++;
    return true;
  });
  return { collection: name, ready, delayed, leased, dead, oldestReadySeconds: (nowMs - oldest) / 1_000 };
}

describe("queue gauges", () => {
  test("the age of a queue does not count what is not due", async () => {
    const hour = 3_600_000;
    const start = Date.parse("2026-01-01T01:45:00Z");
    const followed = new Followed();
    followed.apply({ op: "create", schema: jobs });
    followed.put(1, [1, start + 10 * hour, null]);
    const later = start + 17_045_000;
    expect(await followed.read(later)).toMatchObject({ ready: 0, delayed: 1, oldestReadySeconds: 0 });
    followed.put(1, [2, later, null]);
    expect(await followed.read(later + 3_000)).toMatchObject({ ready: 1, oldestReadySeconds: 3 });
    followed.put(1, [2, later + 33_000, "w"]);
    expect(await followed.read(later + 3_000)).toMatchObject({
      ready: 0,
      leased: 1,
      delayed: 1,
      oldestReadySeconds: 0,
    });
    // The lease lapsed four seconds ago: the age counts from the lapse.
    expect(await followed.read(later + 37_000)).toMatchObject({ ready: 1, leased: 0, oldestReadySeconds: 4 });
    followed.put(1, [2, null, null]);
    expect(await followed.read(later + 37_000)).toMatchObject({ ready: 0, dead: 1, oldestReadySeconds: 0 });
  });

  test("a collection is a queue by its run_at alone", async () => {
    const followed = new Followed();
    followed.apply(
      { op: "create", schema: schemaOf(1, "plain", [["run_at", TIME]], []) },
      { op: "create", schema: schemaOf(2, "number", [["run_at", { kind: "int" }]], [SORTED]) },
      { op: "create", schema: schemaOf(3, "hashed", [["run_at", TIME]], [{ ...SORTED, kind: "hash" }]) },
      { op: "create", schema: schemaOf(4, "ownerless", [["run_at", TIME]], [SORTED]) },
    );
    followed.put(4, [1, 10]);
    expect(await followed.gauges.read(() => 5)).toEqual([
      { collection: "ownerless", ready: 0, delayed: 1, leased: 0, dead: 0, oldestReadySeconds: 0 },
    ]);
  });

  test("writes go on while a large queue is first looked at", async () => {
    const followed = new Followed();
    followed.apply({ op: "create", schema: jobs });
    for (let id = 1; id <= 12_000; id++) followed.put(1, [id, 100, id % 2 === 0 ? "w" : null]);
    const reading = followed.gauges.read(() => 50);
    let turns = 0;
    const write = (): void => {
      if (++turns > 3) return;
      // One met already, one not met yet, one that comes and one that goes.
      followed.put(1, [1, 100, "w"]);
      followed.put(1, [12_000, 100, null]);
      followed.put(1, [20_000 + turns, 100, "w"]);
      followed.apply({ op: "del", cid: 1, id: 2 * turns });
      setImmediate(write);
    };
    write();
    const [state] = await reading;
    expect(turns).toBeGreaterThan(1);
    expect(state).toEqual(judged(followed.store, "jobs", 50));
    expect(state!.leased).toBeGreaterThan(5_000);
  });

  test("a queue altered or dropped while it is first looked at", async () => {
    const followed = new Followed();
    followed.apply({ op: "create", schema: jobs });
    for (let id = 1; id <= 6_000; id++) followed.put(1, [id, 100, "w"]);
    const reading = followed.gauges.read(() => 50);
    const types: [string, FieldType][] = [
      ["owner", TEXT],
      ["run_at", TIME],
    ];
    followed.apply({ op: "alter", schema: schemaOf(1, "jobs", types, [SORTED]), from: [0, 2, 1] });
    expect(await reading).toMatchObject([{ leased: 6_000 }]);
    const again = new Followed();
    again.apply({ op: "create", schema: jobs });
    for (let id = 1; id <= 6_000; id++) again.put(1, [id, 100, "w"]);
    const last = again.gauges.read(() => 50);
    again.apply({ op: "drop", cid: 1 });
    expect(await last).toEqual([]);
  });

  test("random histories: as looking at every row has it", async () => {
    const { FENEC_SEED } = process.env;
    const seed = Number(FENEC_SEED ?? Math.floor(Math.random() * 2 ** 31));
    try {
      for (let round = 0; round < 20; round++) await history(random(seed + round));
    } catch (error) {
      console.error(`FENEC_SEED=${seed}`);
      throw error;
    }
  });
});

async function history(next: (below: number) => number): Promise<void> {
  const followed = new Followed();
  const wide: [string, FieldType][] = [
    ["run_at", TIME],
    ["owner", TEXT],
    ["at", TIME],
  ];
  followed.apply({ op: "create", schema: schemaOf(1, "q", wide, next(2) === 0 ? [SORTED] : [SORTED, TTL]) });
  let hasOwner = true;
  for (let step = 0; step < 400; step++) {
    const id = 1 + next(40);
    const kind = next(20);
    if (kind === 0 && followed.store.table("q")!.get(id) !== undefined) followed.apply({ op: "del", cid: 1, id });
    else if (kind === 1) {
      // The field `owner` goes, or comes back: slots move, and rows with it.
      const types = hasOwner ? wide.filter(([name]) => name !== "owner") : wide;
      const indexes = followed.store.table("q")!.schema.indexes.slice();
      const schema = schemaOf(1, "q", types, indexes);
      followed.apply({ op: "alter", schema, from: hasOwner ? [0, 1, 3] : [0, 1, -1, 2] });
      hasOwner = !hasOwner;
    } else {
      const time = (): number | null => (next(5) === 0 ? null : next(200));
      const owner = next(2) === 0 ? null : "w";
      followed.put(1, hasOwner ? [id, time(), owner, time()] : [id, time(), time()]);
    }
    if (next(3) === 0) {
      const now = next(220);
      expect(await followed.read(now)).toEqual(judged(followed.store, "q", now));
    }
  }
  followed.apply({ op: "drop", cid: 1 });
  expect(await followed.gauges.read(() => 0)).toEqual([]);
}

/** xorshift; a number below the bound. */
function random(seed: number): (below: number) => number {
  let state = seed | 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}
