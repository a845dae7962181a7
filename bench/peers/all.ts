/** Every queue measured, in the order of the table. */

import { bare } from "./bare.ts";
import { beanstalkd0, beanstalkd50 } from "./beanstalkd.ts";
import { bullmqAlways, bullmqEverysec } from "./bullmq.ts";
import { bunqueue } from "./bunqueue.ts";
import { fenec250, fenecAlways } from "./fenec.ts";
import { graphile } from "./graphile.ts";
import type { Peer } from "./peer.ts";
import { postgresOff, postgresOn } from "./postgres.ts";
import { redisPop } from "./redis.ts";
import { sqliteFull, sqliteNormal } from "./sqlite.ts";

export const PEERS: readonly Peer[] = [
  fenecAlways,
  fenec250,
  postgresOn,
  postgresOff,
  bullmqAlways,
  bullmqEverysec,
  redisPop,
  beanstalkd0,
  beanstalkd50,
  graphile,
  bunqueue,
  sqliteFull,
  sqliteNormal,
  bare,
];
