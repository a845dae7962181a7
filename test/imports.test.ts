/** Holds the table of rooms in docs/design.md to the import lines of src/, and docs/dependencies.md to package.json. */

import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { Glob } from "bun";

const PROJECT = join(import.meta.dir, "..");
const SOURCES = join(PROJECT, "src");

/** What a file of each room may import besides its own room. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  base: [],
  clock: ["base"],
  value: ["base"],
  tree: ["base"],
  geo: ["base"],
  lang: ["base", "value"],
  schema: ["base", "value"],
  store: ["base", "value", "tree", "geo", "schema"],
  plan: ["base", "lang", "value", "schema", "store", "geo"],
  exec: ["base", "lang", "value", "schema", "plan", "store", "geo"],
  log: ["base", "value", "clock"],
  engine: ["base", "lang", "value", "schema", "plan", "exec", "store", "log", "clock"],
  hold: ["base", "clock", "lang", "value", "geo", "store", "plan", "engine"],
  auth: ["base", "clock", "lang", "value", "schema"],
  http: ["base", "clock", "lang", "value", "schema", "engine", "hold", "auth", "obs"],
  obs: ["base", "clock", "value", "tree", "plan", "store", "hold"],
  client: [],
};

/** The room, or rooms, each package is for. */
const PACKAGE_ROOMS: Readonly<Record<string, readonly string[]>> = {
  parsimmon: ["lang"],
  kdbush: ["geo"],
  elysia: ["http"],
  "@sinclair/typebox": ["http"],
  jose: ["auth"],
};

/** `src/server.ts` and the flags it reads: they may import every room, and no room imports them. */
const WIRING = "";
const WIRING_FILES = ["flags.ts", "server.ts"];

interface Import {
  readonly file: string;
  /** `WIRING` for the files that put the rooms together. */
  readonly room: string;
  readonly specifier: string;
}

const SPECIFIERS = [
  /\b(?:import|export)\b[^"'`;]*?\bfrom\s*["']([^"']+)["']/g,
  /\bimport\s*["']([^"']+)["']/g,
  /\b(?:import|require)\s*\(\s*["'`]([^"'`]+)["'`]/g,
  /\bnew\s+URL\(\s*["'`]([^"'`]+)["'`]\s*,\s*import\.meta\.url/g,
];

/** Where a source names other modules; comments are no import lines. */
function specifiersOf(source: string): string[] {
  const code = source.replace(/\/\*[\s\S]*?\*\//g, "").replace(/^\s*\/\/.*$/gm, "");
  return SPECIFIERS.flatMap((pattern) => [...code.matchAll(pattern)].map(([, specifier = ""]) => specifier));
}

function roomOf(file: string): string {
  const [first = "", ...rest] = relative(SOURCES, file).split(sep);
  return rest.length === 0 ? WIRING : first;
}

const files = [...new Glob("**/*.{ts,tsx,mts,cts,js,mjs,cjs}").scanSync({ cwd: SOURCES })].sort();
const imports: readonly Import[] = files.flatMap((file) =>
  specifiersOf(readFileSync(join(SOURCES, file), "utf8")).map((specifier) => ({
    file,
    room: roomOf(join(SOURCES, file)),
    specifier,
  })),
);
const local = imports.filter(({ specifier }) => specifier.startsWith("."));

function wrongLines(lines: readonly Import[], isWrong: (line: Import) => boolean): string[] {
  return lines.filter(isWrong).map(({ file, specifier }) => `src/${file} imports ${specifier}`);
}

/** The room a relative specifier leads to; undefined for one that leads out of src/. */
function targetRoom({ file, specifier }: Import): string | undefined {
  const target = resolve(SOURCES, dirname(file), specifier);
  return target.startsWith(SOURCES + sep) ? roomOf(target) : undefined;
}

describe("import lines", () => {
  test("are found, in every form", () => {
    const source = [
      'import a, {\n  b,\n} from "./one.ts";',
      'import type { C } from "./two.ts";',
      'export * from "./three.ts";',
      'import "./four.ts";',
      'const five = await import("./five.ts");',
      'new Worker(new URL("./six.ts", import.meta.url));',
      '// import "./none.ts";',
      '/* import "./none.ts"; */',
    ].join("\n");
    const names = ["one", "two", "three", "four", "five", "six"].map((name) => `./${name}.ts`);
    expect(specifiersOf(source).sort()).toEqual(names.sort());
    expect(local.length).toBeGreaterThan(0);
  });

  test("name a file that is there, with its ending", () => {
    expect(wrongLines(local, ({ file, specifier }) => !existsSync(resolve(SOURCES, dirname(file), specifier)))).toEqual(
      [],
    );
  });

  test("stay within the table of rooms", () => {
    const wrong = wrongLines(local, (line) => {
      const target = targetRoom(line);
      if (line.room === WIRING || target === line.room) return false;
      return target === undefined || !(MAY_IMPORT[line.room] ?? []).includes(target);
    });
    expect(wrong).toEqual([]);
  });

  test("of the client lead to the client alone", () => {
    const ofClient = imports.filter(({ room }) => room === "client");
    expect(wrongLines(ofClient, (line) => targetRoom(line) !== "client")).toEqual([]);
  });

  test("name packages that are declared, in the room each is for", () => {
    const packages = imports.filter(({ specifier }) => !/^(\.|node:|bun(:|$))/.test(specifier));
    const wrong = wrongLines(packages, ({ room, specifier }) => {
      const name = Object.keys(PACKAGE_ROOMS).find((known) => specifier === known || specifier.startsWith(`${known}/`));
      return name === undefined || PACKAGE_ROOMS[name]?.includes(room) !== true;
    });
    expect(wrong).toEqual([]);
  });
});

test("every folder of src/ is a room of the table, and nothing but the wiring stands beside them", () => {
  const rooms = new Set(files.map((file) => roomOf(join(SOURCES, file))));
  rooms.delete(WIRING);
  expect([...rooms].filter((room) => MAY_IMPORT[room] === undefined)).toEqual([]);
  expect(files.filter((file) => !file.includes("/") && !WIRING_FILES.includes(file))).toEqual([]);
});

test("docs/design.md shows the same table", () => {
  const page = readFileSync(join(PROJECT, "docs", "design.md"), "utf8");
  const rows = [...page.matchAll(/^\| `(\w+)` \| .* \| (.*) \|$/gm)].map(([, room = "", may = ""]) => [
    room,
    [...may.matchAll(/`(\w+)`/g)].map(([, name]) => name),
  ]);
  expect(Object.fromEntries(rows)).toEqual(MAY_IMPORT);
});

test("docs/dependencies.md gives each dependency its line, and no other", () => {
  const declared: unknown = JSON.parse(readFileSync(join(PROJECT, "package.json"), "utf8"));
  const { dependencies, devDependencies } = declared as Record<string, Record<string, string>>;
  const page = readFileSync(join(PROJECT, "docs", "dependencies.md"), "utf8");
  const listed = [...page.matchAll(/^\| `([^`]+)` \| .+ \|$/gm)].map(([, name]) => name);
  expect(listed.sort()).toEqual([...Object.keys(dependencies ?? {}), ...Object.keys(devDependencies ?? {})].sort());
  expect(Object.keys(dependencies ?? {}).sort()).toEqual(Object.keys(PACKAGE_ROOMS).sort());
});
