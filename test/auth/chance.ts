/** Random rules, rows and statements: as the judge knows them, and as text. */

import type { Random } from "../store/random.ts";
import type {
  Asked,
  Assigned,
  Claims,
  Condition,
  Grant,
  JudgedPolicy,
  JudgedRow,
  JudgedRule,
  JudgedTable,
  Ordering,
  Plain,
  Value,
} from "./judge.ts";

export const NOW_MS = Date.parse("2026-03-01T12:00:00Z");

const FIELDS = {
  jobs: [
    { name: "queue", type: "text" },
    { name: "owner", type: "text" },
    { name: "n", type: "int" },
    { name: "m", type: "int" },
    { name: "at", type: "timestamp" },
    { name: "tags", type: "[text]" },
    { name: "code", type: "text" },
  ],
  rooms: [
    { name: "name", type: "text" },
    { name: "owner", type: "text" },
    { name: "level", type: "int" },
  ],
} as const;

export type Name = keyof typeof FIELDS;

const TEXTS = ["mail", "video", "ann", "ben", "x", ""];

export function emptyTable(name: Name): JudgedTable {
  return { fields: FIELDS[name], unique: name === "jobs" ? "code" : null, rows: [], nextId: 1 };
}

/** `create collection` with indexes as chance has them. */
export function createText(random: Random, name: Name): string {
  const kinds: Record<string, readonly string[]> = {
    text: ["", "", " @hash", " @sorted"],
    int: ["", "", " @hash", " @sorted"],
    timestamp: ["", " @sorted"],
    "[text]": [""],
  };
  const fields = FIELDS[name].map(({ name: field, type }) => {
    return `${field} ${type}${field === "code" ? " @unique" : random.pick(kinds[type] ?? [""])}`;
  });
  return `create collection ${name} (${fields.join(", ")})`;
}

export function randomClaims(random: Random): Claims {
  const claims = new Map<string, Plain>();
  if (random.chance(0.9)) claims.set("sub", random.pick(["ann", "ben"]));
  if (random.chance(0.85)) claims.set("queue", random.pick(["mail", "video"]));
  if (random.chance(0.5)) claims.set("level", random.below(4) - 1);
  if (random.chance(0.5))
    claims.set(
      "halls",
      TEXTS.filter(() => random.chance(0.4)),
    );
  if (random.chance(0.6))
    claims.set("role", random.chance(0.5) ? "worker" : ["worker", "keeper"].filter(() => random.chance(0.6)));
  return claims;
}

export function randomCell(random: Random, name: Name, field: string, hidden: boolean): Plain {
  const type = FIELDS[name].find((each) => each.name === field)?.type;
  // Of the values of a unique field a token learns which are taken, so hidden rows have their own.
  if (field === "code") return random.chance(0.5) ? null : `${hidden ? "h" : "c"}${random.below(hidden ? 1e9 : 12)}`;
  if (random.chance(0.15)) return null;
  if (type === "int") return random.below(7) - 2;
  if (type === "timestamp") return { ms: NOW_MS + (random.below(7) - 3) * 1_000 };
  if (type === "[text]") return TEXTS.filter(() => random.chance(0.3));
  return random.pick(TEXTS);
}

export function randomRow(random: Random, name: Name, id: number, hidden: boolean): JudgedRow {
  return {
    id,
    cells: new Map(FIELDS[name].map(({ name: field }) => [field, randomCell(random, name, field, hidden)])),
  };
}

/** Of what kind a value is meant to be; some are of another on purpose, and some cannot be worked out. */
type Wanted = "text" | "int" | "time" | "list";

interface Place {
  readonly name: Name;
  /** Rules name claims; statements do not. */
  readonly claims: boolean;
  /** `new.f` may be read. */
  readonly after: boolean;
  /** Inner reads may stand in it. */
  readonly inner: boolean;
  /** Rows may be read. */
  readonly row: boolean;
}

const CLAIMS_OF: Record<Wanted, readonly string[]> = {
  text: ["sub", "queue"],
  int: ["level"],
  time: [],
  list: ["halls"],
};

