import { PasswordInput, Stack, Textarea, TextInput } from '@mantine/core';
import { useNavigate, useParams } from 'react-router';
import type { HostReply } from '#admin/contract/hosts';
import { call } from '../api/client';
import { useMay } from '../api/me';
import { useRead } from '../api/read';
import { Act, textOf } from '../parts/act';
import { Ago } from '../parts/ago';
import { Copy } from '../parts/copy';
import type { Column } from '../parts/data-table';
import { type FilterField, OF_TENANT } from '../parts/filters';
import { To } from '../parts/links';
import { ListPage, type OfTenant, withTenant } from '../parts/list-page';
import { LinkedOperations } from '../parts/operation-list';
import { Empty, Facts, Loaded, Page, Section } from '../parts/page';
import { useTenant } from '../shell/tenant';
import { PublicationList } from './publications';
import { Publish } from './publish';

const fields: readonly FilterField[] = [
  { name: 'search', label: 'Name', placeholder: 'part of it' },
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

export function HostsPage() {
  const tenant = useTenant();
  const may = useMay();
  return (
    <ListPage
      title="Hosts"
      path="/tenants/{tenant}/hosts"
      params={{ tenant }}
      fields={fields}
      actions={may('admin') && <NewHost tenant={tenant} />}
      empty={<Empty what="No host is known: drivers register theirs." command="trivet host create" />}
      usualSort="name"
      columns={columnsOf(tenant)}
    />
  );
}

export const AllHostsPage = () => (
  <ListPage
    title="Hosts of all tenants"
    path="/hosts"
    fields={[OF_TENANT, ...fields]}
    empty={<Empty what="No host matches." command="trivet host list --all-tenants" />}
    usualSort="name"
    columns={withTenant(columnsOf())}
  />
);

/** @param tenant whose all rows are; absent: each row says its own */
const columnsOf = (tenant?: string): readonly Column<OfTenant<HostReply>>[] => [
  {
    head: 'Name',
    sort: 'name',
    cell: row => <To to={`/tenants/${tenant ?? row.tenant}/hosts/${row.id}`}>{row.name}</To>,
  },
  { head: 'Initiators', cell: ({ iqns, wwpns, nqns }) => [...iqns, ...wwpns, ...nqns].join(', ') || '–' },
  { head: 'CHAP', cell: ({ chapUser }) => (chapUser === null ? 'no' : `as ${chapUser}`) },
  { head: 'Volumes', cell: ({ publications }) => publications, number: true },
  { head: 'Registered', sort: 'createdAt', descends: true, cell: ({ createdAt }) => <Ago at={createdAt} /> },
];

const NewHost = ({ tenant }: { tenant: string }) => (
  <Act
    label="Add a host"
    title="Make a host known"
    explain="One that no driver has named, by its initiators. With CHAP its targets ask for that account."
    verb="Add it"
    primary
    done="The host is known"
    run={async form => {
      const user = textOf(form, 'user');
      const password = textOf(form, 'password');
      const iqns = (textOf(form, 'iqns') ?? '').split(/\s+/);
      const body = {
        name: textOf(form, 'name') ?? '',
        iqns,
        ...(user || password ? { chap: { user: user ?? '', password: password ?? '' } } : {}),
      };
      await call('POST', '/tenants/{tenant}/hosts', { params: { tenant }, body });
      return undefined;
    }}
  >
    <TextInput name="name" label="Name" required maxLength={200} autoComplete="off" data-autofocus />
    <Textarea
      name="iqns"
      label="iSCSI names"
      description="Of its initiators, one a line; Linux has it in /etc/iscsi/initiatorname.iscsi"
      placeholder="iqn.1993-08.org.debian:01:2f6a1c9d8e3b"
      required
      autosize
      minRows={1}
      autoComplete="off"
      spellCheck={false}
    />
    <TextInput name="user" label="CHAP user" description="Empty: none" maxLength={64} autoComplete="off" />
    <PasswordInput
      name="password"
      label="CHAP password"
      description="12 to 16 characters"
      autoComplete="new-password"
      visibilityToggleButtonProps={{ 'aria-label': 'Show the CHAP password' }}
    />
  </Act>
);

export function HostPage() {
  const tenant = useTenant();
  const { host = '' } = useParams();
  const may = useMay();
  const navigate = useNavigate();
  const read = useRead('/tenants/{tenant}/hosts/{host}', { params: { tenant, host } });
  const data = read.data?.data;
  return (
    <Page
      title={data?.name ?? 'Host'}
      above={{ name: 'Hosts', to: `/tenants/${tenant}/hosts` }}
      actions={
        data &&
        may('admin') && (
          <Act
            danger
            label="Forget"
            title={`Forget host ${data.name}`}
            explain="Only a host that no volume is published to. Its driver registers it again when it needs it."
            confirmName={data.name}
            done="The host was forgotten"
            run={async () => {
              const params = { tenant, host };
              await call('DELETE', '/tenants/{tenant}/hosts/{host}', { params }, { etag: read.data?.etag });
              void navigate(`/tenants/${tenant}/hosts`);
              return undefined;
            }}
          />
        )
      }
    >
      <Loaded read={{ ...read, data }}>
        {found => (
          <Stack gap="md">
            <Section title="About">
              <Facts
                facts={[
                  ['UUID', found.uuid],
                  ['iSCSI names', found.iqns.join(', ')],
                  ['Fibre Channel', found.wwpns.join(', ')],
                  ['NVMe', found.nqns.join(', ')],
                  ['Networks', found.networks.join(', ')],
                  ['CHAP user', found.chapUser],
                  ['Registered', <Ago key="made" at={found.createdAt} />],
                  ['Changed', <Ago key="changed" at={found.updatedAt} />],
                  ['Id', <Copy key="id" text={found.id} label="the id" />],
                ]}
              />
            </Section>
            <Section title="Volumes that it may reach">
              {may('admin') && <Publish tenant={tenant} host={found} />}
              <PublicationList tenant={tenant} query={{ host: found.id }} />
            </Section>
            <LinkedOperations tenant={tenant} resource={found.id} related />
          </Stack>
        )}
      </Loaded>
    </Page>
  );
}
