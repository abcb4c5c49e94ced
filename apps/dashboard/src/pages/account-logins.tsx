import { useSearchParams } from 'react-router';
import { call } from '../api/client';
import { useRead } from '../api/read';
import { Act } from '../parts/act';
import { Ago } from '../parts/ago';
import { DataTable, Pager } from '../parts/data-table';
import { Empty, Loaded, Section } from '../parts/page';
import { usePageSize } from '../parts/page-size';

const BY = {
  password: 'Password',
  totp: 'Password and code',
  recovery: 'Password and recovery code',
  passkey: 'Passkey',
  provider: 'Identity provider',
} as const;

/** One's own logins at the page, each to be ended from here. */
export function OwnLogins() {
  const cursor = useSearchParams()[0].get('cursor') ?? undefined;
  const read = useRead('/session/logins', { query: { cursor, limit: usePageSize() } });
  return (
    <Section
      title="Logins"
      actions={
        <Act
          label="End all others"
          title="End all your other logins"
          explain="Every other browser has to log in again, within five seconds at the latest. This one and your API tokens go on."
          done="Your other logins have ended"
          run={async () => {
            await call('DELETE', '/session/logins', {});
            return undefined;
          }}
        />
      }
    >
      <Loaded read={{ ...read, data: read.data?.data }}>
        {({ items, next }) => (
          <>
            <DataTable
              label="Logins"
              rows={items}
              keyOf={({ id }) => id}
              empty={<Empty what="Nobody is logged in as you at a page." />}
              columns={[
                {
                  head: 'Browser',
                  wide: true,
                  cell: ({ userAgent, current }) => (
                    <>
                      {browserOf(userAgent)}
                      {current && <strong> · this one</strong>}
                    </>
                  ),
                },
                { head: 'From', cell: ({ address }) => address },
                { head: 'By', cell: ({ openedBy }) => (openedBy === null ? '–' : BY[openedBy]) },
                { head: 'Opened', cell: ({ createdAt }) => <Ago at={createdAt} /> },
                { head: 'Last seen', cell: ({ lastUsedAt }) => <Ago at={lastUsedAt} /> },
                { head: 'Ends', cell: ({ expiresAt }) => <Ago at={expiresAt} /> },
                {
                  head: 'Actions',
                  cell: ({ id, address, current }) =>
                    !current && (
                      <Act
                        small
                        label="End"
                        title={`End the login from ${address}`}
                        explain="That browser has to log in again, within five seconds at the latest."
                        done="The login has ended"
                        run={async () => {
                          await call('DELETE', '/session/logins/{login}', { params: { login: id } });
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
    </Section>
  );
}

const NAMES = ['Firefox', 'Edg', 'OPR', 'Chrome', 'Safari', 'curl'] as const;
const SYSTEMS = ['Windows', 'Android', 'iPhone', 'iPad', 'Mac OS', 'Linux'] as const;

/** Enough to tell one's own browsers apart; what fits no name is shown as it was sent. */
function browserOf(sent: string): string {
  const name = NAMES.find(word => sent.includes(word));
  const system = SYSTEMS.find(word => sent.includes(word));
  if (!name) return sent.slice(0, 60) || 'unknown';
  const shown = { Edg: 'Edge', OPR: 'Opera' }[name as string] ?? name;
  return system ? `${shown}, ${system}` : shown;
}