function randomValue(random: Random, place: Place, wanted: Wanted, depth: number): Value {
  const claims = place.claims ? CLAIMS_OF[wanted] : [];
  if (claims.length > 0 && random.chance(0.3)) return { is: "claim", name: random.pick(claims) };
  const fields = FIELDS[place.name].filter(({ type }) => kindOf(type) === wanted).map(({ name }) => name as string);
  if (wanted === "int") fields.push("id");
  if (place.row && fields.length > 0 && random.chance(depth > 0 && wanted === "int" ? 0.4 : 0.6)) {
    return { is: "field", name: random.pick(fields), after: place.after && random.chance(0.5) };
  }
  if (depth > 0 && wanted === "int" && random.chance(0.55)) {
    if (random.chance(0.15))
      return { is: "len", of: randomValue(random, place, random.pick(["text", "list", "int"]), depth - 1) };
    return {
      is: "sum",
      op: random.pick(["+", "-", "*", "/", "/"]),
      left: randomValue(random, place, "int", depth - 1),
      right: randomValue(random, place, random.chance(0.05) ? "text" : "int", depth - 1),
    };
  }
  if (depth > 0 && random.chance(0.1)) {
    return { is: "coalesce", of: [randomValue(random, place, wanted, 0), randomValue(random, place, wanted, 0)] };
  }
  if (wanted === "time") return { is: "now", plus: (random.below(5) - 2) * 1_000 };
  if (random.chance(0.05)) return { is: "const", value: null };
  return { is: "const", value: wanted === "int" ? random.below(6) - 2 : random.pick(TEXTS) };
}

function kindOf(type: string): Wanted {
  if (type === "timestamp") return "time";
  return type === "[text]" ? "list" : (type as "int" | "text");
}

function randomCondition(random: Random, place: Place, depth: number): Condition {
  if (depth > 0 && random.chance(0.45)) {
    if (random.chance(0.2)) return { if: "not", of: randomCondition(random, place, depth - 1) };
    const of = Array.from({ length: 2 + random.below(2) }, () => randomCondition(random, place, depth - 1));
    return { if: random.chance(0.6) ? "and" : "or", of };
  }
  const wanted = random.pick<Wanted>(["text", "text", "int", "int", "time"]);
  const left = randomValue(random, place, wanted, 1);
  const shape = random.below(20);
  if (shape === 0) return { if: "null", of: left, not: random.chance(0.5) };
  if (shape === 1 && place.row) {
    return {
      if: "has",
      left: { is: "field", name: place.name === "jobs" ? "tags" : "name", after: false },
      right: randomValue(random, place, "text", 0),
    };
  }
  if (shape <= 3 && wanted !== "time") {
    if (place.claims && wanted === "text" && random.chance(0.6)) {
      const claim: Value = { is: "claim", name: "halls" };
      return {
        if: "in",
        left,
        list: random.chance(0.5) ? [claim] : [claim, { is: "const", value: random.pick(TEXTS) }],
      };
    }
    const list = Array.from(
      { length: random.below(3) + 1 },
      (): Value => ({ is: "const", value: wanted === "int" ? random.below(5) - 1 : random.pick(TEXTS) }),
    );
    return { if: "in", left, list };
  }
  if (shape <= 5 && place.inner) {
    const collection = random.pick<Name>(["rooms", "jobs"]);
    const within: Place = { ...place, name: collection, inner: random.chance(0.2) };
    const fields = FIELDS[collection].filter(({ type }) => kindOf(type) === wanted);
    const field = random.pick(fields.length > 0 ? fields : FIELDS[collection]).name;
    return {
      if: "inner",
      left,
      collection,
      field,
      where: random.chance(0.7) ? randomCondition(random, within, 1) : null,
    };
  }
  const op = random.chance(0.6) ? "=" : random.pick(["!=", "<", "<=", ">", ">="] as const);
  return {
    if: "compare",
    op,
    left,
    right: randomValue(random, place, random.chance(0.05) ? random.pick<Wanted>(["text", "int", "time"]) : wanted, 1),
  };
}

