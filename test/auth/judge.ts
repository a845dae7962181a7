/**
 * What a token held to rules may do, judged a second time: rows in arrays, rules asked one by one of each row before and
 * after, no index, no plan, no order of evaluation but the one that is written. It knows the policy as data, not as text.
 */

/** `ms` is a time. */
export type Plain = null | boolean | number | string | readonly string[] | { readonly ms: number };

export interface JudgedRow {
  readonly id: number;
  readonly cells: ReadonlyMap<string, Plain>;
}

export type Value =
  | { readonly is: "field"; readonly name: string; readonly after: boolean }
  | { readonly is: "const"; readonly value: null | boolean | number | string }
  | { readonly is: "claim"; readonly name: string }
  | { readonly is: "now"; readonly plus: number }
  | { readonly is: "sum"; readonly op: "+" | "-" | "*" | "/"; readonly left: Value; readonly right: Value }
  | { readonly is: "len"; readonly of: Value }
  | { readonly is: "coalesce"; readonly of: readonly Value[] };

export type Condition =
  | {
      readonly if: "compare";
      readonly op: "=" | "!=" | "<" | "<=" | ">" | ">=";
      readonly left: Value;
      readonly right: Value;
    }
  | { readonly if: "and" | "or"; readonly of: readonly Condition[] }
  | { readonly if: "not"; readonly of: Condition }
  | { readonly if: "null"; readonly of: Value; readonly not: boolean }
  | { readonly if: "in"; readonly left: Value; readonly list: readonly Value[] }
  | { readonly if: "has"; readonly left: Value; readonly right: Value }
  | {
      readonly if: "inner";
      readonly left: Value;
      readonly collection: string;
      readonly field: string;
      readonly where: Condition | null;
    };

export type Grant = "read" | "insert" | "update" | "delete";

export interface JudgedRule {
  readonly collection: string;
  readonly grants: readonly Grant[];
  /** For `update(...)`; null: every field. */
  readonly fields: readonly string[] | null;
  readonly where: Condition | null;
  readonly role: string | null;
}

export interface JudgedPolicy {
  readonly rules: readonly JudgedRule[];
  readonly appendOnly: readonly string[];
}

export type Claims = ReadonlyMap<string, Plain>;

export interface Assigned {
  readonly field: string;
  readonly value: Value;
}

export interface Ordering {
  readonly by: Value;
  readonly desc: boolean;
}

export type Asked =
  | {
      readonly do: "get";
      readonly collection: string;
      readonly where: Condition | null;
      readonly order: readonly Ordering[];
      readonly limit: number | null;
      readonly offset: number | null;
      readonly require: number | null;
      /** Null: every field. */
      readonly select: readonly Value[] | null;
      readonly count: boolean;
      /** `select sum(f) as s, count(*) as c`. */
      readonly sum: string | null;
      readonly explain: boolean;
    }
  | {
      readonly do: "set" | "del";
      readonly collection: string;
      readonly patch: readonly Assigned[];
      readonly where: Condition | null;
      readonly order: readonly Ordering[];
      readonly limit: number | null;
      readonly require: number | null;
      readonly returning: boolean;
      readonly explain: boolean;
    }
  | {
      readonly do: "put";
      readonly collection: string;
      readonly documents: readonly (readonly Assigned[])[];
      readonly ifAbsent: boolean;
      readonly elseSet: readonly Assigned[] | null;
    };

export type Verdict =
  | { readonly refused: string }
  | { readonly affected: number }
  | { readonly count: number }
  | { readonly sum: Plain; readonly count: number }
  | { readonly rows: readonly (readonly Plain[])[] };

class Refused extends Error {
  readonly code: string;
  constructor(code: string) {
    super(code);
    this.code = code;
  }
}

function refuse(code: string): never {
  throw new Refused(code);
}

export interface JudgedTable {
  readonly fields: readonly { readonly name: string; readonly type: "text" | "int" | "timestamp" | "[text]" }[];
  readonly unique: string | null;
  rows: JudgedRow[];
  nextId: number;
}

interface Seen {
  readonly before: JudgedRow | null;
  readonly after: JudgedRow | null;
}

export class Judge {
  readonly tables: ReadonlyMap<string, JudgedTable>;
  readonly policy: JudgedPolicy;
  readonly claims: Claims;
  now: number;

