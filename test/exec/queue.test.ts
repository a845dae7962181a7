/**
 * What queues elsewhere are complained about, asked of the engine in process: ties, nulls in an order, ageing, and how many
 * rows are looked at for an answer. Costs are told by `explain`, which counts the rows tested, so no clock is needed.
 */

import { describe, expect, test } from "bun:test";
import { Asked } from "./asked.ts";

const JOBS = "create collection jobs (payload json, run_at timestamp @sorted, owner text, attempts int, error text)";
const PRIO = "create collection prio (n int, priority int @sorted, run_at timestamp @sorted, owner text, attempts int)";

type Job = Readonly<Record<string, unknown>> & { readonly id: number };

function rowsOf(answer: string | number): Job[] {
  return JSON.parse(String(answer));
}

const idsOf = (answer: string | number): number[] => rowsOf(answer).map(({ id }) => id);

/** Rows a statement tests, and rows it answers. */
function costOf(asked: Asked, text: string, ...params: string[]): { tested: number; answered: number } {
  const lines = JSON.parse(String(asked.ask(`explain ${text}`, ...params))).map((row: { plan: string }) => row.plan);
  const number = (start: string): number =>
    Number(lines.find((line: string) => line.startsWith(start))?.split(": ")[1]);
  return { tested: number("rows tested"), answered: number(text.includes(" count") ? "count" : "rows") };
}

function fill(asked: Asked, collection: string, count: number, document: (n: number) => object): void {
  for (let from = 0; from < count; from += 1_000) {
    const documents = Array.from({ length: Math.min(1_000, count - from) }, (_, at) => document(from + at));
    expect(asked.ask(`put ${collection} $1`, JSON.stringify(documents))).toBeString();
  }
}

const now = (asked: Asked): number => asked.recorded.clock.nowMs;
const claim = (limit: number): string =>
  `set jobs {owner: $1, run_at: now() + 30000, attempts: attempts + 1} where run_at <= now() order run_at limit ${limit} returning *`;

describe("jobs of one moment come by their ids as numbers", () => {
  const asked = (): Asked => {
    const made = new Asked(JOBS, PRIO);
    fill(made, "jobs", 1_000, () => ({ run_at: "2020-01-01T00:00:00Z", attempts: 0 }));
    fill(made, "prio", 40, () => ({ priority: 5, run_at: "2020-01-01T00:00:00Z", attempts: 0 }));
    return made;
  };

  test("in claims of seven", () => {
    const made = asked();
    const ids: number[] = [];
    for (let more = true; more; ) {
      const page = idsOf(made.ask(claim(7), '"w"'));
      ids.push(...page);
      more = page.length > 0;
    }
    expect(ids).toEqual(Array.from({ length: 1_000 }, (_, at) => at + 1));
  });

  for (const order of ["priority", "priority desc", "run_at desc", "priority * 10 desc", "n", "n desc"]) {
    test(`by ${order}`, () => {
      const text = `set prio {attempts: 1} where attempts = 0 order ${order} limit 12 returning id`;
      expect(idsOf(asked().ask(text))).toEqual(Array.from({ length: 12 }, (_, at) => at + 1));
    });
  }

  test("in what the frames alone make", () => {
    const ids: number[] = [];
    const index = asked().recorded.replayed().table("jobs")?.index("run_at", []);
    index?.walk({ lo: undefined, loOpen: false, hi: undefined, hiOpen: false }, false, (row) => {
      ids.push(row[0] as number);
      return true;
    });
    expect(ids).toEqual(Array.from({ length: 1_000 }, (_, at) => at + 1));
  });
});

describe("a job without a priority stands below every other", () => {
  const put =
    "put prio [{priority: 0, run_at: now()}, {priority: -1, run_at: now()}, {run_at: now()}, {priority: 9, run_at: now()}]";
  for (const [order, ids] of [
    ["priority desc", [4, 1, 2, 3]],
    ["priority", [3, 2, 1, 4]],
  ] as const) {
    for (const [how, create] of [
      ["by its index", PRIO],
      ["by a sort", PRIO.replace("priority int @sorted", "priority int")],
    ] as const) {
      test(`${order}, ${how}`, () => {
        const asked = new Asked(create, put);
        expect(idsOf(asked.ask(`get prio order ${order}`))).toEqual([...ids]);
        expect(idsOf(asked.ask(`get prio order ${order} limit 2`))).toEqual(ids.slice(0, 2));
        const text = `set prio {attempts: 1} where run_at <= now() order ${order} limit 4 returning id`;
        expect(idsOf(asked.ask(text))).toEqual([...ids]);
      });
    }
  }
});

