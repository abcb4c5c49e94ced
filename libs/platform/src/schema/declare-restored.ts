import { ConfigError } from '#platform/config/config';
import { atHost, nameOf, parseAddress } from '#platform/config/database-address';
import { DatabaseClient, ofAddress } from '#platform/database/database-client';
import { takingWrites } from '#platform/database/database-hosts';

/** The server that was restored into: of several the only one that takes writes, whatever was declared of it before. */
export async function restoredAddress(ownerUrl: string): Promise<string> {
  const { hosts, url, readWrite } = parseAddress(ownerUrl)!;
  if (!readWrite) return ownerUrl;
  const found = await takingWrites({ connectionString: url }, hosts);
  if (found.length > 1)
    throw new ConfigError(
      `TRIVET_DATABASE_OWNER_URL: ${found.map(nameOf).join(' and ')} take writes: name the one alone that was restored`,
    );
  // The old one may be all that answers now. A copy that was put back from an old dump has no such function.
  if (hosts.length > 1 && found[0] && !(await isUndeclared(atHost(ownerUrl, found[0])).catch(() => true)))
    throw new ConfigError(
      `TRIVET_DATABASE_OWNER_URL: ${nameOf(found[0])} counts already, and another server may be the restored one: name that alone`,
    );
  // One that does not answer says why to whoever connects.
  return atHost(ownerUrl, found[0] ?? hosts[0]!);
}

/** From now on the database of this address is the one that counts, and draws fences above all that hosts hold (ADR 35). */
export async function declareRestored(ownerUrl: string): Promise<void> {
  const client = new DatabaseClient(ofAddress(ownerUrl));
  await client.connect();
  try {
    await client.query('SELECT trivet.declare_restored()');
  } finally {
    await client.end();
  }
}

/** Whether it is a copy in another cluster, of which nobody has said that it counts. */
export async function isUndeclared(ownerUrl: string): Promise<boolean> {
  const client = new DatabaseClient(ofAddress(ownerUrl));
  await client.connect();
  try {
    const { rows } = await client.query<{ undeclared: boolean }>(
      'SELECT declared_for IS DISTINCT FROM system_identifier AS undeclared FROM trivet.database_standing()',
    );
    return rows[0]!.undeclared;
  } finally {
    await client.end();
  }
}
