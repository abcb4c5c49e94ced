import { TextInput } from '@mantine/core';
import { useNavigate } from 'react-router';
import { call } from '../api/client';
import { useMay } from '../api/me';
import { useRead } from '../api/read';
import { Act, textOf } from '../parts/act';
import { Ago } from '../parts/ago';
import { DataTable, Pager } from '../parts/data-table';
import { FilterBar, type FilterField, useFilters } from '../parts/filters';
import { To } from '../parts/links';
import { Empty, Loaded, Page } from '../parts/page';
import { StateBadge } from '../parts/state-badge';

const fields: readonly FilterField[] = [
  {
    name: 'state',
    label: 'State',
    options: [
      ['active', 'active'],
      ['suspended', 'suspended'],
      ['draining', 'draining'],
    ],
  },
];

export function TenantsPage() {
  const may = useMay();
  const filters = useFilters(['state']);
  const list = useRead('/tenants', { query: { ...(filters.query as object), limit: 50 } });
  return (
    <Page title="Tenants" actions={may('admin', 'appliance') && <NewTenant />}>
      <FilterBar filters={filters} fields={fields} />
      <Loaded read={{ ...list, data: list.data?.data }}>
        {({ items, next }) => (
          <>
            <DataTable
              label="Tenants"
              rows={items}
              keyOf={({ name }) => name}
              empty={<Empty what="No tenant matches." command="trivet tenant create" />}
              columns={[
                { head: 'Name', cell: ({ name }) => <To to={`/tenants/${name}`}>{name}</To> },
                { head: 'Shown as', cell: ({ displayName }) => displayName || '–' },
                { head: 'State', cell: ({ state }) => <StateBadge state={state} /> },
                { head: 'Made', cell: ({ createdAt }) => <Ago at={createdAt} /> },
                { head: 'Changed', cell: ({ updatedAt }) => <Ago at={updatedAt} /> },
              ]}
            />
            <Pager next={next} shown={items.length} />
          </>
        )}
      </Loaded>
    </Page>
  );
}

function NewTenant() {
  const navigate = useNavigate();
  return (
    <Act
      label="New tenant"
      title="Make a tenant"
      verb="Make it"
      primary
      explain="Then give it quotas, a backend, users, and a socket or a login for its drivers."
      done="The tenant was made"
      run={async form => {
        const name = textOf(form, 'name') ?? '';
        await call('POST', '/tenants', { body: { name, displayName: textOf(form, 'displayName') ?? '' } });
        void navigate(`/tenants/${name}`);
        return undefined;
      }}
    >
      <TextInput
        name="name"
        label="Name"
        description="Small letters, digits and hyphens; it cannot be changed"
        required
        pattern="[a-z0-9][a-z0-9\-]{0,62}"
        autoComplete="off"
        data-autofocus
      />
      <TextInput name="displayName" label="Shown as" maxLength={200} autoComplete="off" />
    </Act>
  );
}