export function randomPolicy(random: Random): JudgedPolicy {
  const appendOnly = random.chance(0.08) ? ["rooms"] : [];
  const rules: JudgedRule[] = [];
  for (let at = 2 + random.below(6); at > 0; at--) {
    const collection = random.chance(0.08) ? "*" : random.chance(0.75) ? "jobs" : "rooms";
    const updates = random.chance(0.4) && !appendOnly.includes(collection);
    const changing = appendOnly.includes(collection) ? [] : (["update", "delete"] as const);
    const grants: readonly Grant[] = updates
      ? ["update"]
      : (["read", "read", "insert", ...changing] as const).filter(
          (grant, index, all) => all.indexOf(grant) === index && random.chance(0.5),
        );
    if (grants.length === 0) continue;
    const name: Name = collection === "rooms" ? "rooms" : "jobs";
    const place: Place = { name, claims: true, after: updates, inner: false, row: true };
    const fields = FIELDS[name].map((field) => field.name as string).filter(() => random.chance(0.5));
    rules.push({
      collection,
      grants,
      fields: updates && random.chance(0.6) && fields.length > 0 ? fields : null,
      where: random.chance(0.85) ? simpler(random, place) : null,
      role: random.chance(0.1) ? random.pick(["worker", "keeper"]) : null,
    });
  }
  return { rules, appendOnly };
}

/** Half of the rules are of the kind policies have; the others are anything. */
function simpler(random: Random, place: Place): Condition {
  if (random.chance(0.5)) return randomCondition(random, { ...place }, 2);
  const owner: Condition = {
    if: "compare",
    op: "=",
    left: { is: "field", name: "owner", after: false },
    right: { is: "claim", name: "sub" },
  };
  if (place.name === "rooms" || random.chance(0.3)) return owner;
  const queue: Condition = {
    if: "compare",
    op: "=",
    left: { is: "field", name: "queue", after: false },
    right: { is: "claim", name: "queue" },
  };
  if (!place.after || random.chance(0.3)) return random.chance(0.5) ? queue : { if: "and", of: [queue, owner] };
  const due: Condition = {
    if: "compare",
    op: "<=",
    left: { is: "field", name: "at", after: false },
    right: { is: "now", plus: 0 },
  };
  const mine: Condition = {
    if: "compare",
    op: "=",
    left: { is: "field", name: "owner", after: true },
    right: { is: "claim", name: "sub" },
  };
  const counted: Condition = {
    if: "compare",
    op: "=",
    left: { is: "field", name: "n", after: true },
    right: { is: "sum", op: "+", left: { is: "field", name: "n", after: false }, right: { is: "const", value: 1 } },
  };
  return {
    if: "and",
    of: [queue, due, mine, counted]
      .filter(() => random.chance(0.75))
      .concat(due)
      .slice(0, 4),
  };
}

/**
 * A filter that two indexes offer themselves for, and a part of it, or of the order, that is refused over some rows: which
 * index is read is a matter of how many rows there are in all.
 */
function wayThroughTwoIndexes(random: Random): { where: Condition; order: Ordering[] } {
  const field = (name: string): Value => ({ is: "field", name, after: false });
  const constant = (value: number | string): Value => ({ is: "const", value });
  const compare = (left: Value, op: "=" | ">=" | "<=" | "!=", right: Value): Condition => ({
    if: "compare",
    op,
    left,
    right,
  });
  const over = (under: Value): Value => ({ is: "sum", op: "/", left: field("id"), right: under });
  const mixed: Value = { is: "coalesce", of: [field("m"), field("queue")] };
  const refused = compare(over(field("n")), random.pick([">=", "<=", "!="]), constant(random.below(3)));
  const parts: Condition[] = [
    compare(field("n"), random.pick([">=", "<="]), constant(random.below(4) - 1)),
    compare(field("queue"), "=", constant(random.pick(["mail", "video"]))),
  ];
  if (random.chance(0.7)) parts.splice(random.below(3), 0, refused);
  const by = random.pick([field("n"), field("at"), over(mixed), over(field("n"))]);
  return { where: { if: "and", of: parts }, order: [{ by, desc: random.chance(0.3) }] };
}

