/** What a token could learn of what its rules hide: by words, hints, counts, tags, routes, plans and streams. */

import { beforeEach, describe, expect, test } from "bun:test";
import { Gate } from "../../src/auth/gate.ts";
import { Keys } from "../../src/auth/keys.ts";
import { parsePolicy } from "../../src/auth/policy.ts";
import { Tokens } from "../../src/auth/tokens.ts";
import { Refusal } from "../../src/base/refusal.ts";
import { TestClock } from "../../src/clock/clock.ts";
import type { RequestContext } from "../../src/engine/contract.ts";
import { Engine } from "../../src/engine/engine.ts";
import { KeptAnswers } from "../../src/engine/idempotency.ts";
import { MemoryJournal } from "../../src/engine/journal.ts";
import { FUNCTION_NAMES } from "../../src/plan/functions.ts";
import { Store } from "../../src/store/store.ts";
import { signToken } from "../harness/token.ts";
import { type Answer, Asked, OPEN_CONTEXT, START_MS } from "../http/parts.ts";

const SECRET = "a secret of more than thirty-two bytes";

class Kit {
  readonly asked: Asked;

  constructor(policy: string) {
    const tokens = new Tokens(Keys.fromSecret(SECRET), parsePolicy(policy, FUNCTION_NAMES), {
      requireExp: true,
      maxAgeSeconds: null,
    });
    const gate = new Gate({
      token: "root",
      tokens,
      delayMs: 0,
      now: () => START_MS,
      addressOf: () => "",
      readOnly: false,
      cors: null,
    });
    this.asked = new Asked({ gate, settings: { maxBodyBytes: 1_000_000 } });
  }

  async root(...texts: string[]): Promise<string> {
    let body = "";
    for (const text of texts) {
      const answer = await this.asked.query(text, [], { authorization: "Bearer root" });
      if (answer.status !== 200) throw new Error(`${text}: ${answer.body}`);
      body = answer.body;
    }
    return body;
  }

  headers(claims: Record<string, unknown> = {}): Record<string, string> {
    const payload = { sub: "ann", exp: START_MS / 1_000 + 60, ...claims };
    return { authorization: `Bearer ${signToken(JSON.stringify(payload), SECRET)}` };
  }

  query(text: string, params: readonly unknown[] = [], more: Record<string, string> = {}): Promise<Answer> {
    return this.asked.query(text, params, { ...this.headers(), ...more });
  }

  ask(method: string, path: string, body?: string): Promise<Answer> {
    return this.asked.ask(method, path, body, this.headers());
  }
}

