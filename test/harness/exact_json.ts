/**
 * Json as the tests judge it: numbers by their digits and keys in their order, which `JSON.parse` loses. A second, plainer
 * reader than the server's own, so that neither can hide the other's fault.
 */

/** A number as it was written: `1.50`, `9223372036854775807`, `-0`. */
export class Digits {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

export type Exact = null | boolean | string | Digits | readonly Exact[] | ReadonlyMap<string, Exact>;

/** Deeper than anything a test compares; the reader recurses, so it must end somewhere. */
const MAX_DEPTH = 1_000;

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const TEXT = /"(?:[^"\\]|\\.)*"/sy;
const SPACE = /[ \t\n\r]*/y;

/** Throws a SyntaxError naming the offset where the text is no json, or when an object holds a key twice. */
export function readExact(text: string): Exact {
  let at = 0;

  function token(pattern: RegExp): string | undefined {
    pattern.lastIndex = at;
    const found = pattern.exec(text)?.[0];
    if (found !== undefined) at += found.length;
    return found;
  }

  function fail(what: string): never {
    throw new SyntaxError(`${what} at ${at} of ${text.slice(0, 200)}`);
  }

  function take(sign: string): boolean {
    token(SPACE);
    if (text[at] !== sign) return false;
    at += 1;
    return true;
  }

  function value(depth: number): Exact {
    if (depth > MAX_DEPTH) fail("too deep");
    if (take("{")) return object(depth);
    if (take("[")) return list(depth);
    for (const [word, meaning] of [
      ["null", null],
      ["true", true],
      ["false", false],
    ] as const) {
      if (text.startsWith(word, at)) {
        at += word.length;
        return meaning;
      }
    }
    if (text[at] === '"') return string();
    return new Digits(token(NUMBER) ?? fail("no value"));
  }

  function string(): string {
    token(SPACE);
    return JSON.parse(token(TEXT) ?? fail("no text")) as string;
  }

  function object(depth: number): Exact {
    const members = new Map<string, Exact>();
    if (take("}")) return members;
    do {
      const key = string();
      if (members.has(key)) fail(`key ${key} twice`);
      if (!take(":")) fail("no colon");
      members.set(key, value(depth + 1));
    } while (take(","));
    return take("}") ? members : fail("object left open");
  }

  function list(depth: number): Exact {
    const items: Exact[] = [];
    if (take("]")) return items;
    do items.push(value(depth + 1));
    while (take(","));
    return take("]") ? items : fail("list left open");
  }

  const whole = value(0);
  token(SPACE);
  if (at !== text.length) fail("something behind the value");
  return whole;
}

/** Compact text; numbers and key order as they were read. */
export function writeExact(value: Exact): string {
  if (value instanceof Digits) return value.text;
  if (isMembers(value)) return `{${[...value].map(([key, item]) => `${JSON.stringify(key)}:${writeExact(item)}`)}}`;
  if (isList(value)) return `[${value.map(writeExact)}]`;
  return JSON.stringify(value);
}

export function isMembers(value: Exact | undefined): value is ReadonlyMap<string, Exact> {
  return value instanceof Map;
}

export function isList(value: Exact | undefined): value is readonly Exact[] {
  return Array.isArray(value);
}

/** One spelling for every number of the same value: `2`, `2.0`, `20e-1` are all `2e0`. */
function sameDigits(text: string): string {
  const [, sign, whole = "", fraction = "", exponent = "0"] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? [];
  const digits = (whole + fraction).replace(/^0+/, "");
  const significant = digits.replace(/0+$/, "");
  if (significant === "") return "0";
  return `${sign}${significant}e${Number(exponent) - fraction.length + digits.length - significant.length}`;
}

/**
 * The first place where `got` is not what was expected, in words; undefined when there is none. Member order is not
 * judged, numbers compare by value, and by at most `tolerance` apart where that is given.
 */
export function difference(
  expected: Exact,
  got: Exact | undefined,
  tolerance = 0,
  path = "answer",
): string | undefined {
  const wrong = (): string => `${path}: expected ${show(expected)}, got ${show(got)}`;
  if (expected instanceof Digits) {
    if (!(got instanceof Digits)) return wrong();
    if (sameDigits(expected.text) === sameDigits(got.text)) return undefined;
    return Math.abs(Number(expected.text) - Number(got.text)) <= tolerance && tolerance > 0 ? undefined : wrong();
  }
  if (isList(expected)) {
    if (!isList(got)) return wrong();
    if (expected.length !== got.length) return `${path}: expected ${expected.length} items, got ${show(got)}`;
    return first(expected, (item, index) => difference(item, got[index], tolerance, `${path}[${index}]`));
  }
  if (isMembers(expected)) {
    if (!isMembers(got)) return wrong();
    const extra = [...got.keys()].find((key) => !expected.has(key));
    if (extra !== undefined) return `${path}: member ${extra} was not expected, got ${show(got)}`;
    return first([...expected], ([key, item]) => difference(item, got.get(key), tolerance, `${path}.${key}`));
  }
  return expected === got ? undefined : wrong();
}

function first<T>(items: readonly T[], ask: (item: T, index: number) => string | undefined): string | undefined {
  for (const [index, item] of items.entries()) {
    const found = ask(item, index);
    if (found !== undefined) return found;
  }
  return undefined;
}

function show(value: Exact | undefined): string {
  return value === undefined ? "nothing" : writeExact(value).slice(0, 500);
}
