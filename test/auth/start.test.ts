/** Who may ask, as a server is told by its flags: what stops the start, and what a started one takes. */

import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readCommand } from "../../src/flags.ts";
import { PATIENCE_MS, PROJECT, Scratch, Server } from "../harness/server.ts";
import { signToken } from "../harness/token.ts";

setDefaultTimeout(PATIENCE_MS);

const SECRET = "a secret of more than thirty-two bytes";
const SERVER = join(PROJECT, "src", "server.ts");
const POLICY = "jobs read where queue = $jwt.queue\n";

const scratch = new Scratch();
afterAll(() => scratch[Symbol.dispose]());

function file(name: string, text: string): string {
  const path = join(scratch.path, name);
  writeFileSync(path, text);
  return path;
}

const secret = file("secret", `${SECRET}\n`);
const policy = file("policy", POLICY);

function claims(more: Record<string, unknown> = {}): string {
  return JSON.stringify({ sub: "ann", queue: "mail", exp: Math.floor(Date.now() / 1_000) + 600, ...more });
}

const as = (token: string): Record<string, string> => ({ Authorization: `Bearer ${token}` });

describe("stops the start, with the flag or variable it came by:", () => {
  const nosuch = join(scratch.path, "nosuch");
  const short = file("short", "short");
  const bad = file("bad", "# x\n\njobs raed\n");
  for (const [name, flags, env, says] of [
    ["a token no header can hold", ["--token", "two words"], {}, "--token: a token is sent in a header"],
    ["the same as a variable", [], { FENEC_TOKEN: "tök" }, "FENEC_TOKEN: a token is sent in a header"],
    ["a secret that is too short", ["--jwt-secret", "short"], {}, "--jwt-secret: a token secret has 32 bytes or more"],
    ["the same as a variable", [], { FENEC_JWT_SECRET: "short" }, "FENEC_JWT_SECRET: a token secret has 32 bytes"],
    ["the same in a file", ["--jwt-secret-file", short], {}, "--jwt-secret-file: a token secret has 32 bytes"],
    ["a secret file that is not there", ["--jwt-secret-file", nosuch], {}, "--jwt-secret-file: the file"],
    ["a key file that is not there", ["--jwt-keys", nosuch], {}, "--jwt-keys: the file"],
    [
      "a key file without a key",
      ["--jwt-keys", file("no-keys", '{"keys":[]}')],
      {},
      "--jwt-keys: a key file has a usable",
    ],
    ["a key file that is no json", ["--jwt-keys", short], {}, "--jwt-keys: a key file is json"],
    [
      "two sources of keys",
      ["--jwt-secret", SECRET],
      { FENEC_JWT_SECRET_FILE: secret },
      "one source of keys, not --jwt-secret and FENEC_JWT_SECRET_FILE",
    ],
    ["a policy that holds nobody", ["--token", "x", "--policy", policy], {}, "--policy: tokens are held to its rules"],
    ["a policy that is not there", ["--jwt-secret-file", secret], { FENEC_POLICY: nosuch }, "FENEC_POLICY: the file"],
    [
      "a policy not understood",
      ["--jwt-secret-file", secret, "--policy", bad],
      {},
      `--policy: ${bad}, line 3: \`raed\` is no grant`,
    ],
    ["an audit that cannot be written", ["--audit", join(nosuch, "audit")], {}, "--audit: the file"],
    ["a token to be minted without a secret", ["--mint-token", "{}"], {}, "--mint-token: it is signed with the secret"],
    ["claims that are none", ["--jwt-secret-file", secret], { FENEC_MINT_TOKEN: "w1" }, "FENEC_MINT_TOKEN: claims are"],
    ["an end that is none", ["--jwt-secret-file", secret, "--mint-token", '{"exp":"x"}'], {}, "--mint-token: `exp` is"],
    ["an address of another machine", ["--insecure"], { FENEC_LISTEN: "192.0.2.1:0" }, "FENEC_LISTEN 192.0.2.1:0"],
    ["a data directory that is a file", ["--data", short], {}, `--data: ${short} cannot be the data directory`],
  ] as const) {
    test(name, async () => {
      const listen = "FENEC_LISTEN" in env ? [] : ["--listen", "127.0.0.1:0"];
      const memory = flags.some((flag) => flag === "--data") ? [] : ["--in-memory"];
      const started = Bun.spawnSync([process.execPath, SERVER, ...listen, ...memory, ...flags], {
        env: { ...process.env, ...env },
        timeout: PATIENCE_MS / 2,
      });
      const words = started.stderr.toString();
      expect(words).toContain(says);
      expect(started.exitCode).toBe(2);
      // One line, for whoever wrote the command.
      expect(words.trim().split("\n")).toHaveLength(1);
      expect(words).not.toContain(SECRET);
    });
  }
});

test("beyond this machine it listens with a token, with keys, or when it is meant", () => {
  const listens = (...words: string[]): boolean => {
    try {
      return readCommand(["--listen", "0.0.0.0:80", ...words], {}).kind === "run";
    } catch (error) {
      expect(String(error)).toContain("lets other machines in");
      return false;
    }
  };
  expect(listens()).toBe(false);
  expect(listens("--policy", "file", "--cors")).toBe(false);
  for (const words of [
    ["--token", "x"],
    ["--jwt-secret", "x"],
    ["--jwt-secret-file", "x"],
    ["--jwt-keys", "x"],
    ["--insecure"],
  ]) {
    expect(listens(...words)).toBe(true);
  }
});

