import { Checkbox, TextInput } from '@mantine/core';
import { useState } from 'react';
import { call, callFresh } from '../api/client';
import { useMay } from '../api/me';
import { Act, textOf } from '../parts/act';
import { Ago } from '../parts/ago';
import { showBytes } from '../parts/amounts';
import { To } from '../parts/links';
import { ListPage } from '../parts/list-page';
import { Empty } from '../parts/page';
import { useTenant } from '../shell/tenant';
import { EmptyBin } from './empty-bin';
import { type Chosen, PurgeChosen } from './purge-chosen';

const fields = [{ name: 'search', label: 'Name', placeholder: 'part of it' }];

/** What is chosen in the bin of one tenant is not chosen in that of another. */
export function RecycleBinPage() {
  const tenant = useTenant();
  return <RecycleBin key={tenant} tenant={tenant} />;
}

function RecycleBin({ tenant }: { tenant: string }) {
  const may = useMay();
  const [chosen, choose] = useState<Chosen>(new Map());
  const toggle = (id: string, name: string): void => {
    const after = new Map(chosen);
    if (!after.delete(id)) after.set(id, name);
    choose(after);
  };
  return (
    <ListPage
      title="Recycle bin"
      label="Volumes in the recycle bin"
      path="/tenants/{tenant}/volumes"
      params={{ tenant }}
      query={{ state: 'binned' }}
      fields={fields}
      actions={
        <>
          <PurgeChosen tenant={tenant} chosen={chosen} choose={choose} />
          <EmptyBin tenant={tenant} />
        </>
      }
      intro="Deleted volumes keep their data until their time here is over. New volumes that need their place, in the pool or in a quota, end it early."
      empty={<Empty what="The recycle bin is empty." command="trivet volume list" />}
      columns={[
        {
          head: 'Name',
          cell: ({ id, name }) => (
            <span className="row-actions">
              {may('admin') && (
                <Checkbox
                  size="xs"
                  aria-label={`Choose ${name}`}
                  checked={chosen.has(id)}
                  onChange={() => toggle(id, name)}
                />
              )}
              <To to={`/tenants/${tenant}/volumes/${id}`}>{name}</To>
            </span>
          ),
        },
        { head: 'Size', cell: ({ size }) => showBytes(size), number: true },
        { head: 'Backend', cell: ({ backend }) => backend },
        { head: 'Gone', cell: ({ binnedUntil }) => <Ago at={binnedUntil} /> },
        {
          head: 'Actions',
          cell: ({ id, name }) => (
            <span className="row-actions">
              {may('operator') && (
                <Act
                  small
                  label="Restore"
                  title={`Take ${name} out of the recycle bin`}
                  done={`${name} was restored`}
                  run={async form => {
                    const body = { name: textOf(form, 'name') };
                    await call('POST', '/tenants/{tenant}/volumes/{volume}/restore', {
                      params: { tenant, volume: id },
                      body,
                    });
                    return undefined;
                  }}
                >
                  <TextInput
                    name="name"
                    label="Another name"
                    description="Only needed when its own is taken by now"
                    autoComplete="off"
                  />
                </Act>
              )}
              {may('admin') && (
                <Act
                  small
                  danger
                  label="Delete for good"
                  title={`Delete ${name} for good`}
                  explain="Its data are gone then. Nothing brings them back."
                  confirmName={name}
                  done={`${name} is being deleted`}
                  run={async () => {
                    await callFresh(
                      'DELETE',
                      '/tenants/{tenant}/volumes/{volume}',
                      { id },
                      {
                        params: { tenant, volume: id },
                      },
                    );
                    return undefined;
                  }}
                />
              )}
            </span>
          ),
        },
      ]}
    />
  );
}
