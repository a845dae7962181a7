/**
 * Collections and statements as plain as can be, the judge of the engine: rows in a Map, every read a pass over all of them,
 * no index anywhere (declared ones are remembered, to be described). It says what a statement has to answer, and which
 * refusals are right: a plan may pass a row's error by, so there can be both.
 */

import { distance } from "../../src/geo/distance.ts";
import type {
  Assignment,
  DelStatement,
  Expr,
  FieldClause,
  GetStatement,
  IndexClause,
  OrderKey,
  PutStatement,
  Returning,
  SelectItem,
  SetStatement,
  Statement,
} from "../../src/lang/ast.ts";
import type { FieldType } from "../../src/value/value.ts";
import { evaluate, holds, isExpired, keyOf, pointOf, type Row, type Scope } from "./evaluate.ts";
import { asJson, fit } from "./field.ts";
import { groupKeys, hasAggregate, Inspector, mentionsExpired, type Place, placeOf } from "./inspect.ts";
import { depthOf, float, int, jsonOf, NULL, order, type Plain, Wrong } from "./plain.ts";

export interface Field {
  readonly name: string;
  readonly type: FieldType;
  readonly required: boolean;
}

export interface Index {
  readonly field: string;
  readonly keys: readonly string[];
  readonly clause: IndexClause;
}

/** How long the sweeper leaves a row past its time. */
const SWEEP_GRACE_MS = 60_000;
const ID_LIMIT = BigInt(Number.MAX_SAFE_INTEGER);

export class Collection {
  name: string;
  fields: readonly Field[];
  indexes: readonly Index[] = [];
  rows = new Map<number, Row>();
  nextId = 1;

  constructor(name: string, fields: readonly Field[]) {
    this.name = name;
    this.fields = fields;
  }

  copy(): Collection {
    const copy = new Collection(this.name, this.fields);
    copy.indexes = this.indexes;
    copy.rows = new Map(this.rows);
    copy.nextId = this.nextId;
    return copy;
  }

  field(name: string): Field | undefined {
    return this.fields.find((field) => field.name === name);
  }

  get ttl(): { readonly field: string; readonly ms: number } | null {
    const index = this.indexes.find((each) => each.clause.kind === "ttl");
    return index === undefined ? null : { field: index.field, ms: index.clause.ttlMs };
  }

  /** Names of its json fields. */
  get json(): ReadonlySet<string> {
    return new Set(this.fields.filter((field) => field.type.kind === "json").map((field) => field.name));
  }

  /** By ascending id. */
  all(): Row[] {
    return [...this.rows.keys()].sort((a, b) => a - b).map((id) => this.rows.get(id) as Row);
  }
}

/** What is right for a statement: to be refused with one of `statuses`, or to answer `body`. */
export interface Verdict {
  readonly statuses: ReadonlySet<number>;
  /** Null: it has to be refused. */
  readonly body: string | null;
  /** What it does, once the server has answered it. */
  readonly commit: () => void;
}

/** What holds for a row: true, false, or nothing, as it does not work out. */
type Held = boolean | Wrong;

const nothing = (): void => {};

export class Database {
  collections = new Map<string, Collection>();

  copy(): Database {
    const copy = new Database();
    for (const [name, collection] of this.collections) copy.collections.set(name, collection.copy());
    return copy;
  }

  /** Rows long past their time go. */
  sweep(now: number): void {
    for (const collection of this.collections.values()) {
      for (const [id, row] of collection.rows) {
        if (isExpired(row, collection.ttl, now - SWEEP_GRACE_MS)) collection.rows.delete(id);
      }
    }
  }

  judge(statement: Statement, params: readonly Plain[], now: number): Verdict {
    const inspector = new Inspector(this, params.length);
    const judge = new Judge(this, inspector, params, now);
    try {
      const verdict = judge.statement(statement);
      if (!judge.innerMayFail) return verdict;
      return { ...verdict, statuses: new Set([...verdict.statuses, 400]) };
    } catch (error) {
      if (!(error instanceof Wrong)) throw error;
      return refused(error.status);
    }
  }
}

function refused(...statuses: number[]): Verdict {
  return { statuses: new Set(statuses), body: null, commit: nothing };
}

function answered(body: string, commit: () => void = nothing, statuses: Iterable<number> = []): Verdict {
  return { statuses: new Set(statuses), body, commit };
}

/** A page of rows, and what could have gone wrong on the way to it. */
interface Page {
  readonly rows: readonly Row[];
  /** A server that reads every row meets an error. */
  readonly mayFail: boolean;
  /** So does every server. */
  readonly mustFail: boolean;
}

interface Found {
  readonly count: number;
  /** A scope each row or group. */
  readonly scopes: readonly Scope[];
  readonly mayFail: boolean;
  readonly mustFail: boolean;
  readonly metres: ((row: Row) => number) | null;
}

