import { call } from '../api/client';
import { useMay } from '../api/me';
import { Act } from '../parts/act';
import { Ago } from '../parts/ago';
import { To } from '../parts/links';
import { ListPage } from '../parts/list-page';
import { Empty } from '../parts/page';
import { StateBadge } from '../parts/state-badge';
import { useTenant } from '../shell/tenant';

export function SnapshotSessionsPage() {
  const tenant = useTenant();
  const may = useMay();
  return (
    <ListPage
      title="Snapshot sessions"
      path="/tenants/{tenant}/snapshot-sessions"
      params={{ tenant }}
      intro="Who may read changed blocks of which snapshots. Backup software opens them."
      empty={<Empty what="There is no session." command="trivet backup create" />}
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
                confirmName={name}
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
  );
}