test("one put has one moment, and a claim by priority is served by it", () => {
  const asked = new Asked(PRIO);
  asked.ask(
    "put prio [{priority: 1, run_at: now() + 1000}, {priority: 5, run_at: now() + 1000}, {priority: 9, run_at: now() + 1000}]",
  );
  expect(new Set(rowsOf(asked.ask("get prio")).map((row) => row["run_at"])).size).toBe(1);
  const text =
    "set prio {owner: 'w', run_at: now() + 9000} where run_at <= now() order priority desc limit 1 returning id";
  expect(idsOf(asked.ask(text))).toEqual([]);
  asked.recorded.clock.nowMs += 1_000;
  expect([asked.ask(text), asked.ask(text), asked.ask(text)].flatMap(idsOf)).toEqual([3, 2, 1]);
});

describe("urgent work without end", () => {
  /** Ten urgent jobs a tenth of a second and as many taken: when the one that is not urgent is served. */
  function servedAfterMs(order: string): number | undefined {
    const asked = new Asked(PRIO);
    const start = now(asked);
    asked.ask("put prio {priority: 0, run_at: now(), n: -1}");
    for (let turn = 0; turn < 200; turn++) {
      fill(asked, "prio", 10, () => ({ priority: 9, run_at: now(asked) }));
      const text = `del prio where run_at <= now() order ${order} limit 10 returning n`;
      if (rowsOf(asked.ask(text)).some((row) => row["n"] === -1)) return now(asked) - start;
      asked.recorded.clock.nowMs += 100;
    }
    return undefined;
  }

  test("keeps the rest waiting under strict priority", () => {
    expect(servedAfterMs("priority desc")).toBeUndefined();
  });

  test("does not where the order ages them", () => {
    expect(servedAfterMs("priority * 1000 + (now() - run_at) desc")).toBeLessThanOrEqual(10_000);
  });
});

describe("a claim reads what it takes", () => {
  test("three ready among leased, delayed and dead ones", () => {
    const asked = new Asked(JOBS);
    fill(asked, "jobs", 30_000, (n) => ({ run_at: n % 3 === 0 ? null : now(asked) + 1_000 + n, attempts: 1 }));
    fill(asked, "jobs", 3, () => ({ run_at: now(asked) - 1, attempts: 0 }));
    const { tested, answered } = costOf(asked, claim(10), '"w"');
    expect(answered).toBe(3);
    expect(tested).toBeLessThanOrEqual(3);
    expect(idsOf(asked.ask(claim(10), '"w"'))).toEqual([30_001, 30_002, 30_003]);
    expect(costOf(asked, claim(10), '"w"')).toEqual({ tested: 0, answered: 0 });
  });

  test("ten of many ready ones", () => {
    const asked = new Asked(JOBS);
    fill(asked, "jobs", 30_000, (n) => ({ run_at: now(asked) - 30_000 + n, attempts: 0 }));
    expect(costOf(asked, claim(10), '"w"')).toEqual({ tested: 10, answered: 10 });
  });

  test("by priority, past urgent ones that are leased, no more than those ready", () => {
    const asked = new Asked(PRIO);
    fill(asked, "prio", 20_000, () => ({ priority: 9, run_at: now(asked) + 30_000 }));
    fill(asked, "prio", 300, () => ({ priority: 1, run_at: now(asked) }));
    const text = "set prio {owner: $1} where run_at <= now() order priority desc limit 1 returning id";
    expect(costOf(asked, text, '"w"').tested).toBeLessThanOrEqual(1_000);
    expect(idsOf(asked.ask(text, '"w"'))).toEqual([20_001]);
  });
});

