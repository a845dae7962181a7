/** The `curl`s of the documentation, run by a shell against a server, and the answers shown below them. */

import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Glob } from "bun";
import { PATIENCE_MS, PROJECT, Server } from "../harness/server.ts";
import { type Block, blocksOf } from "./page.ts";

setDefaultTimeout(PATIENCE_MS);

interface Command {
  readonly line: number;
  readonly text: string;
  /** As the page shows it: `"…"` stands for a time. */
  readonly answer: string;
}

/** Every block that is a `curl` and has its answer as json in the block below it. */
function commandsOf(page: string): readonly Command[] {
  const blocks = blocksOf(page);
  const shows = (block: Block | undefined): block is Block => block?.info === "json";
  return blocks.flatMap(({ info, line, text }, index) => {
    const below = blocks[index + 1];
    if (info !== "sh" || !text.startsWith("curl ") || !shows(below)) return [];
    return [{ line, text, answer: below.text }];
  });
}

const TIME = '"\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}(\\.\\d{3})?Z"';

/** What fits an answer: the same text, and a time where it shows `"…"`. */
function patternOf(answer: string): RegExp {
  const literal = answer.split('"…"').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${literal.join(TIME)}$`);
}

async function runAll(commands: readonly Command[], flags: readonly string[]): Promise<void> {
  const server = await Server.start({ flags });
  try {
    for (const { text } of commands) expect(text).toContain("127.0.0.1:8080");
    for (const { line, text, answer } of commands) {
      const command = text.replaceAll("127.0.0.1:8080", `127.0.0.1:${server.port}`);
      const child = Bun.spawn(["sh", "-c", command], { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
      const [out, trouble] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
      expect(`line ${line}: ${trouble}`).toBe(`line ${line}: `);
      expect(out.trim()).toMatch(patternOf(answer.trim()));
    }
  } finally {
    await server.kill();
  }
}

function read(page: string): string {
  return readFileSync(join(PROJECT, page), "utf8");
}

describe("README.md", () => {
  const page = read("README.md");

  test("opens with its two commands, and both are there", () => {
    const [first] = blocksOf(page);
    const scripts = [...(first?.text ?? "").matchAll(/^sh (\S+)/gm)].map(([, script = ""]) => script);
    expect(scripts).toEqual(["scripts/start", "scripts/test"]);
    expect(scripts.filter((script) => !existsSync(join(PROJECT, script)))).toEqual([]);
  });

  test("puts, claims and acks a job by three curls, with the answers shown", async () => {
    const commands = commandsOf(page);
    expect(commands.length).toBe(3);
    await runAll(commands, ["--in-memory"]);
  });

  test("names only files that are there", () => {
    const targets = [...page.matchAll(/\]\(([^)#:]+)\)/g)].map(([, target = ""]) => target);
    expect(targets.filter((target) => !existsSync(join(PROJECT, target)))).toEqual([]);
  });
});

describe("curls of the pages", () => {
  for (const page of new Glob("docs/**/*.md").scanSync({ cwd: PROJECT })) {
    const commands = commandsOf(read(page));
    if (commands.length === 0) continue;
    test(page, () => runAll(commands, ["--in-memory"]));
  }
});

test("an answer fits its pattern only with a time in the time's place", () => {
  const pattern = patternOf('[{"id":1,"run_at":"…"}]');
  expect('[{"id":1,"run_at":"2024-01-01T00:00:00.001Z"}]').toMatch(pattern);
  expect('[{"id":2,"run_at":"2024-01-01T00:00:00Z"}]').not.toMatch(pattern);
  expect('[{"id":1,"run_at":"soon"}]').not.toMatch(pattern);
  expect('[{"id":1,"run_at":null}]').not.toMatch(pattern);
});
