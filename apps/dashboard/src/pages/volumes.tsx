import { Checkbox, NativeSelect, TextInput } from '@mantine/core';
import type { VolumeReply } from '#admin/contract/volumes';
import { call } from '../api/client';
import { useMay } from '../api/me';
import { useRead } from '../api/read';
import { Act, textOf } from '../parts/act';
import { showBytes } from '../parts/amounts';
import { ofVolumes } from '../parts/bulk-actions';
import type { Column } from '../parts/data-table';
import { OF_TENANT, resourceFields } from '../parts/filters';
import { To } from '../parts/links';
import { COMMON, ListPage, type OfTenant, withTenant } from '../parts/list-page';
import { Empty } from '../parts/page';
import { diskSizeOf, SizeInput } from '../parts/size-input';
import { useTenant } from '../shell/tenant';

const fields = resourceFields([
  ['-size', 'largest first'],
  ['size', 'smallest first'],
]);

export function VolumesPage() {
  const tenant = useTenant();
  const may = useMay();
  return (
    <ListPage
      title="Volumes"
      path="/tenants/{tenant}/volumes"
      params={{ tenant }}
      fields={fields}
      actions={may('operator') && <NewVolume tenant={tenant} />}
      empty={<Empty what="No volume matches." command="trivet volume list" />}
      usualSort="name"
      bulk={ofVolumes(tenant)}
      columns={columnsOf(tenant)}
    />
  );
}

export const AllVolumesPage = () => (
  <ListPage
    title="Volumes of all tenants"
    path="/volumes"
    fields={[OF_TENANT, ...fields]}
    empty={<Empty what="No volume matches." command="trivet volume list --all-tenants" />}
    usualSort="name"
    columns={withTenant(columnsOf())}
  />
);

/** @param tenant whose all rows are; absent: each row says its own */
const columnsOf = (tenant?: string): readonly Column<OfTenant<VolumeReply>>[] => [
  {
    head: 'Name',
    sort: 'name',
    cell: row => <To to={`/tenants/${tenant ?? row.tenant}/volumes/${row.id}`}>{row.name}</To>,
  },
  COMMON.state,
  { head: 'Size', sort: 'size', descends: true, cell: ({ size }) => showBytes(size), number: true },
  { head: 'Backend', cell: ({ backend, pool }) => `${backend} / ${pool}` },
  { head: 'Hosts', cell: ({ publications }) => publications, number: true },
  { head: 'Snapshots', cell: ({ snapshots }) => snapshots, number: true },
  { head: 'Protection', cell: ({ protectionTemplate }) => protectionTemplate ?? '–' },
  COMMON.condition,
  COMMON.operation,
  COMMON.made,
];

function NewVolume({ tenant }: { tenant: string }) {
  return (
    <Act
      label="New volume"
      title="Make a volume"
      verb="Make it"
      primary
      done="The volume is being made"
      run={async form => {
        const size = diskSizeOf(form, 'size');
        await call('POST', '/tenants/{tenant}/volumes', {
          params: { tenant },
          body: {
            name: textOf(form, 'name') ?? '',
            size,
            backend: textOf(form, 'backend'),
            pool: textOf(form, 'pool'),
            protectionTemplate: textOf(form, 'template'),
            description: textOf(form, 'description') ?? '',
            thick: form.get('thick') !== null,
          },
        });
        return undefined;
      }}
    >
      <NewVolumeFields tenant={tenant} />
    </Act>
  );
}

function NewVolumeFields({ tenant }: { tenant: string }) {
  const backends = useRead('/tenants/{tenant}/backends', { params: { tenant }, query: { limit: 200 } });
  const templates = useRead('/tenants/{tenant}/protection-templates', { params: { tenant }, query: { limit: 200 } });
  // An object store has no pools, and keeps no volumes.
  const ofBlocks = backends.data?.data.items.filter(({ pools }) => pools !== null);
  const names = (list: { name: string }[] | undefined): string[] => list?.map(({ name }) => name) ?? [];
  return (
    <>
      <TextInput name="name" label="Name" required maxLength={200} data-autofocus autoComplete="off" />
      <SizeInput name="size" label="Size" required />
      <NativeSelect
        name="backend"
        label="Backend"
        data={[{ value: '', label: 'the first one of block volumes' }, ...names(ofBlocks)]}
      />
      <TextInput name="pool" label="Pool" description="The backend chooses when it is empty" autoComplete="off" />
      <NativeSelect
        name="template"
        label="Protection"
        data={[{ value: '', label: 'none' }, ...names(templates.data?.data.items)]}
      />
      <TextInput name="description" label="Description" maxLength={1000} autoComplete="off" />
      <Checkbox name="thick" label="Reserve its whole size now" />
    </>
  );
}
