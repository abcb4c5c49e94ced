import { TextInput } from '@mantine/core';
import { useNavigate } from 'react-router';
import { call } from '../api/client';
import { useMay } from '../api/me';
import { Act, textOf } from '../parts/act';
import { Ago } from '../parts/ago';
import { type FilterField } from '../parts/filters';
import { To } from '../parts/links';
import { COMMON, ListPage } from '../parts/list-page';
import { Empty } from '../parts/page';

const fields: readonly FilterField[] = [
  { name: 'search', label: 'Name', placeholder: 'part of it' },
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
  return (
    <ListPage
      title="Tenants"
      path="/tenants"
      fields={fields}
      actions={may('admin', 'appliance') && <NewTenant />}
      empty={<Empty what="No tenant matches." command="trivet tenant create" />}
      columns={[
        { head: 'Name', cell: ({ name }) => <To to={`/tenants/${name}`}>{name}</To> },
        { head: 'Shown as', cell: ({ displayName }) => displayName || '–' },
        COMMON.state,
        COMMON.made,
        { head: 'Changed', cell: ({ updatedAt }) => <Ago at={updatedAt} /> },
      ]}
    />
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
