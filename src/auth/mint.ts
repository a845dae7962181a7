/** `--mint-token`: a token for trying things out, signed with the server's own secret. */

import { SignJWT } from "jose";
import { KeyError, type Keys } from "./keys.ts";

/** An hour, where the claims name no `exp`. */
const HOUR_SECONDS = 3_600;

/** @throws KeyError whose words say what is missing */
export async function mintToken(claimsText: string, keys: Keys, nowMs: number): Promise<string> {
  let claims: unknown;
  try {
    claims = JSON.parse(claimsText);
  } catch {
    claims = null;
  }
  if (typeof claims !== "object" || claims === null || Array.isArray(claims)) {
    throw new KeyError('--mint-token takes claims as a json object, such as {"sub": "w1", "role": "worker"}');
  }
  const { signing } = keys;
  if (signing === undefined) throw new KeyError("--mint-token signs with a secret, and there are public keys alone");
  const now = Math.floor(nowMs / 1_000);
  const { secret, kid } = signing;
  const header = { alg: "HS256", typ: "JWT", ...(kid === null ? {} : { kid }) };
  return new SignJWT({ iat: now, exp: now + HOUR_SECONDS, ...claims }).setProtectedHeader(header).sign(secret);
}
