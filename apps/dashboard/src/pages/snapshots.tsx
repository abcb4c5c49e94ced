import { TextInput } from '@mantine/core';
import { useState } from 'react';
import type { SnapshotReply } from '#admin/contract/snapshots';
import { call } from '../api/client';
import { useMay } from '../api/me';
import { InputError } from '../api/problem';
import { Act, textOf } from '../parts/act';
import { Ago } from '../parts/ago';
import { showBytes } from '../parts/amounts';
import { ofSnapshots } from '../parts/bulk-actions';
import type { Column } from '../parts/data-table';
import { type FilterField, OF_TENANT } from '../parts/filters';
import { To } from '../parts/links';
import { COMMON, ListPage, type OfTenant, withTenant } from '../parts/list-page';
import { Empty } from '../parts/page';
import { PickFilter } from '../parts/pick-filter';
import { StateBadge } from '../parts/state-badge';
import { useTenant } from '../shell/tenant';

const OLDEST_FIRST = ['createdAt', 'oldest first'] as const;

const fields: readonly FilterField[] = [
  { name: 'search', label: 'Name', placeholder: 'part of it' },
  { name: 'volume', label: 'Volume', pick: 'volumes' },
  {
    name: 'sort',
    label: 'Order',
    unset: 'newest first',
    options: [
      OLDEST_FIRST,
      ['name', 'by name'],
      ['-name', 'by name, last first'],
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
      empty={<Empty what="No snapshot matches." command="trivet protection list" />}
      usualSort="-createdAt"
      bulk={ofSnapshots(tenant)}
      columns={columnsOf(tenant)}
    />
  );
}

/** Volumes are picked on the page of their tenant. */
const ofAll = [OF_TENANT, fields[0]!, { name: 'sort', label: 'Order', unset: 'newest first', options: [OLDEST_FIRST] }];

export const AllSnapshotsPage = () => (
  <ListPage
    title="Snapshots of all tenants"
    path="/snapshots"
    fields={ofAll}
    empty={<Empty what="No snapshot matches." command="trivet snapshot list --all-tenants" />}
    usualSort="-createdAt"
    columns={withTenant(columnsOf())}
  />
);

/** @param tenant whose all rows are; absent: each row says its own */
const columnsOf = (tenant?: string): readonly Column<OfTenant<SnapshotReply>>[] => [
  {
    head: 'Name',
    sort: tenant === undefined ? undefined : 'name',
    cell: row => <To to={`/tenants/${tenant ?? row.tenant}/snapshots/${row.id}`}>{row.name}</To>,
  },
  COMMON.state,
  {
    head: 'Volume',
    cell: row => <To to={`/tenants/${tenant ?? row.tenant}/volumes/${row.volume.id}`}>{row.volume.name}</To>,
  },
  { head: 'Size', cell: ({ size }) => showBytes(size), number: true },
  { head: 'Changed', cell: ({ changedBytes }) => showBytes(changedBytes), number: true },
  { head: 'Index', cell: ({ index }) => <StateBadge state={index} /> },
  { head: 'Made by', cell: ({ template }) => template ?? 'hand or driver' },
  COMMON.condition,
  COMMON.operation,
  { head: 'Taken', sort: 'createdAt', descends: true, cell: ({ cutAt, createdAt }) => <Ago at={cutAt ?? createdAt} /> },
];

const NewSnapshot = ({ tenant }: { tenant: string }) => (
  <Act
    label="Take a snapshot"
    title="Take a snapshot"
    verb="Take it"
    primary
    done="The snapshot is being taken"
    run={async form => {
      const volume = textOf(form, 'volume');
      if (volume === undefined) throw new InputError('volume', 'choose a volume: type a part of its name');
      await call('POST', '/tenants/{tenant}/snapshots', {
        params: { tenant },
        body: {
          volume,
          name: textOf(form, 'name') ?? '',
          description: textOf(form, 'description') ?? '',
        },
      });
      return undefined;
    }}
  >
    <VolumeChoice />
    <TextInput name="name" label="Name" required maxLength={200} autoComplete="off" />
    <TextInput name="description" label="Description" maxLength={1000} autoComplete="off" />
  </Act>
);

/** Searched by the gateway: a tenant may have any number of them. */
function VolumeChoice() {
  const [chosen, choose] = useState('');
  return (
    <>
      <PickFilter label="Volume" list="volumes" value={chosen} onChange={choose} />
      <input type="hidden" name="volume" value={chosen} />
    </>
  );
}
