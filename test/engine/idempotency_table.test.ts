import { describe, expect, test } from "bun:test";
import { ByteReader, ByteWriter } from "../../src/base/bytes.ts";
import { AnswerTable } from "../../src/engine/answer_table.ts";
import { type KeptAnswer, KeptAnswers, keyName, requestMark } from "../../src/engine/idempotency.ts";
import { type Random, withRandom } from "../store/random.ts";

const NOW_MS = 1_800_000_000_000;

function add(table: AnswerTable, name: string, text: string, atMs: number): void {
  const w = new ByteWriter();
  w.string("what stands before it in the frame");
  const from = w.length;
  w.string(name);
  w.string(text);
  table.add(name, w, from, atMs);
}

function textOf(table: AnswerTable, name: string): string | undefined {
  return table.find(name)?.string();
}

function nameFrom(random: Random): string {
  return random.pick(["", "k", "ключ", "\ud800", "a-long-name-of-a-key-".repeat(8)]) + random.below(400);
}

describe("the table of records", () => {
  test("finds by name what a map would, whatever comes and goes", () => {
    withRandom((random) => {
      const table = new AnswerTable();
      const model = new Map<string, string>();
      const order: { name: string; text: string; atMs: number }[] = [];
      for (let step = 0; step < 6_000; step++) {
        const name = nameFrom(random);
        if (random.chance(0.5)) {
          const text = "x".repeat(random.chance(0.01) ? 300_000 : random.below(60)) + step;
          add(table, name, text, NOW_MS + step);
          model.set(name, text);
          order.push({ name, text, atMs: NOW_MS + step });
        } else expect(textOf(table, name)).toBe(model.get(name));
        if (random.chance(0.002)) {
          const sinceMs = NOW_MS + random.below(step + 1);
          table.forget(sinceMs, Number.POSITIVE_INFINITY);
          // What is newer is there; of what is older, whole chunks may be gone.
          for (const { name: old, text, atMs } of order) {
            if (model.get(old) !== text) continue;
            const found = textOf(table, old);
            if (found === undefined && atMs <= sinceMs) model.delete(old);
            else expect(found).toBe(text);
          }
        }
      }
      for (const [name, text] of model) expect(textOf(table, name)).toBe(text);
    });
  });

  test("lets the oldest go when there is no room, and never the newest", () => {
    const table = new AnswerTable();
    const most = 4 * 1024 * 1024;
    for (let n = 0; n < 200_000; n++) {
      add(table, `name ${n}`, "an answer of some length, as most are", NOW_MS + n);
      table.forget(0, most);
      if (n % 10_000 === 0) expect(textOf(table, `name ${n}`)).toBeDefined();
    }
    expect(table.bytes).toBeLessThanOrEqual(most);
    expect(textOf(table, "name 0")).toBeUndefined();
    expect(textOf(table, "name 199999")).toBeDefined();
    expect(table.size).toBeGreaterThan(10_000);
    let walked = 0;
    const walk = table.walk();
    while (walk(() => walked++, 700));
    expect(walked).toBe(table.size);
  });

  test("a walk sees what there was when it began", () => {
    const table = new AnswerTable();
    for (let n = 0; n < 5_000; n++) add(table, `n${n}`, "text", n);
    const walk = table.walk();
    const names: string[] = [];
    const see = (record: Uint8Array): void => void names.push(new ByteReader(record).string());
    walk(see, 100);
    for (let n = 5_000; n < 20_000; n++) add(table, `n${n}`, "text", n);
    table.forget(15_000, Number.POSITIVE_INFINITY);
    while (walk(see, 100));
    expect(names).toEqual(Array.from({ length: 5_000 }, (_, n) => `n${n}`));
  });
});

function answer(name: string, text: string, atMs = NOW_MS): KeptAnswer {
  const outcome = { kind: "rows", text, count: 1, wrote: 1, isWrite: true } as const;
  return { name, request: "hash", atMs, batch: false, outcomes: [outcome] };
}

describe("kept answers", () => {
  test("are found until their time, to the millisecond", () => {
    const answers = new KeptAnswers(1_000);
    answers.keep(answer("k", "[1]"));
    expect(answers.find("k", "hash", NOW_MS + 999)).toEqual(answer("k", "[1]"));
    expect(answers.find("k", "hash", NOW_MS + 1_000)).toBeUndefined();
    expect(answers.find("other", "hash", NOW_MS)).toBeUndefined();
    answers.keep(answer("k", "[2]", NOW_MS + 1_000));
    expect(answers.find("k", "hash", NOW_MS + 1_999)?.outcomes[0]?.text).toBe("[2]");
  });

  test("of another request are refused; under other rights their rows are not told", () => {
    const answers = new KeptAnswers(1_000);
    answers.keep({ ...answer("k", '[{"secret":1}]'), request: requestMark("hash", "worker") });
    expect(() => answers.find("k", requestMark("another", "worker"), NOW_MS)).toThrow("another request");
    expect(() => answers.find("k", "another", NOW_MS)).toThrow("another request");
    for (const rights of ["keeper", ""]) {
      const [told] = answers.find("k", requestMark("hash", rights), NOW_MS)?.outcomes ?? [];
      expect(told).toMatchObject({ kind: "message", count: 1, wrote: 1, isWrite: true });
      expect(told?.text).not.toContain("secret");
    }
    expect(answers.find("k", requestMark("hash", "worker"), NOW_MS)?.outcomes[0]?.text).toBe('[{"secret":1}]');
  });

  test("come back from a snapshot as they were", () => {
    const answers = new KeptAnswers(1_000_000);
    for (let n = 0; n < 3_000; n++) answers.keep(answer(keyName("ann", `k${n}`), `[${n}]`, NOW_MS + n));
    answers.keep({
      ...answer("b", ""),
      batch: true,
      outcomes: [
        { kind: "affected", text: "", count: 3, wrote: 3, isWrite: true },
        { kind: "message", text: "create jobs", count: 0, wrote: 1, isWrite: true },
        { kind: "schemas", text: "[]", count: 0, wrote: 0, isWrite: false },
      ],
    });
    const write = answers.begin();
    const again = new KeptAnswers(1_000_000);
    for (;;) {
      const w = new ByteWriter();
      if (!write(w)) break;
      again.restore(new ByteReader(w.copy()));
    }
    expect(again.size).toBe(3_001);
    expect(again.find(keyName("ann", "k7"), "hash", NOW_MS)).toEqual(
      answers.find(keyName("ann", "k7"), "hash", NOW_MS)!,
    );
    expect(again.find("b", "hash", NOW_MS)).toEqual(answers.find("b", "hash", NOW_MS)!);
  });

  test("names of subject and key never meet", () => {
    const names = new Set<string>();
    for (const subject of ["", "a", "ab", "1:a", "a1", "10"]) {
      for (const key of ["", "b", ":b", "1:ab", "a", "0:"]) names.add(keyName(subject, key));
    }
    expect(names.size).toBe(36);
  });
});
