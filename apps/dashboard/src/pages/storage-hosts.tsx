import { useRead } from '../api/read';
import type { ItemOf } from '../api/routes';
import { Ago } from '../parts/ago';
import { showBytes } from '../parts/amounts';
import { DataTable } from '../parts/data-table';
import { To } from '../parts/links';
import { Empty, Loaded, Section } from '../parts/page';
import { StateBadge } from '../parts/state-badge';

const EVERY_MS = 5_000;

type StorageHost = ItemOf<'/storage-hosts'>;

/** Machines that workers run on, and what to do about one that is silent. */
export function StorageHosts() {
  const hosts = useRead('/storage-hosts', {}, { every: EVERY_MS });
  return (
    <Section title="Storage hosts">
      <Loaded read={{ ...hosts, data: hosts.data?.data }}>
        {({ items }) => (
          <DataTable
            label="Storage hosts"
            rows={items}
            keyOf={({ name }) => name}
            empty={<Empty what="No worker has said where it runs." command="trivet up" />}
            columns={[
              { head: 'Name', cell: ({ name }) => name },
              {
                head: 'State',
                cell: host => (
                  <span>
                    <StateBadge state={host.state} /> <span className="dimmed">{remedy(host)}</span>
                  </span>
                ),
                wide: true,
              },
              { head: 'Seen', cell: ({ seenAt }) => <Ago at={seenAt} /> },
              { head: 'Release', cell: ({ release }) => release },
              { head: 'Workers', cell: ({ workers }) => workers, number: true },
              { head: 'Pools', cell: ({ pools }) => pools.map(({ name }) => name).join(', ') || 'none' },
              { head: 'Shares included', cell: ({ homeOf }) => homeOf, number: true },
              { head: 'Memory free', cell: ({ memoryFree }) => showBytes(memoryFree), number: true },
              {
                head: 'Wait for it',
                cell: ({ waiting }) => (waiting === 0 ? 0 : <To to="/operations?state=pending">{waiting}</To>),
                number: true,
              },
            ]}
          />
        )}
      </Loaded>
    </Section>
  );
}

function remedy({ name, state, homeOf, foreign }: StorageHost): string | undefined {
  const [pool] = foreign;
  if (state === 'down' && homeOf > 0)
    return `Start its worker again. A machine that has its disks takes its place with TRIVET_HOST=${name}, never while this one may still have them mounted.`;
  if (state === 'down') return 'It has no pool: it is forgotten after a day.';
  if (pool)
    return `It has pool ${pool.name} at ${pool.path}, too, whose home is ${pool.home}: unmount it on one of them.`;
  return undefined;
}
