import { describe, expect, test } from "bun:test";
import { KEPT_ANSWER_BYTES } from "../../src/base/limits.ts";
import type { Refusal } from "../../src/base/refusal.ts";
import { TestClock } from "../../src/clock/clock.ts";
import type { Outcome, RequestContext, Scope } from "../../src/engine/contract.ts";
import { Engine } from "../../src/engine/engine.ts";
import { KeptAnswers } from "../../src/engine/idempotency.ts";
import { MemoryJournal } from "../../src/engine/journal.ts";
import { HeldClaims } from "../../src/hold/held_claims.ts";
import { Store } from "../../src/store/store.ts";
import { codeOf } from "../harness/code_of.ts";

const START_MS = Date.parse("2026-03-01T12:00:00Z");
const TTL_MS = 60_000;
const CREATE = "create collection jobs (n int, run_at timestamp @sorted, owner text, attempts int)";
const CLAIM =
  "set jobs {owner: $1, run_at: now() + 30000, attempts: attempts + 1} where run_at <= now() order run_at limit 2 returning id, attempts";
const READ_ALL = { read: [null], insert: [], update: [], delete: [], expired: [], appendOnly: false };
const ALL = { ...READ_ALL, insert: [{ where: null, pins: [] }] };

function keyed(idempotencyKey: string, requestHash = "hash", scope: Scope | null = null): RequestContext {
  return { scope, idempotencyKey, requestHash };
}

function scopeOf(subject: string, rights = "rights", expiresAtMs = Number.POSITIVE_INFINITY): Scope {
  const update = [{ fields: null, where: null, transition: false, reach: null }];
  return { rules: { of: () => ({ ...ALL, update }) }, claims: new Map(), expiresAtMs, subject, rights };
}

class Kit {
  readonly clock = new TestClock(START_MS);
  readonly journal = new MemoryJournal();
  readonly engine = new Engine({
    store: new Store(),
    journal: this.journal,
    clock: this.clock,
    seq: 0,
    readOnly: false,
    maxMemoryBytes: Number.POSITIVE_INFINITY,
    answers: new KeptAnswers(TTL_MS),
    compact: () => {},
  });

  constructor(jobs = 5) {
    this.root(CREATE);
    for (let n = 1; n <= jobs; n++) this.put(n);
  }

  root(text: string): string {
    return this.engine.query(text, [], { scope: null, idempotencyKey: null, requestHash: "" }).body;
  }

  put(n: number): void {
    this.root(`put jobs {n: ${n}, run_at: now(), attempts: 0}`);
  }

  claim(context: RequestContext, owner = "w"): Outcome {
    return this.engine.query(CLAIM, [owner], context);
  }

  get runs(): number {
    return this.journal.appended;
  }
}

