/** Documents sent as json, against the plain way: every member decoded, then fitted into its field. */

import { describe, expect, test } from "bun:test";
import { Refusal } from "../../src/base/refusal.ts";
import { idOf } from "../../src/exec/document_id.ts";
import { SentRows } from "../../src/exec/sent_rows.ts";
import { createSchema } from "../../src/schema/declare.ts";
import { Store } from "../../src/store/store.ts";
import type { Table } from "../../src/store/table.ts";
import { compactJson, listValues, objectEntries } from "../../src/value/json.ts";
import { fitCell } from "../../src/value/types.ts";
import { type FieldType, Json, type Row } from "../../src/value/value.ts";
import { type Random, withRandom } from "../store/random.ts";

const KINDS = ["int", "float", "text", "timestamp", "json", "bool", "bytes", "geo"] as const;
const TYPES: readonly FieldType[] = [...KINDS.map((kind) => ({ kind })), { kind: "list", of: { kind: "int" } }];
const NAMES = ["a", "ab", "b", "payload", "run_at", "görev", "__proto__", "constructor", "x1"];
const VALUES = [
  ..."null true false 0 -0 1 -1 1.0 1.5 1E2 12345678901234 123456789012345 1234567890123456 9007199254740993".split(
    " ",
  ),
  ..."9223372036854775807 9223372036854775808 253402300799999 253402300800000 -62167219200000 [] [1] [1,2] [null] {}".split(
    " ",
  ),
  ...[
    '""',
    '"a"',
    '"\\u0041"',
    '"\\ud800"',
    '"2030-01-31"',
    '"2030-01-31T12:00:00Z"',
    '"2030-01-31T12:00:00.5+01:00"',
    '"no time"',
  ],
  ...[
    '{"a":{"b":[1,"}"]}}',
    '{"k\\"":"]}"}',
    '"\\u0032030-01-31"',
    "[29.01,41.04]",
    "[181,0]",
    `${"[".repeat(63)}${"]".repeat(63)}`,
  ],
];

function tableOf(names: readonly string[], types: readonly FieldType[]): Table {
  const store = new Store();
  const clauses = names.map((name, at) => ({ name, type: types[at] as FieldType, required: false, index: null }));
  store.apply([{ op: "create", schema: createSchema(1, "t", clauses) }]);
  return store.table("t") as Table;
}

/** As rows of a table of so many fields. */
function plainly(table: Table, json: Json): Row[] {
  const documents = json.isList ? listValues(json) : [json];
  return documents.map((document) => {
    if (!(document instanceof Json) || document.isList) throw new Refusal("bad_value", "no document");
    const row: Row = new Array(table.types.length + 1).fill(null);
    for (const [name, value] of objectEntries(document)) {
      const slot = table.slotOf(name);
      if (slot === undefined) throw new Refusal("unknown_field", name);
      row[slot] = slot === 0 ? idOf(value) : fitCell(table.types[slot - 1] as FieldType, value, name);
    }
    return row;
  });
}

function told(work: () => Row[]): Row[] | number {
  try {
    return work();
  } catch (error) {
    if (error instanceof Refusal) return error.status;
    throw error;
  }
}

function spelled(random: Random, name: string): string {
  const quoted = JSON.stringify(name);
  if (random.chance(0.9)) return quoted;
  const first = name.codePointAt(0) ?? 0;
  return `"\\u${first.toString(16).padStart(4, "0")}${quoted.slice(2)}`;
}

test("random documents, alike and unlike", () => {
  withRandom((random) => {
    for (let round = 0; round < 150; round++) {
      const names = NAMES.slice(0, 1 + random.below(NAMES.length));
      const types = names.map(() => random.pick(TYPES));
      const table = tableOf(names, types);
      const reader = new SentRows(table, new Array(names.length + 1).fill(null));
      // Values that fit more often than not: of those that do.
      const fitting = types.map((type) => VALUES.filter((text) => fits(type, text)));
      for (let page = 0; page < 12; page++) {
        const order = [...names, "id"].filter(() => random.chance(0.8));
        const documents = Array.from({ length: random.below(6) }, () => {
          const keys = random.chance(0.7) ? order : order.filter(() => random.chance(0.7)).reverse();
          const members = keys.map((name) => {
            const known = name === "id" ? ["1", "null", "77"] : (fitting[names.indexOf(name)] ?? VALUES);
            const value = random.chance(0.97) ? random.pick(known) : random.pick(VALUES);
            return `${spelled(random, name)}:${value}`;
          });
          if (random.chance(0.02)) members.push('"nope":1');
          return random.chance(0.02) ? random.pick(VALUES) : `{${members.join(",")}}`;
        });
        const text =
          documents.length === 1 && random.chance(0.5) ? (documents[0] as string) : `[${documents.join(",")}]`;
        if (!/^[[{]/.test(text)) continue;
        const json = new Json(compactJson(text, 0, 68).text);
        expect(told(() => reader.rows(json))).toEqual(told(() => plainly(table, json)));
      }
    }
  });
});

function fits(type: FieldType, text: string): boolean {
  try {
    fitCell(type, listValues(new Json(`[${compactJson(text).text}]`))[0] ?? null, "");
    return true;
  } catch (error) {
    if (error instanceof Refusal) return false;
    throw error;
  }
}

describe("a refusal says which document", () => {
  const reader = new SentRows(tableOf(["a", "b"], [{ kind: "int" }, { kind: "json" }]), [null, null, null]);
  for (const [text, document] of [
    ['[{"a":1},{"a":"x"}]', 1],
    ['[{"a":1},{"c":1}]', 1],
    ["[{},{},7]", 2],
    ['[{"id":-1}]', 0],
    ['{"a":"x"}', undefined],
  ] as const) {
    test(text, () => {
      try {
        reader.rows(new Json(text));
        expect.unreachable();
      } catch (error) {
        expect((error as Refusal).data["document"]).toBe(document as number);
      }
    });
  }
});
