/**
 * One life of a simulated server: it is started again and again, put to work by clients, and ended by a crash or in good
 * order, on a disk that is full for a while, or fails a sync. After every start it is held to what it did before: all that
 * was confirmed or shown is there, nothing that was refused, each frame whole, indexes equal to rows. The whole life is made
 * from one seed, the random bytes of the files too.
 */

import { expect } from "bun:test";
import { AssertionFailure } from "../../src/base/assert.ts";
import { ByteWriter } from "../../src/base/bytes.ts";
import { Damage } from "../../src/log/damage.ts";
import { snapshotNames } from "../../src/log/snapshot.ts";
import { encodeHead, encodeSlice, type Place, START } from "../../src/store/state.ts";
import type { Store } from "../../src/store/store.ts";
import { Random } from "../store/random.ts";
import { ACCOUNT_START, ACCOUNTS, BEGINNING, Client, type World } from "./clients.ts";
import { PoweredOff, SimDisk } from "./disk.ts";
import { History } from "./history.ts";
import { Machine, type MachineOptions, turns } from "./machine.ts";
import { expectSame } from "./same.ts";

const START_MS = Date.UTC(2026, 4, 1);
const STARTS = 4;
const STEPS = 45;
const CLIENTS = 5;

export type Tally = Map<string, number>;

/** Runs a life to its end; `tally` counts what happened in it. */
export async function life(seed: number, tally: Tally): Promise<void> {
  const random = new Random(seed);
  const giveBack = withSeededBytes(random);
  try {
    await new Life(random, tally).run();
  } finally {
    giveBack();
  }
}

class Life {
  readonly #random: Random;
  readonly #tally: Tally;
  readonly #options: MachineOptions;
  readonly #world: World;
  readonly #clients: readonly Client[];
  readonly #failures: unknown[] = [];
  #disk = new SimDisk();
  #nowMs = START_MS;
  /** Frames that were on disk when the last server died. */
  #durable = 0;

