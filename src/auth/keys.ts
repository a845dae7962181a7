/**
 * The keys tokens are verified by: one secret, or a JWKS file that is read again when it changes. The kind of a key
 * decides the algorithm it verifies, never the token.
 */

import { readFileSync, statSync } from "node:fs";
import { type CryptoKey, importJWK } from "jose";

export interface VerifyingKey {
  readonly kid: string | null;
  /** Of a set of keys: a token that names a key is tried on the one of that name alone. */
  readonly named: boolean;
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
  return { kid: null, named: false, algorithm: "HS256", key };
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
  if (keys.length === 0) {
    throw new KeyError(
      `a key file has a usable key: kind oct of ${SECRET_BYTES} bytes or more, or RSA of ${RSA_BITS} bits or more`,
    );
  }
  return keys;
}

async function verifyingKey(jwk: Readonly<Record<string, unknown>>): Promise<VerifyingKey | undefined> {
  if (jwk["use"] !== undefined && jwk["use"] !== "sig") return undefined;
  const kid = typeof jwk["kid"] === "string" ? jwk["kid"] : null;
  const { alg } = jwk;
  if (jwk["kty"] === "oct" && typeof jwk["k"] === "string") {
    if (alg !== undefined && alg !== "HS256") return undefined;
    const key = Uint8Array.from(Buffer.from(jwk["k"], "base64url"));
    return key.length < SECRET_BYTES ? undefined : { kid, named: true, algorithm: "HS256", key };
  }
  if (jwk["kty"] === "RSA" && typeof jwk["n"] === "string" && typeof jwk["e"] === "string") {
    if ((alg !== undefined && alg !== "RS256") || modulusBits(jwk["n"]) < RSA_BITS) return undefined;
    try {
      const key = await importJWK({ kty: "RSA", n: jwk["n"], e: jwk["e"] }, "RS256");
      return { kid, named: true, algorithm: "RS256", key };
    } catch {
      return undefined;
    }
  }
  return undefined;
}

function modulusBits(base64: string): number {
  const bytes = Buffer.from(base64, "base64url");
  const first = bytes.findIndex((byte) => byte !== 0);
  return first === -1 ? 0 : (bytes.length - first) * 8 - (Math.clz32(bytes[first] ?? 0) - 24);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export class Keys {
  #keys: readonly VerifyingKey[];
  readonly #path: string | null;
  #seen: string;
  #lookedMs = Number.NEGATIVE_INFINITY;
  #looking: Promise<void> | null = null;
  /** Rises when the keys change: what was verified by the old ones is to be forgotten. */
  version = 0;
  readonly #warn: (words: string) => void;
  readonly #elapsed: () => number;

  private constructor(
    keys: readonly VerifyingKey[],
    path: string | null,
    seen: string,
    warn: (words: string) => void,
    elapsed: () => number,
  ) {
    this.#keys = keys;
    this.#path = path;
    this.#seen = seen;
    this.#warn = warn;
    this.#elapsed = elapsed;
  }

  /** @throws KeyError */
  static fromSecret(secret: string): Keys {
    return new Keys(
      [secretKey(secret)],
      null,
      "",
      () => {},
      () => 0,
    );
  }

  /**
   * @param warn told of a file gone bad
   * @param elapsed milliseconds that only rise
   * @throws KeyError
   */
  static async fromFile(
    path: string,
    warn: (words: string) => void,
    elapsed: () => number = () => performance.now(),
  ): Promise<Keys> {
    const seen = stampOf(path);
    let text: string;
    try {
      text = readFileSync(path, "utf8");
    } catch {
      throw new KeyError(`the file ${path} cannot be read`);
    }
    return new Keys(await readKeys(text), path, seen, warn, elapsed);
  }

  /** The secret that signs what these keys verify; undefined where there are public keys alone. */
  get signing(): { readonly secret: Uint8Array; readonly kid: string | null } | undefined {
    for (const { key, kid, algorithm } of this.#keys) {
      if (algorithm === "HS256" && key instanceof Uint8Array) return { secret: key, kid };
    }
    return undefined;
  }

  /** The keys as the file has them; one gone bad leaves the last good ones. */
  async current(): Promise<readonly VerifyingKey[]> {
    if (this.#path !== null && this.stale) {
      // Whoever asks while it is read waits with the first: by the keys before it a new token would be refused.
      this.#looking ??= this.#look(this.#path).finally(() => {
        this.#looking = null;
      });
      await this.#looking;
    }
    return this.#keys;
  }

  async #look(path: string): Promise<void> {
    const fromMs = this.#elapsed();
    const seen = stampOf(path);
    if (seen !== this.#seen) {
      this.#seen = seen;
      try {
        this.#keys = await readKeys(readFileSync(path, "utf8"));
        this.version++;
      } catch (error) {
        const why = error instanceof Error ? error.message : String(error);
        this.#warn(`the key file changed and is not usable, so the keys before it stay: ${why}`);
      }
    }
    this.#lookedMs = fromMs;
  }

  /** Whether the file may have changed since it was last looked at: what is cached must not be trusted without a look. */
  get stale(): boolean {
    return this.#path !== null && this.#elapsed() - this.#lookedMs >= LOOK_MS;
  }
}

function stampOf(path: string): string {
  try {
    const { mtimeMs, ctimeMs, size, ino } = statSync(path);
    return `${mtimeMs}/${ctimeMs}/${size}/${ino}`;
  } catch {
    return "missing";
  }
}
