/**
 * The ways to the rows of a filter: ranges and keys of indexes, ids, points, the plain scan. Which conditions could make
 * which range is told apart once, when the statement is planned; a run only asks for the keys.
 */

import { attempt } from "../base/refusal.ts";
import { type Key, type KeyRange, type OrderedIndex, WHOLE_RANGE } from "../store/ordered_index.ts";
import type { Table } from "../store/table.ts";
import { compareCells } from "../value/types.ts";
import type { Row } from "../value/value.ts";
import type { Env } from "./env.ts";
import { type Conjunct, type Filter, type GeoCondition, type KeyCondition, keyNow, type RangeOp } from "./filter.ts";
import { NO_KEY } from "./key.ts";

const EMPTY_ROW: Row = [];

/** Rows in the order of an index, or by id where there is none. */
export interface Stretch {
  readonly index: OrderedIndex | null;
  readonly range: KeyRange;
  /** The conditions that are left to be asked of each row. */
  readonly residual: readonly Conjunct[];
}

/** One way to a superset of the rows; `count` is how many it reads. */
export type Access = { readonly count: number; readonly residual: readonly Conjunct[] } & (
  | { readonly kind: "none" }
  | { readonly kind: "ids"; readonly ids: readonly number[] }
  | { readonly kind: "range"; readonly index: OrderedIndex; readonly range: KeyRange }
  | { readonly kind: "keys"; readonly index: OrderedIndex; readonly keys: readonly Key[] }
  | { readonly kind: "geo"; readonly condition: GeoCondition }
  | { readonly kind: "scan"; readonly index: null; readonly range: KeyRange }
);

const NO_CONJUNCTS: readonly Conjunct[] = [];
const NO_ROW: Access = { kind: "none", count: 0, residual: NO_CONJUNCTS };

/** The conditions on one index, which together are one range of it; on the ids where `index` is null. */
export interface Group {
  readonly index: OrderedIndex | null;
  readonly parts: readonly Conjunct[];
  /** All other conditions of the filter. */
  readonly rest: readonly Conjunct[];
}

/** A range as it is narrowed down. */
export class Bounds implements KeyRange {
  lo: Key | undefined = undefined;
  loOpen = false;
  hi: Key | undefined = undefined;
  hiOpen = false;
  /** A condition among them holds for no row. */
  isNone = false;
  /** None of the conditions could be told as a bound. */
  isWhole = true;
  residual: readonly Conjunct[] = NO_CONJUNCTS;

  add(op: RangeOp, key: Key, compare: (a: Key, b: Key) => number): void {
    this.isWhole = false;
    if (op === "=") {
      this.#raise(key, false, compare);
      this.#lower(key, false, compare);
      return;
    }
    if (op === ">" || op === ">=") this.#raise(key, op === ">", compare);
    else this.#raise(null, true, compare);
    if (op === "<" || op === "<=") this.#lower(key, op === "<", compare);
  }

  #raise(lo: Key, loOpen: boolean, compare: (a: Key, b: Key) => number): void {
    const order = this.lo === undefined ? 1 : compare(lo, this.lo);
    if (order < 0 || (order === 0 && (this.loOpen || !loOpen))) return;
    this.lo = lo;
    this.loOpen = loOpen;
  }

  #lower(hi: Key, hiOpen: boolean, compare: (a: Key, b: Key) => number): void {
    const order = this.hi === undefined ? -1 : compare(hi, this.hi);
    if (order > 0 || (order === 0 && (this.hiOpen || !hiOpen))) return;
    this.hi = hi;
    this.hiOpen = hiOpen;
  }
}

/** Bounds of ids: null, which is below every id, comes first. */
const compareIds = compareCells({ kind: "int" }) as (a: Key, b: Key) => number;

export class Ways {
  readonly #table: Table;
  readonly #filter: Filter;
  readonly #groups: readonly Group[];
  readonly #others: readonly Conjunct[];
  /** `id = constant`: there is no better way than to look. */
  readonly one: { readonly key: KeyCondition; readonly rest: readonly Conjunct[] } | null;

