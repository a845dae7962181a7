/**
 * The keys tokens are verified by: one secret, or a JWKS file that is read again when it changes. The kind of a key
 * decides the algorithm it verifies, never the token.
 */

import { readFileSync, statSync } from "node:fs";
import { type CryptoKey, importJWK, type JWK } from "jose";

export interface VerifyingKey {
  readonly kid: string | null;
  readonly algorithm: "HS256" | "RS256";
  readonly key: CryptoKey | Uint8Array;
}

/** What stops the start. */
export class KeyError extends Error {
  override readonly name = "KeyError";
}

/** Bytes of an HS256 secret at the least, and bits of an RSA modulus. */
const SECRET_BYTES = 32;
const RSA_BITS = 2_048;
/** The file is looked at this often at the most. */
const LOOK_MS = 1_000;

/** @throws KeyError */
export function secretKey(secret: string): VerifyingKey {
  const key = new TextEncoder().encode(secret);
  if (key.length < SECRET_BYTES) {
    throw new KeyError(`a token secret has ${SECRET_BYTES} bytes or more, and this one has ${key.length}`);
  }
  return { kid: null, algorithm: "HS256", key };
}

/** @throws KeyError */
export async function readKeys(text: string): Promise<VerifyingKey[]> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw new KeyError('a key file is json: {"keys": [...]}');
  }
  const list = Array.isArray(parsed)
    ? parsed
    : isObject(parsed) && Array.isArray(parsed["keys"])
      ? parsed["keys"]
      : null;
  if (list === null) throw new KeyError('a key file holds {"keys": [...]}, or the list alone');
  const keys: VerifyingKey[] = [];
  for (const each of list as readonly unknown[]) {
    const key = isObject(each) ? await verifyingKey(each) : undefined;
    if (key !== undefined) keys.push(key);
  }
  if (keys.length === 0)
    throw new KeyError(`a key file has a usable key: oct of ${SECRET_BYTES} bytes, or RSA of ${RSA_BITS} bits`);
  return keys;
}

async function verifyingKey(jwk: Readonly<Record<string, unknown>>): Promise<VerifyingKey | undefined> {
  if (jwk["use"] !== undefined && jwk["use"] !== "sig") return undefined;
  const kid = typeof jwk["kid"] === "string" ? jwk["kid"] : null;
  try {
    if (jwk["kty"] === "oct" && typeof jwk["k"] === "string") {
      const key = Uint8Array.from(Buffer.from(jwk["k"], "base64url"));
      return key.length < SECRET_BYTES ? undefined : { kid, algorithm: "HS256", key };
    }
    if (jwk["kty"] === "RSA" && typeof jwk["n"] === "string") {
      if (Buffer.from(jwk["n"], "base64url").length * 8 < RSA_BITS) return undefined;
      const { kty, n, e } = jwk as JWK;
      return {
        kid,
        algorithm: "RS256",
        key: await importJWK({ kty: kty ?? "RSA", n: n ?? "", e: e ?? "" } as JWK, "RS256"),
      };
    }
  } catch {
    return undefined;
  }
  return undefined;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export class Keys {
  #keys: readonly VerifyingKey[];
  readonly #path: string | null;
  #seen = "";
  #lookedMs = Number.NEGATIVE_INFINITY;
  /** Rises when the keys change: what was verified by the old ones is to be forgotten. */
  version = 0;
  readonly #warn: (words: string) => void;

  private constructor(keys: readonly VerifyingKey[], path: string | null, seen: string, warn: (words: string) => void) {
    this.#keys = keys;
    this.#path = path;
    this.#seen = seen;
    this.#warn = warn;
  }

  static fromSecret(secret: string): Keys {
    return new Keys([secretKey(secret)], null, "", () => {});
  }

  /** @throws KeyError */
  static async fromFile(path: string, warn: (words: string) => void): Promise<Keys> {
    const seen = stampOf(path);
    let text: string;
    try {
      text = readFileSync(path, "utf8");
    } catch {
      throw new KeyError(`the key file ${path} cannot be read`);
    }
    return new Keys(await readKeys(text), path, seen, warn);
  }

  /** The keys as the file has them; one gone bad leaves the last good ones. */
  async current(): Promise<readonly VerifyingKey[]> {
    const now = performance.now();
    if (this.#path === null || now - this.#lookedMs < LOOK_MS) return this.#keys;
    this.#lookedMs = now;
    const seen = stampOf(this.#path);
    if (seen === this.#seen) return this.#keys;
    this.#seen = seen;
    try {
      this.#keys = await readKeys(readFileSync(this.#path, "utf8"));
      this.version++;
    } catch (error) {
      this.#warn(`the key file changed and is not usable, so the keys before it stay: ${String(error)}`);
    }
    return this.#keys;
  }

  /** Whether the file may have changed since it was last looked at: what is cached must not be trusted without a look. */
  get stale(): boolean {
    return this.#path !== null && performance.now() - this.#lookedMs >= LOOK_MS;
  }
}

function stampOf(path: string): string {
  try {
    const { mtimeMs, size, ino } = statSync(path);
    return `${mtimeMs}/${size}/${ino}`;
  } catch {
    return "missing";
  }
}
