import { NativeSelect, Stack, TextInput } from '@mantine/core';
import { useNavigate, useParams, useSearchParams } from 'react-router';
import type { SnapshotReply } from '#admin/contract/snapshots';
import { call } from '../api/client';
import { useMay } from '../api/me';
import { useRead } from '../api/read';
import { Act, textOf } from '../parts/act';
import { Ago } from '../parts/ago';
import { shareOf, showBytes, showCount, showPercent } from '../parts/amounts';
import { ChangeMap } from '../parts/change-map';
import { Copy } from '../parts/copy';
import { Growth, sinceBefore } from '../parts/growth';
import { BackendLink, ConditionNotice, To, UnderWay } from '../parts/links';
import { LinkedOperations } from '../parts/operation-list';
import { Facts, Loaded, Page, Section } from '../parts/page';
import { StateBadge } from '../parts/state-badge';
import { useTenant } from '../shell/tenant';

export function SnapshotPage() {
  const tenant = useTenant();
  const { snapshot = '' } = useParams();
  const read = useRead('/tenants/{tenant}/snapshots/{snapshot}', { params: { tenant, snapshot } });
  const data = read.data?.data;
  return (
    <Page
      title={data?.name ?? 'Snapshot'}
      above={{ name: 'Snapshots', to: `/tenants/${tenant}/snapshots` }}
      actions={
        data?.state === 'ready' && (
          <>
            <Clone tenant={tenant} snapshot={data} />
            <Delete tenant={tenant} snapshot={data} etag={read.data?.etag ?? null} />
          </>
        )
      }
    >
      <Loaded read={{ ...read, data }}>
        {found => (
          <Stack gap="md">
            <ConditionNotice condition={found.condition} />
            {found.state === 'ready' && <Changes tenant={tenant} snapshot={found} />}
            <Growth tenant={tenant} volume={found.volume.id} current={found.id} />
            <Section title="About">
              <Facts
                facts={[
                  ['State', <StateBadge key="state" state={found.state} />],
                  [
                    'Volume',
                    <To key="volume" to={`/tenants/${tenant}/volumes/${found.volume.id}`}>
                      {found.volume.name}
                    </To>,
                  ],
                  ['Size', showBytes(found.size)],
                  ['Backend', <BackendLink key="backend" tenant={tenant} backend={found.backend} />],
                  ['Cut', found.cut],
                  ['Taken', <Ago key="taken" at={found.cutAt} />],
                  ['Index of changed blocks', <StateBadge key="index" state={found.index} />],
                  ['Changed since the cut before', sinceBefore(found)],
                  ['Made by', found.template ?? 'hand or driver'],
                  ['Operation', <UnderWay key="operation" operation={found.operation} />],
                  ['Id', <Copy key="id" text={found.id} label="the id" />],
                ]}
              />
            </Section>
            <LinkedOperations tenant={tenant} resource={found.id} />
          </Stack>
        )}
      </Loaded>
    </Page>
  );
}

const CELLS = 1_024;

/** Between this snapshot and an earlier one, which the URL names; else what it holds. */
function Changes({ tenant, snapshot }: { tenant: string; snapshot: SnapshotReply }) {
  const [search, setSearch] = useSearchParams();
  const base = search.get('base') ?? '';
  const others = useRead('/tenants/{tenant}/snapshots', {
    params: { tenant },
    query: { volume: snapshot.volume.id, sort: '-cut', limit: 200 },
  });
  const read = useRead('/tenants/{tenant}/snapshots/{snapshot}/change-map', {
    params: { tenant, snapshot: snapshot.id },
    query: { cells: CELLS, ...(base === '' ? {} : { base }) },
  });
  const earlier = (others.data?.data.items ?? []).filter(
    ({ id, cut }) => id !== snapshot.id && cut !== null && snapshot.cut !== null && BigInt(cut) < BigInt(snapshot.cut),
  );
  const baseName = earlier.find(({ id }) => id === base)?.name;
  const choose = (id: string): void => setSearch(id === '' ? {} : { base: id }, { replace: true });
  return (
    <Section title="Changed-block map">
      <Stack gap="sm">
        <NativeSelect
          label="Compare with"
          value={base}
          onChange={event => choose(event.currentTarget.value)}
          data={[
            { value: '', label: 'nothing: show what holds data' },
            ...earlier.map(({ id, name, cut }) => ({ value: id, label: `${name} (cut ${cut})` })),
          ]}
        />
        <Loaded read={{ ...read, data: read.data?.data }}>
          {map => (
            <Stack gap="sm">
              <Facts
                facts={[
                  [base === '' ? 'Holds data' : 'Changed', <strong key="bytes">{showBytes(map.bytes)}</strong>],
                  ['Share of the volume', showPercent(shareOf(map.bytes, map.capacity))],
                  ['Ranges', showCount(map.ranges)],
                  ['Capacity', showBytes(map.capacity)],
                  ['One cell', showBytes(map.cellSize)],
                ]}
              />
              <ChangeMap
                key={`${snapshot.id} ${base}`}
                map={map}
                what={base === '' ? 'holds data' : `changed since ${baseName ?? 'the other snapshot'}`}
              />
            </Stack>
          )}
        </Loaded>
      </Stack>
    </Section>
  );
}

function Clone({ tenant, snapshot }: { tenant: string; snapshot: SnapshotReply }) {
  const may = useMay();
  const navigate = useNavigate();
  if (!may('operator')) return null;
  return (
    <Act
      label="New volume from it"
      title={`Make a volume from ${snapshot.name}`}
      verb="Make it"
      explain="A volume with the data of this point in time. The snapshot and its volume stay as they are."
      done="The volume is being made"
      run={async form => {
        await call('POST', '/tenants/{tenant}/volumes', {
          params: { tenant },
          body: { name: textOf(form, 'name') ?? '', source: { snapshot: snapshot.id } },
        });
        void navigate(`/tenants/${tenant}/volumes`);
        return undefined;
      }}
    >
      <TextInput name="name" label="Name" required maxLength={200} autoComplete="off" data-autofocus />
    </Act>
  );
}

function Delete({ tenant, snapshot, etag }: { tenant: string; snapshot: SnapshotReply; etag: string | null }) {
  const may = useMay();
  const navigate = useNavigate();
  if (!may('admin')) return null;
  return (
    <Act
      danger
      label="Delete"
      title={`Delete snapshot ${snapshot.name}`}
      explain="What was written to the volume since then stays; this point in time is gone."
      confirmName={snapshot.name}
      done="The snapshot is being deleted"
      run={async () => {
        const params = { tenant, snapshot: snapshot.id };
        await call('DELETE', '/tenants/{tenant}/snapshots/{snapshot}', { params }, { etag });
        void navigate(`/tenants/${tenant}/snapshots`);
        return undefined;
      }}
    />
  );
}
