import { describe, expect, test } from "bun:test";
import { Audit } from "../../src/auth/audit.ts";
import { Gate, type GateOptions } from "../../src/auth/gate.ts";
import { Keys } from "../../src/auth/keys.ts";
import { parsePolicy } from "../../src/auth/policy.ts";
import { RefusalDelays } from "../../src/auth/refusals.ts";
import { Tokens } from "../../src/auth/tokens.ts";
import { AUDIT_LINES, REFUSAL_DELAY_MS, REFUSALS_WAITING, REFUSED_ADDRESSES } from "../../src/base/limits.ts";
import { Refusal } from "../../src/base/refusal.ts";
import { FUNCTION_NAMES } from "../../src/plan/functions.ts";
import { signToken } from "../harness/token.ts";
import { Asked, START_MS } from "../http/parts.ts";

const SECRET = "a secret of more than thirty-two bytes";
const POLICY = `
jobs read where queue = $jwt.queue
jobs update(owner, run_at) where queue = $jwt.queue and new.owner = $jwt.sub for worker
log insert
log append-only
`;

function gateOf(options: Partial<GateOptions> = {}): Gate {
  const tokens = new Tokens(Keys.fromSecret(SECRET), parsePolicy(POLICY, FUNCTION_NAMES), {
    requireExp: true,
    maxAgeSeconds: null,
  });
  return new Gate({
    token: "the server's token",
    tokens,
    delayMs: 0,
    now: () => START_MS,
    addressOf: () => "192.0.2.1",
    readOnly: false,
    cors: null,
    ...options,
  });
}

function tokenOf(claims: Record<string, unknown>): string {
  return signToken(JSON.stringify({ exp: START_MS / 1_000 + 60, ...claims }), SECRET);
}

function request(headers: Record<string, string> = {}): Request {
  return new Request("http://127.0.0.1:8080/query", { headers });
}

const bearer = (token: string): Request => request({ authorization: `Bearer ${token}` });

async function whom(gate: Gate, asked: Request): Promise<string> {
  try {
    const { kind, scope } = await gate.authorize(asked);
    return scope === null ? kind : `${kind} ${scope.subject}`;
  } catch (error) {
    if (error instanceof Refusal) return `${error.status} ${error.message}`;
    throw error;
  }
}

describe("the gate", () => {
  test("knows the server's token, and tokens of its keys", async () => {
    const gate = gateOf({ token: "root" });
    expect(await whom(gate, bearer("root"))).toBe("full");
    expect(await whom(gate, request({ authorization: "bearer   root " }))).toBe("full");
    const token = tokenOf({ sub: "ann", queue: "mail" });
    expect(await whom(gate, bearer(token))).toBe("scoped ann");
    expect(gate.authorize(bearer(token))).not.toBeInstanceOf(Promise);
    // A server's token may look like one of the others.
    expect(await whom(gateOf({ token: "a.b.c" }), bearer("a.b.c"))).toBe("full");
    expect(await whom(gateOf({ token: null }), bearer(token))).toBe("scoped ann");
    expect(await whom(gateOf({ tokens: null, token: "root" }), bearer("root"))).toBe("full");
  });

  for (const [name, asked, says] of [
    ["nothing", request(), "asks for a token"],
    ["another scheme", request({ authorization: "Basic cm9vdA==" }), "Bearer"],
    ["an empty token", request({ authorization: "Bearer " }), "Bearer"],
    ["two words", request({ authorization: "Bearer a b" }), "Bearer"],
    ["a wrong token", bearer("roo"), "not this server's"],
    ["a wrong token with dots", bearer("a.b.c"), "not readable"],
    ["a token that has expired", bearer(tokenOf({ exp: START_MS / 1_000 })), "expired"],
  ] as const) {
    test(`refuses ${name}`, async () => {
      expect(await whom(gateOf({ token: "root" }), asked)).toStartWith("401 ");
      expect(await whom(gateOf({ token: "root" }), asked)).toContain(says);
    });
  }

  test("takes no token of keys it has not", async () => {
    expect(await whom(gateOf({ tokens: null }), bearer(tokenOf({ sub: "ann" })))).toStartWith("401 ");
  });

  test("a refusal is a 401 that says how to ask, whatever the route", async () => {
    const asked = new Asked({ gate: gateOf() });
    for (const [method, path, body] of [
      ["POST", "/query", '{"query":"get jobs"}'],
      ["POST", "/batch", ""],
      ["GET", "/", undefined],
      ["GET", "/jobs", undefined],
      ["DELETE", "/jobs/all", undefined],
      ["GET", "/jobs/changes", undefined],
      ["GET", "/collections", undefined],
      ["GET", "/_whoami", undefined],
      ["GET", "/_metrics", undefined],
      ["POST", "/_clock", "{}"],
    ] as const) {
      const answer = await asked.ask(method, path, body, { authorization: "Bearer x" });
      expect({ path, status: answer.status }).toEqual({ path, status: 401 });
      expect(answer.headers.get("www-authenticate")).toBe("Bearer");
      expect(JSON.parse(answer.body)).toMatchObject({ code: "unauthorized" });
    }
    expect((await asked.ask("GET", "/_health")).body).toBe('{"ok":true}');
  });

  test("says who a token is: its own rules, and no others", async () => {
    const gate = gateOf({ readOnly: true });
    const whoami = async (asked: Request): Promise<unknown> => JSON.parse(gate.whoami(await gate.authorize(asked)));
    expect(await whoami(bearer(tokenOf({ sub: "ann", queue: "mail", role: "worker" })))).toEqual({
      read_only: true,
      kind: "scoped",
      sub: "ann",
      tenants: null,
      unbound: false,
      append_only: ["log"],
      rules: [
        { collection: "jobs", grants: ["read"], fields: null, rows: "queue = $jwt.queue" },
        {
          collection: "jobs",
          grants: ["update"],
          fields: ["owner", "run_at"],
          rows: "queue = $jwt.queue and new.owner = $jwt.sub",
        },
        { collection: "log", grants: ["insert"], fields: null, rows: null },
      ],
    });
    expect(await whoami(bearer(tokenOf({})))).toMatchObject({
      sub: null,
      rules: [{ collection: "log" }],
    });
    expect(JSON.parse(gate.whoami({ kind: "full", scope: null }))).toEqual({
      read_only: true,
      kind: "full",
      sub: null,
      tenants: null,
      unbound: true,
      append_only: [],
      rules: [],
    });
  });
});