class Judge {
  readonly #database: Database;
  readonly #inspector: Inspector;
  readonly #params: readonly Plain[];
  readonly #now: number;
  /** An inner read meets an error that a plan of it may pass by. */
  innerMayFail = false;
  readonly #scopes = new Map<Collection, Scope>();
  readonly #inner = new Map<GetStatement, readonly Plain[] | Wrong>();

  constructor(database: Database, inspector: Inspector, params: readonly Plain[], now: number) {
    this.#database = database;
    this.#inspector = inspector;
    this.#params = params;
    this.#now = now;
  }

  statement(statement: Statement): Verdict {
    switch (statement.kind) {
      case "get":
        return this.#get(statement);
      case "put":
        return this.#put(statement);
      case "set":
        return this.#set(statement);
      case "del":
        return this.#del(statement);
      case "explain":
        return this.#explain(statement.of);
      case "compact":
        if (statement.collection !== null) this.#collection(statement.collection);
        return answered(messageOf(statement.collection === null ? "compact" : `compact ${statement.collection}`));
      case "collections": {
        const all = [...this.#database.collections.values()].map(describe);
        return answered(`[${all.join(",")}]`);
      }
      case "describe":
        return answered(`[${describe(this.#collection(statement.collection))}]`);
      default:
        return this.#define(statement);
    }
  }

  #collection(name: string): Collection {
    const collection = this.#database.collections.get(name);
    if (collection === undefined) throw new Wrong(404, `no collection ${name}`);
    return collection;
  }

