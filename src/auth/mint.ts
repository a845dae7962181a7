/** `--mint-token`: a token for trying things out, signed with the server's own secret. */

import { SignJWT } from "jose";
import { KeyError, type Keys } from "./keys.ts";

/** An hour, where the claims name no `exp`. */
const HOUR_SECONDS = 3_600;
const TIMES: ReadonlySet<string> = new Set(["exp", "nbf", "iat"]);

/** @throws KeyError whose words say what is missing */
export async function mintToken(claimsText: string, keys: Keys, nowMs: number): Promise<string> {
  let claims: unknown;
  try {
    claims = JSON.parse(claimsText);
  } catch {
    claims = null;
  }
  if (typeof claims !== "object" || claims === null || Array.isArray(claims)) {
    throw new KeyError('claims are a json object, such as {"sub": "w1", "role": "worker"}');
  }
  for (const [name, value] of Object.entries(claims)) {
    if (TIMES.has(name) && typeof value !== "number")
      throw new KeyError(`\`${name}\` is a number, of seconds since 1970`);
  }
  const { signing } = keys;
  if (signing === undefined) throw new KeyError("it is signed with a secret, and there are public keys alone");
  const now = Math.floor(nowMs / 1_000);
  const { secret, kid } = signing;
  const header = { alg: "HS256", typ: "JWT", ...(kid === null ? {} : { kid }) };
  return new SignJWT({ iat: now, exp: now + HOUR_SECONDS, ...claims }).setProtectedHeader(header).sign(secret);
}
