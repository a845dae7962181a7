/** Types and index kinds, as `create` and `alter` name them. */

import { JSON_DEPTH } from "../base/limits.ts";
import type { FieldType, ScalarKind } from "../value/value.ts";
import type { IndexClause } from "./ast.ts";
import { nearestWord } from "./nearest_word.ts";
import type { Reader } from "./reader.ts";

const TYPES = new Map<string, FieldType>(
  (["bool", "int", "float", "text", "bytes", "timestamp", "json", "geo"] satisfies ScalarKind[]).map((kind) => [
    kind,
    Object.freeze({ kind }),
  ]),
);

/** What other databases call the types, for the words of a refusal. */
const TYPE_ALIASES = new Map<string, string>([
  ["boolean", "bool"],
  ["integer", "int"],
  ["bigint", "int"],
  ["smallint", "int"],
  ["number", "int"],
  ["numeric", "float"],
  ["decimal", "float"],
  ["real", "float"],
  ["double", "float"],
  ["string", "text"],
  ["varchar", "text"],
  ["char", "text"],
  ["uuid", "text"],
  ["blob", "bytes"],
  ["binary", "bytes"],
  ["date", "timestamp"],
  ["datetime", "timestamp"],
  ["time", "timestamp"],
  ["timestamptz", "timestamp"],
  ["object", "json"],
  ["jsonb", "json"],
  ["point", "geo"],
]);

const UNSUPPORTED_TYPES = new Set(["vector", "sparse"]);

/** `text`, `[int]`. */
export function readType(r: Reader): FieldType {
  let lists = 0;
  while (r.take(91)) {
    if (++lists > JSON_DEPTH) r.refuse("too_deep", `a type is nested too deep: at most ${JSON_DEPTH} lists`);
  }
  const at = r.at;
  const word = r.peekWord();
  let type = TYPES.get(word);
  if (type === undefined) {
    if (word === "") r.fail("a type, such as `text`");
    if (UNSUPPORTED_TYPES.has(word)) r.refuse("unsupported", `the type \`${word}\` is not supported`);
    const near = nearestWord(word, [...TYPES.keys(), ...TYPE_ALIASES.keys()]);
    const meant = near === undefined ? undefined : (TYPE_ALIASES.get(near) ?? near);
    const hint = meant === undefined ? "." : `; did you mean \`${meant}\`?`;
    const known = [...TYPES.keys()];
    r.refuse("syntax", `there is no type \`${r.shown(at)}\`${hint} Types are ${known.join(", ")}`, at, known);
  }
  r.moveTo(r.at + word.length);
  if (lists > 0 && type.kind === "json") {
    r.refuse("bad_schema", "a list of json cannot be declared: a json field holds lists", at);
  }
  for (; lists > 0; lists--) {
    type = { kind: "list", of: type };
    r.need(93);
  }
  return type;
}

const INDEX_KINDS = ["hash", "unique", "sorted", "geo", "ttl"] as const;
/** As they are written. */
const INDEX_WORDS = INDEX_KINDS.map((kind) => (kind === "ttl" ? "@ttl(...)" : `@${kind}`));
const UNSUPPORTED_INDEXES = new Set(["hnsw", "text"]);

const UNIT_MS = new Map<string, number>([
  ["ms", 1],
  ["s", 1_000],
  ["m", 60_000],
  ["h", 3_600_000],
  ["d", 86_400_000],
]);

/** An index would have been right here. */
export function noteIndexKinds(r: Reader): void {
  for (const word of INDEX_WORDS) r.note(`\`${word}\``);
}

/** `@hash`, `@ttl(7d)`. */
export function readIndexKind(r: Reader): IndexClause {
  if (!r.is(64)) {
    noteIndexKinds(r);
    r.fail("`@ttl(...)`");
  }
  const at = r.at;
  const word = r.wordAt(at + 1);
  const kind = INDEX_KINDS.find((known) => known === word);
  if (kind === undefined) {
    if (UNSUPPORTED_INDEXES.has(word)) r.refuse("unsupported", `the index \`@${word}\` is not supported`);
    const near = nearestWord(word, INDEX_KINDS);
    const hint = near === undefined ? "." : `; did you mean \`@${near}\`?`;
    const words = `there is no index \`@${r.shown(at + 1)}\`${hint} Indexes are ${INDEX_WORDS.join(", ")}`;
    r.refuse("syntax", words, at, INDEX_WORDS);
  }
  r.moveTo(at + 1 + word.length);
  if (kind !== "ttl") return { kind, ttlMs: 0, ttlText: "" };
  r.need(40);
  const ttl = readTtl(r);
  r.need(41);
  return ttl;
}

function readTtl(r: Reader): IndexClause {
  const from = r.at;
  let i = from;
  while (r.codeAt(i) >= 48 && r.codeAt(i) <= 57) i++;
  if (i === from) r.fail("a duration");
  const unit = r.wordAt(i);
  const unitMs = UNIT_MS.get(unit);
  if (unitMs === undefined || r.input.slice(i, i + unit.length) !== unit) {
    r.refuse("syntax", "a duration is digits and one of ms, s, m, h, d, without a space: `15m`");
  }
  const text = r.input.slice(from, i + unit.length);
  const ttlMs = Number(r.input.slice(from, i)) * unitMs;
  if (ttlMs <= 0) r.refuse("syntax", "a duration is longer than nothing");
  if (!Number.isSafeInteger(ttlMs)) r.refuse("syntax", "a duration that long cannot be counted in milliseconds");
  r.moveTo(i + unit.length);
  return { kind: "ttl", ttlMs, ttlText: text };
}