  constructor(tables: ReadonlyMap<string, JudgedTable>, policy: JudgedPolicy, claims: Claims, now: number) {
    this.tables = tables;
    this.policy = policy;
    this.claims = claims;
    this.now = now;
  }

  /** No rule lets the token read, change or delete this row, as it is. */
  hides(collection: string, row: JudgedRow): boolean {
    const grants = this.#isAppendOnly(collection) ? (["read"] as const) : (["read", "update", "delete"] as const);
    for (const grant of grants) {
      for (const rule of this.#rules(collection, grant)) {
        if (grant === "update" ? this.#reaches(rule, row) : this.#holds(rule.where, row, null)) return false;
      }
    }
    return true;
  }

  /** What the statement is answered, and the tables as it leaves them; refused, they stay as they were. */
  run(asked: Asked): Verdict {
    const kept = new Map([...this.tables].map(([name, table]) => [name, { rows: table.rows, nextId: table.nextId }]));
    try {
      return this.#run(asked);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      for (const [name, { rows, nextId }] of kept) {
        const table = this.#table(name);
        table.rows = rows;
        table.nextId = nextId;
      }
      return { refused: error.code };
    }
  }

  #run(asked: Asked): Verdict {
    const { collection } = asked;
    let granted = false;
    for (const rule of this.policy.rules) if (this.#concerns(rule, collection)) granted = true;
    if (!granted) refuse("unknown_collection");
    if (asked.do === "get") return this.#get(asked);
    if (asked.do === "put") return this.#put(asked);
    return asked.do === "set" ? this.#set(asked) : this.#del(asked);
  }

  #get(asked: Asked & { readonly do: "get" }): Verdict {
    const { collection } = asked;
    if (this.#rules(collection, "read").length === 0) refuse("forbidden");
    this.#checkInner(asked.where);
    const mayRead = (row: JudgedRow): boolean => this.#anyHolds(collection, "read", row);
    const whole = asked.count || asked.sum !== null;
    const rows = this.#pick(
      collection,
      mayRead,
      asked.where,
      whole ? [] : asked.order,
      whole ? null : asked.limit,
      asked.offset ?? 0,
    );
    if (asked.count) return { count: rows.length };
    if (asked.sum !== null) {
      const { sum: field } = asked;
      let sum: number | null = null;
      for (const row of rows) {
        const cell = row.cells.get(field) ?? null;
        if (typeof cell === "number") sum = (sum ?? 0) + cell;
      }
      return { sum, count: rows.length };
    }
    if (asked.explain) return { count: rows.length };
    const { select } = asked;
    const shown = rows.map((row) =>
      select === null
        ? this.#all(row, collection)
        : select.map((value) => this.#value(value, { before: row, after: null })),
    );
    if (asked.require !== null && rows.length !== asked.require) refuse("unmet");
    return { rows: shown };
  }