describe("a collection that no rule names", () => {
  let kit: Kit;
  beforeEach(async () => {
    kit = new Kit("diary read,write where owner = $jwt.sub\nbox insert");
    await kit.root(
      "create collection diary (owner text, t text)",
      "create collection box (owner text, inner_field text)",
      "create collection vault (secret_field text @unique, n int)",
      'put vault {secret_field: "hidden"}',
    );
  });

  test("is not there, by any route or header, to the letter", async () => {
    const told = async (name: string): Promise<string[]> => {
      const lines: string[] = [];
      const note = ({ status, body, headers }: Answer): void => {
        lines.push(`${status} ${body.replaceAll(name, "NAME")} ${headers.get("etag")} ${headers.get("fenec-seq")}`);
      };
      for (const text of [
        `get ${name}`,
        `get ${name} where nosuch = 1`,
        `get ${name} near x [1, 2]`,
        `get diary where t in (get ${name} select secret_field)`,
        `set diary {t: "x"} where t in (get ${name} select secret_field where nosuch <= now())`,
        `del diary where t in (get ${name} select secret_field where secret_field <= now())`,
        `put ${name} {secret_field: "hidden"}`,
        `put ${name} {nosuch: 1} if absent`,
        `set ${name} {n: 1} where nosuch = 2`,
        `del ${name}`,
        `explain get ${name}`,
        `describe ${name}`,
        `drop collection ${name}`,
        `create collection ${name} (x int)`,
        `alter collection ${name} add y int`,
        `create index on ${name} (nosuch) @hash`,
        `compact ${name}`,
      ]) {
        note(await kit.query(text));
        note(await kit.query(text, [], { "if-none-match": '"0"' }));
        note(await kit.query(text, [], { "idempotency-key": `${name} ${text}` }));
        note(await kit.ask("POST", "/batch", JSON.stringify({ query: text })));
      }
      for (const [method, path, body] of [
        ["GET", `/${name}`],
        ["GET", `/${name}?nosuch=1`],
        ["GET", `/${name}?count`],
        ["POST", `/${name}`, "{}"],
        ["PATCH", `/${name}?n=1`, '{"n":2}'],
        ["PATCH", `/${name}/all`, '{"n":2}'],
        ["DELETE", `/${name}?n=1`],
        ["DELETE", `/${name}/all`],
        ["GET", `/${name}/changes`],
      ] as const) {
        note(await kit.ask(method, path, body));
      }
      return lines;
    };
    expect(await told("vault")).toEqual(await told("nothing"));
  });

  test("is named in no list and no hint", async () => {
    const answers = await Promise.all([
      kit.ask("GET", "/"),
      kit.ask("GET", "/collections"),
      kit.query("collections"),
      kit.query("get vaults"),
      kit.query("get vaults", [], { "if-none-match": '"1"' }),
      kit.ask("GET", "/vaults"),
      kit.query("get boxs"),
      kit.ask("GET", "/_whoami"),
    ]);
    for (const { body } of answers) {
      expect(body).not.toContain("`vault`");
      expect(body).not.toContain('"vault"');
      expect(body).not.toContain("`box`");
      expect(body).not.toContain("secret_field");
    }
    expect((await kit.query("get diry")).body).toContain("did you mean `diary`");
  });

  test("one that may only be put into is listed nowhere, and tells no field's name", async () => {
    expect(JSON.parse((await kit.ask("GET", "/")).body).collections).toEqual(["diary"]);
    expect((await kit.query("describe box")).status).toBe(404);
    expect((await kit.query("get box")).status).toBe(403);
    expect((await kit.ask("GET", "/box")).status).toBe(403);
    for (const [text, params] of [
      ["put box {iner_field: 1}", []],
      ["put box $1", [{ iner_field: 1 }]],
      ["put box $1", [[{}, { iner_field: 1 }]]],
    ] as const) {
      const answer = await kit.query(text, params);
      expect(answer.status).toBe(404);
      expect(answer.body).toContain("no field `iner_field`");
      expect(answer.body).not.toContain("inner_field");
    }
    expect((await kit.ask("POST", "/box", '{"iner_field":1}')).body).not.toContain("inner_field");
    expect((await kit.query('put box {inner_field: "x"}')).body).toBe('{"affected":1}');
    // Who may read is told what is right.
    expect((await kit.query("get diary where ownr = 1")).body).toContain("did you mean `owner`");
  });
});

