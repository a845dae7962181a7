/**
 * Random histories: changes applied, taken back, logged and replayed, held to the model's rows and answers after each.
 * FENEC_HISTORY_STEPS asks for more of them than the usual run.
 */

import { expect, test } from "bun:test";
import { ByteReader, ByteWriter } from "../../src/base/bytes.ts";
import { toEnd } from "../../src/base/steps.ts";
import type { Op } from "../../src/store/change.ts";
import { Catalog, decodeChange, encodeChange } from "../../src/store/encoding.ts";
import type { KeyRange } from "../../src/store/ordered_index.ts";
import { encodeHead, encodeSlice, START, StateLoader } from "../../src/store/state.ts";
import { Store } from "../../src/store/store.ts";
import { Undo } from "../../src/store/undo.ts";
import type { Row } from "../../src/value/value.ts";
import { randomKey, randomOp, slotOf } from "./chance.ts";
import { Model, type ModelTable, plainWalk, rowsById, sameRow } from "./model.ts";
import { type Random, withRandom } from "./random.ts";

const { FENEC_HISTORY_STEPS: steps } = process.env;
const STEPS = Number(steps ?? 400);

function randomChange(random: Random, model: Model): Op[] {
  const scratch = model.copy();
  const change: Op[] = [];
  for (let i = 1 + random.below(8); i > 0; i--) {
    const op = randomOp(random, scratch);
    if (op === undefined) continue;
    scratch.apply([op]);
    change.push(op);
  }
  return change;
}

function expectSame(store: Store, model: Model): void {
  store.check();
  expect(store.nextCid).toBe(model.nextCid);
  expect(store.tables().map((table) => table.cid)).toEqual([...model.tables.keys()].sort((a, b) => a - b));
  for (const [cid, plain] of model.tables) {
    const table = store.tableById(cid);
    if (table === undefined) throw new Error(`table ${cid} is missing`);
    expect(store.table(plain.schema.name)).toBe(table);
    expect(table.schema).toEqual(plain.schema);
    expect(table.nextId).toBe(plain.nextId);
    expect(table.count).toBe(plain.rows.size);
    expect(table.slotOf("id")).toBe(0);
    for (const field of plain.schema.fields) expect(table.slotOf(field.name)).toBe(field.slot);
    const expected = rowsById(plain);
    const rows: Row[] = [];
    table.scan(-Infinity, (row) => {
      rows.push(row);
      return true;
    });
    expectRows(rows, expected);
    const ttl = plain.schema.indexes.find((index) => index.kind === "ttl");
    expect(table.ttl?.ttlMs).toBe(ttl?.ttlMs);
  }
}

function expectRows(rows: readonly Row[], expected: readonly Row[]): void {
  expect(rows.map((row) => row[0])).toEqual(expected.map((row) => row[0]));
  for (const [i, row] of rows.entries()) if (!sameRow(row, expected[i] as Row)) expect(row).toEqual(expected[i] as Row);
}

/** Every kind of question to every index, against a pass over the model's rows. */
function expectSameAnswers(random: Random, store: Store, model: Model): void {
  for (const [cid, plain] of model.tables) {
    const table = store.tableById(cid);
    for (const def of plain.schema.indexes) {
      if (def.kind === "geo") {
        expect(table?.geo(def.field)?.size).toBe(
          [...plain.rows.values()].filter((r) => r[slotOf(plain, def)] !== null).length,
        );
        continue;
      }
      const index = table?.index(def.field, def.keys);
      if (index === undefined) throw new Error(`index ${def.field} is missing`);
      const range = randomRange(random, plain, () => randomKey(random, plain, def));
      const descending = random.chance(0.5);
      const expected = plainWalk(plain, slotOf(plain, def), def.keys, range, descending);
      expect(index.count(range)).toBe(expected.length);
      const pageSize = random.chance(0.3) ? 1 + random.below(4) : Infinity;
      const rows: Row[] = [];
      index.walk(range, descending, (row) => rows.push(row) < pageSize);
      expectRows(rows, expected.slice(0, pageSize));
      if (def.kind !== "unique") continue;
      const key = randomKey(random, plain, def);
      const same: KeyRange = { lo: key, loOpen: false, hi: key, hiOpen: false };
      const holder = key === null ? undefined : plainWalk(plain, slotOf(plain, def), def.keys, same, false)[0];
      expect(index.holder(key)?.[0]).toBe(holder?.[0]);
    }
    const id = random.below(plain.nextId + 2);
    const held = plain.rows.get(id);
    const row = table?.get(id);
    expect(row === undefined).toBe(held === undefined);
    if (row !== undefined && held !== undefined) expect(sameRow(row, held)).toBe(true);
    const from = random.below(plain.nextId + 2);
    const scanned: Row[] = [];
    table?.scan(from, (one) => scanned.push(one) < 3);
    expectRows(
      scanned,
      rowsById(plain)
        .filter((one) => (one[0] as number) >= from)
        .slice(0, 3),
    );
    const ids: KeyRange = { lo: from, loOpen: random.chance(0.5), hi: from + 5, hiOpen: random.chance(0.5) };
    const inRange = [...plain.rows.keys()].filter(
      (one) => (ids.loOpen ? one > from : one >= from) && (ids.hiOpen ? one < from + 5 : one <= from + 5),
    );
    inRange.sort((a, b) => b - a);
    const walked: number[] = [];
    table?.ids.walk(ids, true, (one) => walked.push(one[0] as number) > 0);
    expect(walked).toEqual(inRange);
    expect(table?.ids.count(ids)).toBe(inRange.length);
  }
}

