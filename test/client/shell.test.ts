/** The prompt: how it cuts a text into statements, how it prints, and the whole of it as a process against a server. */

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { optionsOf } from "../../scripts/prompt/options.ts";
import { errorText } from "../../scripts/prompt/session.ts";
import { commandOf, isWhole, statementsOf } from "../../scripts/prompt/statements.ts";
import { plain, table } from "../../scripts/prompt/table.ts";
import { FenecError } from "../../src/client/index.ts";
import { PATIENCE_MS, PROJECT, Server } from "../harness/server.ts";

setDefaultTimeout(PATIENCE_MS);

describe("cutting a text", () => {
  test("at semicolons, outside of strings, comments and brackets", () => {
    expect(statementsOf('put a {b: "x;y"}; get a -- one; two\n  where b = 1;\n\n# only; words\nget c')).toEqual([
      { text: 'put a {b: "x;y"}', line: 1 },
      { text: "get a -- one; two\n  where b = 1", line: 1 },
      { text: "# only; words\nget c", line: 4 },
    ]);
  });

  test("without a semicolon, at lines that are not indented", () => {
    const text = 'create collection a (\n  b text\n)\nset a {b: "\nx"}\n  where id = 1\n\n-- done\nget a\n';
    expect(statementsOf(text)).toEqual([
      { text: "create collection a (\n  b text\n)", line: 1 },
      { text: 'set a {b: "\nx"}\n  where id = 1', line: 4 },
      { text: "get a", line: 9 },
    ]);
  });

  test("into nothing, where there is nothing", () => {
    for (const text of ["", " \n", ";;", "-- a\n# b"]) expect(statementsOf(text)).toEqual([]);
  });

  test("a command is a line of its own", () => {
    for (const text of ["\\d\nget a;\n-- c\n\\d jobs\nget b;", "\\d\nget a\n-- c\n\\d jobs\nget b\n"]) {
      expect(statementsOf(text).map((piece) => piece.text)).toEqual(["\\d", "get a", "\\d jobs", "get b"]);
    }
    expect(statementsOf("\\timing; \\d")).toHaveLength(2);
    expect(statementsOf('put a {b: "\n\\d"}')).toHaveLength(1);
  });

  test("a command is known by its backslash, and those that leave or ask for help by their words too", () => {
    expect(commandOf(" \\d jobs ")).toBe("\\d jobs");
    for (const word of ["exit", "quit", "EXIT;", " quit ; "]) expect(commandOf(word)).toBe("\\q");
    expect(commandOf("help")).toBe("\\?");
    for (const text of ["get exit", "exit now", "get a where b = '\\d'", ""]) expect(commandOf(text)).toBeUndefined();
  });

  test("and Enter runs what is whole", () => {
    for (const text of ["get a", "get a;", 'put a {b: "("}', "get a -- (", 'put a {b: "\\""}'])
      expect(isWhole(text)).toBe(true);
    for (const text of ["put a {", 'put a {b: "x', "get a \\", "get a where b in [1,", 'put a {b: "\\"']) {
      expect(isWhole(text)).toBe(false);
    }
  });
});

describe("printing", () => {
  test("a table has its numbers to the right and its columns as wide as they are shown", () => {
    const rows = [
      { id: 9, to: "ada", n: 9007199254740993n, payload: { a: [1] } },
      { id: 10, to: "漢字", n: null, payload: null },
    ];
    expect(table(rows)).toBe(
      [
        "id  to                   n  payload",
        "--  ----  ----------------  ---------",
        ' 9  ada   9007199254740993  {"a":[1]}',
        "10  漢字",
      ].join("\n"),
    );
  });

  test("what would steer a terminal is shown, and a long value is cut in a table only", () => {
    const rows = [{ a: "\u001b[31mred\nline\u202e", b: "x".repeat(100) }];
    expect(plain(rows)).toBe(`a\tb\n\\u001b[31mred\\nline\\u202e\t${"x".repeat(100)}`);
    expect(table(rows)).toContain(`${"x".repeat(59)}…`);
    expect(table(rows)).not.toContain("\u001b");
  });

  test("a refusal points at its column, with wide characters before it", () => {
    const error = new FenecError("syntax", "found `wher`", { status: 400, line: 2, column: 5 });
    expect(errorText(error, "get a\n漢字\twher", undefined)).toBe(
      "error: found `wher` (400 syntax)\n  漢字 wher\n        ^",
    );
    expect(errorText(error, "get a\n  b", { file: "f.fql", line: 7 })).toStartWith("f.fql:8: error: found");
  });
});

