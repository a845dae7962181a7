/** Trees as text, so that two can be compared: positions are left out, and every kind of value is told apart. */

import { Float, Json } from "../../src/value/value.ts";

export function treeText(node: unknown): string {
  if (typeof node === "bigint") return `${node}n`;
  if (typeof node === "string") return JSON.stringify(node);
  if (typeof node !== "object" || node === null) return Object.is(node, -0) ? "-0" : String(node);
  if (node instanceof Float) return `float(${Object.is(node.n, -0) ? "-0" : node.n} ${node.text ?? ""})`;
  if (node instanceof Json) return `json(${node.text})`;
  if (Array.isArray(node)) return `[${node.map(treeText).join(", ")}]`;
  const members = Object.entries(node).filter(([name]) => name !== "at");
  members.sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${name}: ${treeText(member)}`).join(", ")}}`;
}
