/**
 * The counted B+tree: every ordered index, and the rows by id, is one of these.
 *
 * An entry is a key and a row; entries are ordered by (key, id), the id being `row[0]`. The key is held in the tree and
 * not read from the row, because rows are changed in place: an entry is always taken out by the key it was put in with.
 *
 * Every inner node knows how many entries each of its children holds, so the number of entries before a place (`rank`)
 * and the entry at a position (`at`) cost a descent and no walk. A range of an index is therefore a pair of positions:
 * its size is a subtraction.
 *
 * Shape. A leaf holds up to `fanout` entries, an inner node up to `fanout` children. A node holds at least an eighth of
 * that, but for the nodes on the tree's left and right edge, which may hold as little as one: a queue is emptied at one
 * end and filled at the other, and an edge that may shrink to nothing is spared moving entries about for both. A node
 * that a removal leaves sparse joins a sibling that has the room, and one that would fall short takes from a full one,
 * so a tree that is drained is one empty leaf again. The least is as low as an eighth so that entries that come in order
 * (jobs as they are put, leases as they are given) can leave nodes seven eighths full behind.
 *
 * A separator (`keys[i]`, `ids[i]` of an inner node, i > 0) is a lower bound of child i and above everything in child
 * i - 1. It need not be an entry that still exists.
 */

import { assert } from "../base/assert.ts";
import { type Steps, toEnd } from "../base/steps.ts";
import type { Pages } from "./pages.ts";

/** A row of any shape whose first cell is its id, a number. */
export type Keyed = readonly unknown[];

/** Orders keys; 0 for equal ones. Total, and the same for the life of the tree. */
export type CompareKeys<K> = (a: K, b: K) => number;

/**
 * Entries of a leaf and children of an inner node. Anything from 64 to 160 takes the same time; 109 is the most that
 * fits one size class of the runtime's heap (880 bytes: 109 references and the array's header), so nothing is rounded
 * up: 25.6 bytes an entry of a full leaf, where 64 take 31 and 128 take 30.
 */
export const FANOUT = 109;

/** A million entries take four levels at the poorest fill; this many cannot be reached. */
const MAX_HEIGHT = 24;

/** Leaves loaded in one step. */
const STEP_LEAVES = 512;

const UNORDERED = "a tree is loaded in order";

type Keys = Float64Array | unknown[];

/** What keys are: the row's own id, a number, or anything the tree's comparator orders. */
type KeyKind = "id" | "number" | "any";

/** Where the key is the id, one array is both. */
function keysOf(kind: KeyKind, ids: Float64Array): Keys {
  if (kind === "id") return ids;
  return kind === "number" ? new Float64Array(ids.length) : new Array(ids.length).fill(undefined);
}

class Leaf {
  n = 0;
  keys: Keys;
  ids: Float64Array;
  rows: (Keyed | undefined)[];
  previous: Leaf | null = null;
  next: Leaf | null = null;
  /** Just behind the entry put in last: where the next one goes if entries come in order. */
  run = -1;

  constructor(
    kind: KeyKind,
    fanout: number,
    ids: Float64Array = new Float64Array(fanout),
    rows: (Keyed | undefined)[] = new Array(fanout).fill(undefined),
  ) {
    this.ids = ids;
    this.keys = keysOf(kind, ids);
    this.rows = rows;
  }
}

class Inner {
  n = 0;
  keys: Keys;
  ids: Float64Array;
  counts: Float64Array;
  kids: (Node | undefined)[];

  constructor(kind: KeyKind, fanout: number) {
    this.ids = new Float64Array(fanout);
    this.keys = keysOf(kind, this.ids);
    this.counts = new Float64Array(fanout);
    this.kids = new Array(fanout).fill(undefined);
  }

  total(): number {
    let sum = 0;
    for (let i = 0; i < this.n; i++) sum += this.counts[i] as number;
    return sum;
  }
}

type Node = Leaf | Inner;

/** The first i in [low, n) whose entry is not before (key, id); n when there is none. */
function seekNumber(keys: Float64Array, ids: Float64Array, low: number, n: number, key: number, id: number): number {
  let high = n;
  let from = low;
  while (from < high) {
    const middle = (from + high) >>> 1;
    const at = keys[middle] as number;
    if (at < key || (at === key && (ids[middle] as number) < id)) from = middle + 1;
    else high = middle;
  }
  return from;
}

function seekValue<K>(
  keys: K[],
  ids: Float64Array,
  low: number,
  n: number,
  key: K,
  id: number,
  compare: CompareKeys<K>,
): number {
  let high = n;
  let from = low;
  while (from < high) {
    const middle = (from + high) >>> 1;
    const order = compare(keys[middle] as K, key);
    if (order < 0 || (order === 0 && (ids[middle] as number) < id)) from = middle + 1;
    else high = middle;
  }
  return from;
}

