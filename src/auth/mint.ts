/** `--mint-token`: a token for trying things out, signed with the server's own secret. */

import { SignJWT } from "jose";

/** An hour, where the claims name no `exp`. */
const HOUR_SECONDS = 3_600;

/** @throws Error whose words say what claims are */
export async function mintToken(claimsText: string, secret: string, nowMs: number): Promise<string> {
  let claims: unknown;
  try {
    claims = JSON.parse(claimsText);
  } catch {
    claims = null;
  }
  if (typeof claims !== "object" || claims === null || Array.isArray(claims)) {
    throw new Error(`--mint-token takes claims as a json object, such as {"sub": "w1", "role": "worker"}`);
  }
  const now = Math.floor(nowMs / 1_000);
  const payload = { iat: now, exp: now + HOUR_SECONDS, ...claims };
  return new SignJWT(payload).setProtectedHeader({ alg: "HS256", typ: "JWT" }).sign(new TextEncoder().encode(secret));
}
