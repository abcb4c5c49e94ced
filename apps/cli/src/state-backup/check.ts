import { resolve } from 'node:path';
import type { Keyring } from '#platform/crypto/kek';
import { decodeSealed, SecretBox } from '#platform/crypto/secrets';
import { DatabaseClient, ofAddress } from '#platform/database/database-client';
import { aboutDump, load } from '#platform/dump/load';
import { Home, LauncherError } from '../home.js';
import { postgresPart } from '../parts/postgres.js';
import { packagedBinaries } from '../parts/postgres-binaries.js';
import { withThrowAwayParts } from '../testing/throw-away.js';
import { VERSION } from '../version.js';
import { keyringOf, requireKeys } from './keys.js';

const say = (line: string): void => void process.stdout.write(`${line}\n`);

/** A backup that nobody has restored is a hope. Changes nothing here. */
export async function check({ file }: { file: string }): Promise<void> {
  const path = resolve(file);
  if (packagedBinaries() === undefined)
    throw new LauncherError(
      'this needs a PostgreSQL of its own, and none is installed here, as in the image: check the file where ./trivet is',
    );
  const about = await aboutDump(path);
  const home = Home.find();
  const keyring = keyringOf(home);
  if (keyring) requireKeys(about, keyring, home);
  const options = {
    install: false,
    only: [postgresPart],
    version: VERSION,
    say: (line: string): void => void process.stderr.write(`${line}\n`),
    interrupt: new AbortController(),
  };
  await withThrowAwayParts(options, async (_home, parts) => {
    await parts.start();
    const url = parts.env.TRIVET_DATABASE_OWNER_URL ?? '';
    const { rows } = await load(url, path);
    const client = new DatabaseClient(ofAddress(url));
    await client.connect();
    try {
      say(`${path}: of release ${about.release}, taken ${about.takenAt}; restored on trial: ${rows} rows`);
      say(await contentOf(client));
      say(
        keyring
          ? `${await openAll(client, keyring)} sealed secrets, and the key file opens each`
          : 'its secrets were not opened: no key file is here, and TRIVET_KEK_FILE names none',
      );
    } finally {
      await client.end();
    }
  });
}

const COUNTED = ['tenant', 'bucket', 'access', 'volume', 'snapshot', 'publication', 'backend'];

async function contentOf(client: DatabaseClient): Promise<string> {
  const counts: string[] = [];
  for (const name of COUNTED) {
    const { rows } = await client.query<{ count: string }>(`SELECT count(*) FROM trivet.${name}`);
    counts.push(`${name}: ${rows[0]!.count}`);
  }
  return counts.join(', ');
}

async function openAll(client: DatabaseClient, keyring: Keyring): Promise<number> {
  const box = new SecretBox(keyring);
  const { rows } = await client.query<{
    tenantId: string;
    table: string;
    rowId: string;
    column: string;
    sealed: Buffer;
  }>(
    `SELECT tenant_id AS "tenantId", owner_table AS "table", owner_id AS "rowId", name AS "column", sealed
       FROM trivet.secret`,
  );
  for (const { sealed, ...place } of rows) {
    try {
      box.open(decodeSealed(sealed), place);
    } catch (error) {
      throw new LauncherError(`the key file does not open it: ${(error as Error).message}`);
    }
  }
  return rows.length;
}
