/**
 * What a server did, frame by frame, as the engine told it while it ran: the judge of what is there after a crash, which
 * must be these frames up to one of them, and every one that was confirmed.
 */

import { expect } from "bun:test";
import type { Database } from "../../src/engine/database.ts";
import type { Change } from "../../src/store/change.ts";
import type { Row } from "../../src/value/value.ts";
import { Model } from "../store/model.ts";

interface Frame {
  readonly position: number;
  /** The change counter after it. */
  seq: number;
  readonly changes: Change[];
}

export class History {
  #frames: Frame[] = [];
  /** The changes that brought each text into a row, and the rows as they were last written. */
  readonly #bringing = new Map<string, Change[]>();
  readonly #latest = new Map<string, Row>();

  get length(): number {
    return this.#frames.length;
  }

  /** Notes what the database does from now on. */
  follow(database: Database): void {
    const { engine, log } = database;
    engine.watch((change, seq) => {
      const position = log?.appended ?? 0;
      const last = this.#frames[this.#frames.length - 1];
      const copy = copyOf(change);
      this.#note(copy);
      if (last?.position === position) {
        last.changes.push(copy);
        last.seq = seq;
        return;
      }
      expect(position, "positions are dense").toBe((last?.position ?? 0) + 1);
      this.#frames.push({ position, seq, changes: [copy] });
    });
  }

  /** Only so many frames are left. */
  cut(position: number): void {
    expect(position, "nothing is there that was never written").toBeLessThanOrEqual(this.#frames.length);
    if (position === this.#frames.length) return;
    this.#frames = this.#frames.slice(0, position);
    this.#bringing.clear();
    this.#latest.clear();
    for (const { changes } of this.#frames) for (const change of changes) this.#note(change);
  }

  get seq(): number {
    return this.#frames[this.#frames.length - 1]?.seq ?? 0;
  }

  /** The state after all of it; also that no id was given to two rows of a collection, even with a row gone between. */
  model(): Model {
    const model = new Model();
    const given = new Map<number, Set<number>>();
    for (const { changes } of this.#frames) {
      for (const change of changes) {
        for (const op of change) {
          if (op.op === "put") {
            const ids = given.get(op.cid) ?? new Set<number>();
            const id = op.row[0] as number;
            const isNew = !model.of(op.cid).rows.has(id);
            if (isNew) expect(ids.has(id), `id ${id} of collection ${op.cid} is given twice`).toBe(false);
            ids.add(id);
            given.set(op.cid, ids);
          }
          model.apply([op]);
        }
      }
    }
    return model;
  }

  /** The changes that brought a text into a row that did not have it. */
  bringing(text: string): readonly Change[] {
    return this.#bringing.get(text) ?? [];
  }

  /** The frame that brought the change counter to this. */
  frameOf(seq: number): Frame | undefined {
    return this.#frames.findLast((frame) => frame.seq === seq);
  }

  #note(change: Change): void {
    for (const op of change) {
      if (op.op === "del") this.#latest.delete(`${op.cid} ${op.id}`);
      if (op.op !== "put") continue;
      const place = `${op.cid} ${op.row[0]}`;
      const before = this.#latest.get(place);
      this.#latest.set(place, op.row);
      for (const cell of op.row) {
        if (typeof cell !== "string" || before?.includes(cell) === true) continue;
        const changes = this.#bringing.get(cell) ?? [];
        if (changes.at(-1) !== change) changes.push(change);
        this.#bringing.set(cell, changes);
      }
    }
  }
}

/** The store keeps the rows it is given and writes over them. */
function copyOf(change: Change): Change {
  return change.map((op) => (op.op === "put" ? { ...op, row: [...op.row] } : op));
}