  constructor(random: Random, tally: Tally) {
    this.#random = random;
    this.#tally = tally;
    const dice = random.next();
    const sync = dice < 0.7 ? "always" : dice < 0.85 ? 50 : "off";
    this.#options = {
      sync,
      idempotencyTtlMs: 86_400_000,
      segmentBytes: random.pick([500, 5_000, 50_000]),
      reserveBytes: random.pick([0, 20_000]),
      // Every group in the pool, or all small ones on the event loop.
      standStillMs: random.pick([0, Infinity]),
      snapshotBytes: random.pick([1_000, 5_000, 1_000_000]),
      snapshotMs: random.pick([10_000, 900_000]),
      sliceRows: random.pick([1, 3, 10, 1_000]),
      onSnapshotFailed: (why) => {
        if (why instanceof AssertionFailure) this.#failures.push(why);
      },
    };
    this.#world = {
      random,
      history: new History(),
      machine: null as unknown as Machine,
      strict: sync === "always",
      shownSeq: 0,
      tally,
    };
    this.#clients = Array.from({ length: CLIENTS }, (_, n) => new Client(`c${n}`, this.#world));
  }

  async run(): Promise<void> {
    for (let start = 0; start < STARTS; start++) {
      const machine = await this.#start();
      if (start === 0) await this.#begin(machine);
      await this.#work(machine);
      await this.#end(machine);
      if (this.#failures.length > 0) throw this.#failures[0];
    }
    await this.#start();
  }

  /** Starts a server over what is there, and holds it to what there must be. */
  async #start(): Promise<Machine> {
    const { random } = this;
    if (random.chance(0.3)) await this.#startCutShort();
    const machine = await Machine.start(this.#disk, this.#nowMs, this.#options);
    const { history } = this.#world;
    const { engine, log } = machine.database;
    const position = log?.appended ?? 0;
    expect(position, "all that was on disk is there").toBeGreaterThanOrEqual(this.#durable);
    history.cut(position);
    expect(engine.seq).toBe(history.seq);
    expect(engine.seq, "all that was shown is there").toBeGreaterThanOrEqual(this.#world.shownSeq);
    expectSame(engine.store, history.model());
    expectWhole(engine.store);
    this.#count(`start ${log?.tornTail === null ? "whole" : "torn"}`);
    await this.#startTwice(machine);
    history.follow(machine.database);
    this.#world.machine = machine;
    return machine;
  }

  /** A start that dies as well; the next one has the same to begin with, or more of it settled. */
  async #startCutShort(): Promise<void> {
    const { random } = this;
    const disk = this.#disk;
    if (random.chance(0.5)) disk.callsToLive = random.below(12);
    else disk.bytesToLive = random.below(200);
    try {
      const machine = await Machine.start(disk, this.#nowMs, this.#options);
      machine.die();
    } catch (error) {
      if (!(error instanceof PoweredOff)) throw error;
    }
    await turns(2);
    this.#disk = this.#afterCrash(disk);
    this.#count("start cut short");
  }

  /** A second start, and one from the older snapshot, lead to the same bytes. */
  async #startTwice(machine: Machine): Promise<void> {
    const { random } = this;
    if (!random.chance(0.3)) return;
    const files = this.#disk.files();
    const again = SimDisk.of(files);
    const second = await Machine.start(again, this.#nowMs, this.#options);
    const state = stateOf(machine.database.engine.store);
    expect(stateOf(second.database.engine.store).equals(state), "two starts give the same bytes").toBe(true);
    expect([...again.files().keys()]).toEqual([...files.keys()]);
    for (const [name, bytes] of again.files()) expect(bytes.equals(files.get(name)!), name).toBe(true);
    second.die();
    const [newest] = snapshotNames(SimDisk.of(files));
    if (newest === undefined) return;
    files.delete(newest);
    const older = await Machine.start(SimDisk.of(files), this.#nowMs, this.#options);
    expect(stateOf(older.database.engine.store).equals(state), "the older snapshot leads to the same").toBe(true);
    older.die();
    this.#count("older snapshot");
  }

  async #begin(machine: Machine): Promise<void> {
    for (const query of BEGINNING) {
      const body = JSON.stringify({ query, params: [] });
      const answer = await machine.ask({ path: "/query", body, key: null, waitMs: 0 });
      expect(answer?.status, query).toBe(200);
    }
    await machine.database.log?.sync();
    this.#world.shownSeq = machine.database.engine.seq;
  }

  async #work(machine: Machine): Promise<void> {
    const { random } = this;
    const disk = this.#disk;
    const dice = random.next();
    if (dice < 0.2) disk.bytesToLive = random.below(20_000);
    else if (dice < 0.4) disk.callsToLive = random.below(250);
    else if (dice < 0.6) machine.answersToLive = machine.answers + 1 + random.below(60);
    const fails = random.chance(0.1) ? random.below(STEPS) : -1;
    const full = random.chance(0.2) ? random.below(STEPS) : -1;
    const steps = STEPS / 2 + random.below(STEPS);
    for (let step = 0; step < steps && !disk.isOff && this.#failures.length === 0; step++) {
      if (step === fails) disk.failsSync = random.pick([/^redo/, /^snapshot/]);
      if (step === full) disk.capacityBytes = used(disk) + random.below(2_000);
      if (step === full + 10) disk.capacityBytes = Infinity;
      if (random.chance(0.3)) disk.holdsSyncs = !disk.holdsSyncs;
      const burst = 1 + random.below(4);
      for (let i = 0; i < burst; i++) {
        const idle = this.#clients.filter((client) => !client.busy);
        if (idle.length === 0) break;
        void random
          .pick(idle)
          .act()
          .catch((error: unknown) => this.#failures.push(error));
        if (random.chance(0.5)) await turns(1);
      }
      while (disk.heldSyncs > 0 && random.chance(0.8)) disk.releaseSync();
      await turns(1 + random.below(3));
      if (random.chance(0.2))
        await this.#pass(machine, random.chance(0.3) ? random.below(30_000) : random.below(2_000));
    }
  }

  /** Time goes by, unless the machine is off: then nothing of it runs any more. */
  async #pass(machine: Machine, ms: number): Promise<void> {
    // A held sync is a slow one, not one that never ends.
    this.#disk.holdsSyncs = false;
    while (this.#disk.heldSyncs > 0) this.#disk.releaseSync();
    const { log } = machine.database;
    const appended = log?.appended ?? 0;
    await machine.clock.advance(ms);
    this.#nowMs = machine.clock.now();
    const { sync } = this.#options;
    if (typeof sync !== "number" || ms < sync || log === null || log.failure !== null || this.#disk.isOff) return;
    expect(log.durable, `on disk within ${sync} ms`).toBeGreaterThanOrEqual(appended);
  }

  async #end(machine: Machine): Promise<void> {
    const { random } = this;
    const disk = this.#disk;
    const { log } = machine.database;
    disk.capacityBytes = Infinity;
    const inOrder = !disk.isOff && random.chance(0.6);
    // A closed log is sealed; where that was cut short, a flipped bit in its last frame looks like a torn write.
    let isSealed = false;
    if (inOrder) {
      disk.failsSync = null;
      disk.holdsSyncs = false;
      while (disk.heldSyncs > 0) disk.releaseSync();
      const appended = log?.appended ?? 0;
      const failed = await machine.stop().then(
        () => false,
        () => true,
      );
      this.#durable = failed || disk.isOff ? (log?.durable ?? 0) : appended;
      isSealed = !failed && !disk.isOff;
      this.#count(failed ? "stop failed" : "stop");
    } else {
      machine.die();
      this.#durable = log?.durable ?? 0;
      this.#count("crash");
    }
    disk.powerOff();
    // Whoever waits hears that nothing will come.
    for (let i = 0; i < 100 && this.#clients.some((client) => client.busy); i++) await turns(1);
    expect(this.#clients.filter((client) => client.busy).map((client) => client.name)).toEqual([]);
    const isSettled = inOrder && this.#durable === (log?.appended ?? 0);
    if (isSettled && isSealed) await this.#flipABit(disk.files());
    if (!isSettled && !this.#world.strict) for (const client of this.#clients) client.forget();
    this.#disk = this.#afterCrash(disk);
  }

  #afterCrash(disk: SimDisk): SimDisk {
    const { random } = this;
    return random.chance(0.3) ? disk.afterKill() : SimDisk.of(disk.afterPowerLoss(random));
  }

  /** One bit flipped in what was settled: the same state, or no start. */
  async #flipABit(files: Map<string, Buffer>): Promise<void> {
    const { random } = this;
    const model = this.#world.history.model();
    for (let round = 0; round < 3; round++) {
      const name = random.pick([...files.keys()].filter((one) => files.get(one)!.length > 0 && one !== "reserve"));
      const bytes = Buffer.from(files.get(name)!);
      const bit = random.below(bytes.length * 8);
      bytes[bit >> 3] = bytes[bit >> 3]! ^ (1 << (bit & 7));
      const disk = SimDisk.of(new Map(files).set(name, bytes));
      let machine: Machine;
      try {
        machine = await Machine.start(disk, this.#nowMs, this.#options);
      } catch (error) {
        if (!(error instanceof Damage)) throw error;
        expect(error.file).toBe(name);
        this.#count("flip refused");
        continue;
      }
      expect(machine.database.engine.seq, `bit ${bit} of ${name}`).toBe(this.#world.history.seq);
      expectSame(machine.database.engine.store, model);
      machine.die();
      this.#count("flip seen through");
    }
  }

  #count(what: string): void {
    this.#tally.set(what, (this.#tally.get(what) ?? 0) + 1);
  }

  get random(): Random {
    return this.#random;
  }
}

/** What no batch may leave: half of a pair, or a unit of an account that went nowhere. */
function expectWhole(store: Store): void {
  const accounts = store.table("accounts");
  if (accounts === undefined || accounts.count < ACCOUNTS) return;
  let sum = 0;
  accounts.scan(-Infinity, (row) => {
    sum += row[2] as number;
    return true;
  });
  expect(sum, "units of all accounts").toBe(ACCOUNTS * ACCOUNT_START);
  const sides = new Map<unknown, number>();
  store.table("pairs")?.scan(-Infinity, (row) => {
    sides.set(row[1], (sides.get(row[1]) ?? 0) + 1);
    return true;
  });
  expect([...sides].filter(([, count]) => count !== 2)).toEqual([]);
}

/** All of a store as the bytes of a snapshot. */
function stateOf(store: Store): Buffer {
  const w = new ByteWriter();
  encodeHead(w, store);
  for (let place: Place | undefined = START; place !== undefined; )
    place = encodeSlice(w, store, place, 1_000, 1 << 20);
  return Buffer.from(w.view());
}

function used(disk: SimDisk): number {
  let bytes = 0;
  for (const file of disk.files().values()) bytes += file.length;
  return bytes;
}

/** Salts and histories of files come from the seed as well; the answer takes that back. */
function withSeededBytes(random: Random): () => void {
  const real = crypto.getRandomValues;
  const bytes = new Random(random.below(2 ** 32));
  crypto.getRandomValues = <T extends ArrayBufferView | null>(into: T): T => {
    if (into === null) return into;
    const view = new Uint8Array(into.buffer, into.byteOffset, into.byteLength);
    for (let i = 0; i < view.length; i++) view[i] = bytes.below(256);
    return into;
  };
  return () => {
    crypto.getRandomValues = real;
  };
}
