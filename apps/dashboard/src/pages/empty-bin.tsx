import { call } from '../api/client';
import { useMay } from '../api/me';
import { problemOf } from '../api/problem';
import { Act } from '../parts/act';

/** Everything that is in the recycle bin, for good: it waits for nothing, and what it held is free for new volumes. */
export function EmptyBin({ tenant }: { tenant: string }) {
  const may = useMay();
  if (!may('admin')) return null;
  return (
    <Act
      danger
      label="Empty the recycle bin"
      title={`Delete everything in the recycle bin of ${tenant} for good`}
      explain="The data of all these volumes are gone then. Nothing brings them back."
      confirmName={tenant}
      done="The volumes are being deleted"
      run={async () => {
        for (let cursor: string | undefined; ; ) {
          const query = { state: 'binned' as const, limit: 200, cursor };
          const { data } = await call('GET', '/tenants/{tenant}/volumes', { params: { tenant }, query });
          for (const { id } of data.items) await purge(tenant, id);
          if (data.next === null) return undefined;
          cursor = data.next;
        }
      }}
    />
  );
}

/** One that was restored meanwhile is a volume again, and stays; one that is gone needs nothing. */
export async function purge(tenant: string, volume: string): Promise<void> {
  const input = { params: { tenant, volume } };
  try {
    const { data, etag } = await call('GET', '/tenants/{tenant}/volumes/{volume}', input);
    if (data.state === 'binned') await call('DELETE', '/tenants/{tenant}/volumes/{volume}', input, { etag });
  } catch (error) {
    const { status } = problemOf(error);
    // Somebody was faster: what it is now says what to do.
    if (status === 412) return purge(tenant, volume);
    if (status !== 404) throw error;
  }
}
