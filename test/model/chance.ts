/**
 * Random collections and statements as texts with their parameters. Most of what is made is right and meets rows that are
 * there; some of it is wrong in each of the ways a statement can be.
 */

import type { FieldType } from "../../src/value/value.ts";
import type { Random } from "../store/random.ts";
import type { Collection, Database, Field } from "./database.ts";
import { jsonOf, type Plain } from "./plain.ts";

export interface Written {
  readonly text: string;
  /** Each a json text. */
  readonly params: readonly string[];
}

const INTS = "0 1 2 3 4 5 7 -1 -3 100 9007199254740991 9007199254740993 9223372036854775807 -9223372036854775808".split(
  " ",
);
const FLOATS = "0.5 1.5 2.0 -0.0 0.1 2.5 1e300 -1e300 1.50 1E2 3 12345.678 9007199254740992.0".split(" ");
const TEXTS = [
  "",
  "a",
  "b",
  "B",
  "ab",
  "w1:1842",
  "é",
  "Z",
  "z",
  "\uffff",
  "😀",
  "日本",
  'say "hi"',
  "back\\slash",
  "it's",
];
const JSON_SCALARS = [
  "null",
  "true",
  "false",
  "0",
  "1",
  "1.0",
  "2.5",
  "-0",
  "1.50",
  "1E2",
  '"a"',
  '"b"',
  "[1,2]",
  "[]",
  '{"z":1}',
];
const JSON_NUMBERS = [
  "9007199254740993",
  "123456789012345678901234567890",
  "3889108265204450030",
  "3889108265204450031",
];
const KEYS = ["k", "o", "to", "__proto__", "constructor"];
const LONGITUDES = "-180 -179.9 -0.5 0 13.361389 29.01 29.03 179.9 180".split(" ");
const LATITUDES = "-90 -45.5 0 38.115556 41.04 41.05 90".split(" ");
const FIELD_NAMES = [
  "a",
  "b",
  "n",
  "owner",
  "group",
  "key",
  "text",
  "at",
  "payload",
  "p",
  "tags",
  "_x",
  "görev",
  "name",
  "error",
];
const COLLECTION_NAMES = ["jobs", "tasks", "Übung", "group"];
const TYPES = "bool int int int float text text bytes timestamp timestamp json json geo [int] [text] [float]".split(
  " ",
);
const INDEXES: Readonly<Record<string, readonly string[]>> = {
  bool: ["hash"],
  int: ["hash", "unique", "sorted", "sorted"],
  float: ["hash", "unique", "sorted"],
  text: ["hash", "unique", "sorted"],
  bytes: ["hash", "unique"],
  timestamp: ["hash", "sorted", "sorted", "ttl(1s)", "ttl(30s)", "ttl(2m)", "unique"],
  geo: ["geo"],
};
const INTERVALS = ["1s", "15m", "1h", "1d", "1w", "1mo", "3mo", "1y", "500ms", "0s"];

/** Writes one statement. */
export class Writer {
  readonly #random: Random;
  readonly #database: Database;
  readonly #now: number;
  readonly params: string[] = [];
  /** How often something is made wrong on purpose. */
  readonly #wrong: number;
  /** Reads inside reads. */
  #level = 0;

  constructor(random: Random, database: Database, now: number, wrong: number) {
    this.#random = random;
    this.#database = database;
    this.#now = now;
    this.#wrong = wrong;
  }