test("the token may come by the environment", async () => {
  const server = await Server.start({ flags: ["--in-memory", "--auth-delay", "0"], env: { FENEC_TOKEN: "from-env" } });
  expect((await server.ask({ path: "/" })).status).toBe(401);
  expect((await server.ask({ path: "/", headers: as("from-env") })).status).toBe(200);
  expect((await server.ask({ path: "/_health" })).status).toBe(200);
  await server.kill();
});

test("a minted token is taken, and ends the command", async () => {
  const minted = Bun.spawnSync([
    process.execPath,
    SERVER,
    "--jwt-secret-file",
    secret,
    "--mint-token",
    '{"sub":"ann","queue":"mail"}',
  ]);
  expect(minted.exitCode).toBe(0);
  const token = minted.stdout.toString().trim();
  const server = await Server.start({
    flags: ["--in-memory", "--token", "root", "--jwt-secret-file", secret, "--policy", policy],
  });
  const answer = await server.ask({ path: "/_whoami", headers: as(token) });
  expect(JSON.parse(answer.body)).toMatchObject({ kind: "scoped", sub: "ann", rules: [{ collection: "jobs" }] });
  await server.kill();
});

test("keys are rotated by their file, without a restart", async () => {
  const oct = (text: string, kid: string): unknown => ({ kty: "oct", kid, k: Buffer.from(text).toString("base64url") });
  const keys = file("keys", JSON.stringify({ keys: [oct(SECRET, "old")] }));
  const server = await Server.start({
    flags: ["--in-memory", "--auth-delay", "0", "--token", "root", "--jwt-keys", keys, "--policy", policy],
  });
  const statuses = async (): Promise<string> => {
    const tokens = [signToken(claims(), SECRET), signToken(claims(), `${SECRET} new`)];
    const answers = await Promise.all(tokens.map((token) => server.ask({ path: "/_whoami", headers: as(token) })));
    return answers.map(({ status }) => status).join();
  };
  const until = async (wanted: string): Promise<void> => {
    const deadline = performance.now() + 15_000;
    while ((await statuses()) !== wanted) if (performance.now() > deadline) throw new Error(`not ${wanted}`);
  };
  const rotate = (list: readonly unknown[]): void => {
    const next = file("keys.next", JSON.stringify(list));
    renameSync(next, keys);
  };
  await until("200,401");
  rotate([oct(SECRET, "old"), oct(`${SECRET} new`, "new")]);
  await until("200,200");
  rotate([oct(`${SECRET} new`, "new")]);
  await until("401,200");
  writeFileSync(keys, "gone bad");
  await until("401,200");
  await server.kill();
  expect(await statuses().catch(() => "gone")).toBe("gone");
});

test("the audit file has a line for each refusal and each change to a collection; the log has rules that do not fit", async () => {
  const audit = join(scratch.path, "audit");
  using data = new Scratch();
  const rules = file("misfit", "jobs read where quue = $jwt.queue\njobs update(ownr)\nother read where x = 1\n");
  const flags = [
    "--data",
    data.path,
    "--auth-delay",
    "0",
    "--token",
    "root",
    "--jwt-secret-file",
    secret,
    "--audit",
    audit,
  ];
  const first = await Server.start({ flags });
  await first.query("create collection jobs (queue text, owner text)", [], as("root"));
  await first.query("put jobs {queue: $1}", ["hidden"], as("root"));
  await first.query("put jobs {queue: $1}", ["hidden"], as(signToken(claims(), SECRET)));
  await first.ask({ path: "/jobs?queue=hidden", headers: as("wrong") });
  expect(await first.stop()).toBe(0);
  const lines = readFileSync(audit, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(lines).toMatchObject([
    {
      event: "schema",
      statement: "create collection jobs (queue text, owner text)",
      kind: "full",
      address: "127.0.0.1",
    },
    { event: "refused", status: 401, path: "/jobs", method: "GET", address: "127.0.0.1" },
  ]);
  expect(readFileSync(audit, "utf8")).not.toContain("hidden");

  const second = await Server.start({ flags: [...flags, "--policy", rules] });
  expect((await second.query("get jobs", [], as(signToken(claims(), SECRET)))).status).toBe(403);
  await second.stop();
  const log = await second.log();
  expect(log).toContain("a rule of the policy does not fit its collection");
  expect(log).toContain("no field `quue`");
  expect(log).toContain("no field `ownr`");
  expect(log).not.toContain("other");
  // What was there before stays: a log is added to.
  expect(readFileSync(audit, "utf8").trim().split("\n").length).toBeGreaterThanOrEqual(2);
});

test("a read-only server takes no write, whatever it names", async () => {
  const server = await Server.start({
    flags: ["--in-memory", "--read-only", "--token", "root", "--jwt-secret-file", secret, "--policy", policy],
  });
  for (const who of [as("root"), as(signToken(claims(), SECRET))]) {
    for (const text of [
      "put jobs {a: 1}",
      "set nosuch {a: 1}",
      "del nosuch",
      "create collection x (a int)",
      "compact",
    ]) {
      const answer = await server.query(text, [], who);
      expect({ text, status: answer.status }).toEqual({ text, status: 403 });
      expect(JSON.parse(answer.body).code).toBe("read_only");
    }
    for (const [method, path] of [
      ["POST", "/nosuch"],
      ["PATCH", "/nosuch?a=1"],
      ["DELETE", "/nosuch/all"],
    ] as const) {
      const answer = await server.ask({ method, path, body: "{}", headers: who });
      expect({ path, code: JSON.parse(answer.body).code }).toEqual({ path, code: "read_only" });
    }
  }
  expect(JSON.parse((await server.ask({ path: "/_whoami", headers: as("root") })).body).read_only).toBe(true);
  await server.kill();
});