describe("a server that asks for no token", () => {
  const open = (cors: string | null): Gate => gateOf({ token: null, tokens: null, cors });

  test("lets everybody in who is no page", async () => {
    expect(await whom(open(null), request())).toBe("open");
    expect(await whom(open(null), bearer("anything"))).toBe("open");
  });

  test("lets in its own pages, and those of the origin it was told", async () => {
    const from = (origin: string, host = "127.0.0.1:8080"): Request => request({ origin, host });
    expect(await whom(open(null), from("http://127.0.0.1:8080"))).toBe("open");
    expect(await whom(open(null), from("http://[::1]:8080", "[::1]:8080"))).toBe("open");
    expect(await whom(open(null), from("http://localhost:8080", "localhost:8080"))).toBe("open");
    expect(await whom(open("*"), from("https://evil.example"))).toBe("open");
    expect(await whom(open("https://app.example"), from("https://app.example"))).toBe("open");
    for (const [cors, origin, host] of [
      [null, "https://evil.example", undefined],
      [null, "null", undefined],
      [null, "http://127.0.0.1:9999", undefined],
      // A name that was made to lead here.
      [null, "http://evil.example:8080", "evil.example:8080"],
      [null, "http://127.0.0.1.evil.example:8080", "127.0.0.1.evil.example:8080"],
      ["https://app.example", "https://evil.example", undefined],
    ] as const) {
      expect(await whom(open(cors), from(origin, host))).toStartWith("403 no page of another origin");
    }
  });
});

describe("delays of refusals", () => {
  test("double with each within a minute, to five seconds", () => {
    const delays = new RefusalDelays(100);
    const took = Array.from({ length: 8 }, (_, n) => delays.refused("a", n));
    expect(took).toEqual([100, 200, 400, 800, 1_600, 3_200, REFUSAL_DELAY_MS, REFUSAL_DELAY_MS]);
    expect(delays.refused("b", 8)).toBe(100);
    expect(delays.refused("a", 7 + 60_000)).toBe(100);
  });

  test("begin anew once a good token came, and are off at 0", async () => {
    const delays = new RefusalDelays(100);
    delays.refused("a", 0);
    delays.cleared("a");
    expect(delays.idle).toBe(true);
    expect(delays.refused("a", 1)).toBe(100);
    const off = new RefusalDelays(0);
    expect(off.refused("a", 0)).toBe(0);
    expect(off.wait(0)).toBeUndefined();
    expect(off.idle).toBe(true);
  });

  test("remember so many addresses, and keep so many waiting", async () => {
    const delays = new RefusalDelays(1);
    for (let n = 0; n <= REFUSED_ADDRESSES; n++) delays.refused(`address ${n}`, n / 1_000);
    expect(delays.refused("address 0", 11)).toBe(1);
    expect(delays.refused(`address ${REFUSED_ADDRESSES}`, 11)).toBe(2);
    const waiting = Array.from({ length: REFUSALS_WAITING }, () => delays.wait(1));
    expect(waiting.every((wait) => wait instanceof Promise)).toBe(true);
    expect(delays.wait(1)).toBeUndefined();
    await Promise.all(waiting);
    expect(delays.wait(1)).toBeInstanceOf(Promise);
  });

  test("a good token lets its address off", async () => {
    let address = "a";
    const gate = gateOf({ token: "root", delayMs: 1, addressOf: () => address });
    for (let n = 0; n < 3; n++) expect(await whom(gate, bearer("wrong"))).toStartWith("401");
    address = "b";
    expect(await whom(gate, bearer("root"))).toBe("full");
    address = "a";
    expect(await whom(gate, bearer("root"))).toBe("full");
  });
});