describe("rows that rules hide", () => {
  test("are in no word of a clash", async () => {
    const kit = new Kit("members read,write where owner = $jwt.sub");
    await kit.root(
      "create collection members (owner text, handle text @unique, mail text @unique)",
      'put members [{owner: "ben", handle: "h1", mail: "m1"}, {owner: "cy", handle: "h2", mail: "m2"}]',
      'put members {owner: "ann", handle: "h3", mail: "m3"}',
    );
    for (const text of [
      'put members {handle: "h1"}',
      'set members {handle: "h1"}',
      'put members {handle: "h1", mail: "m2"} if absent else set {owner: "ann"}',
      'put members {handle: "h1"} if absent else set {owner: "ann"}',
    ]) {
      const { status, body } = await kit.query(text);
      expect(status).toBeGreaterThanOrEqual(403);
      const { error } = JSON.parse(body);
      // No id, no value.
      expect(error).not.toMatch(/\d/);
    }
    // Which values are taken is told by what unique means.
    expect((await kit.query('put members {handle: "h1"} if absent')).body).toBe('{"affected":0}');
    expect(await kit.root('get members where owner = "ann" count')).toBe('[{"count":1}]');
  });

  test("are in no plan", async () => {
    const kit = new Kit("jobs read,write where owner = $jwt.sub");
    await kit.root(
      "create collection jobs (owner text, n int @sorted, m int @hash)",
      'put jobs {owner: "ann", n: 1, m: 1}',
    );
    const plans = async (): Promise<string> => {
      const answers = [
        "get jobs where n >= 1 and m = 1",
        "get jobs count",
        "set jobs {n: 2} where n >= 1 and m = 1",
        "del jobs order n limit 1",
        "get jobs select count(*) as c",
        "get jobs where n in (get jobs select m)",
      ].map((text) => kit.query(`explain ${text}`));
      return (await Promise.all(answers)).map(({ body }) => body).join("\n");
    };
    const alone = await plans();
    await kit.root(`put jobs [${Array.from({ length: 400 }, () => '{owner: "ben", n: 2, m: 1}').join(", ")}]`);
    expect(await plans()).toBe(alone);
    expect(alone).toContain('{"plan":"rows: 1"}');
    expect(alone).not.toContain("tested");
  });

  test("choose no refusal", async () => {
    const kit = new Kit("jobs read where owner = $jwt.sub");
    await kit.root(
      "create collection jobs (owner text, n int @sorted, m int @hash, k int, s text)",
      'put jobs [{owner: "ann", n: 3, m: 1, k: 0, s: "x"}, {owner: "ann", n: 2, m: 1, s: "x"}, {owner: "ann", n: 1, m: 2, k: 0}]',
    );
    const texts = [
      // Refused over a row that one of the indexes leaves out.
      "get jobs where 1 / k > 0 and m = 3",
      "get jobs where 1 / k > 0 and n > 5",
      "get jobs where 1 / k > 0 and n >= 3 and m = 2",
      // Refused twice, in other words each time: by which comes first.
      "get jobs where n > 0 and m = 1 order n / coalesce(k, s)",
      "get jobs where n > 0 and m = 1 and n / coalesce(k, s) > 0 count",
      // Refused over a row that is not on the page.
      "get jobs where n > 0 and m in [1, 2] and (n = 1 or 1 / k > 0) order n limit 1",
    ];
    const answers = async (): Promise<string[]> => Promise.all(texts.map(async (text) => (await kit.query(text)).body));
    const alone = await answers();
    expect(alone.slice(0, 3)).toEqual(["[]", "[]", "[]"]);
    expect(JSON.parse(alone[3] as string).code).toBe("division_by_zero");
    expect(JSON.parse(alone[5] as string)).toHaveLength(1);
    for (const hidden of ["n: -5, m: 1", "n: 9, m: 8", "n: 2, m: 8", "n: 9, m: 1"]) {
      await kit.root(`put jobs [${Array.from({ length: 600 }, () => `{owner: "ben", ${hidden}}`).join(", ")}]`);
      expect(await answers()).toEqual(alone);
    }
  });

  test("make no rule fail, and no statement by it", async () => {
    const kit = new Kit("jobs read where 10 / n > 1\njobs read where len(tags) = n\njobs update where 10 / n > 1");
    await kit.root(
      "create collection jobs (n int, tags [text], j json)",
      'put jobs [{n: 0}, {n: 5}, {n: 20}, {n: 1, tags: ["a"]}]',
    );
    expect((await kit.query("get jobs select n")).body).toBe('[{"n":5},{"n":1}]');
    expect((await kit.query("get jobs count")).body).toBe('[{"count":2}]');
    expect((await kit.query("set jobs {j: $1}", [{ x: 1 }])).body).toBe('{"affected":2}');
    expect((await kit.query("set jobs {n: 0} where n = 5")).status).toBe(403);
  });

  test("are in no words of a full memory", () => {
    const engine = new Engine({
      store: new Store(),
      journal: new MemoryJournal(),
      clock: new TestClock(START_MS),
      seq: 0,
      readOnly: false,
      maxMemoryBytes: 10_000,
      answers: new KeptAnswers(1_000),
      compact: () => {},
    });
    engine.query("create collection jobs (t text)", [], OPEN_CONTEXT);
    const grants = { read: [], insert: [{ where: null, pins: [] }], update: [], delete: [], expired: [] };
    const rules = { of: () => ({ ...grants, appendOnly: false }) };
    const scope = { rules, claims: new Map(), expiresAtMs: Infinity, subject: "ann", rights: "" };
    const words = (context: RequestContext): string => {
      try {
        return engine.query("put jobs {t: $1}", ["x".repeat(20_000)], context).body;
      } catch (error) {
        return error instanceof Refusal ? `${error.code}: ${error.message}` : String(error);
      }
    };
    expect(words(OPEN_CONTEXT)).toMatch(/^memory_full: .*holds \d+ bytes/);
    expect(words({ ...OPEN_CONTEXT, scope })).toBe("memory_full: the server's memory is full: delete first");
  });

  test("are in no tag", async () => {
    const kit = new Kit("diary read where owner = $jwt.sub");
    await kit.root("create collection diary (owner text, t text)", 'put diary {owner: "ann", t: "a"}');
    const tag = async (): Promise<string | null> =>
      (await kit.query("get diary", [], { "if-none-match": '"0"' })).headers.get("etag");
    const first = await tag();
    await kit.root('put diary {owner: "ben", t: "b"}', 'del diary where owner = "ben"');
    expect(await tag()).toBe(first);
    expect((await kit.query("get diary", [], { "if-none-match": first ?? "" })).status).toBe(304);
    await kit.root('put diary {owner: "ann", t: "c"}');
    expect(await tag()).not.toBe(first);
  });
});

