/** Random json texts: odd keys, odd numbers, escapes and white space where they may stand. */

import type { Random } from "../store/random.ts";

const NUMBERS = [
  "0",
  "-0",
  "1",
  "1.0",
  "1.50",
  "1E2",
  "1e2",
  "100",
  "100.00",
  "-1.5e-7",
  "0.1",
  "9007199254740991",
  "9007199254740992",
  "9007199254740993",
  "9007199254740993.0",
  "-9223372036854775808",
  "9223372036854775807",
  "9223372036854775808",
  "123456789012345678901234567890",
  "1e308",
  "1e-400",
  "3889108265204450030",
  "3889108265204450031",
];

const KEYS = [
  "a",
  "b",
  "c",
  "10",
  "2",
  "",
  "__proto__",
  "constructor",
  "hasOwnProperty",
  "toString",
  "a b",
  'quo"te',
  "back\\slash",
  "é",
  "日",
  "😀",
  "\u0000",
  "\ud800",
  "\udc00x",
];

const SPACES = ["", "", "", "", " ", "\n", "\t", "\r\n", "   "];

export interface Shape {
  readonly levels: number;
  readonly spaces: boolean;
  /** The share of objects in which a key may come twice. */
  readonly twice: number;
}

export function randomJsonString(random: Random, text: string): string {
  if (random.chance(0.6)) return JSON.stringify(text);
  let quoted = '"';
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    const code = unit.toString(16).padStart(4, "0");
    if (random.chance(0.4)) quoted += `\\u${random.chance(0.5) ? code : code.toUpperCase()}`;
    else quoted += text[i] === "/" ? "\\/" : JSON.stringify(text[i]).slice(1, -1);
  }
  return `${quoted}"`;
}

export function randomText(random: Random): string {
  let text = "";
  for (let i = random.below(8); i > 0; i--) {
    text += random.chance(0.5)
      ? random.pick(KEYS)
      : String.fromCharCode(random.below(random.chance(0.7) ? 128 : 65_536));
  }
  return text;
}

export function randomKey(random: Random): string {
  return random.pick(KEYS);
}

export function randomJson(random: Random, shape: Shape): string {
  const space = (): string => (shape.spaces ? random.pick(SPACES) : "");
  const value = (levels: number): string => {
    const kind = random.below(levels > 0 ? 9 : 5);
    if (kind === 0) return random.pick(["null", "true", "false"]);
    if (kind <= 2) return random.pick(NUMBERS);
    if (kind <= 4) return randomJsonString(random, randomText(random));
    const count = random.chance(0.05) ? random.below(40) : random.below(5);
    const parts: string[] = [];
    if (kind <= 6) {
      for (let i = 0; i < count; i++) parts.push(space() + value(levels - 1) + space());
      return `[${parts.length === 0 ? space() : parts.join(",")}]`;
    }
    const twice = random.chance(shape.twice);
    const met = new Set<string>();
    for (let i = 0; i < count; i++) {
      const key = random.chance(0.8) ? randomKey(random) : randomText(random);
      if (met.has(key) && !twice) continue;
      met.add(key);
      parts.push(`${space()}${randomJsonString(random, key)}${space()}:${space()}${value(levels - 1)}${space()}`);
    }
    return `{${parts.length === 0 ? space() : parts.join(",")}}`;
  };
  return space() + value(shape.levels);
}
