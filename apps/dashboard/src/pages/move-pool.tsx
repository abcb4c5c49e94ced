import { Checkbox, NativeSelect, Stack } from '@mantine/core';
import { call } from '../api/client';
import { useRead } from '../api/read';
import { Act, textOf } from '../parts/act';

/** Where there are several storage hosts: gives a pool of files to the one that has its disk now. */
export function MovePool({ tenant, backend, pool }: { tenant: string; backend: string; pool: string }) {
  const hosts = useRead('/storage-hosts', {}).data?.data.items ?? [];
  if (hosts.length < 2) return null;
  return (
    <Act
      small
      danger
      label="Move"
      title={`Give pool ${pool} to another storage host`}
      explain="Once its disk is there. The new host has to see the mark file of the pool, the old one to say that it is without its file system. Shares of it go along, and what waits for the pool goes on there."
      verb="Move it"
      confirmName={pool}
      reason="required"
      done={`Pool ${pool} has another home`}
      run={async (form, reason) => {
        const to = textOf(form, 'to') ?? '';
        const oldHostIsOff = form.get('oldHostIsOff') !== null;
        const params = { tenant, backend, pool };
        await call('POST', '/tenants/{tenant}/backends/{backend}/pools/{pool}/move', {
          params,
          body: { to, oldHostIsOff, reason },
        });
        return undefined;
      }}
    >
      <Stack gap="sm">
        <NativeSelect name="to" label="Storage host" data={hosts.map(({ name }) => name)} required />
        <Checkbox
          name="oldHostIsOff"
          label="The old host is silent, and I have made sure that it is off"
          description="If that is not true, two hosts write to one file system and destroy it, with all volumes in it."
        />
      </Stack>
    </Act>
  );
}
