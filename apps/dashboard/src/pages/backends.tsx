import { NativeSelect, SegmentedControl, TextInput } from '@mantine/core';
import { useState } from 'react';
import type { BackendKindReply } from '#admin/contract/backends';
import { call } from '../api/client';
import { useMay } from '../api/me';
import { useRead } from '../api/read';
import { Act, textOf } from '../parts/act';
import { shareOf, showBytes } from '../parts/amounts';
import { CONFIG, CREDENTIALS, CredentialFields, useBackendKinds } from '../parts/backend-kinds';
import { Meter } from '../parts/charts';
import { To } from '../parts/links';
import { COMMON, ListPage } from '../parts/list-page';
import { Empty, Loading } from '../parts/page';
import { SchemaFields } from '../parts/schema-fields';
import { filledIn } from '../parts/schema-form';
import { StateBadge } from '../parts/state-badge';
import { TestResult } from '../parts/test-result';
import { useTenant } from '../shell/tenant';

export const HEALTH_EVERY_MS = 10_000;

export function BackendsPage() {
  const tenant = useTenant();
  const may = useMay();
  return (
    <ListPage
      title="Backends"
      path="/tenants/{tenant}/backends"
      params={{ tenant }}
      every={HEALTH_EVERY_MS}
      actions={may('admin', 'appliance') && <NewBackend tenant={tenant} />}
      empty={<Empty what="No backend is registered." command="trivet backend create" />}
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
        COMMON.state,
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
  );
}

function NewBackend({ tenant }: { tenant: string }) {
  const kinds = useBackendKinds();
  return (
    <Act
      label="Add a backend"
      title="Register a backend"
      verb="Register it"
      primary
      done="The backend was registered"
      ask={{
        label: 'Test',
        run: async form => {
          const share = textOf(form, 'share');
          if (share !== undefined) {
            const params = { tenant: APPLIANCE, backend: share };
            const { data } = await call('POST', '/tenants/{tenant}/backends/{backend}/test', { params });
            return <TestResult {...data} />;
          }
          const body = { name: textOf(form, 'name'), ...ofItsKind(kinds, form) };
          const { data } = await call('POST', '/tenants/{tenant}/backends/test', { params: { tenant }, body });
          return <TestResult {...data} />;
        },
      }}
      run={async form => {
        const name = textOf(form, 'name') ?? '';
        const description = textOf(form, 'description') ?? '';
        const share = textOf(form, 'share');
        const body =
          share !== undefined ? { name, share, description } : { name, description, ...ofItsKind(kinds, form) };
        await call('POST', '/tenants/{tenant}/backends', { params: { tenant }, body });
        return undefined;
      }}
    >
      <NewBackendFields tenant={tenant} kinds={kinds} />
    </Act>
  );
}

function ofItsKind(kinds: readonly BackendKindReply[], form: FormData) {
  const kind = kinds.find(known => known.kind === textOf(form, 'kind'));
  if (!kind) throw new Error('the kinds of backend were not read yet; try again');
  return {
    kind: kind.kind,
    config: filledIn(kind.config, form, CONFIG) as Record<string, unknown>,
    credentials: filledIn(kind.credentials, form, CREDENTIALS) as Record<string, string>,
  };
}

const APPLIANCE = 'appliance';

function NewBackendFields({ tenant, kinds }: { tenant: string; kinds: readonly BackendKindReply[] }) {
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
        <KindFields kinds={kinds} />
      )}
    </>
  );
}

function KindFields({ kinds }: { kinds: readonly BackendKindReply[] }) {
  const [chosen, choose] = useState<string>();
  const kind = kinds.find(known => known.kind === chosen) ?? kinds[0];
  if (!kind) return <Loading />;
  return (
    <>
      <NativeSelect
        name="kind"
        label="Kind"
        description={kind.description}
        value={kind.kind}
        onChange={event => choose(event.currentTarget.value)}
        data={kinds.map(({ kind, title }) => ({ value: kind, label: title === kind ? kind : `${title} (${kind})` }))}
      />
      <SchemaFields key={kind.kind} form={kind.config} at={CONFIG} />
      <CredentialFields key={`${kind.kind} credentials`} kind={kind} />
    </>
  );
}
