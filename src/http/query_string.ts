/** The query string: names and values, percent-decoded, `+` a space. */

import { Refusal } from "../base/refusal.ts";

export interface Pair {
  readonly name: string;
  /** Empty for a bare name (`?count`) as for `?count=`. */
  readonly value: string;
}

/** The pairs in their order; empty ones (`a&&b`) are passed over. `bad_request` for what cannot be decoded. */
export function pairsOf(queryString: string): Pair[] {
  const pairs: Pair[] = [];
  for (const part of queryString.split("&")) {
    if (part === "") continue;
    const equals = part.indexOf("=");
    const name = decoded(equals === -1 ? part : part.slice(0, equals));
    pairs.push({ name, value: equals === -1 ? "" : decoded(part.slice(equals + 1)) });
  }
  return pairs;
}

/** The query string of a url, without its question mark. */
export function queryStringOf(url: string): string {
  const mark = url.indexOf("?");
  if (mark === -1) return "";
  const hash = url.indexOf("#", mark);
  return hash === -1 ? url.slice(mark + 1) : url.slice(mark + 1, hash);
}

function decoded(text: string): string {
  if (!text.includes("%") && !text.includes("+")) return text;
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    throw new Refusal("bad_request", `${JSON.stringify(text)} in the query string is not percent-encoded UTF-8`);
  }
}