/** Makes room for one at `index` among the first n. */
function openNumbers(list: Float64Array, index: number, n: number): void {
  for (let i = n; i > index; i--) list[i] = list[i - 1] as number;
}

function openValues(list: unknown[], index: number, n: number): void {
  for (let i = n; i > index; i--) list[i] = list[i - 1];
}

/** Closes the gap left by the one at `index` among the first n. */
function closeNumbers(list: Float64Array, index: number, n: number): void {
  for (let i = index + 1; i < n; i++) list[i - 1] = list[i] as number;
}

function closeValues(list: unknown[], index: number, n: number): void {
  for (let i = index + 1; i < n; i++) list[i - 1] = list[i];
  list[n - 1] = undefined;
}

/** Moves `count` from one list to another, or within one; what is left behind is forgotten. */
function moveNumbers(from: Float64Array, start: number, to: Float64Array, at: number, count: number): void {
  if (from === to) to.copyWithin(at, start, start + count);
  else for (let i = 0; i < count; i++) to[at + i] = from[start + i] as number;
}

function moveValues(from: unknown[], start: number, to: unknown[], at: number, count: number): void {
  if (at <= start) for (let i = 0; i < count; i++) to[at + i] = from[start + i];
  else for (let i = count - 1; i >= 0; i--) to[at + i] = from[start + i];
  if (from !== to) from.fill(undefined, start, start + count);
  else if (at <= start) from.fill(undefined, Math.max(start, at + count), start + count);
  else from.fill(undefined, start, Math.min(at, start + count));
}

function moveKeys(from: Keys, start: number, to: Keys, at: number, count: number): void {
  if (from instanceof Float64Array) moveNumbers(from, start, to as Float64Array, at, count);
  else moveValues(from, start, to as unknown[], at, count);
}

/** `#fillKeys` where keys and leaf hold numbers: the loop that most of a start's time with indexes goes to. */
function fillNumbers(
  leaf: Leaf,
  keys: Float64Array,
  rows: Pages<Keyed>,
  order: Uint32Array | null,
  from: number,
  to: number,
): void {
  const { ids, rows: held } = leaf;
  const numbers = leaf.keys as Float64Array;
  let keyBefore = Number.NEGATIVE_INFINITY;
  let idBefore = Number.NEGATIVE_INFINITY;
  for (let entry = from; entry < to; entry++) {
    const at = order === null ? entry : (order[entry] as number);
    const key = keys[at] as number;
    const id = rows.idAt(at);
    assert(key > keyBefore || (key === keyBefore && id > idBefore), UNORDERED);
    numbers[entry - from] = key;
    ids[entry - from] = id;
    held[entry - from] = rows.at(at);
    keyBefore = key;
    idBefore = id;
  }
  leaf.n = to - from;
}

export class Tree<K, R extends Keyed> {
  readonly #kind: KeyKind;
  /** Whether keys are numbers, the ids among them. */
  readonly #numeric: boolean;
  readonly #compare: CompareKeys<K>;
  readonly #fanout: number;
  /** No node off the edge holds less. */
  readonly #least: number;
  /** A node of no more than this looks for a sibling to join... */
  readonly #sparse: number;
  /** ...that leaves the two of them no fuller than this, so that the next insert need not split them again. */
  readonly #roomy: number;

  #root: Node;
  #height = 0;
  #size = 0;
  #nodes = 1;
  #first: Leaf;
  #last: Leaf;
  /** Rises with every change, so that a walk notices one made under it. */
  #changes = 0;

  /** The inner nodes of the last descent by level (1 is just above the leaves) and the child taken in each. */
  readonly #path: (Inner | undefined)[] = new Array(MAX_HEIGHT).fill(undefined);
  readonly #slots = new Int32Array(MAX_HEIGHT);
  /** Where the last seek ended, beside the leaf it returns. */
  #index = 0;

