/** scripts/bun, by which all others go: which Bun it takes, and when it fetches one. Nothing here asks the network. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { PROJECT, Scratch } from "../harness/server.ts";

/** Commands of a bare machine that the script uses. */
const COMMANDS = ["sh", "sed", "dirname", "cmp", "cp", "cat", "mkdir", "ln", "echo"];

const scratch = new Scratch();
/** A clone, in a path with a space. */
const clone = join(scratch.path, "a clone");
const commands = join(scratch.path, "commands");
const elsewhere = join(scratch.path, "elsewhere");
/** What the stand-in for npm was asked. */
const asked = join(scratch.path, "npm.log");

function program(directory: string, name: string, lines: readonly string[]): void {
  mkdirSync(directory, { recursive: true });
  const file = join(directory, name);
  writeFileSync(file, `#!/bin/sh\n${lines.join("\n")}\n`);
  chmodSync(file, 0o755);
}

function run(path: readonly string[], ...args: readonly string[]): { status: number; out: string; trouble: string } {
  const { exitCode, stdout, stderr } = Bun.spawnSync(["/bin/sh", join(clone, "scripts", "bun"), ...args], {
    cwd: elsewhere,
    env: { PATH: path.join(":") },
  });
  return { status: exitCode, out: stdout.toString().trim(), trouble: stderr.toString() };
}

beforeAll(() => {
  for (const directory of [join(clone, "scripts"), join(clone, "node_modules"), commands, elsewhere]) {
    mkdirSync(directory, { recursive: true });
  }
  for (const file of ["package.json", "bun.lock", "scripts/bun"]) copyFileSync(join(PROJECT, file), join(clone, file));
  copyFileSync(join(PROJECT, "bun.lock"), join(clone, "node_modules", ".installed.lock"));
  for (const name of COMMANDS) symlinkSync(Bun.which(name) ?? name, join(commands, name));
});

afterAll(() => scratch[Symbol.dispose]());

describe("which Bun it takes", () => {
  const node = join(scratch.path, "node");
  const other = join(scratch.path, "other");
  const pinned = join(scratch.path, "pinned");
  const local = join(clone, ".bun", "node_modules", ".bin", "bun");

  beforeAll(() => {
    program(node, "node", ["exit 1"]);
    // As npm does it: the package and its command below the directory that --prefix names.
    program(node, "npm", [
      `echo "$@" >> '${asked}'`,
      "mkdir -p .bun/node_modules/.bin",
      `ln -s '${process.execPath}' .bun/node_modules/.bin/bun`,
    ]);
    program(other, "bun", ["echo 0.1.0"]);
    mkdirSync(pinned, { recursive: true });
    symlinkSync(process.execPath, join(pinned, "bun"));
  });

  test("the one on PATH, where it is the version pinned", () => {
    expect(run([pinned, commands], "--version")).toEqual({ status: 0, out: Bun.version, trouble: "" });
    expect(existsSync(join(clone, ".bun"))).toBe(false);
  });

  test("none, told so, where there is nothing to fetch it with", () => {
    const { status, trouble } = run([commands], "--version");
    expect(status).not.toBe(0);
    expect(trouble).toContain(`Bun ${Bun.version}`);
  });

  for (const [name, path] of [
    ["there is none on PATH", [node, commands]],
    ["the one on PATH is another version", [other, node, commands]],
  ] as const) {
    test(`a fetched one, where ${name}; fetched once`, () => {
      rmSync(join(clone, ".bun"), { recursive: true, force: true });
      writeFileSync(asked, "");
      expect(run(path, "--version")).toMatchObject({ status: 0, out: Bun.version });
      expect(run(path, "--version")).toEqual({ status: 0, out: Bun.version, trouble: "" });
      expect(readFileSync(asked, "utf8").trim().split("\n")).toEqual([
        `install --prefix .bun --no-save --no-package-lock --loglevel=error bun@${Bun.version}`,
      ]);
      expect(existsSync(local)).toBe(true);
    });
  }

  test("and hands on its arguments as they are, in the directory it was called from", () => {
    const script = "console.log(JSON.stringify([process.cwd(), ...process.argv.slice(1)]))";
    const { out } = run([pinned, commands], "-e", script, "a b", "--c", "");
    expect(JSON.parse(out)).toEqual([elsewhere, "a b", "--c", ""]);
  });
});

test("package.json pins the Bun these tests run on", () => {
  const { engines } = JSON.parse(readFileSync(join(PROJECT, "package.json"), "utf8")) as { engines: { bun: string } };
  expect(engines.bun).toBe(Bun.version);
});