test("counts by state come out of the tree", () => {
  const asked = new Asked(JOBS);
  fill(asked, "jobs", 12_000, (n) => ({
    run_at: n % 4 === 0 ? null : now(asked) + (n % 4 === 1 ? 1 : -1) * n,
    attempts: 0,
  }));
  for (const [filter, count] of [
    ["run_at <= now()", 6_000],
    ["run_at > now()", 3_000],
    ["run_at is null", 3_000],
    ["run_at is not null", 9_000],
    ["run_at > now() and run_at <= now() + 100", 25],
  ] as const) {
    expect(costOf(asked, `get jobs where ${filter} count`)).toEqual({ tested: 0, answered: count });
    expect(asked.ask(`get jobs where ${filter} count`)).toBe(`[{"count":${count}}]`);
  }
  expect(costOf(asked, "get jobs count")).toEqual({ tested: 0, answered: 12_000 });
});

describe("a group behind ten thousand others", () => {
  const create = "create collection jobs (tenant text, run_at timestamp @sorted, owner text)";
  const text = "set jobs {owner: 'w'} where tenant = $1 and run_at <= now() order run_at limit 1 returning id";
  function asked(index: string): Asked {
    const made = new Asked(create.replace("tenant text", `tenant text${index}`));
    fill(made, "jobs", 10_000, () => ({ tenant: "big", run_at: now(made) - 5_000 }));
    fill(made, "jobs", 100, (n) => ({ tenant: `t${n}`, run_at: now(made) - 1_000 + n }));
    return made;
  }

  test("is found by its own index", () => {
    const made = asked(" @hash");
    expect(costOf(made, text, '"t99"')).toEqual({ tested: 1, answered: 1 });
    expect(costOf(made, text, '"big"').tested).toBe(1);
    expect(idsOf(made.ask(text, '"t99"'))).toEqual([10_100]);
  });

  test("is read through for once without one", () => {
    const made = asked("");
    expect(costOf(made, text, '"t99"').tested).toBeLessThanOrEqual(10_100 + 10_100 / 8);
    expect(costOf(made, text, '"big"').tested).toBe(1);
  });
});

describe("a payload keeps its digits and its keys", () => {
  const PAYLOADS = [
    '{"id":3889108265204450030}',
    '{"n":9007199254740993}',
    '{"n":-0}',
    '{"n":0.1}',
    '{"n":1E2}',
    '{"n":1.50}',
    '{"n":123456789012345678901234567890}',
    '{"10":1,"2":2,"b":3}',
    '{"__proto__":{"x":1},"constructor":1}',
    '"\\ud800"',
    '{"\\u0000":"\\u0000"}',
    "[[[]]]",
  ];

  test("in a claim, a read and what the frames make", () => {
    const asked = new Asked(JOBS);
    for (const payload of PAYLOADS) asked.ask("put jobs {payload: $1, run_at: now(), attempts: 0}", payload);
    const claimed = String(asked.ask(claim(100), '"w"'));
    const read = String(asked.ask("get jobs"));
    for (const payload of PAYLOADS) {
      expect(claimed).toContain(`"payload":${payload},`);
      expect(read).toContain(`"payload":${payload},`);
    }
    const kept: unknown[] = [];
    asked.recorded
      .replayed()
      .table("jobs")
      ?.scan(0, (row) => {
        kept.push(row[1]);
        return true;
      });
    expect(kept).toEqual(PAYLOADS);
  });

  for (const index of ["", "@hash", "@sorted", "@unique"]) {
    test(`and a filter finds the number itself${index === "" ? "" : ` by ${index}`}`, () => {
      const asked = new Asked(JOBS, ...(index === "" ? [] : [`create index on jobs (payload.id) ${index}`]));
      for (const id of ["3889108265204450029", "3889108265204450030", "3889108265204450031", "3889108265204450030.5"]) {
        asked.ask("put jobs {payload: $1}", `{"id":${id}}`);
      }
      expect(idsOf(asked.ask("get jobs where payload.id = 3889108265204450030"))).toEqual([2]);
      expect(idsOf(asked.ask("get jobs where payload.id = $1", "3889108265204450030"))).toEqual([2]);
      expect(idsOf(asked.ask("get jobs where payload.id > 3889108265204450030"))).toEqual([3]);
    });
  }
});
