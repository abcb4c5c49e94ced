import { call } from '../api/client';
import { useMay } from '../api/me';
import { useRead } from '../api/read';
import { Act } from '../parts/act';
import { Ago } from '../parts/ago';
import { DataTable, Pager } from '../parts/data-table';
import { useFilters } from '../parts/filters';
import { To } from '../parts/links';
import { Empty, Loaded, Page } from '../parts/page';
import { StateBadge } from '../parts/state-badge';
import { useTenant } from '../shell/tenant';

export function SnapshotSessionsPage() {
  const tenant = useTenant();
  const may = useMay();
  const { query } = useFilters([]);
  const list = useRead('/tenants/{tenant}/snapshot-sessions', { params: { tenant }, query: { ...query, limit: 50 } });
  return (
    <Page title="Snapshot sessions">
      <p className="dimmed">Who may read changed blocks of which snapshots. Backup software opens them.</p>
      <Loaded read={{ ...list, data: list.data?.data }}>
        {({ items, next }) => (
          <>
            <DataTable
              label="Snapshot sessions"
              rows={items}
              keyOf={({ id }) => id}
              empty={<Empty what="There is no session." command="trivet backup" />}
              columns={[
                { head: 'Name', cell: ({ name }) => name },
                {
                  head: 'State',
                  cell: ({ state, error }) => (
                    <span>
                      <StateBadge state={state} /> {error}
                    </span>
                  ),
                },
                { head: 'Opened by', cell: ({ createdBy }) => createdBy ?? '–' },
                {
                  head: 'Snapshots',
                  cell: ({ snapshots }) => (
                    <ul className="plain-list">
                      {snapshots.map(({ asked, id, volume }) => (
                        <li key={asked}>
                          {id ? <To to={`/tenants/${tenant}/snapshots/${id}`}>{asked}</To> : asked}
                          {volume ? ` of ${volume}` : ''}
                        </li>
                      ))}
                    </ul>
                  ),
                },
                { head: 'Opened', cell: ({ createdAt }) => <Ago at={createdAt} /> },
                { head: 'Ends', cell: ({ expiresAt }) => <Ago at={expiresAt} /> },
                {
                  head: 'Actions',
                  cell: ({ id, name }) =>
                    may('operator') && (
                      <Act
                        small
                        danger
                        label="End"
                        title={`End session ${name}`}
                        explain="Its token opens no stream any more; a backup that reads by it fails."
                        done="The session was ended"
                        run={async () => {
                          const params = { tenant, session: id };
                          await call('DELETE', '/tenants/{tenant}/snapshot-sessions/{session}', { params });
                          return undefined;
                        }}
                      />
                    ),
                },
              ]}
            />
            <Pager next={next} shown={items.length} />
          </>
        )}
      </Loaded>
    </Page>
  );
}