  /** What is the same for every row of a collection while a statement runs is made once. */
  #scope(collection: Collection, row: Row, more: Partial<Scope> = {}): Scope {
    let scope = this.#scopes.get(collection);
    if (scope === undefined) {
      scope = {
        row,
        incoming: null,
        json: collection.json,
        now: this.#now,
        params: this.#params,
        ttl: collection.ttl,
        inner: (get) => this.#innerValues(get),
        group: null,
        columns: null,
      };
      this.#scopes.set(collection, scope);
    }
    return { ...scope, row, ...more };
  }

  #isDead(collection: Collection, row: Row): boolean {
    return isExpired(row, collection.ttl, this.#now);
  }

  // ------------------------------------------------------------------------------------------------------------- rows

  /** Rows a filter is asked about: those not past their time, unless it asks for them itself. */
  #visible(collection: Collection, where: Expr | null): Row[] {
    if (where !== null && mentionsExpired(where)) return collection.all();
    const { ttl } = collection;
    return collection.all().filter((row) => !isExpired(row, ttl, this.#now));
  }

  /** Each part of a filter joined by `and` at the top, in its order; a part that says no settles it for a plan. */
  #held(collection: Collection, where: Expr | null, row: Row): { inOrder: Held; atBest: Held } {
    if (where === null) return { inOrder: true, atBest: true };
    const parts = where.kind === "and" ? where.of : [where];
    let inOrder: Held | undefined;
    let atBest: Held = true;
    for (const part of parts) {
      const said = attempt(() => holds(evaluate(part, this.#scope(collection, row))));
      if (said !== true) inOrder ??= said;
      if (said === false) atBest = false;
      else if (said !== true && atBest === true) atBest = said;
    }
    return { inOrder: inOrder ?? true, atBest };
  }

  /** The rows of a filter, its order, and the page it is cut to. */
  #page(collection: Collection, where: Expr | null, keys: readonly OrderKey[], limit: number, offset: number): Page {
    return this.#cut(
      collection,
      this.#visible(collection, where),
      where,
      this.#ranker(collection, keys),
      limit,
      offset,
    );
  }

  #cut(
    collection: Collection,
    rows: readonly Row[],
    where: Expr | null,
    rank: (row: Row) => readonly { readonly key: Plain; readonly desc: boolean }[],
    limit: number,
    offset: number,
  ): Page {
    const placed: { row: Row; keys: ReturnType<typeof rank>; fails: boolean }[] = [];
    let mayFail = false;
    let mustFail = false;
    for (const row of rows) {
      const { inOrder, atBest } = this.#held(collection, where, row);
      if (inOrder instanceof Wrong) mayFail = true;
      if (atBest === false) continue;
      const keys = attempt(() => rank(row));
      if (keys instanceof Wrong) {
        mayFail = true;
        mustFail = true;
      } else placed.push({ row, keys, fails: atBest instanceof Wrong });
    }
    // Rows come by ascending id, and the sort is stable.
    placed.sort((a, b) => {
      for (const [at, { key, desc }] of a.keys.entries()) {
        const found = order(key, b.keys[at]!.key);
        if (found !== 0) return desc ? -found : found;
      }
      return 0;
    });
    const front = placed.slice(0, limit + offset);
    if (limit === 0) return { rows: [], mayFail, mustFail: false };
    if (front.some((entry) => entry.fails)) mustFail = true;
    return { rows: front.slice(offset).map((entry) => entry.row), mayFail, mustFail };
  }

  #ranker(collection: Collection, keys: readonly OrderKey[]) {
    return (row: Row) => {
      const scope = this.#scope(collection, row);
      return keys.map(({ expr, desc }) => ({ key: evaluate(expr, scope), desc }));
    };
  }

  #count(expr: GetStatement["limit"], otherwise: number): number {
    if (expr === null) return otherwise;
    const value = evaluate(expr, this.#scope(new Collection("", []), new Map()));
    if (value.kind !== "int" || value.n < 0) throw new Wrong(400, "no count of rows");
    return Number(value.n);
  }

  // ------------------------------------------------------------------------------------------------------------- reads

  #get(get: GetStatement): Verdict {
    this.#inspector.get(get, 0);
    if (this.#inspector.statuses.size > 0) return refused(...this.#inspector.statuses);
    const { texts, mayFail, mustFail } = this.#answer(get);
    const statuses = new Set<number>(mayFail ? [400] : []);
    if (mustFail) return refused(400);
    if (get.require !== null && texts.length !== get.require) return refused(...statuses, 412);
    return answered(`[${texts.join(",")}]`, nothing, statuses);
  }

  #isAggregating(get: GetStatement): boolean {
    return get.group.length > 0 || get.select.some((item) => item.kind === "item" && hasAggregate(item.expr));
  }

  #answer(get: GetStatement): { texts: string[]; mayFail: boolean; mustFail: boolean } {
    const { count, scopes, mayFail, mustFail, metres } = this.#found(get);
    if (mustFail) return { texts: [], mayFail, mustFail };
    if (get.count) return { texts: [`{"count":${count}}`], mayFail, mustFail };
    const collection = this.#collection(get.collection);
    const texts = scopes.map((scope) => {
      const columns = this.#columns(collection, get.select, scope);
      if (metres === null) return columns;
      return `${columns.slice(0, -1)},"_score":${jsonOf(float(Math.fround(metres(scope.row))))}}`;
    });
    return { texts, mayFail, mustFail };
  }

  /** The rows or groups of a read, none of them shown. */
  #found(get: GetStatement): Found {
    const collection = this.#collection(get.collection);
    if (this.#isAggregating(get)) {
      const { groups, mayFail, mustFail } = this.#groups(collection, get);
      return { count: groups.length, scopes: groups, mayFail, mustFail, metres: null };
    }
    const limit = this.#count(get.limit, Infinity);
    const offset = this.#count(get.offset, 0);
    const metres = get.near === null ? null : this.#metres(get, get.near, limit + offset);
    const page =
      metres === null
        ? this.#page(collection, get.where, get.order, limit, offset)
        : this.#nearest(collection, get, metres, limit, offset);
    const scopes = page.rows.map((row) => this.#scope(collection, row));
    return { count: scopes.length, scopes, mayFail: page.mayFail, mustFail: page.mustFail, metres };
  }

  /** How far a row is from a read's `near`. */
  #metres(get: GetStatement, near: NonNullable<GetStatement["near"]>, most: number): (row: Row) => number {
    const from = pointOf(evaluate(near.point, this.#scope(new Collection("", []), new Map())));
    if (from === null) throw new Wrong(400, "near null");
    if (get.limit !== null && most > 10_000) throw new Wrong(400, "near so many");
    return (row) => {
      const at = row.get(near.field) as Plain & { readonly kind: "point" };
      return distance(at.lon, at.lat, from.lon, from.lat);
    };
  }

  #nearest(
    collection: Collection,
    get: GetStatement,
    metres: (row: Row) => number,
    limit: number,
    offset: number,
  ): Page {
    const field = get.near?.field ?? "";
    const rows = this.#visible(collection, get.where).filter((row) => row.get(field)?.kind === "point");
    const rank = (row: Row) => [{ key: float(metres(row)), desc: false }];
    return this.#cut(collection, rows, get.where, rank, limit, offset);
  }

  /** One row of an answer. A name said twice stands once. */
  #columns(collection: Collection, items: readonly SelectItem[], scope: Scope): string {
    const columns = new Map<string, string>();
    const every = (): void => {
      for (const name of ["id", ...collection.fields.map((field) => field.name)]) {
        if (!columns.has(name)) columns.set(name, jsonOf(scope.row.get(name) as Plain));
      }
    };
    if (items.length === 0) every();
    for (const item of items) {
      if (item.kind === "star") every();
      else {
        const name = item.as ?? item.text;
        if (!columns.has(name)) columns.set(name, jsonOf(evaluate(item.expr, scope)));
      }
    }
    return `{${[...columns].map(([name, shown]) => `${JSON.stringify(name)}:${shown}`).join(",")}}`;
  }

  #groups(
    collection: Collection,
    get: GetStatement,
  ): { groups: readonly Scope[]; mayFail: boolean; mustFail: boolean } {
    const limit = this.#count(get.limit, Infinity);
    const offset = this.#count(get.offset, 0);
    const page = this.#page(collection, get.where, [], Infinity, 0);
    if (page.mustFail) return { groups: [], mayFail: true, mustFail: true };
    const keys = groupKeys(get, collection);
    const groups = new Map<string, { rows: Row[]; keys: readonly Plain[] }>();
    for (const row of page.rows) {
      const values = keys.map((key) => evaluate(key, this.#scope(collection, row)));
      const name = values.map(keyOf).join(" ");
      const group = groups.get(name) ?? { rows: [], keys: values };
      group.rows.push(row);
      groups.set(name, group);
    }
    if (get.group.length === 0 && groups.size === 0) groups.set("", { rows: [], keys: [] });
    const columns = new Map(
      get.select.flatMap((item) => (item.kind === "item" ? [[item.as ?? item.text, item.expr] as const] : [])),
    );
    const made = [...groups.values()].map((group) => {
      const row = group.rows[0] ?? new Map();
      const plain = this.#scope(collection, row, { group: group.rows });
      const named = { ...plain, columns };
      // Every aggregate asked for is worked out for every group.
      const sorts = get.order.map((key) => ({ key: key.expr, desc: key.desc }));
      for (const item of get.select) if (item.kind === "item") this.#aggregates(item.expr, plain);
      if (get.having !== null) this.#aggregates(get.having, plain);
      for (const { key } of sorts) this.#aggregates(key, plain);
      return { plain, named, keys: group.keys, sorts };
    });
    const kept = made
      .filter(({ named }) => get.having === null || holds(evaluate(get.having, named)))
      .map((group) => ({
        ...group,
        by: group.sorts.map(({ key, desc }) => ({ value: evaluate(key, group.named), desc })),
      }));
    kept.sort((a, b) => {
      for (const [at, { value, desc }] of a.by.entries()) {
        const found = order(value, b.by[at]!.value);
        if (found !== 0) return desc ? -found : found;
      }
      for (const [at, key] of a.keys.entries()) {
        const found = order(key, b.keys[at]!);
        if (found !== 0) return found;
      }
      return 0;
    });
    const groupsOut = kept.slice(offset, offset + limit).map((group) => group.plain);
    return { groups: groupsOut, mayFail: page.mayFail, mustFail: false };
  }

  #aggregates(expr: Expr, scope: Scope): void {
    for (const found of aggregatesIn(expr)) evaluate(found, scope);
  }

  /** The values of an inner read's one column, once each, without nulls. */
  #innerValues(get: GetStatement): readonly Plain[] {
    let known = this.#inner.get(get);
    if (known === undefined) {
      const found = attempt(() => this.#innerColumn(get));
      known = found instanceof Wrong ? found : found.filter((value) => value.kind !== "null");
      this.#inner.set(get, known);
    }
    if (known instanceof Wrong) throw known;
    return known;
  }

  #innerColumn(get: GetStatement): Plain[] {
    const collection = this.#collection(get.collection);
    const [item] = get.select as readonly [SelectItem & { kind: "item" }];
    if (get.group.length > 0 || hasAggregate(item.expr)) {
      const { groups, mayFail, mustFail } = this.#groups(collection, get);
      if (mustFail) throw new Wrong(400, "an inner read");
      if (mayFail) this.innerMayFail = true;
      return groups.map((scope) => evaluate(item.expr, scope));
    }
    if (get.near !== null) throw new Error("the tests make no near inside");
    const limit = this.#count(get.limit, Infinity);
    const page = this.#page(collection, get.where, get.order, limit, this.#count(get.offset, 0));
    if (page.mustFail) throw new Wrong(400, "an inner read");
    if (page.mayFail) this.innerMayFail = true;
    return page.rows.map((row) => evaluate(item.expr, this.#scope(collection, row)));
  }

  /** Only the count it ends with is told here: how rows were found is the plan's to say. */
  #explain(of: GetStatement | SetStatement | DelStatement): Verdict {
    if (of.kind !== "get") {
      const verdict = this.statement({ ...of, require: null });
      if (verdict.body === null) return verdict;
      const isCount = verdict.body.startsWith('{"affected"');
      const count = isCount ? /\d+/.exec(verdict.body)?.[0] : JSON.parse(verdict.body).length;
      return answered(`rows: ${count}`, nothing, verdict.statuses);
    }
    this.#inspector.get(of, 0);
    if (this.#inspector.statuses.size > 0) return refused(...this.#inspector.statuses);
    const { count, mayFail, mustFail } = this.#found(of);
    if (mustFail) return refused(400);
    return answered(`${of.count ? "count" : "rows"}: ${count}`, nothing, mayFail ? [400] : []);
  }

  // ------------------------------------------------------------------------------------------------------------ writes

  #pick(collection: Collection, statement: SetStatement | DelStatement): Page {
    const place = placeOf(collection);
    if (statement.where !== null) this.#inspector.expr(statement.where, place);
    for (const key of statement.order) this.#inspector.expr(key.expr, place);
    if (statement.limit !== null) this.#inspector.expr(statement.limit, place);
    if (statement.returning?.kind === "list") this.#inspector.list(statement.returning.items, place);
    if (this.#inspector.statuses.size > 0) return { rows: [], mayFail: true, mustFail: true };
    const limit = this.#count(statement.limit, Infinity);
    return this.#page(collection, statement.where, statement.order, limit, 0);
  }

  #set(statement: SetStatement): Verdict {
    const collection = this.#collection(statement.collection);
    this.#patchNames(collection, statement.patch, placeOf(collection));
    const page = this.#pick(collection, statement);
    if (this.#inspector.statuses.size > 0) return refused(...this.#inspector.statuses);
    if (page.mustFail) return refused(400);
    const statuses = new Set<number>(page.mayFail ? [400] : []);
    const written = page.rows.map((row) => this.#patched(collection, row, statement.patch, null));
    const taken = this.#clash(collection, written);
    const body = attempt(() => this.#written(collection, statement.returning, written));
    if (taken.clash) statuses.add(409);
    if (body instanceof Wrong) statuses.add(400);
    if (taken.clash || body instanceof Wrong) return refused(...statuses);
    if (statement.require !== null && written.length !== statement.require) return refused(...statuses, 412);
    return answered(body, () => this.#write(collection, written, taken.gone), statuses);
  }

  #del(statement: DelStatement): Verdict {
    const collection = this.#collection(statement.collection);
    const page = this.#pick(collection, statement);
    if (this.#inspector.statuses.size > 0) return refused(...this.#inspector.statuses);
    if (page.mustFail) return refused(400);
    const statuses = new Set<number>(page.mayFail ? [400] : []);
    const body = this.#written(collection, statement.returning, page.rows);
    if (statement.require !== null && page.rows.length !== statement.require) return refused(...statuses, 412);
    const commit = (): void => {
      for (const row of page.rows) collection.rows.delete(idOf(row));
    };
    return answered(body, commit, statuses);
  }

  #written(collection: Collection, returning: Returning | null, rows: readonly Row[]): string {
    if (returning === null) return `{"affected":${rows.length}}`;
    const items = returning.kind === "all" ? [] : returning.items;
    return `[${rows.map((row) => this.#columns(collection, items, this.#scope(collection, row))).join(",")}]`;
  }

  #write(collection: Collection, written: readonly Row[], gone: readonly number[]): void {
    for (const id of gone) collection.rows.delete(id);
    for (const row of written) {
      const id = idOf(row);
      collection.rows.set(id, row);
      if (id >= collection.nextId) collection.nextId = id + 1;
    }
  }

  #patchNames(collection: Collection, patch: readonly Assignment[], place: Place): void {
    for (const { field, keys, value } of patch) {
      if (field === "id") this.#inspector.statuses.add(400);
      else this.#inspector.path(collection, field, keys);
      this.#inspector.expr(value, place);
    }
  }

  /** The row as a patch leaves it; every value reads it as it was. */
  #patched(collection: Collection, row: Row, patch: readonly Assignment[], incoming: Row | null): Row {
    const written = new Map(row);
    const scope = this.#scope(collection, row, { incoming });
    for (const { field, keys, value } of patch) {
      const { type, required } = collection.field(field) as Field;
      const plain = evaluate(value, scope);
      const cell = keys.length > 0 ? placed(written.get(field) as Plain, keys, asJson(type, plain)) : fit(type, plain);
      if (depthOf(cell) > 64 && type.kind === "json") throw new Wrong(400, "nested past 64");
      if (cell.kind === "null" && required) throw new Wrong(400, `${field} is required`);
      written.set(field, cell);
    }
    return written;
  }

  /** Whether rows written hold a unique value that another live row holds; and the expired rows that held one. */
  #clash(collection: Collection, written: readonly Row[]): { clash: boolean; gone: number[] } {
    const gone = new Set<number>();
    let clash = false;
    const mine = new Map(written.map((row) => [idOf(row), row]));
    for (const index of collection.indexes) {
      if (index.clause.kind !== "unique") continue;
      const seen = new Set<string>();
      for (const row of mine.values()) {
        const value = uniqueValue(row, index);
        if (value.kind === "null") continue;
        if (seen.has(keyOf(value))) clash = true;
        seen.add(keyOf(value));
        for (const other of collection.all()) {
          if (mine.has(idOf(other)) || keyOf(uniqueValue(other, index)) !== keyOf(value)) continue;
          if (this.#isDead(collection, other)) gone.add(idOf(other));
          else clash = true;
        }
      }
    }
    return { clash, gone: [...gone] };
  }

  #put(statement: PutStatement): Verdict {
    const collection = this.#collection(statement.collection);
    const bare: Place = { ...placeOf(collection), row: false };
    const { statuses } = this.#inspector;
    if ("kind" in statement.documents) this.#inspector.expr(statement.documents, bare);
    else {
      for (const { entries } of statement.documents) {
        for (const { field, keys, value } of entries) {
          this.#inspector.path(collection, field, keys);
          this.#inspector.expr(value, bare);
        }
      }
    }
    if (statement.elseSet !== null) {
      this.#patchNames(collection, statement.elseSet, { ...placeOf(collection), incoming: true });
    }
    if (statuses.size > 0) return refused(...statuses);
    const documents = this.#documents(collection, statement);
    if (statuses.size > 0) return refused(...statuses);
    return this.#putAll(collection, statement, documents);
  }

  /** Rows with null for an id that is not named. */
  #documents(collection: Collection, statement: PutStatement): Row[] {
    const bare = this.#scope(collection, new Map());
    const made: Row[] = [];
    const attemptDocument = (make: () => Row): void => {
      const row = attempt(make);
      if (row instanceof Wrong) this.#inspector.statuses.add(row.status);
      else made.push(row);
    };
    if ("kind" in statement.documents) {
      const value = evaluate(statement.documents, bare);
      const items = value.kind === "list" ? value.items : [value];
      for (const item of items) attemptDocument(() => this.#sent(collection, item));
      return made;
    }
    for (const { entries } of statement.documents) {
      attemptDocument(() => {
        const row = blank(collection);
        for (const { field, keys, value } of entries) {
          const plain = evaluate(value, bare);
          if (field === "id") row.set("id", explicitId(plain));
          else {
            const { type } = collection.field(field) as Field;
            const cell =
              keys.length > 0 ? placed(row.get(field) as Plain, keys, asJson(type, plain)) : fit(type, plain);
            if (depthOf(cell) > 64 && type.kind === "json") throw new Wrong(400, "nested past 64");
            row.set(field, cell);
          }
        }
        return row;
      });
    }
    return made;
  }

  #sent(collection: Collection, document: Plain): Row {
    if (document.kind !== "object") throw new Wrong(400, "no document");
    const row = blank(collection);
    for (const [name, value] of document.members) {
      if (name === "id") row.set("id", explicitId(value));
      else {
        const field = collection.field(name);
        if (field === undefined) throw new Wrong(404, `no field ${name}`);
        row.set(name, fit(field.type, value));
      }
    }
    return row;
  }

  #putAll(collection: Collection, statement: PutStatement, documents: readonly Row[]): Verdict {
    for (const row of documents) {
      if (collection.fields.some((field) => field.required && row.get(field.name)?.kind === "null"))
        return refused(400);
    }
    // Live rows as the statement goes on, and those it wrote.
    const live = new Map([...collection.rows].filter(([, row]) => !this.#isDead(collection, row)));
    const written = new Map<number, Row>();
    const wrongs = new Set<number>();
    let nextId = collection.nextId;
    let count = 0;
    for (const document of documents) {
      const named = document.get("id") as Plain;
      const holders = this.#holders(collection, live, document, named);
      let row: Row = document;
      if (statement.ifAbsent && holders.length > 0) {
        if (statement.elseSet === null) continue;
        if (holders.length > 1) {
          wrongs.add(409);
          continue;
        }
        const patch = statement.elseSet;
        const patched = attempt(() => this.#patched(collection, holders[0] as Row, patch, document));
        if (patched instanceof Wrong) {
          wrongs.add(patched.status);
          continue;
        }
        row = patched;
      } else if (named.kind === "int") {
        if (statement.insert && !statement.ifAbsent && live.has(Number(named.n))) wrongs.add(409);
      } else row = new Map(document).set("id", int(nextId));
      const id = idOf(row);
      if (id >= nextId) nextId = id + 1;
      live.set(id, row);
      written.set(id, row);
      count++;
    }
    if (wrongs.size > 0) return refused(...wrongs);
    const { clash, gone } = this.#clash(collection, [...written.values()]);
    if (clash) return refused(409);
    if (statement.require !== null && count !== statement.require) return refused(412);
    return answered(`{"affected":${count}}`, () => this.#write(collection, [...written.values()], gone));
  }

  /** The live rows that hold a document's id or a unique value of it. */
  #holders(collection: Collection, live: ReadonlyMap<number, Row>, document: Row, named: Plain): Row[] {
    const found = new Set<Row>();
    if (named.kind === "int") {
      const held = live.get(Number(named.n));
      if (held !== undefined) found.add(held);
    }
    for (const index of collection.indexes) {
      if (index.clause.kind !== "unique") continue;
      const value = uniqueValue(document, index);
      if (value.kind === "null") continue;
      for (const row of live.values()) if (keyOf(uniqueValue(row, index)) === keyOf(value)) found.add(row);
    }
    return [...found];
  }

  // ------------------------------------------------------------------------------------------------------- definitions

  #define(statement: Extract<Statement, { kind: "create" | "drop" | "alter" | "createIndex" }>): Verdict {
    const { collections } = this.#database;
    const name = statement.collection;
    switch (statement.kind) {
      case "create": {
        if (collections.has(name)) {
          if (!statement.ifNotExists) return refused(409);
          return answered(messageOf(`create ${name}: it is there already`));
        }
        const made = new Collection(name, []);
        for (const clause of statement.fields) this.#addField(made, clause);
        return answered(messageOf(`create ${name}`), () => collections.set(name, made));
      }
      case "drop": {
        if (!statement.ifExists) this.#collection(name);
        if (!collections.has(name)) return answered(messageOf(`drop ${name}: it is not there`));
        return answered(messageOf(`drop ${name}`), () => collections.delete(name));
      }
      case "createIndex": {
        const collection = this.#collection(name);
        const path = [statement.field, ...statement.keys].join(".");
        const said = `create index on ${name} (${path})`;
        const held = indexOf(collection, statement.field, statement.keys);
        if (held !== undefined && statement.ifNotExists) {
          return answered(messageOf(`${said}: it has an index already`));
        }
        if (statement.field === "id") return refused(400);
        if (collection.field(statement.field) === undefined) return refused(404);
        if (held !== undefined) return refused(400);
        const changed = collection.copy();
        this.#addIndex(changed, statement.field, statement.keys, statement.index);
        const gone: number[] = [];
        if (statement.index.kind === "unique") {
          const live = collection.all().filter((row) => !this.#isDead(collection, row));
          for (const row of collection.all()) if (!live.includes(row)) gone.push(idOf(row));
          const index = { field: statement.field, keys: statement.keys, clause: statement.index };
          const values = live.map((row) => uniqueValue(row, index)).filter((value) => value.kind !== "null");
          if (new Set(values.map(keyOf)).size < values.length) return refused(409);
        }
        return answered(messageOf(said), () => {
          for (const id of gone) collection.rows.delete(id);
          collection.indexes = changed.indexes;
        });
      }
      case "alter":
        return this.#alter(this.#collection(name), statement.action, messageOf(`alter ${name}`));
    }
  }

  #alter(collection: Collection, action: Extract<Statement, { kind: "alter" }>["action"], message: string): Verdict {
    const changed = collection.copy();
    if (action.kind !== "add" && action.field === "id") return refused(400);
    switch (action.kind) {
      case "add":
        if (action.field.required) return refused(400);
        this.#addField(changed, action.field);
        changed.rows = remade(collection, (row) => new Map(row).set(action.field.name, NULL));
        break;
      case "drop": {
        if (collection.field(action.field) === undefined) return refused(404);
        if (collection.fields.length === 1) return refused(400);
        changed.fields = collection.fields.filter((field) => field.name !== action.field);
        changed.indexes = collection.indexes.filter((index) => index.field !== action.field);
        changed.rows = remade(collection, (row) => {
          const cells = new Map(row);
          cells.delete(action.field);
          return cells;
        });
        break;
      }
      case "rename": {
        if (collection.field(action.field) === undefined) return refused(404);
        if (action.to === "id" || collection.field(action.to) !== undefined) return refused(400);
        const to = (name: string): string => (name === action.field ? action.to : name);
        changed.fields = collection.fields.map((field) => ({ ...field, name: to(field.name) }));
        changed.indexes = collection.indexes.map((index) => ({ ...index, field: to(index.field) }));
        changed.rows = remade(collection, (row) => new Map([...row].map(([name, cell]) => [to(name), cell] as const)));
        break;
      }
      case "index": {
        if (collection.field(action.field) === undefined) return refused(404);
        const held = indexOf(collection, action.field, []);
        if (held === undefined || (held.clause.kind !== "sorted" && held.clause.kind !== "ttl")) return refused(400);
        changed.indexes = collection.indexes.filter((index) => index !== held);
        this.#addIndex(changed, action.field, [], action.index);
        const clause = action.index;
        changed.indexes = collection.indexes.map((index) => (index === held ? { ...index, clause } : index));
        break;
      }
    }
    return answered(message, () => {
      collection.fields = changed.fields;
      collection.indexes = changed.indexes;
      collection.rows = changed.rows;
    });
  }

  #addField(collection: Collection, clause: FieldClause): void {
    if (clause.name === "id" || collection.field(clause.name) !== undefined) throw new Wrong(400, "a name taken");
    const { name, type, required } = clause;
    collection.fields = [...collection.fields, { name, type, required }];
    if (clause.index !== null) this.#addIndex(collection, name, [], clause.index);
  }

  #addIndex(collection: Collection, field: string, keys: readonly string[], clause: IndexClause): void {
    const type = collection.field(field)?.type.kind;
    const kinds = keys.length > 0 ? (type === "json" ? PATH_KINDS : "") : (KINDS[type ?? "list"] ?? "");
    if (!kinds.split(" ").includes(clause.kind)) throw new Wrong(400, `@${clause.kind} on ${type}`);
    if (clause.kind === "ttl" && collection.ttl !== null) throw new Wrong(400, "a second @ttl");
    collection.indexes = [...collection.indexes, { field, keys, clause }];
  }
}

