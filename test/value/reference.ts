/**
 * A second, plainer reading of json for the tests to judge by: JSON.parse says what is valid, a regular expression cuts the
 * tokens, and a recursive walk builds a tree that keeps keys in order and numbers as text.
 */

export type Tree =
  | { readonly kind: "null" }
  | { readonly kind: "bool"; readonly value: boolean }
  | { readonly kind: "number"; readonly digits: string }
  | { readonly kind: "text"; readonly value: string }
  | { readonly kind: "list"; readonly elements: readonly Tree[] }
  | { readonly kind: "object"; readonly members: readonly (readonly [string, Tree])[] };

const TOKEN = /"(?:[^"\\]|\\.)*"|[^\s,:{}[\]"]+|[{}[\],:]/gs;

/** Without white space between tokens. */
export function compactByTokens(text: string): string {
  return (text.match(TOKEN) ?? []).join("");
}

export function treeOf(text: string): Tree {
  const tokens = text.match(TOKEN) ?? [];
  let at = 0;
  const next = (): string => tokens[at++] ?? "";
  const read = (): Tree => {
    const token = next();
    if (token === "null") return { kind: "null" };
    if (token === "true" || token === "false") return { kind: "bool", value: token === "true" };
    if (token.startsWith('"')) return { kind: "text", value: JSON.parse(token) as string };
    if (token === "[") {
      const elements: Tree[] = [];
      while (tokens[at] !== "]") {
        if (tokens[at] === ",") at++;
        else elements.push(read());
      }
      at++;
      return { kind: "list", elements };
    }
    if (token === "{") {
      const members: [string, Tree][] = [];
      while (tokens[at] !== "}") {
        if (tokens[at] === ",") {
          at++;
          continue;
        }
        const key = JSON.parse(next()) as string;
        at++;
        members.push([key, read()]);
      }
      at++;
      return { kind: "object", members };
    }
    return { kind: "number", digits: token };
  };
  return read();
}

function depthOf(tree: Tree): number {
  if (tree.kind === "list") return 1 + Math.max(0, ...tree.elements.map(depthOf));
  if (tree.kind === "object") return 1 + Math.max(0, ...tree.members.map(([, member]) => depthOf(member)));
  return 0;
}

function everyTree(tree: Tree, holds: (tree: Tree) => boolean): boolean {
  if (!holds(tree)) return false;
  if (tree.kind === "list") return tree.elements.every((element) => everyTree(element, holds));
  if (tree.kind === "object") return tree.members.every(([, member]) => everyTree(member, holds));
  return true;
}

/** Whether a text is json as the server takes it. */
export function accepts(text: string, depth: number): boolean {
  try {
    JSON.parse(text);
  } catch {
    return false;
  }
  const tree = treeOf(text);
  return (
    depthOf(tree) <= depth &&
    everyTree(tree, (node) => {
      if (node.kind === "number") return Number.isFinite(Number(node.digits));
      if (node.kind === "object") return new Set(node.members.map(([key]) => key)).size === node.members.length;
      return true;
    })
  );
}

/** An int of 64 bits counts exactly, everything else as the nearest double. */
function numberKey(digits: string): string {
  if (/^-?\d+$/.test(digits) && BigInt(digits) >= -(2n ** 63n) && BigInt(digits) < 2n ** 63n) {
    return BigInt(digits).toString();
  }
  const n = Number(digits);
  return Number.isInteger(n) ? BigInt(n).toString() : String(n);
}

export function sameTree(a: Tree, b: Tree): boolean {
  if (a.kind === "number" && b.kind === "number") return numberKey(a.digits) === numberKey(b.digits);
  if (a.kind === "bool" && b.kind === "bool") return a.value === b.value;
  if (a.kind === "text" && b.kind === "text") return a.value === b.value;
  if (a.kind === "list" && b.kind === "list") {
    return (
      a.elements.length === b.elements.length && a.elements.every((element, i) => sameTree(element, b.elements[i]!))
    );
  }
  if (a.kind === "object" && b.kind === "object") {
    const others = new Map(b.members);
    return (
      a.members.length === b.members.length &&
      a.members.every(([key, member]) => {
        const other = others.get(key);
        return other !== undefined && sameTree(member, other);
      })
    );
  }
  return a.kind === b.kind;
}

/** What a path leads to, by walking the tree. */
export function treeAt(tree: Tree, keys: readonly string[]): Tree | undefined {
  let here: Tree | undefined = tree;
  for (const key of keys) {
    if (here?.kind !== "object") return undefined;
    here = new Map(here.members).get(key);
  }
  return here;
}