export function randomAsked(random: Random, claims: Claims): Asked {
  const collection: Name = random.chance(0.8) ? "jobs" : "rooms";
  const place: Place = { name: collection, claims: false, after: false, inner: true, row: true };
  const twoWays = collection === "jobs" && random.chance(0.15) ? wayThroughTwoIndexes(random) : null;
  const where = twoWays?.where ?? (random.chance(0.7) ? randomCondition(random, place, 2) : null);
  const order: Ordering[] =
    twoWays !== null
      ? twoWays.order
      : random.chance(0.5)
        ? Array.from({ length: 1 + random.below(2) }, () => ({
            by: randomValue(random, place, random.pick<Wanted>(["int", "text", "time"]), 1),
            desc: random.chance(0.4),
          }))
        : [];
  const limit = random.chance(0.5) ? random.below(5) : null;
  const require = random.chance(0.1) ? random.below(3) : null;
  const kind = random.below(20);
  if (kind < 7) {
    const count = random.chance(0.2);
    const sum = !count && random.chance(0.15) ? (collection === "jobs" ? "n" : "level") : null;
    const select = random.chance(0.4)
      ? [randomValue(random, place, "int", 1), randomValue(random, place, "text", 1)]
      : null;
    const plain = !count && sum === null;
    return {
      do: "get",
      collection,
      where,
      order: plain ? order : [],
      limit: plain ? limit : null,
      offset: plain && random.chance(0.2) ? random.below(3) : null,
      require: plain ? require : null,
      select: plain ? select : null,
      count,
      sum,
      explain: sum === null && random.chance(0.15),
    };
  }
  if (kind < 15) {
    const isSet = kind < 13;
    return {
      do: isSet ? "set" : "del",
      collection,
      patch: isSet ? randomPatch(random, place, claims) : [],
      where,
      order,
      limit,
      require,
      returning: random.chance(0.5),
      explain: random.chance(0.1),
    };
  }
  const document = { ...place, row: false };
  const elseSet = random.chance(0.4) ? randomPatch(random, { ...place, after: true }, claims) : null;
  const documents = Array.from({ length: 1 + random.below(2) }, () => randomPatch(random, document, claims));
  return { do: "put", collection, documents, ifAbsent: elseSet !== null || random.chance(0.2), elseSet };
}

function randomPatch(random: Random, place: Place, claims: Claims): Assigned[] {
  const fields = FIELDS[place.name].filter(() => random.chance(0.4));
  if (fields.length === 0) fields.push(random.pick(FIELDS[place.name] as readonly (typeof fields)[number][]));
  return fields.map(({ name, type }): Assigned => {
    if (name === "code")
      return { field: name, value: { is: "const", value: random.chance(0.3) ? null : `c${random.below(12)}` } };
    if (name === "tags")
      return {
        field: name,
        value: place.row ? { is: "field", name: "tags", after: false } : { is: "const", value: null },
      };
    const own = claims.get(name === "owner" ? "sub" : name);
    if (typeof own === "string" && random.chance(0.6)) return { field: name, value: { is: "const", value: own } };
    if (name === "n" && place.row && random.chance(0.4)) {
      return {
        field: name,
        value: { is: "sum", op: "+", left: { is: "field", name: "n", after: false }, right: { is: "const", value: 1 } },
      };
    }
    const wanted = random.chance(0.03) ? "text" : kindOf(type);
    return { field: name, value: randomValue(random, place, wanted, 1) };
  });
}

/** What is written down, with constants as parameters where `params` is given. */
class Text {
  readonly params: (null | boolean | number | string)[] | null;
  readonly #random: Random | null;

  constructor(random: Random | null) {
    this.#random = random;
    this.params = random === null ? null : [];
  }

