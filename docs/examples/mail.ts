/** A queue of e-mails: whoever wants one sent enqueues it, and any number of workers send them. */

import { connect, enqueue, type FenecHttp, JobError, type Json, type Worker, worker } from "fenec/client";

export interface Mail {
  readonly to: string;
  readonly subject: string;
  readonly body: string;
}

export interface Schema {
  mails: { payload: Json<Mail, true>; run_at: "timestamp"; owner: "text"; attempts: "int"; error: "text" };
}

export const COLLECTION = `
  create collection if not exists mails
    (payload json required, run_at timestamp @sorted, owner text, attempts int, error text)`;

/** Sent as soon as a worker is free; a reminder, say, a while later. */
export function post(db: FenecHttp<Schema>, mail: Mail, delayMs = 0): Promise<boolean> {
  return enqueue(db.from("mails"), mail, { delayMs });
}

/** Sends what is there and what comes; a mail that was not sent is tried again, up to five times. */
export function sendMails(db: FenecHttp<Schema>, send: (mail: Mail) => Promise<void>): Worker<Schema["mails"]> {
  return worker(
    db.from("mails"),
    async ({ payload: mail }) => {
      // No further attempt would find an address.
      if (!mail.to.includes("@")) throw new JobError(`${mail.to} is no address`, { dead: true });
      await send(mail);
    },
    { name: "mail", concurrency: 20 },
  );
}

if (import.meta.main) {
  const db = connect<Schema>(process.env["FENEC_URL"] ?? "http://127.0.0.1:8080");
  await db.run(COLLECTION);
  await post(db, { to: "ada@example.com", subject: "Hello", body: "The first one." });
  const sender = sendMails(db, async (mail) => console.log(`to ${mail.to}: ${mail.subject}`));
  process.once("SIGTERM", () => void sender.stop());
  await sender.done;
}