describe("the audit", () => {
  function audited(): { lines: Record<string, unknown>[]; audit: Audit; at: (ms: number) => void } {
    const lines: Record<string, unknown>[] = [];
    let now = START_MS;
    const audit = new Audit({
      write: (line) => {
        expect(line.endsWith("\n")).toBe(true);
        lines.push(JSON.parse(line));
      },
      now: () => now,
      addressOf: () => "192.0.2.1",
    });
    return {
      lines,
      audit,
      at: (ms) => {
        now = ms;
      },
    };
  }

  test("has who was refused, without a value of what was sent", async () => {
    const { lines, audit } = audited();
    const asked = new Asked({ gate: gateOf({ token: "root" }), audit });
    const as = (token: string) => ({ authorization: `Bearer ${token}` });
    await asked.ask("POST", "/query", '{"query":"create collection jobs (queue text, owner text)"}', as("root"));
    lines.length = 0;
    await asked.ask("GET", "/jobs?owner=hidden-value", undefined, as("hidden-token"));
    const ann = as(tokenOf({ sub: "ann", queue: "mail" }));
    await asked.ask("POST", "/query", '{"query":"put jobs {owner: \\"hidden-literal\\"}"}', ann);
    await asked.ask("POST", "/query", '{"query":"put jobs {owner: $1}","params":["hidden-param"]}', ann);
    await asked.ask("POST", "/batch", '{"query":"del jobs where owner = \\"hidden\\""}', ann);
    await asked.ask("POST", "/query", '{"query":"get jobs"}', ann);
    await asked.ask("POST", "/query", '{"query":"get nosuch"}', ann);
    expect(JSON.stringify(lines)).not.toContain("hidden");
    const of = { event: "refused", at: "2026-03-01T12:00:00Z", address: "192.0.2.1" };
    expect(lines).toMatchObject([
      { ...of, status: 401, code: "unauthorized", method: "GET", path: "/jobs", kind: null, sub: null },
      { ...of, status: 403, code: "forbidden", method: "POST", path: "/query", kind: "scoped", sub: "ann" },
      { ...of, status: 403, code: "forbidden", path: "/query" },
      { ...of, status: 403, code: "forbidden", path: "/batch" },
    ]);
    expect(lines[1]?.["why"]).toBe("this token may not put into `jobs`");
  });

  test("has what was made of collections, and no reads and writes", async () => {
    const { lines, audit } = audited();
    const asked = new Asked({ audit });
    await asked.query("CREATE collection jobs (queue text, -- a comment with a secret\n run_at timestamp @ttl(7d))");
    await asked.query("create collection if not exists jobs (queue text)");
    await asked.query("create collection jobs (queue text)");
    await asked.query("put jobs {queue: $1}", ["hidden"]);
    await asked.query('get jobs where queue = "hidden"');
    await asked.query("set jobs {queue: $1} returning *", ["hidden"]);
    await asked.query("create index on jobs (queue) @hash", [], { "if-none-match": '"0"' });
    const batch = [
      '{"query":"alter collection jobs add n int"}',
      '{"query":"put jobs {n: 7}"}',
      '{"query":"drop collection jobs"}',
    ];
    await asked.ask("POST", "/batch", batch.join("\n"));
    await asked.query("compact");
    expect(lines.map(({ event, statement }) => [event, statement])).toEqual([
      ["schema", "create collection jobs (queue text, run_at timestamp @ttl(7d))"],
      ["schema", "create index on jobs (queue) @hash"],
      ["schema", "alter collection jobs add field n int"],
      ["schema", "drop collection jobs"],
      ["maintenance", "compact"],
    ]);
    expect(lines[0]).toMatchObject({ kind: "open", sub: null, address: "192.0.2.1" });
  });

  test("takes so many lines a second, and says how many it left out", () => {
    const { lines, audit, at } = audited();
    const refused = (): void => audit.refused(request(), null, new Refusal("unauthorized", "no"));
    for (let n = 0; n < AUDIT_LINES + 7; n++) refused();
    expect(lines).toHaveLength(AUDIT_LINES);
    at(START_MS + 1_000);
    refused();
    expect(lines.slice(AUDIT_LINES)).toMatchObject([{ event: "skipped", lines: 7 }, { event: "refused" }]);
  });
});
