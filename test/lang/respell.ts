/** The same text in another spelling: other white space, comments between tokens, keywords in another case. */

import type { Random } from "../store/random.ts";

/** Strings, numbers with the letters behind them, paths, parameters, markers, operators, and single characters. */
const TOKEN =
  /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\s+|[\p{L}_][\p{L}\p{M}\p{Nd}_.]*|\d[\p{L}\p{Nd}_.]*(?:(?<=\d[eE])[+-]\d+)?|\$\d+|@\w+|<=|>=|!=|<>|==|./gsu;

export function tokensOf(text: string): string[] {
  return text.match(TOKEN) ?? [];
}

const SPACES = [" ", "  ", "\n", "\t", "\r\n", " ", "\u3000", ' -- a comment, "quoted"\n', " # another '\n  ", "\n\n"];
const KEYWORD =
  /^(?:get|put|set|del|insert|select|where|order|by|limit|offset|returning|require|and|or|not|in|is|null|true|false|desc)$/;

/** `text` printed canonically, in a spelling by chance; `busy` is the share of places that change. */
export function respell(text: string, random: Random, busy: number): string {
  let out = "";
  for (const token of tokensOf(text)) {
    if (/^\s+$/.test(token)) out += random.chance(busy) ? random.pick(SPACES) : token;
    else if (/^[=(),[\]{}:<>~*/+]+$/.test(token)) {
      out += random.chance(busy / 2) ? random.pick(SPACES) + token + random.pick(SPACES) : token;
    } else out += token;
  }
  return out;
}

/** Keywords in capitals where no field can be of that name. */
export function shout(text: string): string {
  return tokensOf(text)
    .map((token) => (KEYWORD.test(token) ? token.toUpperCase() : token))
    .join("");
}