describe("options", () => {
  test("from the command line, and from the environment where it says nothing", () => {
    expect(optionsOf(["-c", "get a", "--url=10.0.0.1:80", "-f", "x", "--json"], { FENEC_TOKEN: "t" })).toEqual({
      url: "http://10.0.0.1:80",
      token: "t",
      work: [
        { kind: "text", value: "get a" },
        { kind: "file", value: "x" },
      ],
      output: "json",
      timing: false,
    });
    expect(optionsOf(["--help"], {})).toBe("help");
    expect(optionsOf(["a.fql", "-f", "-"], {})).toMatchObject({
      work: [
        { kind: "file", value: "a.fql" },
        { kind: "file", value: "-" },
      ],
    });
    expect(() => optionsOf(["--ulr", "x"], {})).toThrow("unknown option --ulr");
    expect(() => optionsOf(["-c"], {})).toThrow("-c needs a value");
  });
});

describe("as a process", () => {
  let server: Server;
  const directory = mkdtempSync(join(tmpdir(), "fenec-shell-"));
  beforeAll(async () => {
    server = await Server.start({ flags: ["--in-memory"] });
  });
  afterAll(async () => {
    await server.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  async function shell(args: readonly string[], input = ""): Promise<{ status: number; out: string; err: string }> {
    const child = Bun.spawn(
      [process.execPath, join(PROJECT, "scripts", "prompt", "main.ts"), "--url", server.url, ...args],
      {
        env: { ...process.env, FENEC_TOKEN: "secret" },
        stdin: new Blob([input]),
        stdout: "pipe",
        stderr: "pipe",
      },
    );
    const [out, err, status] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    return { status, out, err };
  }

  test("runs -c, -f and standard input, prints what each is for, and stops at a refusal", async () => {
    const file = join(directory, "jobs.fql");
    writeFileSync(file, 'put notes {body: "a\tb", n: 1}\nput notes {body: "c",\n  n: 2}\n');
    expect(await shell(["-c", "create collection notes (body text, n int, meta json)", "-f", file])).toEqual({
      status: 0,
      out: "create notes\n1\n1\n",
      err: "",
    });
    expect((await shell([], "set notes {meta: {x: 1.50}} where id = 1; get notes\n")).out).toBe(
      'id\tbody\tn\tmeta\n1\ta\\tb\t1\t{"x":1.5}\n2\tc\t2\t\n'.replace(/^/, "1\n"),
    );
    expect((await shell(["--json", "-c", "get notes where id = 1"])).out).toBe(
      '[{"id":1,"body":"a\\tb","n":1,"meta":{"x":1.50}}]\n',
    );
    expect((await shell(["--table", "-c", "get notes select n where n = 2"])).out).toBe("n\n-\n2\n(1 row)\n");

    const refused = await shell([], "get notes count\nget notes\n  wher n = 1\nget notes\n");
    expect(refused.status).toBe(1);
    expect(refused.out).toBe("count\n2\n");
    expect(refused.err).toStartWith("-:3: error: ");
    expect(refused.err).toEndWith("\n    wher n = 1\n    ^\n");
  });

  test("runs commands from -c and standard input as it does at the prompt", async () => {
    await shell(["-c", "create collection pens (ink text @hash)"]);
    const told = await shell(["-c", "\\d pens", "-c", "\\timing; \\d nosuch; get pens"]);
    expect(told.out).toBe("field\ttype\tindex\trequired\nink\ttext\t@hash\t\ntiming is on\n");
    expect([told.status, told.err]).toEqual([1, expect.stringContaining("no collection `nosuch`")]);
    const left = await shell([], "\\json\n\\d pens\nexit\nget nosuch\n");
    expect(left).toEqual({
      status: 0,
      out: 'answers are json\n[{"name":"pens","fields":[{"name":"ink","type":"text","index":"hash"}]}]\n',
      err: "",
    });
    const wrong = await shell(["-c", "\\dd"]);
    expect([wrong.status, wrong.err]).toEqual([1, "unknown command \\dd; \\? tells them all\n"]);
    const watch = await shell(["-c", "get pens; \\watch 1"]);
    expect([watch.status, watch.err]).toEqual([1, "\\watch is for the prompt\n"]);
  });

  test("tells a wrong option, a wrong token, and a server that is not there", async () => {
    expect((await shell(["--no"])).status).toBe(2);
    expect(await shell(["-c", "collections", "-f", join(directory, "nosuch")])).toEqual({
      status: 2,
      out: "",
      err: `shell: the file ${join(directory, "nosuch")} cannot be read\n`,
    });
    const strict = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: (request) =>
        request.headers.get("Authorization") === "Bearer secret"
          ? Response.json([{ ok: true }])
          : Response.json({ error: "the token is not known", code: "unauthorized" }, { status: 401 }),
    });
    const right = await shell(["--url", strict.url.href, "-c", "get notes"]);
    expect([right.status, right.out]).toEqual([0, "ok\ntrue\n"]);
    const wrong = await shell(["--url", strict.url.href, "--token", "wrong", "-c", "get notes"]);
    expect([wrong.status, wrong.err]).toEqual([1, "error: the token is not known (401 unauthorized)\n"]);
    await strict.stop(true);
    const alone = await shell(["--url", "http://127.0.0.1:1", "-c", "get notes"]);
    expect([alone.status, alone.err]).toEqual([1, expect.stringContaining("no answer from http://127.0.0.1:1")]);
  });
});
