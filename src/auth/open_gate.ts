/** The gate as the command line asks for it: its files read, and refused where they are not understood whole. */

import { readFileSync } from "node:fs";
import { Gate } from "./gate.ts";
import { KeyError, Keys } from "./keys.ts";
import { type Policy, PolicyError, parsePolicy } from "./policy.ts";
import { Tokens } from "./tokens.ts";

/** A value, and how it was given (`--policy`, `FENEC_POLICY`): words about it begin with that. */
export interface Given {
  readonly value: string;
  readonly by: string;
}

export interface KeySources {
  readonly secret: Given | null;
  /** Files; null: none. */
  readonly secretFile: Given | null;
  readonly keysFile: Given | null;
}

export interface GateSources extends KeySources {
  readonly token: Given | null;
  readonly policyFile: Given | null;
  readonly requireExp: boolean;
  readonly maxAgeSeconds: number | null;
  readonly delayMs: number;
  readonly readOnly: boolean;
  /** The origin whose pages may ask, `*` for any, null for none. */
  readonly cors: string | null;
  /** The functions a rule may call. */
  readonly functions: readonly string[];
  /** Epoch ms. */
  readonly now: () => number;
  readonly addressOf: (request: Request) => string;
  readonly warn: (words: string) => void;
}

export interface OpenedGate {
  readonly gate: Gate;
  readonly policy: Policy;
}

const SENDABLE = /^[\x21-\x7e]+$/;
const NO_RULES: Policy = { rules: [], appendOnly: new Set() };

/** @throws KeyError, PolicyError: what stops the start */
export async function openGate(sources: GateSources): Promise<OpenedGate> {
  const { token, policyFile, requireExp, maxAgeSeconds, delayMs, readOnly, cors, functions, now, addressOf } = sources;
  if (token !== null && !SENDABLE.test(token.value)) {
    throw new KeyError(
      `${token.by}: a token is sent in a header, so it is of visible ASCII characters and has no blanks`,
    );
  }
  const keys = await openKeys(sources, sources.warn);
  if (policyFile !== null && keys === null) {
    throw new KeyError(
      `${policyFile.by}: tokens are held to its rules, and none are taken: set --jwt-secret-file or --jwt-keys`,
    );
  }
  const policy = policyFile === null ? NO_RULES : readPolicy(policyFile, functions);
  if (keys !== null && policy.rules.length === 0) sources.warn("no rule grants a token anything: see --policy");
  const tokens = keys === null ? null : new Tokens(keys, policy, { requireExp, maxAgeSeconds });
  return { gate: new Gate({ token: token?.value ?? null, tokens, delayMs, now, addressOf, readOnly, cors }), policy };
}

/**
 * Null where no tokens but the server's are taken.
 *
 * @throws KeyError
 */
export async function openKeys(
  { secret, secretFile, keysFile }: KeySources,
  warn: (words: string) => void,
): Promise<Keys | null> {
  const given = [secret, secretFile, keysFile].filter((source) => source !== null);
  if (given.length > 1) {
    throw new KeyError(`tokens have one source of keys, not ${given.map(({ by }) => by).join(" and ")}`);
  }
  const [source] = given;
  if (source === undefined) return null;
  try {
    if (source === keysFile) return await Keys.fromFile(source.value, warn);
    return Keys.fromSecret(source === secret ? source.value : textOf(source).replace(/\r?\n$/, ""));
  } catch (error) {
    throw error instanceof KeyError ? new KeyError(`${source.by}: ${error.message}`) : error;
  }
}

function readPolicy(file: Given, functions: readonly string[]): Policy {
  try {
    return parsePolicy(textOf(file), functions);
  } catch (error) {
    if (error instanceof PolicyError) throw new PolicyError(`${file.by}: ${file.value}, ${error.message}`);
    throw error instanceof KeyError ? new KeyError(`${file.by}: ${error.message}`) : error;
  }
}

function textOf({ value: file }: Given): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    throw new KeyError(`the file ${file} cannot be read`);
  }
}
