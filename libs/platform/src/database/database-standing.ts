import type { Client } from 'pg';
import { type Host, nameOf } from '#platform/config/database-address';

/** What orders the databases that one address leads to. */
export interface Standing {
  /** Grows with each restore that a person declared. */
  declared: number;
  /** Of PostgreSQL; grows with each promotion. */
  timeline: number;
  /** The identifier of the cluster: standbys have that of their primary, a server that was restored into has another one. */
  system: string;
  /** It has no schema of ours, or one that is still being put back: what it counts for is not to be known yet. */
  isBare: boolean;
}

/** Negative: `a` was replaced by `b`. A restore counts for more than a promotion: the server that it went into begins at 1. */
export const order = (a: Standing, b: Standing): number => a.declared - b.declared || a.timeline - b.timeline;

/** Neither follows the other, and nobody has said which of the two counts. */
export const areStrangers = (a: Standing, b: Standing): boolean => a.declared === b.declared && a.system !== b.system;

const TIMELINE = 'pg_walfile_name(pg_current_wal_lsn()) AS file';
const STANDING = `SELECT ${TIMELINE}, number, declared_for AS declared, system_identifier AS system FROM trivet.database_standing()`;
/** Where nobody has migrated yet, to this release or at all. */
const WITHOUT = `SELECT ${TIMELINE}, 0 AS number, system_identifier AS declared, system_identifier AS system FROM pg_control_system()`;
const NOT_MIGRATED = /^(3F000|42883|42501)$/;
/** Our schema is there, of the release before. */
const NO_FUNCTION = '42883';

interface Row {
  file: string;
  /** null: a dump is being put back. */
  number: string | null;
  declared: string | null;
  system: string;
}

/** @param at for the error of one that nobody has declared */
export async function standingOf(client: Client, at: Host): Promise<Standing> {
  let isBare = false;
  const { rows } = await client.query<Row>(STANDING).catch(error => {
    const code = String(error.code);
    if (!NOT_MIGRATED.test(code)) throw error;
    isBare = code !== NO_FUNCTION;
    return client.query<Row>(WITHOUT);
  });
  const { file, number, declared, system } = rows[0]!;
  if (number === null || declared !== system) throw new UndeclaredDatabase(at);
  return { declared: Number(number), timeline: Number.parseInt(file.slice(0, 8), 16), system, isBare };
}

/** As "not now" for whoever waits: a person is to say something, and then all is well. */
export class UndeclaredDatabase extends Error {
  readonly code = '57P03';

  constructor(readonly at: Host) {
    super(
      `the database at ${nameOf(at)} is of another server than the one that was used, and nobody has declared that it counts: ` +
        'if it was restored, run `trivet migrate --restored` with TRIVET_DATABASE_OWNER_URL naming that server alone',
    );
  }
}
