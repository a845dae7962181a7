/** Reads the files of test/cases/: a case a line. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Digits, type Exact, isList, isMembers, readExact } from "./exact_json.ts";

export type Members = ReadonlyMap<string, Exact>;

export function readCases(file: string): readonly Members[] {
  const text = readFileSync(join(import.meta.dir, "..", "cases", file), "utf8");
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => membersOf(readExact(line)));
}

/** Cases by their group, in the order the groups come. */
export function groupsOf(cases: readonly Members[]): ReadonlyMap<string, readonly Members[]> {
  return Map.groupBy(cases, (one) => textOf(one, "group"));
}

export function textOf(members: Members, name: string): string {
  const value = members.get(name);
  if (typeof value !== "string") throw new Error(`${name} is not a text`);
  return value;
}

export function optionalText(members: Members, name: string): string | undefined {
  return members.has(name) ? textOf(members, name) : undefined;
}

export function numberOf(members: Members, name: string): number | undefined {
  const value = members.get(name);
  if (value === undefined) return undefined;
  if (!(value instanceof Digits)) throw new Error(`${name} is not a number`);
  return Number(value.text);
}

/** A list, or the one item standing for it; none when it is not there. */
export function listOf(members: Members, name: string): readonly Exact[] {
  const value = members.get(name);
  if (value === undefined) return [];
  return isList(value) ? value : [value];
}

export function textsOf(members: Members, name: string): readonly string[] {
  return listOf(members, name).map(String);
}

export function membersOf(value: Exact | undefined): Members {
  if (!isMembers(value)) throw new Error("not an object");
  return value;
}

export function optionalMembers(members: Members, name: string): Members | undefined {
  return members.has(name) ? membersOf(members.get(name)) : undefined;
}
