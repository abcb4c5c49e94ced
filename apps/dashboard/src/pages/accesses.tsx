import { Stack } from '@mantine/core';
import { useParams } from 'react-router';
import { call } from '../api/client';
import { useMay } from '../api/me';
import { useRead } from '../api/read';
import type { ItemOf } from '../api/routes';
import { Act } from '../parts/act';
import { Ago } from '../parts/ago';
import { Copy } from '../parts/copy';
import { DataTable, Pager } from '../parts/data-table';
import { ExportCsv } from '../parts/export-csv';
import { FilterBar, type FilterField, useFilters } from '../parts/filters';
import { BackendLink, To, UnderWay } from '../parts/links';
import { LinkedOperations } from '../parts/operation-list';
import { Empty, Facts, Loaded, Page, Section } from '../parts/page';
import { usePageSize } from '../parts/page-size';
import { StateBadge } from '../parts/state-badge';
import { useTenant } from '../shell/tenant';
import { AccessKey, IssueAccess } from './issue-access';

type Access = ItemOf<'/tenants/{tenant}/accesses'>;

const fields: readonly FilterField[] = [
  { name: 'search', label: 'Name', placeholder: 'part of it' },
  { name: 'bucket', label: 'Bucket', pick: 'buckets' },
  {
    name: 'authentication',
    label: 'Comes in',
    options: [
      ['key', 'by a key'],
      ['service_account', 'as a service account'],
    ],
  },
  {
    name: 'sort',
    label: 'Order',
    unset: 'by name',
    options: [
      ['-name', 'by name, last first'],
      ['-createdAt', 'newest first'],
      ['createdAt', 'oldest first'],
    ],
  },
];

export function AccessesPage() {
  const tenant = useTenant();
  const may = useMay();
  const filters = useFilters(fields.map(({ name }) => name));
  return (
    <Page title="Accesses" actions={may('admin') && <IssueAccess tenant={tenant} />}>
      <p className="dimmed">
        Accounts that were granted access to buckets. Keys that drivers have are never shown; one that was issued is
        shown to administrators.
      </p>
      <FilterBar filters={filters} fields={fields} />
      <AccessList tenant={tenant} query={filters.query} paged />
    </Page>
  );
}

function comesIn({ serviceAccount, issued }: Access): string {
  if (serviceAccount) {
    const { namespace, name, as } = serviceAccount;
    return `without a key: service account ${namespace}/${name}, as ${as}`;
  }
  return issued ? 'by a key that was issued to a person or a program' : 'by a key, which a driver has';
}

/** Of the key that it has. */
const keyFacts = ({ formerKeyUntil, rotatesAt }: Access) =>
  [
    [
      'Former key',
      formerKeyUntil === null ? (
        'none'
      ) : (
        <span key="former">
          ends <Ago at={formerKeyUntil} />
        </span>
      ),
    ],
    ['Key changes', rotatesAt === null ? 'when asked for' : <Ago key="rotates" at={rotatesAt} />],
  ] as const;

const Grants = ({ grants }: { grants: Access['grants'] }) => (
  <ul className="plain-list">
    {grants.map(({ bucket, mode, state }) => (
      <li key={bucket}>
        {bucket}, {mode.replaceAll('_', ' ')}
        {state === 'applied' ? '' : ` (${state})`}
      </li>
    ))}
  </ul>
);

interface ListProps {
  tenant: string;
  query: Record<string, string>;
  paged?: boolean;
}