  #maybe(share: number, make: () => string): string {
    return this.#random.chance(share) ? make() : "";
  }

  #some<T>(least: number, most: number, make: () => T): T[] {
    return Array.from({ length: least + this.#random.below(most - least + 1) }, make);
  }

  // ----------------------------------------------------------------------------------------------------------- values

  /** A constant, written out or sent. */
  constant(json: string, written = json): string {
    if (!this.#random.chance(0.3)) return written;
    const known = this.params.indexOf(json);
    if (known >= 0) return `$${known + 1}`;
    this.params.push(json);
    return `$${this.params.length}`;
  }

  #text(value: string): string {
    const quote = this.#random.pick(['"', "'"]);
    const escaped = value.replaceAll("\\", "\\\\").replaceAll(quote, `\\${quote}`);
    return this.constant(JSON.stringify(value), quote + escaped + quote);
  }

  #number(digits: string): string {
    // `-0` is an int of the language and a float of json.
    return this.constant(digits === "-0" ? "0" : digits);
  }

  #int(): string {
    const random = this.#random;
    return this.#number(random.chance(0.8) ? String(random.below(8)) : random.pick(INTS));
  }

  #point(): string {
    return this.constant(`[${this.#random.pick(LONGITUDES)},${this.#random.pick(LATITUDES)}]`);
  }

  /** A moment around now, whole seconds as often as not. */
  #ms(): number {
    const random = this.#random;
    const away = random.chance(0.5) ? 1000 * (random.below(80) - 50) : random.below(4000) - 2000;
    return this.#now - (this.#now % 1000) + away;
  }

  #time(): string {
    const random = this.#random;
    switch (random.below(7)) {
      case 0:
        return "now()";
      case 1:
        return `now() + ${this.#number(String(1000 * random.below(60)))}`;
      case 2:
        return `now() - ${this.#number(String(random.below(3000)))}`;
      case 3:
        return this.#number(String(this.#ms()));
      default: {
        const iso = new Date(this.#ms()).toISOString();
        const shown = random.chance(0.5)
          ? iso.replace("Z", "+00:00")
          : iso.slice(0, 19) + iso.slice(19).replace(".000", "");
        return random.chance(0.2) ? `timestamp(${this.#text(shown)})` : this.#text(shown);
      }
    }
  }

  #json(level: number): string {
    const random = this.#random;
    if (level === 0 || random.chance(0.3)) {
      if (random.chance(0.2)) return random.pick(JSON_NUMBERS);
      return random.chance(0.5) ? String(random.below(6)) : random.pick(JSON_SCALARS);
    }
    if (random.chance(0.15)) return `[${this.#some(0, 3, () => this.#json(level - 1)).join(",")}]`;
    const keys = new Set(this.#some(0, 3, () => random.pick(KEYS)));
    return `{${[...keys].map((key) => `${JSON.stringify(key)}:${this.#json(level - 1)}`).join(",")}}`;
  }

  /** Json written in the language: the same text, but for what only json has. */
  #jsonConstant(json: string): string {
    const isJsonOnly = /123456789012345678901234567890|(^|[[,:])-0([\],}]|$)/.test(json);
    if (!isJsonOnly) return this.constant(json);
    this.params.push(json);
    return `$${this.params.length}`;
  }

  /** A constant for a field of a type; a wrong one now and then. */
  value(type: FieldType): string {
    const random = this.#random;
    if (random.chance(0.08)) return "null";
    if (random.chance(this.#wrong)) return this.#anything();
    switch (type.kind) {
      case "bool":
        return this.constant(random.pick(["true", "false"]));
      case "int":
        return this.#int();
      case "float":
        return this.#number(random.chance(0.5) ? String(random.below(5) / 2) : random.pick(FLOATS));
      case "text":
        return this.#text(random.pick(TEXTS));
      case "bytes":
        return random.chance(0.5)
          ? this.#text(random.pick(TEXTS))
          : this.constant(random.pick(["[1,2,255]", "[]", "[0]", "[97]"]));
      case "timestamp":
        return this.#time();
      case "json":
        return this.#jsonConstant(this.#json(2));
      case "geo":
        return this.#point();
      case "list":
        return this.constant(`[${this.#some(0, 3, () => this.#element(type.of)).join(",")}]`);
    }
  }

  #element(type: FieldType): string {
    if (type.kind === "text") return JSON.stringify(this.#random.pick(["a", "b", "é", "Z"]));
    return type.kind === "float" && this.#random.chance(0.5) ? "1.5" : String(this.#random.below(5));
  }

  #anything(): string {
    const random = this.#random;
    return random.pick([
      () => this.#int(),
      () => this.#text(random.pick(TEXTS)),
      () => this.#number(random.pick(FLOATS)),
      () => this.constant(random.pick(["true", "false", "null"])),
      () => this.#jsonConstant(this.#json(2)),
      () => this.#point(),
      () => this.#time(),
      () => this.#number("2.5"),
      () => this.constant('{"k":1}'),
      () => `$${9 + random.below(3)}`,
    ])();
  }

  // ------------------------------------------------------------------------------------------------------ expressions

  #field(collection: Collection, kind?: FieldType["kind"]): Field | undefined {
    const fields =
      kind === undefined ? collection.fields : collection.fields.filter((field) => field.type.kind === kind);
    return fields.length === 0 ? undefined : this.#random.pick(fields);
  }

  #path(name: string): string {
    return [name, ...this.#some(1, 2, () => this.#random.pick(KEYS))].join(".");
  }

  /** A field, a path into one, or a name there is none of. */
  name(collection: Collection): string {
    const random = this.#random;
    if (random.chance(this.#wrong)) return random.pick(["nope", "id.k", "n.k", "payloads", "ID"]);
    if (random.chance(0.12)) return "id";
    const field = random.pick(collection.fields);
    return field.type.kind === "json" && random.chance(0.6) ? this.#path(field.name) : field.name;
  }

  condition(collection: Collection, depth: number): string {
    const random = this.#random;
    if (depth > 0 && random.chance(0.1)) return this.#range(collection).join(" and ");
    if (depth > 0 && random.chance(0.5)) {
      const part = (): string => this.condition(collection, depth - 1);
      switch (random.below(5)) {
        case 0:
          return `(${part()} or ${part()})`;
        case 1:
          return `not ${random.chance(0.5) ? `(${part()})` : part()}`;
        case 2:
          return [...this.#range(collection), part()].join(" and ");
        default:
          return this.#some(2, 3, part).join(" and ");
      }
    }
    return this.#comparison(collection);
  }

  /** Bounds of one field, which may say the same, or nothing together. */
  #range(collection: Collection): string[] {
    const random = this.#random;
    const field = random.pick(collection.fields);
    const name = random.chance(0.2) ? "id" : field.type.kind === "json" ? `${field.name}.k` : field.name;
    const type: FieldType = name === "id" ? { kind: "int" } : field.type;
    const bound = this.value(type);
    const value = (): string => (random.chance(0.7) ? bound : this.value(type));
    const ops = random.pick([
      ["<", "<="],
      [">", ">="],
      ["<", "<=", ">", ">=", "="],
    ] as const);
    return this.#some(2, 3, () => `${name} ${random.pick(ops)} ${value()}`);
  }

  #comparison(collection: Collection): string {
    const random = this.#random;
    const op = (): string => random.pick(["=", "=", "!=", "<", "<=", ">", ">=", "<>", "=="]);
    const field = random.pick(collection.fields);
    const name = field.type.kind === "json" && random.chance(0.8) ? this.#path(field.name) : field.name;
    const value = (): string =>
      field.type.kind === "json" ? this.#jsonConstant(this.#json(1)) : this.value(field.type);
    switch (random.below(16)) {
      case 0:
        return `id ${op()} ${this.#number(String(random.below(collection.nextId + 2)))}`;
      case 1:
        return `id in [${this.#some(0, 4, () => this.#number(String(random.below(collection.nextId + 2)))).join(", ")}]`;
      case 2:
        return `${name} is ${random.pick(["", "not "])}null`;
      case 3:
        return `${name} in [${this.#some(0, 4, () => (random.chance(0.1) ? "null" : value())).join(", ")}]`;
      case 4:
        return `${value()} ${op()} ${name}`;
      case 5:
        return `${name} ${random.pick(["~", "has"])} ${random.chance(0.5) ? this.#text(random.pick(TEXTS)) : value()}`;
      case 6:
        if (this.#level < 3) return this.#innerGet(collection);
        break;
      case 7:
        return `${this.name(collection)} ${op()} ${this.name(collection)}`;
      case 8:
        return `${this.scalar(collection, 1)} ${op()} ${this.scalar(collection, 1)}`;
      case 9: {
        const time = this.#field(collection, "timestamp");
        if (time === undefined) break;
        const bound = random.pick([
          "now()",
          `now() + ${this.#int()}000`,
          `now() - ${this.#number(String(random.below(9000)))}`,
        ]);
        return random.chance(0.7) ? `${time.name} ${op()} ${bound}` : `${bound} ${op()} ${time.name}`;
      }
      case 10: {
        const geo = this.#field(collection, "geo");
        if (geo === undefined) break;
        const metres = this.#number(random.pick(["0", "100", "2500.5", "500000", "9000000", "30000000"]));
        if (random.chance(0.3)) {
          const box = random.pick(["[-1,-1,30,45]", "[170,-90,-170,90]", "[29,41,29.02,41.05]", "[0,0,0,0]"]);
          return `within(${geo.name}, ${this.constant(box)})`;
        }
        const away = random.chance(0.5)
          ? `distance(${geo.name}, ${this.#point()})`
          : `distance(${this.#point()}, ${geo.name})`;
        return random.chance(0.7)
          ? `${away} ${random.pick(["<", "<="])} ${metres}`
          : `${metres} ${random.pick([">", ">="])} ${away}`;
      }
      case 11:
        if (collection.ttl !== null || random.chance(this.#wrong)) return "expired()";
        break;
      case 12: {
        const known = this.#known(collection, field);
        if (known !== undefined) return `${field.name} ${op()} ${known}`;
        break;
      }
      case 13:
        if (random.chance(this.#wrong * 3)) return random.pick([field.name, "1", "null", "true", '"x"', "false"]);
        break;
    }
    return `${name} ${op()} ${value()}`;
  }

  /** What a row of the collection holds. */
  #known(collection: Collection, field: Field): string | undefined {
    const rows = [...collection.rows.values()];
    if (rows.length === 0) return undefined;
    const cell = this.#random.pick(rows).get(field.name) as Plain;
    if (cell.kind === "text") return this.#text(cell.text);
    if (cell.kind === "null") return "null";
    return field.type.kind === "json" ? this.#jsonConstant(jsonOf(cell)) : this.constant(jsonOf(cell));
  }

  #innerGet(collection: Collection): string {
    const random = this.#random;
    this.#level++;
    const other = random.chance(0.6) ? collection : random.pick([...this.#database.collections.values()]);
    const field = random.pick(collection.fields);
    const same = other.fields.filter((each) => each.type.kind === field.type.kind);
    const column = same.length > 0 && random.chance(0.8) ? random.pick(same).name : this.name(other);
    const where = this.#maybe(0.7, () => ` where ${this.condition(other, 1)}`);
    const order = this.#maybe(0.3, () => ` order ${this.name(other)} desc limit ${random.below(5)}`);
    const list = random.chance(this.#wrong) ? "*" : random.chance(0.1) ? "max(id)" : column;
    this.#level--;
    return `${random.chance(0.2) ? "id" : field.name} in (get ${other.name} select ${list}${where}${order})`;
  }

  /** A value over a row. Sums of texts and times are rare, and wrong. */
  scalar(collection: Collection, depth: number): string {
    const random = this.#random;
    if (depth <= 0) return random.chance(0.6) ? this.name(collection) : this.value(random.pick(collection.fields).type);
    const deeper = (): string => this.scalar(collection, depth - 1);
    const number = (): string => this.#numeric(collection, depth - 1);
    switch (random.below(11)) {
      case 0:
        return `coalesce(${this.#some(1, 3, deeper).join(", ")})`;
      case 1:
        return `case when ${this.condition(collection, 1)} then ${deeper()} else ${deeper()} end`;
      case 2:
        return `case when ${this.condition(collection, 0)} then ${deeper()} when ${this.condition(collection, 0)} then ${deeper()} end`;
      case 3: {
        const textual = this.#field(collection, "text")?.name ?? this.#text("Ab");
        return random.pick([
          `lower(${textual})`,
          `upper(${textual})`,
          `len(${textual})`,
          `${textual} + ${this.#text("-")}`,
        ]);
      }
      case 4: {
        const time = this.#field(collection, "timestamp")?.name ?? "now()";
        return random.pick([
          `bucket(${time}, ${random.pick(INTERVALS)})`,
          `bucket(${time}, ${this.#text(random.pick(INTERVALS))})`,
          `${time} + ${this.#int()}`,
          `now() - ${time}`,
          `${time} - ${this.#number("1000")}`,
        ]);
      }
      case 5: {
        const geo = this.#field(collection, "geo")?.name ?? this.#point();
        return `distance(${geo}, ${this.#point()})`;
      }
      case 6:
        return `${random.pick(["greatest", "least"])}(${number()}, ${number()})`;
      case 7:
        if (random.chance(this.#wrong * 2)) return `${deeper()} ${random.pick(["+", "-", "*", "/"])} ${deeper()}`;
        return number();
      case 8:
        if (random.chance(this.#wrong * 2))
          return random.pick(["nofunction(1)", "len()", "now(1)", "sum(id)", "lower(id)"]);
        return number();
      default:
        return number();
    }
  }

  #numeric(collection: Collection, depth: number): string {
    const random = this.#random;
    const leaf = (): string => {
      if (random.chance(0.4)) return this.#number(String(random.below(5)));
      if (random.chance(0.2)) return "id";
      return (this.#field(collection, random.pick(["int", "float"])) ?? { name: this.#number("2.5") }).name;
    };
    if (depth <= 0 || random.chance(0.3)) return leaf();
    const op = random.chance(0.1) ? "/" : random.pick(["+", "-", "*"]);
    const sum = `${this.#numeric(collection, depth - 1)} ${op} ${leaf()}`;
    return random.chance(0.2) ? `-(${sum})` : random.chance(0.3) ? `(${sum})` : sum;
  }

  // ------------------------------------------------------------------------------------------------------- statements

  #collection(): Collection | undefined {
    const all = [...this.#database.collections.values()];
    return all.length === 0 ? undefined : this.#random.pick(all);
  }

  #named(collection: Collection): string {
    return this.#random.chance(this.#wrong / 4) ? "nowhere" : collection.name;
  }

  /** Clauses in any order. */
  #clauses(parts: readonly string[]): string {
    const left = parts.filter((part) => part !== "");
    let shuffled = "";
    while (left.length > 0) shuffled += ` ${left.splice(this.#random.below(left.length), 1)[0]}`;
    return shuffled;
  }

  #order(collection: Collection): string {
    const random = this.#random;
    const key = (): string => {
      const geo = this.#field(collection, "geo");
      const near = geo !== undefined && random.chance(0.25) ? `distance(${geo.name}, ${this.#point()})` : undefined;
      const expr = near ?? (random.chance(0.8) ? this.name(collection) : this.scalar(collection, 1));
      return expr + random.pick(["", "", " desc", " asc"]);
    };
    return `order ${this.#maybe(0.3, () => "by ")}${this.#some(1, random.chance(0.3) ? 3 : 1, key).join(", ")}`;
  }

  #limit(): string {
    const random = this.#random;
    if (random.chance(this.#wrong / 2)) return `limit ${this.constant("-1", "$12")}`;
    return `limit ${this.#number(String(random.chance(0.1) ? 0 : 1 + random.below(9)))}`;
  }

  #where(collection: Collection, share: number): string {
    return this.#maybe(share, () => `where ${this.condition(collection, this.#random.below(3))}`);
  }

  #require(): string {
    return this.#maybe(0.08, () => `require ${this.#random.below(4)}`);
  }

  get(collection: Collection): string {
    const random = this.#random;
    const verb = random.pick(["get", "get", "select", "GET"]);
    const from = `${verb} ${this.#maybe(0.1, () => "from ")}${this.#named(collection)}`;
    const where = this.#where(collection, 0.8);
    switch (random.below(9)) {
      case 0:
        return from + this.#clauses([where, "count", this.#maybe(this.#wrong, () => this.#limit())]);
      case 1:
      case 2:
        return from + this.#grouped(collection, where);
      case 3: {
        const geo = this.#field(collection, "geo");
        if (geo === undefined) break;
        const near = `near ${random.chance(this.#wrong) ? this.name(collection) : geo.name} ${this.#point()}`;
        const exact = this.#maybe(0.2, () => " exact");
        return (
          from +
          this.#clauses([where, near + exact, this.#maybe(0.7, () => this.#limit()), this.#list(collection, 0.4)])
        );
      }
    }
    const page = [
      this.#maybe(0.6, () => this.#order(collection)),
      this.#maybe(0.4, () => this.#limit()),
      this.#maybe(0.15, () => `offset ${this.#number(String(random.below(5)))}`),
    ];
    return from + this.#clauses([where, ...page, this.#list(collection, 0.6), this.#require()]);
  }

  #list(collection: Collection, share: number): string {
    const random = this.#random;
    const item = (at: number): string => {
      if (random.chance(0.1)) return "*";
      if (random.chance(0.65)) return this.name(collection) + this.#maybe(0.1, () => ` as c${at}`);
      const as = random.chance(this.#wrong) ? "" : ` as c${at}`;
      return `${this.scalar(collection, 2)}${as}`;
    };
    let at = 0;
    return this.#maybe(share, () => `select ${this.#some(1, 3, () => item(at++)).join(", ")}`);
  }

  #aggregate(collection: Collection): string {
    const random = this.#random;
    const name = (): string => {
      const numbers = collection.fields.filter(({ type }) => type.kind === "int" || type.kind === "float");
      return numbers.length > 0 && random.chance(0.7) ? random.pick(numbers).name : "id";
    };
    switch (random.below(8)) {
      case 0:
        return "count(*)";
      case 1:
        return `count(distinct ${this.name(collection)})`;
      case 2:
        return `sum(${name()})`;
      case 3:
        return `avg(${name()})`;
      case 4:
        return `${random.pick(["min", "max"])}(${this.#orderable(collection)})`;
      case 5:
        return `first(${this.name(collection)}${this.#maybe(0.6, () => ` by ${this.name(collection)}`)})`;
      case 6:
        return `last(${this.name(collection)}${this.#maybe(0.6, () => ` by ${this.name(collection)}`)})`;
      default:
        return random.chance(this.#wrong) ? this.scalar(collection, 1) : `max(${name()})`;
    }
  }

  #orderable(collection: Collection): string {
    const kinds = ["int", "float", "text", "timestamp"];
    const fields = collection.fields.filter(({ type }) => kinds.includes(type.kind));
    if (fields.length === 0 || this.#random.chance(this.#wrong)) return this.name(collection);
    return this.#random.pick(fields).name;
  }

  #grouped(collection: Collection, where: string): string {
    const random = this.#random;
    const isWhole = random.chance(0.25);
    const keys = isWhole
      ? []
      : this.#some(1, 2, () => (random.chance(0.85) ? this.name(collection) : this.scalar(collection, 1)));
    const items: string[] = [];
    const columns: string[] = [];
    let at = 0;
    for (const key of keys) {
      if (random.chance(0.3)) continue;
      const as = /^[\p{L}\d_.]+$/u.test(key) && random.chance(0.7) ? "" : ` as k${at++}`;
      items.push(key + as);
      if (as === "" && !key.includes(".")) columns.push(key);
    }
    for (const aggregate of this.#some(1, 3, () => this.#aggregate(collection))) {
      if (random.chance(0.5)) items.push(aggregate);
      else {
        items.push(`${random.chance(0.3) ? `${aggregate} + 1` : aggregate} as s${at}`);
        columns.push(`s${at++}`);
      }
    }
    const counted = random.chance(0.15) && !isWhole;
    const list = `select ${items.join(", ")}`;
    const group = isWhole ? "" : `group ${this.#maybe(0.3, () => "by ")}${keys.join(", ")}`;
    const having = this.#maybe(isWhole ? this.#wrong : 0.3, () => {
      const column = columns.length > 0 && random.chance(0.6) ? random.pick(columns) : this.#aggregate(collection);
      return `having ${column} ${random.pick(["=", ">", "<=", "!="])} ${this.#int()}`;
    });
    const order = this.#maybe(
      columns.length > 0 ? 0.4 : 0,
      () => `order ${random.pick(columns)}${random.pick(["", " desc"])}`,
    );
    const page = [
      this.#maybe(isWhole ? this.#wrong : 0.3, () => this.#limit()),
      this.#maybe(isWhole ? 0 : 0.1, () => "offset 1"),
    ];
    if (counted) return this.#clauses([where, group, having, "count", random.chance(0.5) ? list : ""]);
    return this.#clauses([where, list, group, having, order, ...page, this.#require()]);
  }

  #patch(collection: Collection, incoming: boolean): string {
    const random = this.#random;
    const names = new Set<string>();
    const entries: string[] = [];
    for (const field of this.#some(1, 3, () => random.pick(collection.fields))) {
      const isPath = field.type.kind === "json" && random.chance(0.5);
      const name = random.chance(this.#wrong / 2)
        ? random.pick(["nope", "id", "n.k"])
        : isPath
          ? this.#path(field.name)
          : field.name;
      if (names.has(name)) continue;
      names.add(name);
      entries.push(`${name}: ${this.#newValue(collection, field, incoming)}`);
    }
    return `{${entries.join(", ")}}`;
  }

  #newValue(collection: Collection, field: Field, incoming: boolean): string {
    const random = this.#random;
    if (incoming && random.chance(0.5)) {
      return `new.${random.chance(this.#wrong) ? "nope" : random.chance(0.1) ? "id" : field.name}`;
    }
    if (random.chance(0.5)) return this.value(field.type);
    const same = collection.fields.filter((each) => each.type.kind === field.type.kind);
    const name = random.pick(same).name;
    switch (field.type.kind) {
      case "int":
        return random.pick([
          `${name} + 1`,
          `coalesce(${name}, 0) + ${this.#int()}`,
          `case when ${this.condition(collection, 1)} then null else ${name} end`,
        ]);
      case "float":
        return random.pick([`${name} * 2`, `${name} / ${this.#number("4")}`, name]);
      case "text":
        return random.pick([`${name} + "x"`, `lower(${name})`, name]);
      case "timestamp":
        return random.pick([`now() + 1000 * ${this.#int()}`, `${name} + 1000`, this.#time()]);
      case "json":
        return random.chance(0.5)
          ? `{k: ${this.scalar(collection, 1)}, "o": [${this.#int()}]}`
          : this.scalar(collection, 1);
      default:
        return random.chance(this.#wrong * 3) ? this.scalar(collection, 1) : name;
    }
  }

  #returning(collection: Collection): string {
    return this.#maybe(0.6, () => {
      if (this.#random.chance(0.4)) return "returning *";
      const items = this.#some(1, 3, () => this.name(collection));
      if (this.#random.chance(0.15)) items.push(`${this.scalar(collection, 1)} as c`);
      return `returning ${items.join(", ")}`;
    });
  }

  set(collection: Collection): string {
    const claim = collection.fields.find((field) => field.type.kind === "timestamp");
    const random = this.#random;
    if (claim !== undefined && random.chance(0.3)) {
      const { name } = claim;
      const limit = `limit ${1 + random.below(5)}`;
      return `set ${collection.name} {${name}: now() + ${this.#number("30000")}} where ${name} <= now() order ${name} ${limit} returning *`;
    }
    const page = [this.#maybe(0.4, () => this.#order(collection)), this.#maybe(0.6, () => this.#limit())];
    const clauses = [this.#where(collection, 0.9), ...page, this.#returning(collection), this.#require()];
    return `${random.pick(["set", "set", "update"])} ${this.#named(collection)} ${this.#patch(collection, false)}${this.#clauses(clauses)}`;
  }

  /** @param least rows above which it deletes more boldly */
  del(collection: Collection, least: number): string {
    const page = [this.#maybe(0.4, () => this.#order(collection)), this.#maybe(0.7, () => this.#limit())];
    const where =
      collection.rows.size > least
        ? this.#where(collection, 0.5)
        : `where ${this.condition(collection, 1)} and ${this.condition(collection, 0)}`;
    const clauses = [where, ...page, this.#returning(collection), this.#require()];
    return `${this.#random.pick(["del", "del", "delete", "del from"])} ${this.#named(collection)}${this.#clauses(clauses)}`;
  }

  put(collection: Collection): string {
    const random = this.#random;
    const verb = random.pick(["put", "put", "insert", "insert into", "put into"]);
    const absent = this.#maybe(
      0.3,
      () => ` if absent${this.#maybe(0.5, () => ` else set ${this.#patch(collection, true)}`)}`,
    );
    const tail = `${absent}${this.#maybe(0.06, () => ` require ${random.below(3)}`)}`;
    if (random.chance(0.35)) {
      const documents = this.#some(0, 3, () => this.#sentDocument(collection));
      this.params.push(
        documents.length === 1 && random.chance(0.7) ? (documents[0] as string) : `[${documents.join(",")}]`,
      );
      return `${verb} ${this.#named(collection)} $${this.params.length}${tail}`;
    }
    const documents = this.#some(1, 3, () => this.#document(collection));
    const list = documents.length > 1 || random.chance(0.2) ? `[${documents.join(", ")}]` : documents.join(" ");
    return `${verb} ${this.#named(collection)} ${list}${tail}`;
  }

  #document(collection: Collection): string {
    const random = this.#random;
    const entries: string[] = [];
    if (random.chance(0.15)) entries.push(`id: ${this.#id(collection)}`);
    for (const field of collection.fields) {
      if (!field.required && random.chance(0.2)) continue;
      if (field.type.kind === "json" && random.chance(0.15))
        entries.push(`${this.#path(field.name)}: ${this.#jsonConstant(this.#json(1))}`);
      else if (field.type.kind === "int" && random.chance(0.1)) entries.push(`${field.name}: ${this.#int()} * 2 + 1`);
      else entries.push(`${random.chance(0.1) ? JSON.stringify(field.name) : field.name}: ${this.value(field.type)}`);
    }
    if (random.chance(this.#wrong / 2)) entries.push("nope: 1");
    return `{${entries.join(", ")}}`;
  }

  #id(collection: Collection): string {
    const random = this.#random;
    if (random.chance(this.#wrong)) return random.pick(['"x"', "2.5", "-1", "9223372036854775807", "null", "2.0"]);
    return this.#number(String(random.below(collection.nextId + 4)));
  }

  /** A document as json: what a value of its field may be sent as. */
  #sentDocument(collection: Collection): string {
    const random = this.#random;
    const members: string[] = [];
    if (random.chance(0.15))
      members.push(`"id":${random.chance(this.#wrong) ? '"x"' : random.below(collection.nextId + 4)}`);
    for (const field of collection.fields) {
      if (!field.required && random.chance(0.2)) continue;
      members.push(`${JSON.stringify(field.name)}:${this.#sentValue(field.type)}`);
    }
    if (random.chance(this.#wrong / 2)) members.push('"nope":1');
    return random.chance(this.#wrong / 3) ? "5" : `{${members.join(",")}}`;
  }

  #sentValue(type: FieldType): string {
    const random = this.#random;
    if (random.chance(0.08)) return "null";
    if (random.chance(this.#wrong)) return this.#json(1);
    switch (type.kind) {
      case "bool":
        return random.pick(["true", "false"]);
      case "int":
        return random.chance(0.8) ? String(random.below(8)) : random.pick([...INTS, "2.0", "1E2"]);
      case "float":
        return random.pick(FLOATS);
      case "text":
        return JSON.stringify(random.pick(TEXTS));
      case "bytes":
        return random.pick(['"ab"', "[1,2,255]", "[]"]);
      case "timestamp":
        return random.chance(0.5) ? String(this.#ms()) : JSON.stringify(new Date(this.#ms()).toISOString());
      case "json":
        return this.#json(2);
      case "geo":
        return `[${random.pick(LONGITUDES)},${random.pick(LATITUDES)}]`;
      case "list":
        return `[${this.#some(0, 3, () => this.#element(type.of)).join(",")}]`;
    }
  }

  // ------------------------------------------------------------------------------------------------------ definitions

  #fieldClause(name: string, mayExpire: boolean): string {
    const random = this.#random;
    const type = random.pick(TYPES);
    const required = this.#maybe(0.06, () => " required");
    const kinds = (INDEXES[type] ?? []).filter((kind) => mayExpire || !kind.startsWith("ttl"));
    const wrong = random.chance(this.#wrong / 2) ? ` @${random.pick(["hash", "geo", "sorted", "unique"])}` : "";
    return `${name} ${type}${required}${kinds.length > 0 && random.chance(0.8) ? ` @${random.pick(kinds)}` : wrong}`;
  }

  create(): string {
    const random = this.#random;
    const name = random.pick(COLLECTION_NAMES);
    const names = new Set(this.#some(2, 7, () => random.pick(FIELD_NAMES)));
    let mayExpire = random.chance(0.5);
    const fields = [...names].map((each) => {
      const clause = this.#fieldClause(each, mayExpire);
      if (clause.includes("@ttl")) mayExpire = false;
      return clause;
    });
    if (random.chance(this.#wrong / 4)) fields.push(random.pick(["id int", `${fields[0]}`, "q vector<3>"]));
    return `create collection ${this.#maybe(0.2, () => "if not exists ")}${name} (${fields.join(", ")})`;
  }

  define(collection: Collection): string {
    const random = this.#random;
    const field = random.pick(collection.fields).name;
    const name = this.#named(collection);
    const alter = `alter collection ${name}`;
    switch (random.below(9)) {
      case 0:
        return `${alter} add ${this.#maybe(0.5, () => "field ")}${this.#fieldClause(random.pick(FIELD_NAMES), collection.ttl === null)}`;
      case 1:
        return `${alter} drop ${random.chance(this.#wrong) ? "nope" : field}`;
      case 2:
        return `${alter} rename ${random.chance(this.#wrong) ? "nope" : field} to ${random.pick([...FIELD_NAMES, "id"])}`;
      case 3:
        return `${alter} alter field ${field} ${random.pick(["@sorted", "@ttl(5s)", "@ttl(1h)"])}`;
      case 4:
        return random.chance(0.1) ? `drop collection ${this.#maybe(0.3, () => "if exists ")}${name}` : "collections";
      case 5:
        return random.pick([`describe ${name}`, "collections", `compact ${name}`]);
      default: {
        const json = this.#field(collection, "json");
        const onPath = json !== undefined && random.chance(0.5);
        const target = onPath ? this.#path(json.name) : random.chance(this.#wrong) ? this.name(collection) : field;
        const kinds = onPath
          ? ["hash", "unique", "sorted"]
          : (INDEXES[collection.field(field)?.type.kind ?? ""] ?? ["hash"]);
        return `create index ${this.#maybe(0.2, () => "if not exists ")}on ${name} (${target}) @${random.pick(kinds)}`;
      }
    }
  }

  /** @param most rows of a collection beyond which deletes are more likely */
  statement(most: number): Written {
    const random = this.#random;
    const collection = this.#collection();
    let text: string;
    if (collection === undefined || (this.#database.collections.size < 3 && random.chance(0.03))) text = this.create();
    else {
      const dice = random.next();
      const isFull = collection.rows.size >= most;
      if (dice < 0.42) text = this.get(collection);
      else if (dice < 0.45)
        text = `explain ${random.pick([() => this.get(collection), () => this.set(collection), () => this.del(collection, most)])()}`;
      else if (dice < 0.65) text = isFull ? this.del(collection, 0) : this.put(collection);
      else if (dice < 0.88) text = this.set(collection);
      else if (dice < 0.96) text = this.del(collection, most / 2);
      else text = this.define(collection);
    }
    return { text: random.chance(0.05) ? `;${text};` : text, params: this.params };
  }
}
