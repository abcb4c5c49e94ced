import type { CosiClient } from '#test/cosi/client';
import type { TestDatabase } from '#test/support/database';

export const create = (name: string) => ({ name, protocols: [{ type: 'S3' }], parameters: {} });

export async function must(client: CosiClient, method: string, request: object): Promise<void> {
  const { code, message } = await client.call('r1', method, request);
  if (code !== 'OK') throw new Error(`${method}: ${code} ${message}`);
}

/**
 * So that the fake costs nothing: its file, whose locks a write takes a dozen times, and the log of its calls are a tenth of all
 * that a creation takes.
 */
export async function keepInMemory(database: TestDatabase): Promise<void> {
  const config = JSON.stringify({ file: ':memory:bench', callLog: false });
  await database.query('UPDATE trivet.backend SET config = config || $1, version = version + 1', [config]);
}
