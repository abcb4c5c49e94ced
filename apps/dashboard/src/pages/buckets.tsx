import { Stack } from '@mantine/core';
import { useNavigate, useParams } from 'react-router';
import type { BucketReply } from '#admin/contract/buckets';
import { call } from '../api/client';
import { useMay } from '../api/me';
import { useRead } from '../api/read';
import { Act } from '../parts/act';
import { Ago } from '../parts/ago';
import { showBytes } from '../parts/amounts';
import { ofBuckets } from '../parts/bulk-actions';
import { Copy } from '../parts/copy';
import type { Column } from '../parts/data-table';
import { OF_TENANT, resourceFields } from '../parts/filters';
import { BackendLink, ConditionNotice, To, UnderWay } from '../parts/links';
import { COMMON, ListPage, type OfTenant, withTenant } from '../parts/list-page';
import { LinkedOperations } from '../parts/operation-list';
import { Empty, Facts, Loaded, Page, Section } from '../parts/page';
import { StateBadge } from '../parts/state-badge';
import { useTenant } from '../shell/tenant';
import { AccessList } from './accesses';
import { IssueAccess } from './issue-access';
import { NewBucket } from './new-bucket';

const fields = resourceFields();

export function BucketsPage() {
  const tenant = useTenant();
  return (
    <ListPage
      title="Buckets"
      path="/tenants/{tenant}/buckets"
      params={{ tenant }}
      fields={fields}
      actions={<NewBucket />}
      empty={
        <Empty what="No bucket matches. A BucketClaim of a cluster makes one, too." command="trivet bucket create" />
      }
      usualSort="name"
      bulk={ofBuckets(tenant)}
      columns={columnsOf(tenant)}
    />
  );
}

export const AllBucketsPage = () => (
  <ListPage
    title="Buckets of all tenants"
    path="/buckets"
    fields={[OF_TENANT, ...fields]}
    empty={<Empty what="No bucket matches." command="trivet bucket list --all-tenants" />}
    usualSort="name"
    columns={withTenant(columnsOf())}
  />
);

/** @param tenant whose all rows are; absent: each row says its own */
const columnsOf = (tenant?: string): readonly Column<OfTenant<BucketReply>>[] => [
  {
    head: 'Name',
    sort: 'name',
    cell: row => <To to={`/tenants/${tenant ?? row.tenant}/buckets/${row.id}`}>{row.name}</To>,
  },
  COMMON.state,
  { head: 'Used', cell: ({ usedBytes }) => showBytes(usedBytes), number: true },
  { head: 'Backend', cell: ({ backend }) => backend },
  { head: 'Origin', cell: ({ origin }) => origin },
  { head: 'Accesses', cell: ({ accesses }) => accesses, number: true },
  COMMON.condition,
  COMMON.operation,
  COMMON.made,
];

export function BucketPage() {
  const tenant = useTenant();
  const { bucket = '' } = useParams();
  const may = useMay();
  const navigate = useNavigate();
  const read = useRead('/tenants/{tenant}/buckets/{bucket}', { params: { tenant, bucket } });
  const data = read.data?.data;
  return (
    <Page
      title={data?.name ?? 'Bucket'}
      above={{ name: 'Buckets', to: `/tenants/${tenant}/buckets` }}
      actions={
        data &&
        may('admin') &&
        data.state !== 'deleting' && (
          <Act
            danger
            label="Delete"
            title={`Delete bucket ${data.name}`}
            explain={
              data.origin === 'registered'
                ? 'It was registered, so it is only let go: the store keeps it.'
                : 'Its deletePolicy decides whether its objects go with it.'
            }
            confirmName={data.name}
            done="The bucket is being deleted"
            run={async () => {
              const params = { tenant, bucket };
              await call('DELETE', '/tenants/{tenant}/buckets/{bucket}', { params }, { etag: read.data?.etag });
              void navigate(`/tenants/${tenant}/buckets`);
              return undefined;
            }}
          />
        )
      }
    >
      <Loaded read={{ ...read, data }}>
        {found => (
          <Stack gap="md">
            <ConditionNotice condition={found.condition} />
            <Section title="About">
              <Facts
                facts={[
                  ['State', <StateBadge key="state" state={found.state} />],
                  ['Used', showBytes(found.usedBytes)],
                  ['Backend', <BackendLink key="backend" tenant={tenant} backend={found.backend} />],
                  ['Origin', found.origin],
                  ['Operation', <UnderWay key="operation" operation={found.operation} />],
                  ['Made', <Ago key="made" at={found.createdAt} />],
                  ['Changed', <Ago key="changed" at={found.updatedAt} />],
                  ['Id', <Copy key="id" text={found.id} label="the id" />],
                  ...Object.entries(found.parameters).map(([name, value]) => [name, value] as const),
                ]}
              />
            </Section>
            <Section title="Accesses">
              {may('admin') && found.state === 'ready' && <IssueAccess tenant={tenant} bucket={found} />}
              <AccessList tenant={tenant} query={{ bucket: found.id }} />
            </Section>
            <LinkedOperations tenant={tenant} resource={found.id} />
          </Stack>
        )}
      </Loaded>
    </Page>
  );
}