const PATH_KINDS = "hash unique sorted";
const KINDS: Readonly<Record<string, string>> = {
  bool: "hash unique",
  int: "hash unique sorted",
  float: "hash unique sorted",
  text: "hash unique sorted",
  bytes: "hash unique",
  timestamp: "hash unique sorted ttl",
  geo: "geo",
};

function attempt<T>(work: () => T): T | Wrong {
  try {
    return work();
  } catch (error) {
    if (error instanceof Wrong) return error;
    throw error;
  }
}

function messageOf(words: string): string {
  return `{"message":${JSON.stringify(words)}}`;
}

function idOf(row: Row): number {
  return Number((row.get("id") as Plain & { readonly kind: "int" }).n);
}

function blank(collection: Collection): Map<string, Plain> {
  return new Map<string, Plain>([
    ["id", NULL],
    ...collection.fields.map((field) => [field.name, NULL] as [string, Plain]),
  ]);
}

function explicitId(value: Plain): Plain {
  const id = fit({ kind: "int" }, value);
  if (id.kind === "int" && (id.n < 0n || id.n >= ID_LIMIT)) throw new Wrong(400, "no id");
  return id;
}

function remade(collection: Collection, make: (row: Row) => Row): Map<number, Row> {
  return new Map([...collection.rows].map(([id, row]) => [id, make(row)]));
}

