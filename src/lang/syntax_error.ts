/** The words of a refusal of a text that does not parse: where, what was found, what was expected, what was meant. */

import { Refusal } from "../base/refusal.ts";
import { nearestWord } from "./nearest_word.ts";
import { placeOf } from "./place.ts";
import { nameEnd } from "./reader.ts";

const SHOWN = 30;
const STATEMENT_WORD =
  /^(?:get|select|put|insert|set|update|del|delete|create|drop|alter|explain|describe|collections|compact)$/i;

/** `expected` holds words in backticks for keywords and symbols, plain words for kinds of things. */
export function syntaxError(text: string, offset: number, expected: readonly string[]): Refusal {
  const { line, column } = placeOf(text, offset);
  const word = text.slice(offset, nameEnd(text, offset));
  const keywords: string[] = [];
  for (const what of expected) if (/^`@?[a-z]+`$/.test(what)) keywords.push(what.slice(1, -1));
  const meant = nearestWord(word, keywords);
  let words = `line ${line}, column ${column}: found ${foundAt(text, offset)}`;
  if (meant !== undefined) words += `; did you mean \`${meant}\`?`;
  if (expected.length > 0) words += `${meant === undefined ? ", e" : " E"}xpected ${listed(expected)}`;
  if (expected.includes("the end of the text") && STATEMENT_WORD.test(word)) {
    words += "; a text holds one statement";
  }
  return new Refusal("syntax", words, { line, column, expected });
}

/** What stands at `offset`, cut to a readable length. */
function foundAt(text: string, offset: number): string {
  if (offset >= text.length) return "the end of the text";
  let end = nameEnd(text, offset);
  if (end === offset) {
    const match = /^(?:-?[0-9][0-9._]*|"[^"\n]*"?|'[^'\n]*'?|\$\w*|[<>!=]=|<>|.)/su.exec(
      text.slice(offset, offset + SHOWN + 1),
    );
    end = offset + (match?.[0].length ?? 1);
  }
  const points = [...text.slice(offset, Math.min(end, offset + 2 * SHOWN))];
  const shown = points.slice(0, SHOWN).join("").toWellFormed();
  return points.length > SHOWN || end > offset + 2 * SHOWN ? `\`${shown}...\`` : `\`${shown}\``;
}

function listed(expected: readonly string[]): string {
  if (expected.length <= 1) return expected.join("");
  return `${expected.slice(0, -1).join(", ")} or ${expected.at(-1)}`;
}
