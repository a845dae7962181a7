/**
 * The grammar of statements, in Parsimmon. A text is looked at by its first word, so no alternative is tried in vain; the
 * parts that are many characters long, expressions, documents and clauses, are single parsers of their own (`reading`).
 */

import Parsimmon, { type Parser } from "parsimmon";
import type {
  AlterStatement,
  CollectionsStatement,
  CompactStatement,
  CreateIndexStatement,
  CreateStatement,
  DelStatement,
  DescribeStatement,
  DropStatement,
  ExplainStatement,
  FieldClause,
  GetStatement,
  IndexClause,
  ParamExpr,
  PutStatement,
  SetStatement,
  Statement,
} from "./ast.ts";
import { refuseCollation, takeNoise } from "./clauses.ts";
import { noteIndexKinds, readIndexKind, readType } from "./declaration.ts";
import { readAssignments, readDocuments } from "./document.ts";
import { readGet } from "./get.ts";
import { readDollar } from "./parameter.ts";
import { type Dialect, type Reader, reading, spaceEnd } from "./reader.ts";
import { readPickClauses, readPutClauses } from "./write.ts";

const { alt, seqMap, succeed } = Parsimmon;

/** A name, and the offset it stands at. */
interface Named {
  readonly name: string;
  readonly at: number;
}

export interface Grammar {
  /** One statement, with white space and `;` around it, to the end of the text. */
  readonly one: Parser<Statement>;
  /** Any number of statements to the end of the text. */
  readonly many: Parser<Statement[]>;
}

export function statementGrammar(dialect: Dialect): Grammar {
  const read = <T>(walk: (r: Reader) => T): Parser<T> => reading(dialect, walk);

  const word = (text: string): Parser<string> =>
    read((r) => {
      r.needWord(text);
      return text;
    });
  const maybe = (...texts: [string, ...string[]]): Parser<boolean> =>
    alt(seqWords(texts.map(word)).result(true), succeed(false));
  const seqWords = (words: Parser<string>[]): Parser<unknown> => Parsimmon.seq(...words);
  const symbol = (text: string): Parser<string> =>
    read((r) => {
      r.need(text.charCodeAt(0));
      return text;
    });
  const noise = (text: string): Parser<null> =>
    read((r) => {
      takeNoise(r, text);
      return null;
    });
  const named = (what: string): Parser<Named> => read((r) => ({ at: r.at, name: r.name(what) }));

  const collection = named("a collection's name");
  const fieldName = named("a field's name");

  // Reads and writes

  const getTail: Parser<GetStatement> = read(readGet);
  const patch = read((r) => {
    r.takeWord("set");
    if (!r.is(123)) r.fail("`{`");
    return readAssignments(r);
  });
  const documents = read((r) => {
    if (r.is(36)) return readDollar(r) as ParamExpr;
    r.note("a parameter");
    return readDocuments(r);
  });

  const setTail: Parser<SetStatement> = seqMap(
    collection,
    patch,
    read((r) => readPickClauses(r, "set")),
    ({ name, at }, assignments, { where, order, limit, returning, require }) => ({
      kind: "set",
      collection: name,
      at,
      patch: assignments,
      where,
      order,
      limit,
      returning,
      require,
    }),
  );

  const delTail: Parser<DelStatement> = seqMap(
    read((r) => {
      takeNoise(r, "from");
      return { at: r.at, name: r.name("a collection's name") };
    }),
    read((r) => readPickClauses(r, "del")),
    ({ name, at }, { where, order, limit, returning, require }) => ({
      kind: "del",
      collection: name,
      at,
      where,
      order,
      limit,
      returning,
      require,
    }),
  );

  const putTail = (insert: boolean): Parser<PutStatement> =>
    seqMap(
      read((r) => {
        takeNoise(r, "into");
        return { at: r.at, name: r.name("a collection's name") };
      }),
      documents,
      read(readPutClauses),
      ({ name, at }, written, { ifAbsent, elseSet, require }) => ({
        kind: "put",
        insert,
        collection: name,
        at,
        documents: written,
        ifAbsent,
        elseSet,
        require,
      }),
    );

  // Declarations

  const index: Parser<IndexClause> = read(readIndexKind);
  const maybeIndex: Parser<IndexClause | null> = read((r) => {
    refuseCollation(r);
    if (r.is(64)) return readIndexKind(r);
    noteIndexKinds(r);
    return null;
  });
  const field: Parser<FieldClause> = seqMap(
    fieldName,
    read(readType),
    maybe("required"),
    maybeIndex,
    ({ name, at }, type, required, indexed) => ({ name, type, required, index: indexed, at }),
  );

  const createCollection: Parser<CreateStatement> = seqMap(
    maybe("if", "not", "exists"),
    collection,
    field.sepBy1(symbol(",")).wrap(symbol("("), symbol(")")),
    (ifNotExists, { name, at }, fields) => ({ kind: "create", collection: name, at, ifNotExists, fields }),
  );
  const indexedPath = read((r) => {
    const end = r.fieldEnd();
    if (end === r.at) r.fail("a field or a path");
    const name = r.checkedField(end);
    const keys = r.pathKeys(end);
    return { field: name, keys };
  });
  const createIndex: Parser<CreateIndexStatement> = seqMap(
    maybe("if", "not", "exists"),
    word("on").then(collection),
    indexedPath.wrap(symbol("("), symbol(")")),
    index,
    (ifNotExists, { name, at }, path, kind) => ({
      kind: "createIndex",
      collection: name,
      at,
      ifNotExists,
      field: path.field,
      keys: path.keys,
      index: kind,
    }),
  );
  const create = byWord<CreateStatement | CreateIndexStatement>(
    read,
    new Map<string, Parser<CreateStatement | CreateIndexStatement>>([
      ["collection", createCollection],
      ["index", createIndex],
    ]),
  );

  const drop: Parser<DropStatement> = seqMap(
    word("collection").then(maybe("if", "exists")),
    collection,
    (ifExists, { name, at }) => ({ kind: "drop", collection: name, at, ifExists }),
  );

  const maybeField = noise("field");
  const alteration = byWord<AlterStatement["action"]>(
    read,
    new Map<string, Parser<AlterStatement["action"]>>([
      ["add", seqMap(fieldNoise(read, 2), field, (_, added) => ({ kind: "add", field: added }))],
      ["drop", seqMap(maybeField, fieldName, (_, { name }) => ({ kind: "drop", field: name }))],
      [
        "rename",
        seqMap(fieldNoise(read, 3), fieldName, word("to"), fieldName, (_, from, _to, to) => ({
          kind: "rename",
          field: from.name,
          to: to.name,
        })),
      ],
      [
        "alter",
        seqMap(maybeField, fieldName, read(readMovedIndex), (_, { name }, kind) => ({
          kind: "index",
          field: name,
          index: kind,
        })),
      ],
    ]),
  );
  const alter: Parser<AlterStatement> = seqMap(
    word("collection").then(collection),
    alteration,
    ({ name, at }, action) => ({ kind: "alter", collection: name, at, action }),
  );

  // Everything by its first word

  const explained = new Map<string, Parser<GetStatement | SetStatement | DelStatement>>([
    ["get", getTail],
    ["select", getTail],
    ["set", setTail],
    ["update", setTail],
    ["del", delTail],
    ["delete", delTail],
  ]);
  const explain: Parser<ExplainStatement> = read((r) => {
    const next = r.peekWord();
    if (next === "put" || next === "insert") r.refuse("bad_clause", "`explain` takes a read, a `set` or a `del`");
    return null;
  })
    .then(byWord(read, explained))
    .map((of) => ({ kind: "explain", of }));

  const collections: Parser<CollectionsStatement> = succeed({ kind: "collections" });
  const describe: Parser<DescribeStatement> = collection.map(({ name, at }) => ({
    kind: "describe",
    collection: name,
    at,
  }));
  const compact: Parser<CompactStatement> = read((r) => {
    const ends = r.peekWord() === "";
    r.note("a collection's name");
    return { kind: "compact", collection: ends ? null : r.name("a collection's name") };
  });

  const put = putTail(false);
  const insert = putTail(true);
  const statement = byWord<Statement>(
    read,
    new Map<string, Parser<Statement>>([
      ...explained,
      ["put", put],
      ["insert", insert],
      ["create", create],
      ["drop", drop],
      ["alter", alter],
      ["explain", explain],
      ["collections", collections],
      ["describe", describe],
      ["compact", compact],
    ]),
  );

  const semicolons = read((r) => {
    r.at = spaceEnd(r.input, r.at);
    while (r.is(59)) r.moveTo(r.at + 1);
    return null;
  });
  const end = read((r) => {
    if (r.at < r.length) r.fail("the end of the text");
    return null;
  });
  return {
    one: seqMap(semicolons, statement, semicolons, end, (_, read1) => read1),
    many: seqMap(semicolons, statement.skip(semicolons).many(), end, (_, all) => all),
  };
}