  value(value: Value): string {
    switch (value.is) {
      case "const":
        if (this.params !== null && this.#random?.chance(0.3) === true) return `$${this.params.push(value.value)}`;
        return JSON.stringify(value.value);
      case "claim":
        return `$jwt.${value.name}`;
      case "field":
        return `${value.after ? "new." : ""}${value.name}`;
      case "now":
        return value.plus === 0 ? "now()" : `(now() ${value.plus < 0 ? "-" : "+"} ${Math.abs(value.plus)})`;
      case "len":
        return `len(${this.value(value.of)})`;
      case "coalesce":
        return `coalesce(${value.of.map((each) => this.value(each)).join(", ")})`;
      case "sum":
        return `(${this.value(value.left)} ${value.op} ${this.value(value.right)})`;
    }
  }

  condition(condition: Condition): string {
    switch (condition.if) {
      case "and":
      case "or":
        return condition.of.map((part) => `${this.#inner(part)}`).join(` ${condition.if} `);
      case "not":
        return `not (${this.condition(condition.of)})`;
      case "null":
        return `${this.value(condition.of)} is ${condition.not ? "not " : ""}null`;
      case "has":
        return `${this.value(condition.left)} has ${this.value(condition.right)}`;
      case "in": {
        const [only] = condition.list;
        const bare = condition.list.length === 1 && only?.is === "claim";
        const list = condition.list.map((each) => this.value(each)).join(", ");
        return `${this.value(condition.left)} in ${bare ? list : `[${list}]`}`;
      }
      case "inner": {
        const where = condition.where === null ? "" : ` where ${this.condition(condition.where)}`;
        return `${this.value(condition.left)} in (get ${condition.collection} select ${condition.field}${where})`;
      }
      case "compare":
        return `${this.value(condition.left)} ${condition.op} ${this.value(condition.right)}`;
    }
  }

  #inner(part: Condition): string {
    const text = this.condition(part);
    return part.if === "and" || part.if === "or" || part.if === "not" ? `(${text})` : text;
  }

  document(entries: readonly Assigned[]): string {
    return `{${entries.map(({ field, value }) => `${field}: ${this.value(value)}`).join(", ")}}`;
  }

  clauses(asked: {
    readonly where: Condition | null;
    readonly order: readonly Ordering[];
    readonly limit: number | null;
    readonly require: number | null;
  }): string {
    let text = asked.where === null ? "" : ` where ${this.condition(asked.where)}`;
    if (asked.order.length > 0)
      text += ` order ${asked.order.map(({ by, desc }) => this.value(by) + (desc ? " desc" : "")).join(", ")}`;
    if (asked.limit !== null) text += ` limit ${asked.limit}`;
    return asked.require === null ? text : `${text} require ${asked.require}`;
  }
}

export function policyText({ rules, appendOnly }: JudgedPolicy): string {
  const lines = rules.map(({ collection, grants, fields, where, role }) => {
    const granted = fields === null ? grants.join(",") : `update(${fields.join(", ")})`;
    const filter = where === null ? "" : ` where ${new Text(null).condition(where)}`;
    return `${collection} ${granted}${filter}${role === null ? "" : ` for ${role}`}`;
  });
  return [...lines, ...appendOnly.map((name) => `${name} append-only`)].join("\n");
}

export interface Statement {
  readonly text: string;
  readonly params: readonly (null | boolean | number | string)[];
}

export function statementText(random: Random, asked: Asked): Statement {
  const out = new Text(random);
  let text: string;
  if (asked.do === "get") {
    const columns = asked.select?.map((value, at) => `${out.value(value)} as c${at}`).join(", ");
    const list = asked.sum === null ? columns : `sum(${asked.sum}) as s, count(*) as c`;
    text = `${asked.explain ? "explain " : ""}get ${asked.collection}${list === undefined ? "" : ` select ${list}`}${out.clauses(asked)}`;
    if (asked.offset !== null) text += ` offset ${asked.offset}`;
    if (asked.count) text += " count";
  } else if (asked.do === "put") {
    text = `put ${asked.collection} ${asked.documents.map((document) => out.document(document)).join(" ")}`;
    if (asked.ifAbsent) text += " if absent";
    if (asked.elseSet !== null) text += ` else set ${out.document(asked.elseSet)}`;
  } else {
    const patch = asked.do === "set" ? ` ${out.document(asked.patch)}` : "";
    text = `${asked.explain ? "explain " : ""}${asked.do} ${asked.collection}${patch}${out.clauses(asked)}${asked.returning ? " returning *" : ""}`;
  }
  return { text, params: out.params ?? [] };
}
