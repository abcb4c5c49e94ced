import { Stack } from '@mantine/core';
import { call } from '../api/client';
import { useMay } from '../api/me';
import { useRead } from '../api/read';
import { Act } from '../parts/act';
import { Ago } from '../parts/ago';
import { showDuration } from '../parts/amounts';
import { Copy } from '../parts/copy';
import { DataTable } from '../parts/data-table';
import { To } from '../parts/links';
import { Empty, Loaded, Page, Section } from '../parts/page';
import { StateBadge } from '../parts/state-badge';
import { StorageHosts } from './storage-hosts';

const EVERY_MS = 5_000;
const CLASSES = {
  fast: 'short calls to backends',
  copy: 'copies of data',
  destroy: 'removal of data',
  index: 'index of changed blocks',
} as const;

export function WorkersPage() {
  return (
    <Page title="Workers and queues">
      <Stack gap="md">
        <Queues />
        <Workers />
        <StorageHosts />
        <Tasks />
      </Stack>
    </Page>
  );
}

function Queues() {
  const may = useMay();
  const queues = useRead('/queues', {}, { every: EVERY_MS });
  return (
    <Section title="Queues">
      <Loaded read={{ ...queues, data: queues.data?.data }}>
        {({ items }) => (
          <DataTable
            label="Queues"
            rows={items}
            keyOf={queue => queue.class}
            empty={<Empty what="There is no queue." />}
            columns={[
              { head: 'Class', cell: queue => `${queue.class}: ${CLASSES[queue.class]}` },
              {
                head: 'State',
                cell: ({ paused, reason, changedBy, changedAt }) => (
                  <span>
                    <StateBadge state={paused ? 'paused' : 'active'} />
                    {paused && (
                      <span className="dimmed">
                        {' '}
                        {reason} {changedBy && `by ${changedBy}, `}
                        <Ago at={changedAt} />
                      </span>
                    )}
                  </span>
                ),
              },
              {
                head: 'Waiting',
                cell: ({ waiting }) => <To to="/operations?state=pending">{waiting}</To>,
                number: true,
              },
              { head: 'Running', cell: ({ running }) => running, number: true },
              { head: 'Oldest waits', cell: ({ oldestWaitingMs }) => showDuration(oldestWaitingMs), number: true },
              {
                head: 'Actions',
                cell: queue =>
                  may('admin', 'appliance') && (
                    <Act
                      small
                      label={queue.paused ? 'Resume' : 'Pause'}
                      title={queue.paused ? `Resume class ${queue.class}` : `Pause class ${queue.class}`}
                      explain={
                        queue.paused
                          ? 'What waits is run in its order.'
                          : 'What runs ends; what comes waits. It stays so over restarts until somebody resumes it.'
                      }
                      reason={queue.paused ? 'optional' : 'required'}
                      confirmName={queue.paused ? undefined : queue.class}
                      done={queue.paused ? 'The class was resumed' : 'The class was paused'}
                      run={async (_, reason) => {
                        await call('PATCH', '/queues/{class}', {
                          params: { class: queue.class },
                          body: { paused: !queue.paused, reason },
                        });
                        return undefined;
                      }}
                    />
                  ),
              },
            ]}
          />
        )}
      </Loaded>
    </Section>
  );
}

function Workers() {
  const workers = useRead('/workers', {}, { every: EVERY_MS });
  return (
    <Section title="Workers">
      <Loaded read={{ ...workers, data: workers.data?.data }}>
        {({ items }) => (
          <DataTable
            label="Workers"
            rows={items}
            keyOf={({ id }) => id}
            empty={<Empty what="No worker has said anything within a day: nothing is done." command="trivet up" />}
            columns={[
              { head: 'Host', cell: ({ host, pid }) => `${host}, process ${pid}` },
              { head: 'State', cell: ({ state }) => <StateBadge state={state} /> },
              { head: 'Running', cell: ({ running, concurrency }) => `${running} of ${concurrency}`, number: true },
              { head: 'Version', cell: ({ version }) => version },
              { head: 'Seen', cell: ({ seenAt }) => <Ago at={seenAt} /> },
              { head: 'Started', cell: ({ startedAt }) => <Ago at={startedAt} /> },
              { head: 'Id', cell: ({ id }) => <Copy text={id} label="the id" short /> },
            ]}
          />
        )}
      </Loaded>
    </Section>
  );
}

const WHO: Record<string, string> = { appliance: 'one worker at a time', gateway: 'this gateway' };

function Tasks() {
  const tasks = useRead('/tasks', {}, { every: EVERY_MS });
  const workers = useRead('/workers', {}, { every: EVERY_MS });
  const nameOf = (id: string | null) => {
    const worker = workers.data?.data.items.find(candidate => candidate.id === id);
    return worker && `${worker.host}, process ${worker.pid}`;
  };
  return (
    <Section title="Periodic tasks">
      <Loaded read={{ ...tasks, data: tasks.data?.data }}>
        {({ items }) => (
          <DataTable
            label="Periodic tasks"
            rows={[...items].sort((a, b) => Number(b.state === 'late') - Number(a.state === 'late'))}
            keyOf={({ name, scope, workerId }) => (scope === 'worker' ? `${name} ${workerId}` : name)}
            empty={<Empty what="No worker is up: nothing is done." command="trivet up" />}
            columns={[
              { head: 'Task', cell: ({ name }) => name },
              { head: 'Who', cell: ({ scope, workerId }) => WHO[scope] ?? nameOf(workerId) },
              {
                head: 'State',
                cell: ({ state, error }) => (
                  <span>
                    <StateBadge state={state} /> <span className="dimmed">{error}</span>
                  </span>
                ),
              },
              { head: 'Succeeded', cell: ({ lastSuccessAt }) => lastSuccessAt && <Ago at={lastSuccessAt} /> },
              { head: 'Took', cell: ({ durationMs }) => showDuration(durationMs), number: true },
            ]}
          />
        )}
      </Loaded>
    </Section>
  );
}