function indexOf(collection: Collection, field: string, keys: readonly string[]): Index | undefined {
  return collection.indexes.find((index) => index.field === field && index.keys.join(".") === keys.join("."));
}

function uniqueValue(row: Row, index: Index): Plain {
  let value = row.get(index.field) ?? NULL;
  for (const key of index.keys) {
    value = (value.kind === "object" ? value.members.find(([name]) => name === key)?.[1] : undefined) ?? NULL;
  }
  return value;
}

/** A json value with the one at a path changed; objects are made where there is null or nothing. */
function placed(value: Plain, keys: readonly string[], leaf: Plain): Plain {
  const [key, ...rest] = keys;
  if (key === undefined) return leaf;
  if (value.kind !== "object" && value.kind !== "null") throw new Wrong(400, "something on the way");
  const members = value.kind === "object" ? value.members : [];
  const old = members.find(([name]) => name === key)?.[1];
  const changed = placed(old ?? NULL, rest, leaf);
  if (old === undefined) return { kind: "object", members: [...members, [key, changed]] };
  return { kind: "object", members: members.map(([name, each]) => [name, name === key ? changed : each] as const) };
}

function aggregatesIn(expr: Expr): Expr[] {
  if (expr.kind === "call" && ["count", "sum", "avg", "min", "max", "first", "last"].includes(expr.name)) return [expr];
  switch (expr.kind) {
    case "unary":
    case "isNull":
      return aggregatesIn(expr.of);
    case "binary":
      return [...aggregatesIn(expr.left), ...aggregatesIn(expr.right)];
    case "and":
    case "or":
      return expr.of.flatMap(aggregatesIn);
    case "in":
      return [expr.left, ...expr.list].flatMap(aggregatesIn);
    case "call":
      return expr.args.flatMap(aggregatesIn);
    case "case":
      return [
        ...expr.whens.flatMap((arm) => [arm.when, arm.then]),
        ...(expr.otherwise ? [expr.otherwise] : []),
      ].flatMap(aggregatesIn);
    default:
      return [];
  }
}

function typeText(type: FieldType): string {
  return type.kind === "list" ? `[${typeText(type.of)}]` : type.kind;
}

/** As `describe` shows a collection. */
function describe(collection: Collection): string {
  const kindOf = (index: Index): string =>
    JSON.stringify(index.clause.kind === "ttl" ? `ttl(${index.clause.ttlText})` : index.clause.kind);
  const fields = collection.fields.map((field) => {
    const index = indexOf(collection, field.name, []);
    const shown = [`"name":${JSON.stringify(field.name)}`, `"type":"${typeText(field.type)}"`];
    if (index !== undefined) shown.push(`"index":${kindOf(index)}`);
    if (field.required) shown.push('"required":true');
    return `{${shown.join(",")}}`;
  });
  const paths = collection.indexes
    .filter((index) => index.keys.length > 0)
    .map((index) => `{"path":${JSON.stringify([index.field, ...index.keys].join("."))},"index":${kindOf(index)}}`);
  const more = paths.length === 0 ? "" : `,"paths":[${paths.join(",")}]`;
  return `{"name":${JSON.stringify(collection.name)},"fields":[${fields.join(",")}]${more}}`;
}