export function AccessList({ tenant, query, paged }: ListProps) {
  const size = usePageSize();
  const list = useRead('/tenants/{tenant}/accesses', {
    params: { tenant },
    query: { ...(query as object), limit: size },
  });
  const { cursor: _, ...wanted } = query;
  return (
    <Loaded read={{ ...list, data: list.data?.data }}>
      {({ items, next }) => (
        <>
          <DataTable
            label="Accesses"
            usualSort={paged ? 'name' : undefined}
            rows={items}
            keyOf={({ id }) => id}
            empty={
              <Empty
                what="Nobody has access. A BucketAccess of the cluster grants it."
                command="kubectl get bucketaccess"
              />
            }
            columns={[
              {
                head: 'Name',
                sort: 'name',
                cell: ({ id, name }) => <To to={`/tenants/${tenant}/accesses/${id}`}>{name}</To>,
              },
              {
                head: 'State',
                cell: ({ state, stale }) => (
                  <span>
                    <StateBadge state={state} /> {stale && <StateBadge state="stale" />}
                  </span>
                ),
              },
              { head: 'Account', cell: ({ accountId }) => accountId },
              { head: 'Buckets', cell: ({ grants }) => <Grants grants={grants} /> },
              { head: 'Backend', cell: ({ backend }) => backend },
              { head: 'Operation', cell: ({ operation }) => <UnderWay operation={operation} /> },
              { head: 'Granted', sort: 'createdAt', descends: true, cell: ({ createdAt }) => <Ago at={createdAt} /> },
            ]}
          />
          {paged && <Pager next={next} shown={items.length} />}
          {paged && items.length > 0 && (
            <ExportCsv name="Accesses" path="/tenants/{tenant}/accesses" params={{ tenant }} query={wanted} />
          )}
        </>
      )}
    </Loaded>
  );
}

export function AccessPage() {
  const tenant = useTenant();
  const { access = '' } = useParams();
  const may = useMay();
  const read = useRead('/tenants/{tenant}/accesses/{access}', { params: { tenant, access } });
  const data = read.data?.data;
  return (
    <Page
      title={data?.name ?? 'Access'}
      above={{ name: 'Accesses', to: `/tenants/${tenant}/accesses` }}
      actions={
        data &&
        may('admin') &&
        data.state !== 'revoking' && (
          <>
            {data.issued && (
              <Act
                label="Show key"
                title={`Show the key of ${data.name}`}
                explain="The audit log says who had it shown."
                verb="Show it"
                reason="required"
                done="The key is shown"
                run={async (_, reason) => {
                  const { data: key } = await call('POST', '/tenants/{tenant}/accesses/{access}/key', {
                    params: { tenant, access },
                    body: { reason: reason ?? '' },
                  });
                  return <AccessKey value={key} />;
                }}
              />
            )}
            {!data.serviceAccount && (
              <Act
                label="Change key"
                title={`Change the key of ${data.name}`}
                explain="The next Grant, or Show key, answers another key. The store lets in the one that it has now for a day; then it ends."
                reason="required"
                done="The key is being changed"
                run={async (_, reason) => {
                  await call('POST', '/tenants/{tenant}/accesses/{access}/rotate', {
                    params: { tenant, access },
                    body: { reason: reason ?? '' },
                  });
                  return undefined;
                }}
              />
            )}
            <Act
              danger
              label="Revoke"
              title={`Revoke access ${data.name}`}
              explain="Its key ends first: whoever uses it is refused at once."
              confirmName={data.name}
              reason="required"
              done="The access is being revoked"
              run={async (_, reason) => {
                await call('POST', '/tenants/{tenant}/accesses/{access}/revoke', {
                  params: { tenant, access },
                  body: { reason: reason ?? '' },
                });
                return undefined;
              }}
            />
          </>
        )
      }
    >
      <Loaded read={{ ...read, data }}>
        {found => (
          <Stack gap="md">
            {found.stale && (
              <div className="notice notice-warn" role="note">
                <p className="notice-title">The store no longer says what was granted</p>
                The next request of the driver for this access heals it.
              </div>
            )}
            <Section title="About">
              <Facts
                facts={[
                  ['State', <StateBadge key="state" state={found.state} />],
                  ['Account', found.accountId],
                  ['Comes in', comesIn(found)],
                  ['Backend', <BackendLink key="backend" tenant={tenant} backend={found.backend} />],
                  ['Buckets', <Grants key="grants" grants={found.grants} />],
                  ...(found.serviceAccount ? [] : keyFacts(found)),
                  ['Ends by itself', found.expiresAt === null ? 'never' : <Ago key="ends" at={found.expiresAt} />],
                  ['Operation', <UnderWay key="operation" operation={found.operation} />],
                  ['Granted', <Ago key="made" at={found.createdAt} />],
                  ['Changed', <Ago key="changed" at={found.updatedAt} />],
                  ['Id', <Copy key="id" text={found.id} label="the id" />],
                ]}
              />
            </Section>
            <LinkedOperations tenant={tenant} resource={found.id} />
          </Stack>
        )}
      </Loaded>
    </Page>
  );
}
