import { useRead } from '../api/read';
import type { ItemOf } from '../api/routes';
import { Ago } from './ago';
import { shareOf, showBytes } from './amounts';
import { To } from './links';
import { Empty, Loaded, Section } from './page';

/** What each cut added to the one before: bars, and the same in numbers beside them. */
export function Growth({ tenant, volume, current }: { tenant: string; volume: string; current?: string }) {
  const read = useRead('/tenants/{tenant}/snapshots', {
    params: { tenant },
    query: { volume, sort: '-cut', limit: 100 },
  });
  return (
    <Section title="Snapshots and what changed between them">
      <Loaded read={{ ...read, data: read.data?.data }}>
        {({ items, next }) => {
          if (items.length === 0)
            return <Empty what="There is no snapshot of it yet." command="trivet protection list" />;
          const most = items.reduce((max, { changedBytes }) => Math.max(max, Number(changedBytes ?? 0)), 0);
          return (
            <>
              <table className="growth" aria-label="Growth of each increment">
                <thead>
                  <tr>
                    <th scope="col">Snapshot</th>
                    <th scope="col">Taken</th>
                    <th scope="col">Changed since the one before</th>
                    <th scope="col">Beside each other</th>
                  </tr>
                </thead>
                <tbody>
                  {items.map(({ id, name, cut, cutAt, createdAt, changedBytes, index }, n) => (
                    <tr key={id} aria-current={id === current ? 'true' : undefined}>
                      <th scope="row">
                        <To to={`/tenants/${tenant}/snapshots/${id}`}>{name}</To>
                      </th>
                      <td>
                        <Ago at={cutAt ?? createdAt} />
                      </td>
                      <td>
                        {sinceBefore({ cut, changedBytes, index, oldest: next === null && n === items.length - 1 })}
                      </td>
                      <td className="bar-cell">
                        <svg viewBox="0 0 100 14" preserveAspectRatio="none" aria-hidden="true">
                          <rect width={100 * shareOf(changedBytes ?? '0', String(most))} height={14} />
                        </svg>
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
              {next && <To to={`/tenants/${tenant}/snapshots?volume=${volume}&sort=-cut`}>All of them</To>}
            </>
          );
        }}
      </Loaded>
    </Section>
  );
}

const WHY = { pending: 'not indexed yet', indexed: 'not known', broken: 'not known: do a full backup' } as const;

interface Increment extends Pick<ItemOf<'/tenants/{tenant}/snapshots'>, 'cut' | 'changedBytes' | 'index'> {
  /** There is none before it any more. */
  oldest?: boolean;
}

/** What changed since the snapshot before, or why nobody can say. Cuts of a volume are numbered from 1. */
export function sinceBefore({ cut, changedBytes, index, oldest }: Increment): string {
  if (changedBytes !== null) return showBytes(changedBytes);
  if (index !== 'indexed') return WHY[index];
  if (cut === '1') return 'the first';
  return oldest ? 'the oldest that is left' : WHY.indexed;
}