  /**
   * With "id" the key of each row is its id. With "number" the keys are numbers (never NaN) or null, and null comes
   * first; -0 and 0 are one key. Otherwise keys are whatever the comparator orders. `fanout` is for tests, which want deep
   * trees of few entries.
   */
  constructor(keys: "id" | "number" | CompareKeys<K>, fanout = FANOUT) {
    assert(fanout >= 4, "a tree's fan-out is at least 4");
    this.#kind = typeof keys === "string" ? keys : "any";
    this.#numeric = this.#kind !== "any";
    this.#compare = typeof keys === "string" ? (a, b) => Number(a) - Number(b) : keys;
    this.#fanout = fanout;
    this.#least = Math.max(1, fanout >> 3);
    this.#sparse = Math.floor(fanout / 3);
    this.#roomy = Math.floor((fanout * 3) / 4);
    const leaf = new Leaf(this.#kind, fanout);
    this.#root = leaf;
    this.#first = leaf;
    this.#last = leaf;
  }

  /** Entries held. */
  get size(): number {
    return this.#size;
  }

  /** Leaves and inner nodes; 1 when empty. */
  get nodes(): number {
    return this.#nodes;
  }

  /** Adds an entry. The pair (key, row[0]) must not be held already. */
  insert(key: K, row: R): void {
    const id = row[0] as number;
    const held = this.#keyIn(key);
    const leaf = this.#descend(held, id);
    const index = this.#index;
    assert(!this.#holds(leaf, index, held, id), "a tree holds an entry once");
    this.#changes++;
    this.#size++;
    for (let level = this.#height; level > 0; level--) {
      const counts = (this.#path[level] as Inner).counts;
      const slot = this.#slots[level] as number;
      counts[slot] = (counts[slot] as number) + 1;
    }
    if (leaf.n < this.#fanout) this.#put(leaf, index, held, id, row);
    else this.#splitLeaf(leaf, index, held, id, row);
  }

  /** Takes an entry out by the key it was inserted with; false when it is not held. */
  remove(key: K, id: number): boolean {
    const held = this.#keyOf(key);
    const leaf = this.#descend(held, id);
    const index = this.#index;
    if (!this.#holds(leaf, index, held, id)) return false;
    this.#changes++;
    this.#size--;
    for (let level = this.#height; level > 0; level--) {
      const counts = (this.#path[level] as Inner).counts;
      const slot = this.#slots[level] as number;
      counts[slot] = (counts[slot] as number) - 1;
    }
    this.#closeKeys(leaf.keys, leaf.ids, index, leaf.n);
    closeValues(leaf.rows, index, leaf.n);
    leaf.n--;
    if (leaf.n <= this.#sparse && this.#height > 0) this.#mend(leaf);
    return true;
  }

  /** The row of an entry. */
  get(key: K, id: number): R | undefined {
    const held = this.#keyOf(key);
    const leaf = this.#seek(held, id);
    const index = this.#index;
    return this.#holds(leaf, index, held, id) ? (leaf.rows[index] as R) : undefined;
  }

  /** The entry that comes first, or undefined. */
  first(): R | undefined {
    return this.#first.rows[0] as R | undefined;
  }

  /** The entry that comes last, or undefined. */
  last(): R | undefined {
    return this.#size === 0 ? undefined : (this.#last.rows[this.#last.n - 1] as R);
  }

  /** How many entries come before (key, id); the id -Infinity is before, Infinity behind all entries of the key. */
  rank(key: K, id: number): number {
    return this.#rank(this.#keyOf(key), id);
  }

  #rank(key: unknown, id: number): number {
    let before = 0;
    let node = this.#root;
    for (let level = this.#height; level > 0; level--) {
      const inner = node as Inner;
      const slot = this.#child(inner, key, id);
      const counts = inner.counts;
      for (let i = 0; i < slot; i++) before += counts[i] as number;
      node = inner.kids[slot] as Node;
    }
    return before + this.#find(node as Leaf, key, id);
  }

  /** The row at a position, 0 being the first; undefined outside. */
  at(position: number): R | undefined {
    if (!(position >= 0 && position < this.#size)) return undefined;
    const leaf = this.#locate(position);
    return leaf.rows[this.#index] as R;
  }

  /** The key at a position; undefined outside. */
  keyAt(position: number): K | undefined {
    if (!(position >= 0 && position < this.#size)) return undefined;
    const leaf = this.#locate(position);
    return this.#keyOut(leaf.keys[this.#index]);
  }

  /** From the first entry at or after (key, id) upwards, until `visit` answers false. */
  ascend(key: K, id: number, visit: (row: R) => boolean): void {
    const leaf = this.#seek(this.#keyOf(key), id);
    this.#climb(leaf, this.#index, this.#size, visit);
  }

  /** The entries at positions [from, to), upwards, until `visit` answers false. */
  ascendRange(from: number, to: number, visit: (row: R) => boolean): void {
    const start = Math.max(0, from);
    const end = Math.min(to, this.#size);
    if (!(start < end)) return;
    const leaf = this.#locate(start);
    this.#climb(leaf, this.#index, end - start, visit);
  }

  /**
   * The entries before (key, id) by descending keys, those of one key by ascending ids, until `visit` answers false. A
   * key's group is found by its start, so stopping inside a huge one costs what was visited.
   */
  descend(key: K, id: number, visit: (row: R) => boolean): void {
    this.descendRange(0, this.rank(key, id), visit);
  }

  /** The entries at positions [from, to) by descending keys, those of one key by ascending ids. */
  descendRange(from: number, to: number, visit: (row: R) => boolean): void {
    const start = Math.max(0, from);
    let end = Math.min(to, this.#size);
    while (start < end) {
      let leaf: Leaf | null = this.#locate(end - 1);
      let last = this.#index;
      while (leaf !== null && start < end) {
        const begin = this.#groupStart(leaf, last);
        if (begin < 0) {
          const groupStart = Math.max(start, this.#rank(leaf.keys[last], Number.NEGATIVE_INFINITY));
          const here = this.#locate(groupStart);
          if (!this.#climb(here, this.#index, end - groupStart, visit)) return;
          end = groupStart;
          break;
        }
        const skipped = Math.max(0, start - (end - (last - begin + 1)));
        if (!this.#climb(leaf, begin + skipped, last - begin + 1 - skipped, visit)) return;
        end -= last - begin + 1;
        last = begin - 1;
        if (last < 0) {
          leaf = leaf.previous;
          last = leaf === null ? 0 : leaf.n - 1;
        }
      }
    }
  }

  /**
   * Fills an empty tree from entries in order: `keys[i]` is the key of `rows.at(i)`. Nodes are packed full: what is loaded
   * is mostly settled, and a node that is not costs one split.
   */
  load(keys: ArrayLike<K>, rows: Pages<R>): void {
    toEnd(this.loadInSteps(keys, rows, null));
  }

  /** The same in steps, between which nobody uses the tree; `order`, if given, says the place of each entry in both lists. */
  *loadInSteps(keys: ArrayLike<K>, rows: Pages<R>, order: Uint32Array | null): Steps<void> {
    assert(keys.length === rows.length, "as many keys as rows");
    assert(order === null || order.length === rows.length, "a place for each row");
    const total = rows.length;
    const leaves = Math.ceil(total / this.#fanout);
    let entry = 0;
    yield* this.#loadLeaves(total, leaves, (at) => {
      const leaf = new Leaf(this.#kind, this.#fanout);
      const end = Math.floor(((at + 1) * total) / leaves);
      if (this.#numeric && keys instanceof Float64Array) fillNumbers(leaf, keys, rows, order, entry, end);
      else this.#fillKeys(leaf, keys, rows, order, entry, end);
      entry = end;
      return leaf;
    });
  }

  /** Fills an empty tree by id with rows in order, whose lists become its own. */
  *loadPages(pages: Pages<R>): Steps<void> {
    assert(this.#kind === "id" && pages.size === this.#fanout, "a page is a leaf of a tree by id");
    yield* this.#loadLeaves(pages.length, pages.lists.length, (at) => {
      const leaf = new Leaf(this.#kind, this.#fanout, pages.ids[at], pages.lists[at]);
      leaf.n = Math.min(this.#fanout, pages.length - at * this.#fanout);
      for (let i = 1; i < leaf.n; i++) assert((leaf.ids[i - 1] as number) < (leaf.ids[i] as number), UNORDERED);
      return leaf;
    });
  }

  *#loadLeaves(total: number, leaves: number, leafAt: (at: number) => Leaf): Steps<void> {
    assert(this.#size === 0, "only an empty tree is loaded");
    if (total === 0) return;
    this.#changes++;
    let level: Node[] = [];
    let previous: Leaf | null = null;
    for (let at = 0; at < leaves; at++) {
      const leaf: Leaf = leafAt(at);
      if (previous === null) this.#first = leaf;
      else {
        leaf.previous = previous;
        previous.next = leaf;
        assert(this.#before(previous, previous.n - 1, leaf, 0), UNORDERED);
      }
      previous = leaf;
      level.push(leaf);
      if (at % STEP_LEAVES === STEP_LEAVES - 1) yield;
    }
    this.#last = previous as Leaf;
    this.#size = total;
    this.#nodes = leaves;
    let bounds: Leaf[] = level as Leaf[];
    while (level.length > 1) {
      const parents = Math.ceil(level.length / this.#fanout);
      const above: Node[] = [];
      const aboveBounds: Leaf[] = [];
      let kid = 0;
      for (let i = 0; i < parents; i++) {
        const inner = new Inner(this.#kind, this.#fanout);
        aboveBounds.push(bounds[kid] as Leaf);
        const end = Math.floor(((i + 1) * level.length) / parents);
        for (; kid < end; kid++) {
          const node = level[kid] as Node;
          inner.keys[inner.n] = (bounds[kid] as Leaf).keys[0];
          inner.ids[inner.n] = (bounds[kid] as Leaf).ids[0] as number;
          inner.counts[inner.n] = node instanceof Leaf ? node.n : node.total();
          inner.kids[inner.n] = node;
          inner.n++;
        }
        above.push(inner);
      }
      this.#nodes += parents;
      this.#height++;
      level = above;
      bounds = aboveBounds;
    }
    this.#root = level[0] as Node;
  }

  /** The entries `from` up to `to` of what is loaded, into an empty leaf. */
  #fillKeys(leaf: Leaf, keys: ArrayLike<K>, rows: Pages<R>, order: Uint32Array | null, from: number, to: number): void {
    for (let entry = from; entry < to; entry++) {
      const at = order === null ? entry : (order[entry] as number);
      leaf.keys[leaf.n] = this.#keyIn(keys[at] as K);
      leaf.ids[leaf.n] = rows.idAt(at);
      leaf.rows[leaf.n] = rows.at(at);
      assert(leaf.n === 0 || this.#before(leaf, leaf.n - 1, leaf, leaf.n), UNORDERED);
      leaf.n++;
    }
  }

  /** A key as the nodes hold it. */
  #keyOf(key: K): unknown {
    return this.#numeric && key === null ? Number.NEGATIVE_INFINITY : key;
  }

  #keyIn(key: K): unknown {
    const held = this.#keyOf(key);
    assert(!this.#numeric || (typeof held === "number" && !Number.isNaN(held)), "a number tree's keys are numbers");
    return held;
  }

  #keyOut(key: unknown): K {
    return (this.#numeric && key === Number.NEGATIVE_INFINITY ? null : key) as K;
  }

  #before(a: Leaf, i: number, b: Leaf, j: number): boolean {
    return this.#precedes(a, i, b.keys[j], b.ids[j] as number);
  }

  /** Whether the entry at a place of a leaf comes before (key, id). */
  #precedes(leaf: Leaf, index: number, key: unknown, id: number): boolean {
    const held = leaf.keys[index];
    if (this.#numeric) {
      return (held as number) < (key as number) || (held === key && (leaf.ids[index] as number) < id);
    }
    const order = this.#compare(held as K, key as K);
    return order < 0 || (order === 0 && (leaf.ids[index] as number) < id);
  }

  /** First place in the leaf not before (key, id). */
  #find(leaf: Leaf, key: unknown, id: number): number {
    if (this.#numeric) return seekNumber(leaf.keys as Float64Array, leaf.ids, 0, leaf.n, key as number, id);
    return seekValue(leaf.keys as K[], leaf.ids, 0, leaf.n, key as K, id, this.#compare);
  }

  /** The child (key, id) belongs in: the last whose separator is not after it. */
  #child(inner: Inner, key: unknown, id: number): number {
    const { keys, ids, n } = inner;
    let slot: number;
    if (this.#numeric) {
      slot = seekNumber(keys as Float64Array, ids, 1, n, key as number, id);
      if (slot < n && keys[slot] === key && ids[slot] === id) return slot;
    } else {
      slot = seekValue(keys as K[], ids, 1, n, key as K, id, this.#compare);
      if (slot < n && ids[slot] === id && this.#compare(keys[slot] as K, key as K) === 0) return slot;
    }
    return slot - 1;
  }

  #holds(leaf: Leaf, index: number, key: unknown, id: number): boolean {
    if (index >= leaf.n || leaf.ids[index] !== id) return false;
    if (this.#numeric) return leaf.keys[index] === key;
    return this.#compare(leaf.keys[index] as K, key as K) === 0;
  }

  /** The leaf (key, id) belongs in; its place there in `#index`. */
  #seek(key: unknown, id: number): Leaf {
    let node = this.#root;
    for (let level = this.#height; level > 0; level--) {
      node = (node as Inner).kids[this.#child(node as Inner, key, id)] as Node;
    }
    this.#index = this.#find(node as Leaf, key, id);
    return node as Leaf;
  }

  /**
   * As `#seek`, keeping the way taken. What comes behind every entry, as jobs that are put and leases that are given mostly
   * do, goes down the right edge without a search.
   */
  #descend(key: unknown, id: number): Leaf {
    const last = this.#last;
    const isBehindAll = last.n > 0 && this.#precedes(last, last.n - 1, key, id);
    let node = this.#root;
    for (let level = this.#height; level > 0; level--) {
      const slot = isBehindAll ? node.n - 1 : this.#child(node as Inner, key, id);
      this.#path[level] = node as Inner;
      this.#slots[level] = slot;
      node = (node as Inner).kids[slot] as Node;
    }
    this.#index = isBehindAll ? node.n : this.#find(node as Leaf, key, id);
    return node as Leaf;
  }

  /** The leaf of a position; the place there in `#index`. */
  #locate(position: number): Leaf {
    let rest = position;
    let node = this.#root;
    for (let level = this.#height; level > 0; level--) {
      const inner = node as Inner;
      let slot = 0;
      while (rest >= (inner.counts[slot] as number)) rest -= inner.counts[slot++] as number;
      node = inner.kids[slot] as Node;
    }
    this.#index = rest;
    return node as Leaf;
  }

  /** Visits up to `count` entries upwards; false when the visitor ended it. */
  #climb(leaf: Leaf, index: number, count: number, visit: (row: R) => boolean): boolean {
    const changes = this.#changes;
    let here: Leaf | null = leaf;
    let i = index;
    let left = count;
    while (here !== null) {
      const rows = here.rows;
      const end = Math.min(here.n, i + left);
      left -= end - i;
      for (; i < end; i++) {
        if (!visit(rows[i] as R)) return false;
        assert(changes === this.#changes, "a tree is not changed while it is walked");
      }
      if (left <= 0) return true;
      here = here.next;
      i = 0;
    }
    return true;
  }

  /** Where in the leaf the group of the entry at `index` starts; -1 when it starts in an earlier leaf. */
  #groupStart(leaf: Leaf, index: number): number {
    const key = leaf.keys[index];
    let start = index;
    if (this.#numeric) {
      const keys = leaf.keys as Float64Array;
      while (start > 0 && keys[start - 1] === key) start--;
      if (start > 0 || leaf.previous === null) return start;
      return leaf.previous.keys[leaf.previous.n - 1] === key ? -1 : 0;
    }
    const keys = leaf.keys as K[];
    while (start > 0 && this.#compare(keys[start - 1] as K, key as K) === 0) start--;
    if (start > 0 || leaf.previous === null) return start;
    return this.#compare(leaf.previous.keys[leaf.previous.n - 1] as K, key as K) === 0 ? -1 : 0;
  }

  #put(leaf: Leaf, index: number, key: unknown, id: number, row: R): void {
    this.#openKeys(leaf.keys, leaf.ids, index, leaf.n);
    leaf.keys[index] = key;
    leaf.ids[index] = id;
    openValues(leaf.rows, index, leaf.n);
    leaf.rows[index] = row;
    leaf.n++;
    leaf.run = index + 1;
  }

  /**
   * Where a full node parts. Entries that come in order leave a full node behind them: at the tree's end, and at a front
   * within the tree, which is where jobs that are ready stand before those under a lease. Else the node is halved.
   */
  #partition(index: number, ordered: boolean, atRightEdge: boolean): number {
    const most = this.#fanout - this.#least;
    if (atRightEdge) return index === this.#fanout ? index : most;
    if (ordered) return Math.max(this.#least, Math.min(index, most));
    return this.#fanout >> 1;
  }

  #splitLeaf(leaf: Leaf, index: number, key: unknown, id: number, row: R): void {
    const atRightEdge = leaf.next === null;
    const at = this.#partition(index, index === leaf.run, atRightEdge);
    const right = new Leaf(this.#kind, this.#fanout);
    this.#nodes++;
    this.#moveEntries(leaf, at, right, 0, leaf.n - at);
    right.n = leaf.n - at;
    leaf.n = at;
    right.previous = leaf;
    right.next = leaf.next;
    if (right.next === null) this.#last = right;
    else right.next.previous = right;
    leaf.next = right;
    if (index > at || at === this.#fanout) this.#put(right, index - at, key, id, row);
    else this.#put(leaf, index, key, id, row);
    this.#adopt(1, leaf, leaf.n, right, right.n, right.keys[0], right.ids[0] as number, atRightEdge);
  }

  /** Hangs `right`, split off `left`, into the parent at `level` on the path, splitting upwards as need be. */
  #adopt(
    level: number,
    left: Node,
    leftCount: number,
    right: Node,
    rightCount: number,
    key: unknown,
    id: number,
    atRightEdge: boolean,
  ): void {
    if (level > this.#height) {
      const root = new Inner(this.#kind, this.#fanout);
      this.#nodes++;
      this.#hang(root, 0, left, leftCount, key, id);
      this.#hang(root, 1, right, rightCount, key, id);
      this.#root = root;
      this.#height++;
      assert(this.#height < MAX_HEIGHT, "a tree's height is bounded");
      return;
    }
    const parent = this.#path[level] as Inner;
    const slot = this.#slots[level] as number;
    parent.counts[slot] = leftCount;
    const index = slot + 1;
    if (parent.n < this.#fanout) {
      this.#hang(parent, index, right, rightCount, key, id);
      return;
    }
    const at = this.#partition(index, index === this.#fanout, atRightEdge);
    const split = new Inner(this.#kind, this.#fanout);
    this.#nodes++;
    this.#moveKids(parent, at, split, 0, parent.n - at);
    split.n = parent.n - at;
    parent.n = at;
    if (index > at || at === this.#fanout) this.#hang(split, index - at, right, rightCount, key, id);
    else this.#hang(parent, index, right, rightCount, key, id);
    this.#adopt(
      level + 1,
      parent,
      parent.total(),
      split,
      split.total(),
      split.keys[0],
      split.ids[0] as number,
      atRightEdge,
    );
  }

  #openKeys(keys: Keys, ids: Float64Array, index: number, n: number): void {
    openNumbers(ids, index, n);
    if (keys === ids) return;
    if (this.#numeric) openNumbers(keys as Float64Array, index, n);
    else openValues(keys as unknown[], index, n);
  }

  #closeKeys(keys: Keys, ids: Float64Array, index: number, n: number): void {
    closeNumbers(ids, index, n);
    if (keys === ids) return;
    if (this.#numeric) closeNumbers(keys as Float64Array, index, n);
    else closeValues(keys as unknown[], index, n);
  }

  #hang(inner: Inner, index: number, kid: Node, count: number, key: unknown, id: number): void {
    this.#openKeys(inner.keys, inner.ids, index, inner.n);
    inner.keys[index] = key;
    inner.ids[index] = id;
    openNumbers(inner.counts, index, inner.n);
    inner.counts[index] = count;
    openValues(inner.kids, index, inner.n);
    inner.kids[index] = kid;
    inner.n++;
  }

  #unhang(inner: Inner, index: number): void {
    this.#closeKeys(inner.keys, inner.ids, index, inner.n);
    closeNumbers(inner.counts, index, inner.n);
    closeValues(inner.kids, index, inner.n);
    inner.n--;
    this.#nodes--;
  }

  /** Moves without touching either n. */
  #moveEntries(from: Leaf, start: number, to: Leaf, at: number, count: number): void {
    if (this.#kind !== "id") moveKeys(from.keys, start, to.keys, at, count);
    moveNumbers(from.ids, start, to.ids, at, count);
    moveValues(from.rows, start, to.rows, at, count);
  }

  #moveKids(from: Inner, start: number, to: Inner, at: number, count: number): void {
    if (this.#kind !== "id") moveKeys(from.keys, start, to.keys, at, count);
    moveNumbers(from.ids, start, to.ids, at, count);
    moveNumbers(from.counts, start, to.counts, at, count);
    moveValues(from.kids, start, to.kids, at, count);
  }

  /** Whether the node below `level` on the path lies on the tree's left or right edge. */
  #onEdge(level: number): boolean {
    let left = true;
    let right = true;
    for (let above = level; above <= this.#height; above++) {
      const slot = this.#slots[above] as number;
      left &&= slot === 0;
      right &&= slot === (this.#path[above] as Inner).n - 1;
    }
    return left || right;
  }

  /** Restores the shape upwards from a leaf that has become sparse. */
  #mend(leaf: Leaf): void {
    let node: Node = leaf;
    for (let level = 1; level <= this.#height && node.n <= this.#sparse; level++) {
      const parent = this.#path[level] as Inner;
      const slot = this.#slots[level] as number;
      if (node.n === 0) {
        if (node instanceof Leaf) this.#unlink(node);
        this.#unhang(parent, slot);
      } else if (slot > 0 && node.n + (parent.kids[slot - 1] as Node).n <= this.#roomy) {
        this.#join(parent, slot - 1);
      } else if (slot + 1 < parent.n && node.n + (parent.kids[slot + 1] as Node).n <= this.#roomy) {
        this.#join(parent, slot);
      } else {
        if (node.n < this.#least && !this.#onEdge(level)) this.#even(parent, slot > 0 ? slot - 1 : slot);
        break;
      }
      node = parent;
    }
    while (this.#height > 0 && this.#root.n === 1) {
      this.#root = (this.#root as Inner).kids[0] as Node;
      this.#height--;
      this.#nodes--;
    }
    // The path would keep dropped nodes alive.
    this.#path.fill(undefined);
  }

  #unlink(leaf: Leaf): void {
    if (leaf.previous === null) this.#first = leaf.next as Leaf;
    else leaf.previous.next = leaf.next;
    if (leaf.next === null) this.#last = leaf.previous as Leaf;
    else leaf.next.previous = leaf.previous;
  }

  /** Makes one node of the children `slot` and `slot + 1`. */
  #join(parent: Inner, slot: number): void {
    const right = parent.kids[slot + 1] as Node;
    this.#shift(parent, slot, right.n);
    if (right instanceof Leaf) this.#unlink(right);
    parent.counts[slot] = (parent.counts[slot] as number) + (parent.counts[slot + 1] as number);
    this.#unhang(parent, slot + 1);
  }

  /** Gives the children `slot` and `slot + 1` half each of what both hold. */
  #even(parent: Inner, slot: number): void {
    const left = parent.kids[slot] as Node;
    const right = parent.kids[slot + 1] as Node;
    this.#shift(parent, slot, ((left.n + right.n) >> 1) - left.n);
    const both = (parent.counts[slot] as number) + (parent.counts[slot + 1] as number);
    parent.counts[slot] = left instanceof Leaf ? left.n : left.total();
    parent.counts[slot + 1] = both - (parent.counts[slot] as number);
    parent.keys[slot + 1] = right.keys[0];
    parent.ids[slot + 1] = right.ids[0] as number;
  }

  /** Moves `moved` from the child `slot + 1` to the child `slot`; a negative number the other way. */
  #shift(parent: Inner, slot: number, moved: number): void {
    const left = parent.kids[slot] as Node;
    const right = parent.kids[slot + 1] as Node;
    if (left instanceof Leaf) {
      this.#shiftEntries(left, right as Leaf, moved);
    } else {
      // The first child of a node has its bound in the parent alone.
      right.keys[0] = parent.keys[slot + 1];
      right.ids[0] = parent.ids[slot + 1] as number;
      this.#shiftKids(left, right as Inner, moved);
    }
    left.n += moved;
    right.n -= moved;
  }

  #shiftEntries(left: Leaf, right: Leaf, moved: number): void {
    if (moved > 0) {
      this.#moveEntries(right, 0, left, left.n, moved);
      this.#moveEntries(right, moved, right, 0, right.n - moved);
    } else {
      this.#moveEntries(right, 0, right, -moved, right.n);
      this.#moveEntries(left, left.n + moved, right, 0, -moved);
    }
  }

  #shiftKids(left: Inner, right: Inner, moved: number): void {
    if (moved > 0) {
      this.#moveKids(right, 0, left, left.n, moved);
      this.#moveKids(right, moved, right, 0, right.n - moved);
    } else {
      this.#moveKids(right, 0, right, -moved, right.n);
      this.#moveKids(left, left.n + moved, right, 0, -moved);
    }
  }

  /** Proves the whole structure: order, bounds, counts, fill, links, nothing held past a node's end. Throws. */
  check(): void {
    let previous: Leaf | null = null;
    let nodes = 0;

    const orderKeys = (a: unknown, b: unknown): number => {
      if (!this.#numeric) return this.#compare(a as K, b as K);
      return (a as number) < (b as number) ? -1 : a === b ? 0 : 1;
    };
    const notAfter = (key: unknown, id: number, otherKey: unknown, otherId: number): boolean => {
      const order = orderKeys(key, otherKey);
      return order < 0 || (order === 0 && id <= otherId);
    };

    // Recursion over the tree's own height, which is bounded.
    const visit = (node: Node, level: number, leftEdge: boolean, rightEdge: boolean): number => {
      nodes++;
      const edge = leftEdge || rightEdge;
      const least = level === this.#height ? (level === 0 ? 0 : 2) : edge ? 1 : this.#least;
      assert(node.n >= least && node.n <= this.#fanout, `tree: a node of ${node.n} at level ${level}`);
      if (!this.#numeric) {
        for (let i = node.n; i < this.#fanout; i++) assert(node.keys[i] === undefined, "tree: a key past the end");
      }
      if (node instanceof Leaf) {
        assert(level === 0, "tree: a leaf above the lowest level");
        assert(node.previous === previous, "tree: a leaf's link backwards");
        if (previous === null) assert(this.#first === node, "tree: the first leaf");
        else assert(previous.next === node, "tree: a leaf's link forwards");
        for (let i = 0; i < node.n; i++) {
          assert((node.rows[i] as R)[0] === node.ids[i], "tree: an id is not its row's");
          const before = i > 0 ? node : previous;
          if (before === null) continue;
          assert(this.#before(before, i > 0 ? i - 1 : before.n - 1, node, i), "tree: entries out of order");
        }
        for (let i = node.n; i < this.#fanout; i++) assert(node.rows[i] === undefined, "tree: a row past the end");
        previous = node;
        return node.n;
      }
      assert(level > 0, "tree: an inner node at the lowest level");
      let total = 0;
      for (let i = 0; i < node.n; i++) {
        const kid = node.kids[i] as Node;
        const before = previous;
        const count = visit(kid, level - 1, leftEdge && i === 0, rightEdge && i === node.n - 1);
        assert(count === node.counts[i], "tree: a count is not its subtree's");
        total += count;
        if (i === 0) continue;
        let first: Node = kid;
        while (first instanceof Inner) first = first.kids[0] as Node;
        assert(
          notAfter(node.keys[i], node.ids[i] as number, first.keys[0], first.ids[0] as number),
          "tree: a separator after its child",
        );
        const end: Leaf = before as unknown as Leaf;
        const last = end.n - 1;
        assert(
          !notAfter(node.keys[i], node.ids[i] as number, end.keys[last], end.ids[last] as number),
          "tree: a separator not after the child before",
        );
      }
      for (let i = node.n; i < this.#fanout; i++) assert(node.kids[i] === undefined, "tree: a child past the end");
      return total;
    };

    const total = visit(this.#root, this.#height, true, true);
    assert(total === this.#size, "tree: its size");
    assert(nodes === this.#nodes, "tree: its node count");
    assert(this.#last === (previous as Leaf | null) && this.#last.next === null, "tree: the last leaf");
  }
}