/** The parser that the next word names. */
function byWord<T>(read: <U>(walk: (r: Reader) => U) => Parser<U>, parsers: ReadonlyMap<string, Parser<T>>): Parser<T> {
  const head = read((r) => {
    const word = r.peekWord();
    const parser = parsers.get(word);
    if (parser === undefined) {
      for (const known of parsers.keys()) r.note(`\`${known}\``);
      return r.fail(`\`${[...parsers.keys()][0]}\``);
    }
    r.moveTo(r.at + word.length);
    return parser;
  });
  return head.chain((parser) => parser);
}

/** The word `field` where it may be left out and a field may be called `field`: it is noise if `names` names follow. */
function fieldNoise(read: <U>(walk: (r: Reader) => U) => Parser<U>, names: number): Parser<null> {
  return read((r) => {
    if (!r.isWord("field")) return null;
    let at = r.behindWord();
    for (let i = 0; i < names; i++) {
      const isType = i === 1 && r.codeAt(at) === 91;
      if (isType) break;
      if (!r.startsName(at)) return null;
      at = r.tokenBehind(at);
    }
    r.moveTo(r.at + 5);
    return null;
  });
}

/** `@ttl(...)` moves a field's expiry, `@sorted` takes it off. */
function readMovedIndex(r: Reader): IndexClause {
  const at = r.at;
  const index = readIndexKind(r);
  if (index.kind !== "ttl" && index.kind !== "sorted") {
    r.refuse("syntax", "`alter field` takes `@ttl(...)` or `@sorted`", at);
  }
  return index;
}
