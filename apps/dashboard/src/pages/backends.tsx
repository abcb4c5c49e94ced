import { NativeSelect, SegmentedControl, Textarea, TextInput } from '@mantine/core';
import { useState } from 'react';
import { call } from '../api/client';
import { useMay } from '../api/me';
import { useRead } from '../api/read';
import { Act, textOf } from '../parts/act';
import { shareOf, showBytes } from '../parts/amounts';
import { Meter } from '../parts/charts';
import { DataTable, Pager } from '../parts/data-table';
import { useFilters } from '../parts/filters';
import { To } from '../parts/links';
import { Empty, Loaded, Page } from '../parts/page';
import { StateBadge } from '../parts/state-badge';
import { useTenant } from '../shell/tenant';

export const HEALTH_EVERY_MS = 10_000;

export function BackendsPage() {
  const tenant = useTenant();
  const may = useMay();
  const { query } = useFilters([]);
  const list = useRead(
    '/tenants/{tenant}/backends',
    { params: { tenant }, query: { ...query, limit: 50 } },
    { every: HEALTH_EVERY_MS },
  );
  return (
    <Page title="Backends" actions={may('admin', 'appliance') && <NewBackend tenant={tenant} />}>
      <Loaded read={{ ...list, data: list.data?.data }}>
        {({ items, next }) => (
          <>
            <DataTable
              label="Backends"
              rows={items}
              keyOf={({ id }) => id}
              empty={<Empty what="No backend is registered." command="trivet backend add" />}
              columns={[
                {
                  head: 'Name',
                  cell: ({ name, shared }) => (
                    <span>
                      <To to={`/tenants/${tenant}/backends/${encodeURIComponent(name)}`}>{name}</To>
                      {shared ? ' (shared)' : ''}
                    </span>
                  ),
                },
                { head: 'Kind', cell: ({ kind }) => kind },
                {
                  head: 'Health',
                  cell: ({ health }) => <StateBadge state={health.state} title={health.reason ?? undefined} />,
                },
                { head: 'State', cell: ({ state }) => <StateBadge state={state} /> },
                {
                  head: 'Capacity',
                  cell: ({ name, capacity }) =>
                    capacity ? (
                      <Meter share={shareOf(capacity.used, capacity.total)} label={`Used of ${name}`}>
                        {showBytes(capacity.used)} of {showBytes(capacity.total)}
                      </Meter>
                    ) : (
                      '–'
                    ),
                },
                { head: 'Volumes', cell: ({ holds }) => holds.volumes, number: true },
                { head: 'Buckets', cell: ({ holds }) => holds.buckets, number: true },
                { head: 'Under way', cell: ({ holds }) => holds.operations, number: true },
              ]}
            />
            <Pager next={next} shown={items.length} />
          </>
        )}
      </Loaded>
    </Page>
  );
}

function NewBackend({ tenant }: { tenant: string }) {
  return (
    <Act
      label="Add a backend"
      title="Register a backend"
      verb="Register it"
      primary
      done="The backend was registered"
      run={async form => {
        const name = textOf(form, 'name') ?? '';
        const description = textOf(form, 'description') ?? '';
        const share = textOf(form, 'share');
        const body =
          share !== undefined
            ? { name, share, description }
            : {
                name,
                kind: textOf(form, 'kind') ?? '',
                description,
                config: jsonOf(form, 'config') as Record<string, unknown>,
                credentials: jsonOf(form, 'credentials') as Record<string, string>,
              };
        await call('POST', '/tenants/{tenant}/backends', { params: { tenant }, body });
        return undefined;
      }}
    >
      <NewBackendFields tenant={tenant} />
    </Act>
  );
}

const APPLIANCE = 'appliance';

function NewBackendFields({ tenant }: { tenant: string }) {
  const [form, setForm] = useState('own');
  const shareable = useRead(
    '/tenants/{tenant}/backends',
    { params: { tenant: APPLIANCE }, query: { limit: 200 } },
    { enabled: tenant !== APPLIANCE },
  );
  return (
    <>
      {tenant !== APPLIANCE && (
        <SegmentedControl
          aria-label="What to register"
          value={form}
          onChange={setForm}
          data={[
            { value: 'own', label: 'Its own' },
            { value: 'share', label: 'A share' },
          ]}
        />
      )}
      <TextInput
        name="name"
        label="Name"
        required
        pattern="[a-z0-9][a-z0-9\-]{0,62}"
        autoComplete="off"
        data-autofocus
      />
      <TextInput name="description" label="Description" maxLength={500} autoComplete="off" />
      {form === 'share' ? (
        <NativeSelect
          name="share"
          label="Backend of the appliance"
          required
          data={shareable.data?.data.items.map(({ name }) => name) ?? []}
        />
      ) : (
        <>
          <TextInput name="kind" label="Kind" placeholder="rgw or reflink" required autoComplete="off" />
          <Textarea
            name="config"
            label="Configuration"
            description="JSON, as its kind wants it"
            defaultValue="{}"
            autosize
            minRows={3}
          />
          <Textarea
            name="credentials"
            label="Credentials"
            description="JSON of names and values; sealed, and never shown again"
            defaultValue="{}"
            autosize
            minRows={2}
            autoComplete="off"
          />
        </>
      )}
    </>
  );
}

export function jsonOf(form: FormData, name: string): unknown {
  const text = textOf(form, name);
  if (text === undefined) return {};
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`${name} is no JSON: ${(error as Error).message}`);
  }
}