describe("a rule that does not fit", () => {
  test("grants nothing, and refuses nothing by a name of a field", async () => {
    const kit = new Kit(
      "* read where owner = $jwt.sub\njobs read where nosuch = 1\njobs read where t.x = 1\njobs insert where owner = 5",
    );
    await kit.root(
      "create collection jobs (owner text, t text)",
      "create collection vault (x int)",
      'put jobs [{owner: "ann", t: "mine"}, {owner: "ben", t: "theirs"}]',
      "put vault {x: 1}",
    );
    expect((await kit.query("get jobs select t")).body).toBe('[{"t":"mine"}]');
    expect((await kit.query("get vault")).status).toBe(404);
    expect((await kit.query('put jobs {t: "x"}')).status).toBe(403);
    // When it fits, it holds.
    await kit.root("alter collection vault add owner text", 'put vault {x: 2, owner: "ann"}');
    expect((await kit.query("get vault select x")).body).toBe('[{"x":2}]');
    await kit.root("alter collection vault rename owner to other");
    expect((await kit.query("get vault select x")).status).toBe(404);
  });
});

test("parentheses in a rule change neither the rows it reaches nor the fields it fills", async () => {
  const kit = new Kit(
    [
      "jobs update where (queue = $jwt.queue and new.owner = $jwt.sub) and (n < 5 and new.n = n + 1)",
      "jobs insert where (queue = $jwt.queue and (owner = null and n = 0)) and t != null",
    ].join("\n"),
  );
  await kit.root(
    "create collection jobs (queue text, owner text, n int, t text)",
    'put jobs [{queue: "mail", n: 1}, {queue: "video", n: 1}, {queue: "mail", n: 5}]',
  );
  const headers = kit.headers({ queue: "mail" });
  for (const id of [2, 3, 4]) {
    const answer = await kit.query('set jobs {owner: "ann"} where id = $1', [id], headers);
    expect({ id, body: answer.body }).toEqual({ id, body: '{"affected":0}' });
  }
  expect((await kit.query('set jobs {owner: "ann"} where id = 1', [], headers)).status).toBe(403);
  expect((await kit.query('set jobs {owner: "ann", n: n + 1}', [], headers)).body).toBe('{"affected":1}');
  expect((await kit.query('put jobs {t: "x"}', [], headers)).body).toBe('{"affected":1}');
  expect(await kit.root("get jobs select queue, n where id = 4")).toBe('[{"queue":"mail","n":0}]');
});

describe("expired rows", () => {
  test("are asked for by who is granted them, of the rows of that grant", async () => {
    const kit = new Kit("stints read,write where who = $jwt.sub\nstints expired where n > 1\nothers read,write");
    await kit.root(
      "create collection stints (who text, n int, at timestamp @ttl(1s))",
      "create collection others (at timestamp @ttl(1s))",
      'put stints [{who: "ann", n: 1, at: now()}, {who: "ann", n: 2, at: now()}, {who: "ben", n: 3, at: now()}]',
      "put others {at: now()}",
    );
    await kit.asked.clock.advance(1_000);
    expect((await kit.query("get stints")).body).toBe("[]");
    expect((await kit.query("get stints select n where expired()")).body).toBe('[{"n":2}]');
    expect((await kit.query("del stints where expired() or n = 1")).body).toBe('{"affected":1}');
    expect((await kit.query("get others where expired()")).status).toBe(403);
    expect((await kit.query("get stints where n in (get others select id where not (expired()))")).status).toBe(403);
    expect(await kit.root("get stints select n where expired()")).toBe('[{"n":1},{"n":3}]');
  });
});

test("no schema, no maintenance, no metrics, no clock", async () => {
  const kit = new Kit("* read,write\n* expired");
  await kit.root("create collection jobs (t text)");
  for (const text of [
    "create collection x (a int)",
    "drop collection jobs",
    "drop collection if exists nosuch",
    "alter collection jobs add a int",
    "create index on jobs (t) @hash",
    "compact",
    "compact jobs",
  ]) {
    expect({ text, status: (await kit.query(text)).status }).toEqual({ text, status: 403 });
  }
  expect((await kit.ask("GET", "/_metrics")).status).toBe(401);
  expect((await kit.ask("GET", "/_clock")).status).toBe(403);
  expect((await kit.ask("POST", "/_clock", '{"advance_ms":1}')).status).toBe(403);
  expect((await kit.query("put jobs {id: 7}")).status).toBe(403);
  expect((await kit.query("put jobs $1", [{ id: 7, t: "x" }])).status).toBe(403);
});
