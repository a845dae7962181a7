/** docs/http.md names every code, flag and metric there is, and no other. */

import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { REFUSAL_STATUS } from "../../src/base/refusal.ts";
import { helpText } from "../../src/flags.ts";
import { Asked, ToldEngine } from "./parts.ts";

const PAGE = readFileSync(join(import.meta.dir, "..", "..", "docs", "http.md"), "utf8");

function section(title: string): string {
  const from = PAGE.indexOf(`\n## ${title}\n`);
  const to = PAGE.indexOf("\n## ", from + 1);
  return PAGE.slice(from, to === -1 ? undefined : to);
}

/** The words in back quotes of a text. */
function named(text: string): string[] {
  return [...text.matchAll(/`([^`]+)`/g)].map(([, word = ""]) => word);
}

test("statuses and their codes", () => {
  const rows = [...section("Statuses").matchAll(/^\| (\d{3}) \| (.*) \|$/gm)];
  const shown = rows.flatMap(([, status, codes = ""]) => named(codes).map((code) => [code, Number(status)]));
  expect(Object.fromEntries(shown)).toEqual(REFUSAL_STATUS);
});

test("flags, and which are not there yet", () => {
  const help = helpText();
  const flags = [...help.matchAll(/^ {2}(--[a-z-]+).*$/gm)].map(([line, name = ""]) => ({
    name,
    missing: line.endsWith("(not available yet)"),
  }));
  const page = section("Flags");
  const [table = "", rest = ""] = page.split("Not available yet");
  const inTable = [...table.matchAll(/^\| (`--.*?) \|/gm)].flatMap(([, cell = ""]) => named(cell));
  const wanted = (missing: boolean) => flags.filter((flag) => flag.missing === missing).map(({ name }) => name);
  expect(inTable.sort()).toEqual(wanted(false).sort());
  expect(named(rest).sort()).toEqual(wanted(true).sort());
});

test("metrics", async () => {
  const engine = new ToldEngine();
  engine.logged = { frames: 1, bytes: 1, syncs: 1, syncMs: 1, fileBytes: 1 };
  const text = (await new Asked({ engine }).ask("GET", "/_metrics")).body;
  const families = [...text.matchAll(/^# TYPE (\w+) /gm)].map(([, name = ""]) => name);
  let queue = "";
  const shown = [...section("Metrics").matchAll(/^\| (.*?) \|/gm)].flatMap(([, cell = ""]) =>
    named(cell).map((name) => {
      if (name.startsWith("fenec_queue_ready")) queue = name;
      return name.startsWith("_") ? queue.replace("_ready", name) : name;
    }),
  );
  expect(shown.sort()).toEqual(families.sort());
});