  constructor(table: Table, filter: Filter) {
    this.#table = table;
    this.#filter = filter;
    const { conjuncts } = filter;
    const parts = new Map<OrderedIndex | null, Conjunct[]>();
    for (const part of conjuncts) {
      if (part.key === null) continue;
      const held = parts.get(part.key.index);
      if (held === undefined) parts.set(part.key.index, [part]);
      else held.push(part);
    }
    this.#groups = Array.from(parts, ([index, of]) => ({ index, parts: of, rest: this.#without(of) }));
    this.#others = conjuncts.filter((part) => part.key === null && (part.set !== null || part.geo !== null));
    const one = conjuncts.find((part) => part.key !== null && part.key.index === null && part.key.op === "=");
    this.one = one === undefined || one.key === null ? null : { key: one.key, rest: this.#without([one]) };
  }

  /**
   * The one group there is, when it is of this index and nothing else could be another way: its range is then read
   * whatever the counts are, so they need not be asked for.
   */
  alone(index: OrderedIndex): Group | null {
    const [group, other] = this.#groups;
    return group !== undefined && other === undefined && group.index === index && this.#others.length === 0
      ? group
      : null;
  }

  bounds(group: Group, env: Env): Bounds {
    const bounds = new Bounds();
    const compare = group.index === null ? compareIds : group.index.compare;
    let used: Conjunct[] | null = null;
    for (let at = 0; at < group.parts.length; at++) {
      const part = group.parts[at] as Conjunct;
      const { key: condition } = part;
      const key = condition === null ? NO_KEY : keyNow(condition, env);
      if (condition === null || key === NO_KEY) {
        used ??= group.parts.slice(0, at);
        continue;
      }
      if (key === null && condition.op !== "=" && condition.op !== "notNull") {
        bounds.isNone = true;
        return bounds;
      }
      used?.push(part);
      bounds.add(condition.op, key as Key, compare);
    }
    bounds.residual = used === null ? group.rest : this.#without(used);
    return bounds;
  }

  /** Every way in this run, the plain scan last. */
  all(env: Env): Access[] {
    const { conjuncts } = this.#filter;
    const found: Access[] = [];
    for (const part of this.#others) {
      const access = part.set === null ? this.#points(part, env) : this.#keys(part, env);
      if (access !== undefined) found.push(access);
    }
    const { ids, count } = this.#table;
    let scan: Access = { kind: "scan", index: null, range: WHOLE_RANGE, count, residual: conjuncts };
    for (const group of this.#groups) {
      const range = this.bounds(group, env);
      if (range.isNone) return [NO_ROW];
      if (range.isWhole) continue;
      const { index } = group;
      const { residual } = range;
      if (index !== null) {
        if (equalityOnly(index) && !isOneKey(range)) continue;
        found.push({ kind: "range", index, range, count: index.count(range), residual });
      } else if (isOneKey(range)) {
        found.push(oneRow(range.lo, residual));
      } else if (typeof range.lo !== "bigint" && typeof range.hi !== "bigint") {
        scan = { kind: "scan", index: null, range, count: ids.count(range), residual };
      }
    }
    found.push(scan);
    return found;
  }

  #without(parts: readonly Conjunct[]): readonly Conjunct[] {
    const { conjuncts } = this.#filter;
    if (parts.length === 0) return conjuncts;
    return parts.length === conjuncts.length ? NO_CONJUNCTS : conjuncts.filter((part) => !parts.includes(part));
  }

  #keys(part: Conjunct, env: Env): Access | undefined {
    const condition = part.set;
    if (condition === null) return undefined;
    const set = attempt(() => condition.set(EMPTY_ROW, env));
    if (set === undefined) return undefined;
    const keys: Key[] = [];
    for (const value of set.values) {
      const key = condition.maker.key(value);
      if (key === NO_KEY) return undefined;
      keys.push(key as Key);
    }
    const { index } = condition;
    const residual = this.#without([part]);
    if (index === null) {
      const ids = [...new Set(keys)].filter((key): key is number => Number.isSafeInteger(key));
      return { kind: "ids", ids, count: ids.length, residual };
    }
    keys.sort(index.compare);
    const distinct = keys.filter((key, at) => at === 0 || index.compare(keys[at - 1] as Key, key) !== 0);
    let count = 0;
    for (const key of distinct) count += index.count(oneKey(key));
    return { kind: "keys", index, keys: distinct, count, residual };
  }

  #points(part: Conjunct, env: Env): Access | undefined {
    const condition = part.geo;
    if (condition === null) return undefined;
    const places = this.#table.geo(condition.field);
    const works = attempt(() => {
      if (condition.box !== null) return condition.box(env) ?? undefined;
      const metres = condition.metres?.(env);
      return (condition.point?.(env) ?? undefined) ? (metres ?? undefined) : undefined;
    });
    if (places === undefined || works === undefined) return undefined;
    // What a radius or box holds is not known before it is read; a sixteenth is a guess that only costs time.
    return { kind: "geo", condition, count: places.size >> 4, residual: this.#filter.conjuncts };
  }
}

/** The row with an id, or none where no row can have it. */
export function oneRow(id: unknown, residual: readonly Conjunct[]): Access {
  if (Number.isSafeInteger(id)) return { kind: "ids", ids: [id as number], count: 1, residual };
  return { kind: "ids", ids: [], count: 0, residual };
}

function isOneKey({ lo, loOpen, hi, hiOpen }: KeyRange): boolean {
  return lo !== undefined && lo === hi && !loOpen && !hiOpen;
}

export function oneKey(key: Key): KeyRange {
  return { lo: key, loOpen: false, hi: key, hiOpen: false };
}

export function leastOf(accesses: readonly Access[]): Access {
  let best = accesses[0] as Access;
  for (const access of accesses) if (access.count < best.count) best = access;
  return best;
}

/** Hash and unique indexes are asked for equality alone. */
function equalityOnly(index: OrderedIndex): boolean {
  return index.def.kind === "hash" || index.def.kind === "unique";
}

/** For `explain`. */
export function accessWords(access: Access, table: Table): string {
  const { name } = table.schema;
  switch (access.kind) {
    case "none":
      return "no row can match";
    case "ids":
      return `${name} by id`;
    case "range":
    case "scan":
      return stretchWords(access, table);
    case "keys":
      return `${name} by the @${access.index.def.kind} index of ${pathOf(access.index)}, ${access.keys.length} keys`;
    case "geo":
      return `${name} by the @geo index of ${access.condition.field}`;
  }
}

export function stretchWords({ index, range }: Stretch, table: Table): string {
  const { name } = table.schema;
  const isWhole = range === WHOLE_RANGE;
  if (index === null) return isWhole ? `${name}, every row` : `${name}, a range of ids`;
  const part = isWhole ? "" : isOneKey(range) ? ", one key" : ", a range";
  return `${name} by the @${index.def.kind} index of ${pathOf(index)}${part}`;
}

function pathOf(index: OrderedIndex): string {
  return [index.def.field, ...index.def.keys].join(".");
}
