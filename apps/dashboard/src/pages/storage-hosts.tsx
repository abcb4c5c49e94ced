import type { StorageHostDetailReply } from '#admin/contract/storage-hosts';
import { call } from '../api/client';
import { useMay } from '../api/me';
import { useRead } from '../api/read';
import type { ItemOf } from '../api/routes';
import { Act } from '../parts/act';
import { Ago } from '../parts/ago';
import { showBytes } from '../parts/amounts';
import { DataTable } from '../parts/data-table';
import { To } from '../parts/links';
import { Empty, Loaded, Section } from '../parts/page';
import { StateBadge } from '../parts/state-badge';

const EVERY_MS = 5_000;
const HOST = '/storage-hosts/{storageHost}';

type StorageHost = ItemOf<'/storage-hosts'>;

/** Machines that workers run on, and what to do about one that is silent. */
export function StorageHosts() {
  const may = useMay();
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
              { head: 'Name', cell: host => <Pools host={host} /> },
              {
                head: 'State',
                cell: host => (
                  <span>
                    <StateBadge state={host.state} /> {host.draining && <Draining {...host.draining} />}
                    <span className="dimmed">{remedy(host)}</span>
                  </span>
                ),
                wide: true,
              },
              { head: 'Seen', cell: ({ seenAt }) => <Ago at={seenAt} /> },
              { head: 'Workers', cell: ({ workers, release }) => `${workers} of ${release}` },
              { head: 'Pools', cell: poolsOf },
              { head: 'Reached by', cell: reachedBy, wide: true },
              { head: 'Memory free', cell: ({ memoryFree }) => showBytes(memoryFree), number: true },
              {
                head: 'Wait for it',
                cell: ({ waiting }) => (waiting === 0 ? 0 : <To to="/operations?state=pending">{waiting}</To>),
                number: true,
              },
              { head: 'Actions', cell: host => may('admin', 'appliance') && <Drain host={host} /> },
            ]}
          />
        )}
      </Loaded>
    </Section>
  );
}

const poolsOf = ({ pools, homeOf }: StorageHost): string => {
  const names = pools.map(({ name }) => name).join(', ') || 'none';
  return homeOf > pools.length ? `${names}; ${homeOf} with shares` : names;
};

const reachedBy = ({ exporters, portals, clusters }: StorageHost): string =>
  [...exporters, ...portals, ...clusters.map(cluster => `cluster ${cluster}`)].join(', ') || 'nothing';

const Draining = ({ since, by, reason }: NonNullable<StorageHost['draining']>) => (
  <span>
    <StateBadge state="draining" />{' '}
    <span className="dimmed">
      since <Ago at={since} /> by {by}
      {reason && `: ${reason}`}.{' '}
    </span>
  </span>
);

function Drain({ host: { name, draining } }: { host: StorageHost }) {
  return (
    <Act
      small
      label={draining ? 'Take back' : 'Drain'}
      title={draining ? `Take ${name} back into use` : `Drain ${name}`}
      explain={
        draining
          ? 'It takes pools into use again.'
          : 'It takes no further pool into use, and goes on with those that it has: each is listed with what to do about it.'
      }
      reason={draining ? 'optional' : 'required'}
      done={draining ? `${name} is in use again` : `${name} is being drained`}
      run={async (_, reason) => {
        const body = { draining: !draining, reason };
        const { data } = await call('PATCH', HOST, { params: { storageHost: name }, body });
        return draining ? undefined : <Todo host={data} />;
      }}
    />
  );
}

/** Its name; of one that is drained, also what it has still; and which pools it took over, or can hardly serve. */
function Pools({ host: { name, draining, clusters } }: { host: StorageHost }) {
  const enabled = draining !== null || clusters.length > 0;
  const read = useRead(HOST, { params: { storageHost: name } }, { every: EVERY_MS, enabled });
  return (
    <span>
      {name}
      {draining && read.data && <Todo host={read.data.data} />}
      {read.data && <Taken host={read.data.data} />}
    </span>
  );
}

const WHY: Readonly<Record<Takeover['why'], string>> = {
  silent: 'said nothing for longer than its lease',
  cluster: 'did not reach the cluster',
  link: 'was not reached by initiators',
  drained: 'was drained',
  handed_over: 'ended its worker in order',
  renamed: 'was this machine under another name',
};
type Takeover = NonNullable<StorageHostDetailReply['has'][number]['takenOver']>;

const Taken = ({ host: { name, has } }: { host: StorageHostDetailReply }) => {
  const told = has.filter(({ takenOver, lacks }) => takenOver !== null || lacks !== null);
  if (told.length === 0) return null;
  return (
    <ul aria-label={`Takeovers of ${name}`} className="dimmed">
      {told.map(({ tenant, backend, pool, takenOver, lacks }) => (
        <li key={`${tenant}/${backend}/${pool}`}>
          {pool}
          {takenOver && (
            <>
              {' '}
              taken over <Ago at={takenOver.at} /> from {takenOver.from}, which {WHY[takenOver.why]}
            </>
          )}
          {lacks && `; it lacks its ${lacks === 'link' ? 'link to initiators' : 'way to the cluster'}`}
        </li>
      ))}
    </ul>
  );
};

const Todo = ({ host: { name, has } }: { host: StorageHostDetailReply }) =>
  has.length === 0 ? (
    <p className="dimmed">It has no pool: it may be switched off.</p>
  ) : (
    <ul aria-label={`Pools of ${name}`}>
      {has.map(({ tenant, backend, pool, volumes, published, todo }) => (
        <li key={`${tenant}/${backend}/${pool}`}>
          {pool}: {volumes} volumes, {published} of them published; {todo}
        </li>
      ))}
    </ul>
  );

function remedy({ name, state, homeOf, foreign, absent }: StorageHost): string | undefined {
  const [pool] = foreign;
  const [lost] = absent;
  if (state === 'down' && homeOf > 0)
    return `Start its worker again. Once it is off and its disks are at another machine, move its pools there, on the pages of their backends; or that machine takes its place with TRIVET_HOST=${name}.`;
  if (state === 'down') return 'It has no pool: it is forgotten after a day.';
  if (pool)
    return `It has pool ${pool.name} at ${pool.path}, too, whose home is ${pool.home}: unmount it on one of them, or move the pool here.`;
  if (lost)
    return `It is without its pool ${lost.name} at ${lost.path}: mount it, or move the pool to where its disk is.`;
  return undefined;
}
