/** The gate as the command line asks for it: its files read, and refused where they are not understood whole. */

import { readFileSync } from "node:fs";
import { Gate } from "./gate.ts";
import { KeyError, Keys } from "./keys.ts";
import { type Policy, PolicyError, parsePolicy } from "./policy.ts";
import { Tokens } from "./tokens.ts";

export interface KeySources {
  readonly secret: string | null;
  /** Files; null: none. */
  readonly secretFile: string | null;
  readonly keysFile: string | null;
}

export interface GateSources extends KeySources {
  readonly token: string | null;
  readonly policyFile: string | null;
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

const NO_RULES: Policy = { rules: [], appendOnly: new Set() };

/** @throws KeyError, PolicyError: what stops the start */
export async function openGate(sources: GateSources): Promise<OpenedGate> {
  const { token, policyFile, requireExp, maxAgeSeconds, delayMs, readOnly, cors, functions, now, addressOf } = sources;
  const keys = await openKeys(sources, sources.warn);
  if (policyFile !== null && keys === null) {
    throw new KeyError("--policy holds tokens to rules, and none are taken: set --jwt-secret-file or --jwt-keys");
  }
  const policy = policyFile === null ? NO_RULES : readPolicy(policyFile, functions);
  if (keys !== null && policy.rules.length === 0) sources.warn("no rule grants a token anything: see --policy");
  const tokens = keys === null ? null : new Tokens(keys, policy, { requireExp, maxAgeSeconds });
  return { gate: new Gate({ token, tokens, delayMs, now, addressOf, readOnly, cors }), policy };
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
  if ([secret, secretFile, keysFile].filter((source) => source !== null).length > 1) {
    throw new KeyError("tokens have one source of keys: --jwt-secret, --jwt-secret-file or --jwt-keys");
  }
  if (keysFile !== null) return Keys.fromFile(keysFile, warn);
  if (secretFile !== null) return Keys.fromSecret(textOf(secretFile, "the secret").replace(/\r?\n$/, ""));
  return secret === null ? null : Keys.fromSecret(secret);
}

function readPolicy(file: string, functions: readonly string[]): Policy {
  try {
    return parsePolicy(textOf(file, "the policy"), functions);
  } catch (error) {
    if (error instanceof PolicyError) throw new PolicyError(`${file}, ${error.message}`);
    throw error;
  }
}

function textOf(file: string, what: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    throw new KeyError(`${what} file ${file} cannot be read`);
  }
}
