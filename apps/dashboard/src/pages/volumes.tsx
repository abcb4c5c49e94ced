import { Checkbox, NativeSelect, TextInput } from '@mantine/core';
import { call } from '../api/client';
import { useMay } from '../api/me';
import { useRead } from '../api/read';
import { Act, textOf } from '../parts/act';
import { Ago } from '../parts/ago';
import { readBytes, showBytes } from '../parts/amounts';
import { DataTable, Pager } from '../parts/data-table';
import { FilterBar, resourceFields, useFilters } from '../parts/filters';
import { ConditionCell, To, UnderWay } from '../parts/links';
import { Empty, Loaded, Page } from '../parts/page';
import { StateBadge } from '../parts/state-badge';
import { useTenant } from '../shell/tenant';

const fields = resourceFields([
  ['-size', 'largest first'],
  ['size', 'smallest first'],
]);

export function VolumesPage() {
  const tenant = useTenant();
  const may = useMay();
  const filters = useFilters(fields.map(({ name }) => name));
  const list = useRead('/tenants/{tenant}/volumes', {
    params: { tenant },
    query: { ...(filters.query as object), limit: 50 },
  });
  return (
    <Page title="Volumes" actions={may('operator') && <NewVolume tenant={tenant} />}>
      <FilterBar filters={filters} fields={fields} />
      <Loaded read={{ ...list, data: list.data?.data }}>
        {({ items, next }) => (
          <>
            <DataTable
              label="Volumes"
              rows={items}
              keyOf={({ id }) => id}
              empty={<Empty what="No volume matches." command="trivet volume list" />}
              columns={[
                { head: 'Name', cell: ({ id, name }) => <To to={`/tenants/${tenant}/volumes/${id}`}>{name}</To> },
                { head: 'State', cell: ({ state }) => <StateBadge state={state} /> },
                { head: 'Size', cell: ({ size }) => showBytes(size), number: true },
                { head: 'Backend', cell: ({ backend, pool }) => `${backend} / ${pool}` },
                { head: 'Hosts', cell: ({ publications }) => publications, number: true },
                { head: 'Snapshots', cell: ({ snapshots }) => snapshots, number: true },
                { head: 'Protection', cell: ({ protectionTemplate }) => protectionTemplate ?? '–' },
                { head: 'Condition', cell: ({ condition }) => <ConditionCell condition={condition} /> },
                { head: 'Operation', cell: ({ operation }) => <UnderWay operation={operation} /> },
                { head: 'Made', cell: ({ createdAt }) => <Ago at={createdAt} /> },
              ]}
            />
            <Pager next={next} shown={items.length} />
          </>
        )}
      </Loaded>
    </Page>
  );
}

function NewVolume({ tenant }: { tenant: string }) {
  return (
    <Act
      label="New volume"
      title="Make a volume"
      verb="Make it"
      primary
      done="The volume is being made"
      run={async form => {
        const size = sizeOf(form, 'size');
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
  const names = (list: { name: string }[] | undefined): string[] => list?.map(({ name }) => name) ?? [];
  return (
    <>
      <TextInput name="name" label="Name" required maxLength={200} data-autofocus autoComplete="off" />
      <TextInput name="size" label="Size" description="Such as 10 GiB" required autoComplete="off" />
      <NativeSelect
        name="backend"
        label="Backend"
        data={[{ value: '', label: 'the first one of block volumes' }, ...names(backends.data?.data.items)]}
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

/** Exact bytes of a field; says which form it has when it has another. */
export function sizeOf(form: FormData, name: string): string {
  const bytes = readBytes(textOf(form, name) ?? '');
  if (bytes === undefined)
    throw new Error(`${textOf(form, name)} is no size: write a number and a unit, such as 10 GiB`);
  return bytes;
}