describe("a key", () => {
  test("answers the first answer again, and runs nothing", () => {
    const kit = new Kit();
    const first = kit.claim(keyed("k"));
    expect(first.replayed).toBe(false);
    const { runs } = kit;
    const again = kit.claim(keyed("k"));
    expect(again).toMatchObject({ replayed: true, body: first.body, count: 2, isWrite: true });
    expect(kit.runs).toBe(runs);
    expect(kit.claim(keyed("another")).body).not.toBe(first.body);
    // Where the counter stands now.
    expect(kit.claim(keyed("k")).seq).toBe(kit.engine.seq);
  });

  test("with another request is refused, until its time is over", async () => {
    const kit = new Kit();
    const first = kit.claim(keyed("k"));
    expect(codeOf(() => kit.claim(keyed("k", "another hash")))).toBe("key_reused");
    expect(codeOf(() => kit.engine.batch([{ text: CLAIM, params: ["w"] }], keyed("k", "batch")))).toBe("key_reused");
    await kit.clock.advance(TTL_MS - 1);
    expect(kit.claim(keyed("k")).body).toBe(first.body);
    await kit.clock.advance(1);
    expect(kit.claim(keyed("k", "another hash")).replayed).toBe(false);
  });

  test("is not kept by what failed, took nothing, or only read", () => {
    const kit = new Kit(0);
    expect(codeOf(() => kit.engine.query("put nowhere {n: 1}", [], keyed("k")))).toBe("unknown_collection");
    expect(codeOf(() => kit.engine.query(`${CLAIM} require 1`, ["w"], keyed("k")))).toBe("unmet");
    expect(kit.claim(keyed("k", "one")).body).toBe("[]");
    expect(kit.engine.query("get jobs count", [], keyed("k", "two")).isRead).toBe(true);
    expect(kit.engine.batch([{ text: CLAIM, params: ["w"] }], keyed("k", "three")).wrote).toBe(0);
    kit.put(1);
    expect(kit.claim(keyed("k", "four")).count).toBe(1);
    expect(kit.engine.query("get jobs count", [], keyed("k", "five")).body).toBe('[{"count":1}]');
  });

  test("covers a batch whole, its reads too", () => {
    const kit = new Kit();
    const lines = [
      { text: CLAIM, params: ["w"] },
      { text: "get jobs where owner = $1 count", params: ["w"] },
      { text: "create collection notes (t text)", params: [] },
    ];
    const bodies = (): (string | boolean | undefined)[] => {
      const { outcomes, replayed } = kit.engine.batch(lines, keyed("k"));
      return [...outcomes.map((one) => one.batchBody), replayed];
    };
    const first = bodies();
    expect(first.pop()).toBeUndefined();
    expect(bodies()).toEqual([...first, true]);
    expect(kit.root('get jobs where owner = "w" count')).toBe('[{"count":2}]');
  });

  test("beside a compact goes with no writes", () => {
    const kit = new Kit();
    const batch = (...texts: string[]) =>
      kit.engine.batch(
        texts.map((text) => ({ text, params: [] })),
        keyed("k"),
      );
    expect(codeOf(() => batch("compact", "put jobs {n: 1}", "put jobs {n: 2}"))).toBe("bad_key");
    expect(kit.root("get jobs count")).toBe('[{"count":5}]');
    expect(batch("compact", "get jobs count").outcomes).toHaveLength(2);
  });

  test("keeps a note of an answer that is too large", () => {
    const kit = new Kit(0);
    kit.root("create collection texts (t text, mark int)");
    kit.engine.query("put texts {t: $1}", ["x".repeat(KEPT_ANSWER_BYTES)], keyed("put"));
    const set = (): Outcome => kit.engine.query("set texts {mark: 1} returning t", [], keyed("k"));
    expect(set().body.length).toBeGreaterThan(KEPT_ANSWER_BYTES);
    const again = set();
    expect(again.replayed).toBe(true);
    expect(again.body).toMatch(/^\{"message":"done; its answer of \d+ bytes was too large to keep"\}$/);
    expect(again).toMatchObject({ count: 1, wrote: 1, isWrite: true });
  });

  test("belongs to its subject; a token of nobody's takes none", () => {
    const kit = new Kit();
    const ann = kit.claim(keyed("k", "hash", scopeOf("ann")));
    const ben = kit.claim(keyed("k", "hash", scopeOf("ben")));
    const root = kit.claim(keyed("k"));
    expect(new Set([ann.body, ben.body, root.body]).size).toBe(3);
    expect(kit.claim(keyed("k", "hash", scopeOf("ann"))).body).toBe(ann.body);
    expect(codeOf(() => kit.claim(keyed("k", "hash", scopeOf(""))))).toBe("bad_key");
    expect(kit.engine.query("get jobs count", [], keyed("k", "hash", scopeOf(""))).isRead).toBe(true);
  });

  test("tells no rows to a token whose rules are others now, nor to one that has expired", () => {
    const kit = new Kit();
    const first = kit.claim(keyed("k", "hash", scopeOf("ann")));
    const { runs } = kit;
    const other = kit.claim(keyed("k", "hash", scopeOf("ann", "other rights")));
    expect(other.replayed).toBe(true);
    expect(other.body).toContain("message");
    expect(other.body).not.toContain("attempts");
    expect(codeOf(() => kit.claim(keyed("k", "hash", scopeOf("ann", "rights", START_MS))))).toBe("unauthorized");
    expect(kit.claim(keyed("k", "hash", scopeOf("ann"))).body).toBe(first.body);
    expect(kit.runs).toBe(runs);
  });
});

describe("a key of a held claim", () => {
  class Held extends Kit {
    readonly hold = new HeldClaims(this.engine, this.clock);

    ask(context: RequestContext, waitMs = 10_000): Promise<Outcome> {
      const gone = new AbortController();
      return Promise.resolve(this.hold.query({ text: CLAIM, params: ["w"] }, context, waitMs, gone.signal));
    }
  }

  test("is answered to every try at once, when one of them takes a job", async () => {
    const kit = new Held(0);
    const tries = Array.from({ length: 5 }, () => kit.ask(keyed("k")));
    const stranger = kit.ask(keyed("another"));
    expect(kit.hold.held).toBe(6);
    kit.put(1);
    const answers = await Promise.all(tries);
    expect(new Set(answers.map(({ body }) => body))).toEqual(new Set(['[{"id":1,"attempts":1}]']));
    expect(answers.filter(({ replayed }) => replayed !== true)).toHaveLength(1);
    expect(kit.hold.held).toBe(1);
    kit.put(2);
    expect((await stranger).body).toBe('[{"id":2,"attempts":1}]');
  });

  test("is answered by a try that did not wait, as well", async () => {
    const kit = new Held(0);
    const first = kit.ask(keyed("k"));
    // A retry whose turn it is before the drain that would have served the first.
    kit.put(1);
    const second = kit.claim(keyed("k"));
    expect(second.count).toBe(1);
    expect((await first).body).toBe(second.body);
    expect(kit.hold.held).toBe(0);
  });

  test("with another request is refused to the one that waited", async () => {
    const kit = new Held(0);
    const first = kit.ask(keyed("k", "first"));
    kit.put(1);
    expect(kit.claim(keyed("k", "second")).count).toBe(1);
    expect(await first.catch((error: Refusal) => error.code)).toBe("key_reused");
  });

  test("is not kept by a wait that ended, nor by one whose token expired", async () => {
    const kit = new Held(0);
    const first = kit.ask(keyed("k"), 1_000);
    const expiring = kit.ask(keyed("k", "hash", scopeOf("ann", "rights", START_MS + 1_500)));
    await kit.clock.advance(1_000);
    expect((await first).body).toBe("[]");
    await kit.clock.advance(1_000);
    kit.put(1);
    expect(await expiring.catch((error: Refusal) => error.code)).toBe("unauthorized");
    expect(kit.claim(keyed("k")).count).toBe(1);
  });
});
