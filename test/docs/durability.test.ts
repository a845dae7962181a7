/** The scripts of docs/durability.md, run one after another on a directory that a server writes to. */

import { expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { PATIENCE_MS, PROJECT, Scratch, Server } from "../harness/server.ts";
import { blocksOf } from "./page.ts";

setDefaultTimeout(PATIENCE_MS);

/** Fits what is shown; `…` stands for any part of a line. */
function patternOf(shown: string): RegExp {
  const parts = shown.split("…").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join(".+")}$`);
}

test("every script of the page says what the page shows", async () => {
  const blocks = blocksOf(readFileSync(join(PROJECT, "docs", "durability.md"), "utf8"));
  const commands = blocks.filter(({ info }) => info === "sh");
  expect(commands.length).toBeGreaterThan(3);
  using scratch = new Scratch();
  const server = await Server.start({ flags: ["--data", join(scratch.path, "snapshots")] });
  try {
    await server.run("create collection jobs (payload json)");
    for (let n = 1; n <= 2; n++) await server.run(`put jobs {payload: ${n}}`);
    for (const command of commands) {
      const shown = blocks[blocks.indexOf(command) + 1];
      expect(shown?.info, `line ${command.line}`).toBe("text");
      const text = command.text.replace("sh scripts/", `sh ${PROJECT}/scripts/`);
      const child = Bun.spawn(["sh", "-c", text], { cwd: scratch.path, stdout: "pipe", stderr: "pipe" });
      const [out, trouble] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
      expect(trouble, `line ${command.line}`).toBe("");
      expect(out.trim(), `line ${command.line}`).toMatch(patternOf(shown?.text.trim() ?? ""));
    }
  } finally {
    await server.kill();
  }
});
