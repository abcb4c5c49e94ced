import { NativeSelect, TextInput } from '@mantine/core';
import { call } from '../api/client';
import { useMay } from '../api/me';
import { useRead } from '../api/read';
import { Act, textOf } from '../parts/act';
import { Ago } from '../parts/ago';
import { showBytes } from '../parts/amounts';
import { type FilterField } from '../parts/filters';
import { To } from '../parts/links';
import { COMMON, ListPage } from '../parts/list-page';
import { Empty } from '../parts/page';
import { StateBadge } from '../parts/state-badge';
import { useTenant } from '../shell/tenant';

const fields: readonly FilterField[] = [
  { name: 'search', label: 'Name', placeholder: 'part of it' },
  { name: 'volume', label: 'Volume', pick: 'volumes' },
  {
    name: 'sort',
    label: 'Order',
    unset: 'newest first',
    options: [
      ['createdAt', 'oldest first'],
      ['-cut', 'by cut, newest first (with a volume)'],
      ['cut', 'by cut, oldest first (with a volume)'],
    ],
  },
];

export function SnapshotsPage() {
  const tenant = useTenant();
  const may = useMay();
  return (
    <ListPage
      title="Snapshots"
      path="/tenants/{tenant}/snapshots"
      params={{ tenant }}
      fields={fields}
      actions={may('operator') && <NewSnapshot tenant={tenant} />}
      empty={<Empty what="No snapshot matches." command="trivet volume snapshot" />}
      columns={[
        { head: 'Name', cell: ({ id, name }) => <To to={`/tenants/${tenant}/snapshots/${id}`}>{name}</To> },
        COMMON.state,
        {
          head: 'Volume',
          cell: ({ volume }) => <To to={`/tenants/${tenant}/volumes/${volume.id}`}>{volume.name}</To>,
        },
        { head: 'Size', cell: ({ size }) => showBytes(size), number: true },
        { head: 'Changed', cell: ({ changedBytes }) => showBytes(changedBytes), number: true },
        { head: 'Index', cell: ({ index }) => <StateBadge state={index} /> },
        { head: 'Made by', cell: ({ template }) => template ?? 'hand or driver' },
        COMMON.condition,
        COMMON.operation,
        { head: 'Taken', cell: ({ cutAt, createdAt }) => <Ago at={cutAt ?? createdAt} /> },
      ]}
    />
  );
}

const NewSnapshot = ({ tenant }: { tenant: string }) => (
  <Act
    label="Take a snapshot"
    title="Take a snapshot"
    verb="Take it"
    primary
    done="The snapshot is being taken"
    run={async form => {
      await call('POST', '/tenants/{tenant}/snapshots', {
        params: { tenant },
        body: {
          volume: textOf(form, 'volume') ?? '',
          name: textOf(form, 'name') ?? '',
          description: textOf(form, 'description') ?? '',
        },
      });
      return undefined;
    }}
  >
    <VolumeChoice tenant={tenant} />
    <TextInput name="name" label="Name" required maxLength={200} autoComplete="off" />
    <TextInput name="description" label="Description" maxLength={1000} autoComplete="off" />
  </Act>
);

function VolumeChoice({ tenant }: { tenant: string }) {
  const volumes = useRead('/tenants/{tenant}/volumes', { params: { tenant }, query: { state: 'ready', limit: 200 } });
  const data = volumes.data?.data.items.map(({ id, name }) => ({ value: id, label: name })) ?? [];
  return <NativeSelect name="volume" label="Volume" required data={data} data-autofocus />;
}
