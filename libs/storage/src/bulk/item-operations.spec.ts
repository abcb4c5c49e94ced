import { describe, expect, it } from 'vitest';
import type { Begin } from '#operations/accepting/operations';
import type { Database, Tx } from '#platform/database/database';
import type { Statement } from '#platform/database/sql';
import { uuidv7 } from '#platform/uuid';
import { ItemOperations } from '#storage/bulk/item-operations';

const tenantId = uuidv7();

/** What is sent in which order; the item is there to be taken. */
function recording() {
  const sent: string[] = [];
  const note = (...statements: [Statement, unknown][]) => {
    sent.push(...statements.map(([{ name }]) => name));
    return statements.map(() => []);
  };
  const tx = {
    query: async (statement: Statement, params: unknown) => note([statement, params]),
    commit: async (...statements: [Statement, unknown][]) => note(...statements),
  } as unknown as Tx;
  const database = { withTenant: (_: string, work: (tx: Tx) => unknown) => work(tx) } as unknown as Database;
  return { sent, operations: new ItemOperations(database, uuidv7(), { nth: 1 }) };
}
const observer = (sent: string[]) => ({ before: async () => void sent.push('locks of who looks') });
const caller = (sent: string[]) => ({ tenantId, backendId: uuidv7(), deadline: 0, observer: observer(sent) });

describe('an item is taken after each lock that it may have waited for', () => {
  it('when it joins another operation', async () => {
    const { sent, operations } = recording();
    await operations.submit(
      caller(sent),
      async () => {
        sent.push('locks of the claim');
        return { value: 1, join: uuidv7() };
      },
      async () => void sent.push('first'),
    );
    expect(sent).toEqual(['first', 'locks of who looks', 'locks of the claim', 'bulk_take', 'bulk_join']);
  });

  it('when there is nothing to do', async () => {
    const { sent, operations } = recording();
    await operations.submit(caller(sent), async () => ({ value: 1 }));
    expect(sent).toEqual(['locks of who looks', 'bulk_take', 'bulk_settled']);
  });

  it('when an operation is begun, just before that', async () => {
    const { sent, operations } = recording();
    const begins = async (_: Tx, begin: Begin) => {
      sent.push('locks of the claim');
      const resource = { resourceId: uuidv7(), resourceName: 'x', request: {} };
      const asked = { kind: 'test.work', class: 'fast', resourceKind: 'volume', slots: () => [] } as never;
      await begin(asked, resource).catch(() => undefined);
      return { value: 1 };
    };
    await operations.submit(caller(sent), begins);
    expect(sent.slice(0, 3)).toEqual(['locks of who looks', 'locks of the claim', 'bulk_take']);
    expect(sent.filter(name => name === 'bulk_take')).toHaveLength(1);
  });
});