  #set(asked: Asked & { readonly do: "set" | "del" }): Verdict {
    const { collection, patch } = asked;
    const table = this.#table(collection);
    if (this.#isAppendOnly(collection)) refuse("forbidden");
    const rules = this.#rules(collection, "update");
    if (rules.length === 0) refuse("forbidden");
    if (asked.returning && this.#rules(collection, "read").length === 0) refuse("forbidden");
    this.#checkInner(asked.where);
    const mayPick = (row: JudgedRow): boolean => rules.some((rule) => this.#reaches(rule, row));
    const read = this.#rules(collection, "read").flatMap((rule) => fieldsIn(rule.where));
    const isTold = (row: JudgedRow): boolean => {
      if (!asked.returning) return true;
      // What is read alike before and after is asked of the row as it is, whether or not it can be written.
      if (!patch.some(({ field }) => read.includes(field))) return this.#anyHolds(collection, "read", row);
      let written: JudgedRow;
      try {
        written = this.#patched(table, row, patch, null);
      } catch (error) {
        if (error instanceof Refused) return true;
        throw error;
      }
      return this.#anyHolds(collection, "read", written);
    };
    const picked = this.#pick(collection, mayPick, asked.where, asked.order, asked.limit, 0, isTold);
    const written: JudgedRow[] = [];
    for (const row of picked) {
      const after = this.#patched(table, row, patch, null);
      this.#checkWritten(rules, table, row, after);
      written.push(after);
    }
    const byId = new Map(written.map((row) => [row.id, row]));
    const rows = table.rows.map((row) => byId.get(row.id) ?? row);
    checkUnique(table, rows);
    if (asked.explain) return { count: picked.length };
    if (asked.require !== null && picked.length !== asked.require) refuse("unmet");
    table.rows = rows;
    return asked.returning ? { rows: written.map((row) => this.#all(row, collection)) } : { affected: written.length };
  }

  #del(asked: Asked & { readonly do: "set" | "del" }): Verdict {
    const { collection } = asked;
    const table = this.#table(collection);
    if (this.#isAppendOnly(collection) || this.#rules(collection, "delete").length === 0) refuse("forbidden");
    if (asked.returning && this.#rules(collection, "read").length === 0) refuse("forbidden");
    this.#checkInner(asked.where);
    const mayPick = (row: JudgedRow): boolean =>
      this.#anyHolds(collection, "delete", row) && (!asked.returning || this.#anyHolds(collection, "read", row));
    const picked = this.#pick(collection, mayPick, asked.where, asked.order, asked.limit, 0);
    if (asked.explain) return { count: picked.length };
    if (asked.require !== null && picked.length !== asked.require) refuse("unmet");
    const gone = new Set(picked.map((row) => row.id));
    table.rows = table.rows.filter((row) => !gone.has(row.id));
    return asked.returning ? { rows: picked.map((row) => this.#all(row, collection)) } : { affected: picked.length };
  }

  #put(asked: Asked & { readonly do: "put" }): Verdict {
    const { collection } = asked;
    const table = this.#table(collection);
    const inserts = this.#rules(collection, "insert");
    if (inserts.length === 0) refuse("forbidden");
    const updates = this.#rules(collection, "update");
    if (asked.elseSet !== null && (this.#isAppendOnly(collection) || updates.length === 0)) refuse("forbidden");
    let count = 0;
    const documents = asked.documents.map((document) => {
      const cells = new Map<string, Plain>();
      for (const { field, value } of document) {
        const cell = this.#value(value, { before: null, after: null });
        cells.set(field, field === "id" ? cell : fitted(table, field, cell));
      }
      return cells;
    });
    // Every document is let in before any is written: which of two refusals comes tells nothing of the rows there are.
    const admitted = documents.map((sent) => {
      if (sent.has("id")) refuse("forbidden");
      return this.#admitted(inserts, table, sent);
    });
    for (const document of admitted) {
      const { unique } = table;
      const code = unique === null ? null : (document.cells.get(unique) ?? null);
      const holder =
        code === null || unique === null ? undefined : table.rows.find((row) => row.cells.get(unique) === code);
      if (asked.ifAbsent && holder !== undefined) {
        if (asked.elseSet === null) continue;
        if (!updates.some((rule) => this.#reaches(rule, holder))) refuse("forbidden");
        const after = this.#patched(table, holder, asked.elseSet, document);
        this.#checkWritten(updates, table, holder, after);
        table.rows = table.rows.map((row) => (row.id === holder.id ? after : row));
      } else {
        table.rows = [...table.rows, { ...document, id: table.nextId }];
        table.nextId++;
      }
      count++;
    }
    checkUnique(table, table.rows);
    return { affected: count };
  }

  /** The document as the first rule that lets it in fills it. */
  #admitted(rules: readonly JudgedRule[], table: JudgedTable, sent: ReadonlyMap<string, Plain>): JudgedRow {
    for (const rule of rules) {
      const cells = new Map(sent);
      for (const part of partsOf(rule.where)) {
        if (part.if !== "compare" || part.op !== "=") continue;
        for (const [side, other] of [
          [part.left, part.right],
          [part.right, part.left],
        ] as const) {
          if (side.is !== "field" || (other.is !== "claim" && other.is !== "const")) continue;
          if (side.name !== "id" && !cells.has(side.name))
            cells.set(side.name, pinned(table, side.name, this.#value(other, { before: null, after: null })));
          break;
        }
      }
      const row = { id: Number.NaN, cells };
      if (this.#holds(rule.where, row, null)) return row;
    }
    return refuse("forbidden");
  }

  #checkWritten(rules: readonly JudgedRule[], table: JudgedTable, before: JudgedRow, after: JudgedRow): void {
    const changed = table.fields
      .map((field) => field.name)
      .filter((name) => !same(before.cells.get(name) ?? null, after.cells.get(name) ?? null));
    for (const rule of rules) {
      if (rule.fields !== null && changed.some((name) => !(rule.fields ?? []).includes(name))) continue;
      if (
        readsAfter(rule.where)
          ? this.#holds(rule.where, before, after)
          : this.#holds(rule.where, before, null) && this.#holds(rule.where, after, null)
      )
        return;
    }
    refuse("forbidden");
  }

  /**
   * Rows in order. One the filter is refused over counts as one that matches, and refuses if it is on the page; a part of
   * the filter that does not hold goes before one that is refused.
   */
  #pick(
    collection: string,
    may: (row: JudgedRow) => boolean,
    where: Condition | null,
    order: readonly Ordering[],
    limit: number | null,
    offset: number,
    also: (row: JudgedRow) => boolean = () => true,
  ): JudgedRow[] {
    if (limit === 0) return [];
    const found: { row: JudgedRow; error: Refused | null; keys: Plain[] }[] = [];
    for (const row of this.#table(collection).rows.toSorted((a, b) => a.id - b.id)) {
      if (!may(row)) continue;
      let error: Refused | null = null;
      let holds = true;
      for (const part of partsOf(where)) {
        try {
          if (!this.#truth(part, { before: row, after: null })) holds = false;
        } catch (refused) {
          if (!(refused instanceof Refused)) throw refused;
          error ??= refused;
        }
      }
      if (holds && also(row)) found.push({ row, error, keys: [] });
    }
    for (const each of found) each.keys = order.map(({ by }) => this.#value(by, { before: each.row, after: null }));
    found.sort((a, b) => {
      for (const [at, { desc }] of order.entries()) {
        const way = inOrder(a.keys[at] ?? null, b.keys[at] ?? null);
        if (way !== 0) return desc ? -way : way;
      }
      return a.row.id - b.row.id;
    });
    const page = found.slice(0, limit === null ? undefined : limit + offset);
    for (const { error } of page) if (error !== null) throw error;
    return page.slice(offset).map(({ row }) => row);
  }

  #patched(table: JudgedTable, row: JudgedRow, patch: readonly Assigned[], incoming: JudgedRow | null): JudgedRow {
    const cells = new Map(row.cells);
    for (const { field, value } of patch) {
      cells.set(field, fitted(table, field, this.#value(value, { before: row, after: incoming })));
    }
    return { id: row.id, cells };
  }

  /** Everything an inner read needs is looked up before a row is asked. */
  #checkInner(where: Condition | null): void {
    if (where === null) return;
    if (where.if === "and" || where.if === "or") for (const part of where.of) this.#checkInner(part);
    if (where.if === "not") this.#checkInner(where.of);
    if (where.if !== "inner") return;
    const { collection } = where;
    if (!this.policy.rules.some((rule) => this.#concerns(rule, collection))) refuse("unknown_collection");
    if (this.#rules(collection, "read").length === 0) refuse("forbidden");
    this.#checkInner(where.where);
  }

  #reaches(rule: JudgedRule, row: JudgedRow): boolean {
    for (const part of partsOf(rule.where)) {
      if (!readsAfter(part) && !this.#holds(part, row, null)) return false;
    }
    return true;
  }

  #anyHolds(collection: string, grant: Grant, row: JudgedRow): boolean {
    return this.#rules(collection, grant).some((rule) => this.#holds(rule.where, row, null));
  }

  /** A rule that cannot be worked out does not hold. */
  #holds(where: Condition | null, before: JudgedRow, after: JudgedRow | null): boolean {
    if (where === null) return true;
    try {
      return this.#truth(where, { before, after });
    } catch (error) {
      if (error instanceof Refused) return false;
      throw error;
    }
  }

  #rules(collection: string, grant: Grant): JudgedRule[] {
    return this.policy.rules.filter((rule) => this.#concerns(rule, collection) && rule.grants.includes(grant));
  }

  #concerns(rule: JudgedRule, collection: string): boolean {
    if (rule.collection !== collection && rule.collection !== "*") return false;
    const roles = this.claims.get("role") ?? null;
    const isTheirs = rule.role === null || roles === rule.role || (Array.isArray(roles) && roles.includes(rule.role));
    if (!isTheirs || claimsIn(rule.where).some((name) => (this.claims.get(name) ?? null) === null)) return false;
    const names = this.#table(collection).fields.map((field) => field.name);
    return fieldsIn(rule.where).every((name) => name === "id" || names.includes(name));
  }

  #isAppendOnly(collection: string): boolean {
    return this.policy.appendOnly.includes(collection);
  }

  #table(name: string): JudgedTable {
    const table = this.tables.get(name);
    if (table === undefined) throw new Error(`the judge has no ${name}`);
    return table;
  }

  #all(row: JudgedRow, collection: string): Plain[] {
    return [row.id, ...this.#table(collection).fields.map((field) => row.cells.get(field.name) ?? null)];
  }

  #truth(condition: Condition, seen: Seen): boolean {
    switch (condition.if) {
      case "and":
        for (const part of condition.of) if (!this.#truth(part, seen)) return false;
        return true;
      case "or":
        for (const part of condition.of) if (this.#truth(part, seen)) return true;
        return false;
      case "not":
        return !this.#truth(condition.of, seen);
      case "null":
        return (this.#value(condition.of, seen) === null) !== condition.not;
      case "has": {
        const list = this.#value(condition.left, seen);
        const member = this.#value(condition.right, seen);
        return Array.isArray(list) && list.some((item) => item === member);
      }
      case "in": {
        // All of the list is worked out before it is looked into.
        const members: Plain[] = [];
        for (const item of condition.list) {
          const value = this.#value(item, seen);
          if (item.is === "claim" && Array.isArray(value)) for (const member of value) members.push(member);
          else members.push(value);
        }
        const left = this.#value(condition.left, seen);
        return members.some((member) => equal(left, member));
      }
      case "inner": {
        const { collection, field, where } = condition;
        const mayRead = (row: JudgedRow): boolean => this.#anyHolds(collection, "read", row);
        const rows = this.#pick(collection, mayRead, where, [], null, 0);
        const left = this.#value(condition.left, seen);
        return rows.some((row) => (row.cells.get(field) ?? null) !== null && equal(left, row.cells.get(field) ?? null));
      }
      case "compare": {
        const left = this.#value(condition.left, seen);
        const right = this.#value(condition.right, seen);
        if (condition.op === "=") return equal(left, right);
        if (condition.op === "!=") return !equal(left, right);
        if (left === null || right === null) return false;
        const way = compared(left, right);
        if (way === undefined) return false;
        if (condition.op === "<") return way < 0;
        if (condition.op === "<=") return way <= 0;
        return condition.op === ">" ? way > 0 : way >= 0;
      }
    }
  }

  #value(value: Value, seen: Seen): Plain {
    switch (value.is) {
      case "const":
        return value.value;
      case "claim":
        return this.claims.get(value.name) ?? null;
      case "now":
        return { ms: this.now + value.plus };
      case "field": {
        const row = value.after ? seen.after : seen.before;
        if (row === null) throw new Error("no row to read");
        return value.name === "id" ? (Number.isNaN(row.id) ? null : row.id) : (row.cells.get(value.name) ?? null);
      }
      case "coalesce":
        for (const each of value.of) {
          const one = this.#value(each, seen);
          if (one !== null) return one;
        }
        return null;
      case "len": {
        const of = this.#value(value.of, seen);
        if (of === null) return null;
        if (typeof of === "string" || Array.isArray(of)) return [...of].length;
        return refuse("bad_value");
      }
      case "sum":
        return summed(value.op, this.#value(value.left, seen), this.#value(value.right, seen));
    }
  }
}

function summed(op: "+" | "-" | "*" | "/", left: Plain, right: Plain): Plain {
  if (left === null || right === null) return null;
  if (typeof left === "number" && typeof right === "number") {
    if (op === "+") return left + right;
    if (op === "-") return left - right;
    if (op === "*") return left * right;
    return right === 0 ? refuse("division_by_zero") : Math.trunc(left / right) + 0;
  }
  if (op === "+" && typeof left === "string" && typeof right === "string") return left + right;
  const leftMs = timeOf(left);
  const rightMs = timeOf(right);
  if (op === "-" && leftMs !== undefined && rightMs !== undefined) return leftMs - rightMs;
  if ((op === "+" || op === "-") && leftMs !== undefined && typeof right === "number") {
    return { ms: op === "+" ? leftMs + right : leftMs - right };
  }
  if (op === "+" && typeof left === "number" && rightMs !== undefined) return { ms: left + rightMs };
  return refuse("bad_value");
}

function timeOf(value: Plain): number | undefined {
  return typeof value === "object" && value !== null && "ms" in value ? value.ms : undefined;
}

/** By kind; undefined where the two do not compare. */
function compared(a: Plain, b: Plain): number | undefined {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a === "string" && typeof b === "string") return a < b ? -1 : a > b ? 1 : 0;
  if (typeof a === "boolean" && typeof b === "boolean") return Number(a) - Number(b);
  if (Array.isArray(a) && Array.isArray(b)) return inOrder(a, b);
  const x = timeOf(a) ?? (timeOf(b) !== undefined && typeof a === "number" ? a : undefined);
  const y = timeOf(b) ?? (timeOf(a) !== undefined && typeof b === "number" ? b : undefined);
  return x === undefined || y === undefined ? undefined : x - y;
}

function equal(a: Plain, b: Plain): boolean {
  if (a === null || b === null) return a === b;
  return compared(a, b) === 0;
}

function same(a: Plain, b: Plain): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

const RANKS = ["null", "boolean", "number", "string", "list", "time"];

function rankOf(value: Plain): number {
  if (value === null) return 0;
  if (Array.isArray(value)) return RANKS.indexOf("list");
  return timeOf(value) === undefined ? RANKS.indexOf(typeof value) : RANKS.indexOf("time");
}

/** The order of an answer: null first, kind by kind. */
function inOrder(a: Plain, b: Plain): number {
  const ranks = rankOf(a) - rankOf(b);
  if (ranks !== 0 || a === null) return ranks;
  if (Array.isArray(a) && Array.isArray(b)) {
    for (let at = 0; at < Math.min(a.length, b.length); at++) {
      const way = compared(a[at] as string, b[at] as string) ?? 0;
      if (way !== 0) return way;
    }
    return a.length - b.length;
  }
  return compared(a, b) ?? 0;
}

function typeOf(table: JudgedTable, field: string): string {
  return table.fields.find((each) => each.name === field)?.type ?? refuse("unknown_field");
}

function fitted(table: JudgedTable, field: string, value: Plain): Plain {
  if (value === null) return null;
  switch (typeOf(table, field)) {
    case "text":
      return typeof value === "string" ? value : refuse("bad_value");
    case "int":
      return typeof value === "number" ? value : refuse("bad_value");
    case "timestamp":
      if (typeof value === "number") return { ms: value };
      return timeOf(value) === undefined ? refuse("bad_value") : value;
    default:
      return Array.isArray(value) ? value : refuse("bad_value");
  }
}

function pinned(table: JudgedTable, field: string, value: Plain): Plain {
  try {
    return fitted(table, field, value);
  } catch (error) {
    if (error instanceof Refused) return null;
    throw error;
  }
}

function checkUnique(table: JudgedTable, rows: readonly JudgedRow[]): void {
  const { unique } = table;
  if (unique === null) return;
  const held = new Set<Plain>();
  for (const row of rows) {
    const cell = row.cells.get(unique) ?? null;
    if (cell === null) continue;
    if (held.has(cell)) refuse("unique_taken");
    held.add(cell);
  }
}

/** The parts that all must hold, those in parentheses among them. */
function partsOf(condition: Condition | null): readonly Condition[] {
  if (condition === null) return [];
  return condition.if === "and" ? condition.of.flatMap(partsOf) : [condition];
}

/** Every value in a condition, inner reads aside. */
function valuesIn(condition: Condition | null): Value[] {
  if (condition === null) return [];
  switch (condition.if) {
    case "and":
    case "or":
      return condition.of.flatMap(valuesIn);
    case "not":
      return valuesIn(condition.of);
    case "null":
      return leaves(condition.of);
    case "in":
      return [condition.left, ...condition.list].flatMap(leaves);
    case "inner":
      return leaves(condition.left);
    default:
      return [...leaves(condition.left), ...leaves(condition.right)];
  }
}

function leaves(value: Value): Value[] {
  if (value.is === "sum") return [...leaves(value.left), ...leaves(value.right)];
  if (value.is === "len") return leaves(value.of);
  return value.is === "coalesce" ? value.of.flatMap(leaves) : [value];
}

export function readsAfter(condition: Condition | null): boolean {
  return valuesIn(condition).some((value) => value.is === "field" && value.after);
}

function claimsIn(condition: Condition | null): string[] {
  return valuesIn(condition).flatMap((value) => (value.is === "claim" ? [value.name] : []));
}

function fieldsIn(condition: Condition | null): string[] {
  return valuesIn(condition).flatMap((value) => (value.is === "field" ? [value.name] : []));
}
