import { NativeSelect, SegmentedControl, TextInput } from '@mantine/core';
import { useState } from 'react';
import { call, callFresh } from '../api/client';
import { useMay } from '../api/me';
import { useRead } from '../api/read';
import { Act, textOf } from '../parts/act';
import { ListPage } from '../parts/list-page';
import { Empty } from '../parts/page';
import { StateBadge } from '../parts/state-badge';
import { useTenant } from '../shell/tenant';

const PATH = '/tenants/{tenant}/endpoints/{endpoint}';
const EVERY_MS = 10_000;

export function EndpointsPage() {
  const tenant = useTenant();
  const may = useMay();
  const admin = may('admin', 'appliance');
  return (
    <ListPage
      title="Endpoints"
      path="/tenants/{tenant}/endpoints"
      params={{ tenant }}
      every={EVERY_MS}
      intro="Sockets on the hosts of the gateways, each bound to this tenant."
      actions={admin && <NewEndpoint tenant={tenant} />}
      empty={<Empty what="This tenant has no socket." command="trivet endpoint create" />}
      columns={[
        { head: 'Name', cell: ({ name }) => name },
        { head: 'Protocol', cell: ({ protocol }) => protocol.toUpperCase() },
        { head: 'Backend', cell: ({ backend }) => backend ?? 'all of the tenant' },
        { head: 'Driver', cell: ({ driverName }) => driverName },
        { head: 'Socket', cell: ({ socket }) => <code>{socket}</code> },
        {
          head: 'State',
          cell: ({ state, open, problem }) => (
            <span>
              <StateBadge state={state} /> <StateBadge state={open ? 'open' : 'closed'} /> {problem}
            </span>
          ),
        },
        {
          head: 'Actions',
          cell: ({ id, name, state }) =>
            admin && (
              <span className="row-actions">
                <Act
                  small
                  label={state === 'active' ? 'Suspend' : 'Resume'}
                  title={state === 'active' ? `Suspend endpoint ${name}` : `Resume endpoint ${name}`}
                  explain={
                    state === 'active'
                      ? 'Its socket is closed within seconds; callers try again until it is resumed.'
                      : 'Its socket is opened within seconds.'
                  }
                  reason="optional"
                  confirmName={state === 'active' ? name : undefined}
                  done={state === 'active' ? 'The endpoint was suspended' : 'The endpoint was resumed'}
                  run={async (_, reason) => {
                    await callFresh(
                      'PATCH',
                      PATH,
                      { id },
                      {
                        params: { tenant, endpoint: name },
                        body: { state: state === 'active' ? 'suspended' : 'active', reason },
                      },
                    );
                    return undefined;
                  }}
                />
                <Act
                  small
                  danger
                  label="Close"
                  title={`Close endpoint ${name} for good`}
                  explain="Its socket and folder are removed. What was made through it stays."
                  confirmName={name}
                  done="The endpoint was removed"
                  run={async () => {
                    await callFresh('DELETE', PATH, { id }, { params: { tenant, endpoint: name } });
                    return undefined;
                  }}
                />
              </span>
            ),
        },
      ]}
    />
  );
}

const NewEndpoint = ({ tenant }: { tenant: string }) => (
  <Act
    label="Open a socket"
    title="Open a socket"
    verb="Open it"
    primary
    explain="Every gateway opens it within seconds, alone in a folder of its own."
    done="The socket is being opened"
    run={async form => {
      const common = {
        name: textOf(form, 'name') ?? '',
        driverName: textOf(form, 'driverName'),
        group: textOf(form, 'group'),
      };
      const backend = textOf(form, 'backend');
      const body =
        backend === undefined
          ? ({ ...common, protocol: 'csi' } as const)
          : ({ ...common, protocol: 'cosi', backend } as const);
      await call('POST', '/tenants/{tenant}/endpoints', { params: { tenant }, body });
      return undefined;
    }}
  >
    <NewEndpointFields tenant={tenant} />
  </Act>
);

function NewEndpointFields({ tenant }: { tenant: string }) {
  const [protocol, setProtocol] = useState('cosi');
  const backends = useRead('/tenants/{tenant}/backends', { params: { tenant }, query: { limit: 200 } });
  return (
    <>
      <SegmentedControl
        aria-label="Protocol"
        value={protocol}
        onChange={setProtocol}
        data={[
          { value: 'cosi', label: 'COSI: buckets' },
          { value: 'csi', label: 'CSI: changed blocks' },
        ]}
      />
      <TextInput
        name="name"
        label="Name"
        required
        pattern="[a-z0-9][a-z0-9\-]{0,62}"
        autoComplete="off"
        data-autofocus
      />
      {protocol === 'cosi' && (
        <NativeSelect
          name="backend"
          label="Backend"
          required
          data={backends.data?.data.items.map(({ name }) => name) ?? []}
        />
      )}
      <TextInput
        name="driverName"
        label="Driver name"
        description="The usual one when it is empty"
        autoComplete="off"
      />
      <TextInput name="group" label="Group" description="Of the system; may connect beside root" autoComplete="off" />
    </>
  );
}