function randomRange(random: Random, table: ModelTable, key: () => ReturnType<typeof randomKey>): KeyRange {
  if (random.chance(0.3)) {
    const same = key();
    return { lo: same, loOpen: false, hi: same, hiOpen: false };
  }
  return {
    lo: table.rows.size > 0 && random.chance(0.7) ? key() : undefined,
    loOpen: random.chance(0.5),
    hi: random.chance(0.7) ? key() : undefined,
    hiOpen: random.chance(0.5),
  };
}

function rowObjects(store: Store): Map<string, Row> {
  const rows = new Map<string, Row>();
  for (const table of store.tables()) {
    table.scan(-Infinity, (row) => {
      rows.set(`${table.cid}:${String(row[0])}`, row);
      return true;
    });
  }
  return rows;
}

test("histories with rollbacks end as the model does, also replayed from their log and from a snapshot", () => {
  withRandom((random) => {
    const store = new Store();
    let model = new Model();
    const log: Uint8Array[] = [];
    for (let step = 0; step < STEPS; step++) {
      const before = model.copy();
      const objects = rowObjects(store);
      const bytes = store.memoryBytes;
      const undo = new Undo();
      const frames: Uint8Array[] = [];
      const statements = 1 + random.below(2);
      for (let i = 0; i < statements; i++) {
        const change = randomChange(random, model);
        const w = new ByteWriter();
        encodeChange(w, store, change);
        frames.push(Uint8Array.from(w.view()));
        const versions = new Map(store.tables().map((table) => [table, table.version]));
        const schemaVersion = store.schemaVersion;
        store.apply(change, undo);
        model.apply(change);
        for (const op of change) {
          if (op.op !== "put" && op.op !== "del") expect(store.schemaVersion).toBeGreaterThan(schemaVersion);
          const cid = op.op === "create" || op.op === "alter" ? op.schema.cid : op.cid;
          for (const [table, version] of versions)
            if (table.cid === cid) expect(table.version).toBeGreaterThan(version);
        }
      }
      expectSame(store, model);
      expectSameAnswers(random, store, model);
      if (random.chance(0.4)) {
        const schemaVersion = store.schemaVersion;
        store.rollback(undo);
        expect(store.schemaVersion).toBeGreaterThanOrEqual(schemaVersion);
        model = before;
        expectSame(store, model);
        expectSameAnswers(random, store, model);
        expect(store.memoryBytes).toBe(bytes);
        const now = rowObjects(store);
        expect(now.size).toBe(objects.size);
        for (const [name, row] of now) expect(objects.get(name) === row).toBe(true);
      } else log.push(...frames);
    }

    const replayed = new Store();
    const catalog = new Catalog();
    for (const frame of log) {
      const r = new ByteReader(frame);
      replayed.apply(decodeChange(r, catalog));
      expect(r.remaining).toBe(0);
    }
    expectSame(replayed, model);
    expectSameAnswers(random, replayed, model);
    expect(replayed.memoryBytes).toBe(store.memoryBytes);

    const loaded = reloaded(random, store);
    expectSame(loaded, model);
    expectSameAnswers(random, loaded, model);
    expect(loaded.memoryBytes).toBe(store.memoryBytes);
  });
}, 60_000);

function reloaded(random: Random, store: Store): Store {
  const w = new ByteWriter();
  const loader = new StateLoader();
  encodeHead(w, store);
  loader.head(new ByteReader(Uint8Array.from(w.view())));
  for (let place = START; ; ) {
    w.reset();
    const next = encodeSlice(w, store, place, 1 + random.below(20), 1 + random.below(400));
    if (next === undefined) break;
    loader.slice(new ByteReader(Uint8Array.from(w.view())));
    place = next;
  }
  const loaded = new Store();
  toEnd(loader.finish(loaded));
  return loaded;
}

test("a snapshot taken while the writer goes on, then replayed over, ends in the same state", () => {
  withRandom((random) => {
    for (let round = 0; round < 12; round++) {
      const store = new Store();
      const model = new Model();
      while (model.tables.size < 2) {
        const op = randomOp(random, model);
        if (op === undefined) continue;
        store.apply([op]);
        model.apply([op]);
      }
      const apply = (): Uint8Array => {
        const change: Op[] = [];
        const scratch = model.copy();
        for (let i = 0; i < 6; i++) {
          const op = randomOp(random, scratch);
          if (op === undefined || (op.op !== "put" && op.op !== "del")) continue;
          scratch.apply([op]);
          change.push(op);
        }
        const w = new ByteWriter();
        encodeChange(w, store, change);
        store.apply(change);
        model.apply(change);
        return Uint8Array.from(w.view());
      };
      for (let i = 0; i < 30; i++) apply();

      const w = new ByteWriter();
      const loader = new StateLoader();
      encodeHead(w, store);
      loader.head(new ByteReader(Uint8Array.from(w.view())));
      const log: Uint8Array[] = [];
      for (let place = START; ; ) {
        w.reset();
        const next = encodeSlice(w, store, place, 1 + random.below(6), 1e6);
        if (next === undefined) break;
        loader.slice(new ByteReader(Uint8Array.from(w.view())));
        place = next;
        log.push(apply());
      }
      for (let i = 0; i < 5; i++) log.push(apply());

      const recovered = new Store();
      toEnd(loader.finish(recovered));
      const catalog = new Catalog(recovered.tables().map((table) => table.schema));
      for (const frame of log) recovered.replay(decodeChange(new ByteReader(frame), catalog));
      expectSame(recovered, model);
      expectSameAnswers(random, recovered, model);
    }
  });
}, 30_000);
