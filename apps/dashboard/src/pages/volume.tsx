import { Checkbox, NativeSelect, Stack, TextInput } from '@mantine/core';
import { useNavigate, useParams } from 'react-router';
import type { VolumeReply } from '#admin/contract/volumes';
import { call } from '../api/client';
import { useMay } from '../api/me';
import { useRead } from '../api/read';
import { Act, textOf } from '../parts/act';
import { Ago } from '../parts/ago';
import { AllocatedByDay } from '../parts/allocated-by-day';
import { showBytes } from '../parts/amounts';
import { Copy } from '../parts/copy';
import { DataTable } from '../parts/data-table';
import { Growth } from '../parts/growth';
import { BackendLink, ConditionNotice, To, UnderWay } from '../parts/links';
import { LinkedOperations } from '../parts/operation-list';
import { Empty, Facts, Loaded, Page, Section } from '../parts/page';
import { type PathNode, PathPicture } from '../parts/path-picture';
import { VolumePerformance } from '../parts/performance';
import { diskSizeOf, SizeInput } from '../parts/size-input';
import { StateBadge } from '../parts/state-badge';
import { useTenant } from '../shell/tenant';
import { Publish } from './publish';

export function VolumePage() {
  const tenant = useTenant();
  const { volume = '' } = useParams();
  const read = useRead('/tenants/{tenant}/volumes/{volume}', { params: { tenant, volume } });
  const data = read.data?.data;
  const binned = data?.state === 'binned';
  return (
    <Page
      title={data?.name ?? 'Volume'}
      above={
        binned
          ? { name: 'Recycle bin', to: `/tenants/${tenant}/recycle-bin` }
          : { name: 'Volumes', to: `/tenants/${tenant}/volumes` }
      }
      actions={data && <Actions tenant={tenant} volume={data} etag={read.data?.etag ?? null} />}
    >
      <Loaded read={{ ...read, data }}>
        {found => (
          <Stack gap="md">
            <ConditionNotice condition={found.condition} />
            <About tenant={tenant} volume={found} />
            <Way tenant={tenant} volume={found} />
            <Publications tenant={tenant} volume={found} />
            <VolumePerformance tenant={tenant} volume={found.id} />
            <AllocatedByDay tenant={tenant} volume={found.id} />
            <Growth tenant={tenant} volume={found.id} />
            <LinkedOperations tenant={tenant} resource={found.id} related />
          </Stack>
        )}
      </Loaded>
    </Page>
  );
}

const About = ({ tenant, volume }: { tenant: string; volume: VolumeReply }) => (
  <Section title="About">
    <Facts
      facts={[
        ['State', <StateBadge key="state" state={volume.state} />],
        ['Size', `${showBytes(volume.size)} (${volume.size} bytes)`],
        [
          'Backend',
          <span key="backend">
            <BackendLink tenant={tenant} backend={volume.backend} />
            {` / ${volume.pool}${volume.folder ? ` / ${volume.folder}` : ''}`}
          </span>,
        ],
        ['Space', volume.thick ? 'reserved' : 'as it is written'],
        [
          'Protection',
          volume.protectionTemplate && (
            <To key="template" to={`/tenants/${tenant}/protection-templates`}>
              {volume.protectionTemplate}
            </To>
          ),
        ],
        [
          'Clone of',
          // By its name, which is what is known of it: it may be gone.
          volume.cloneOf && (
            <To key="origin" to={`/tenants/${tenant}/volumes?search=${encodeURIComponent(volume.cloneOf)}`}>
              {volume.cloneOf}
            </To>
          ),
        ],
        ['Serial number', volume.serialNumber],
        ['Operation', <UnderWay key="operation" operation={volume.operation} />],
        volume.binnedUntil !== null && ['Deleted for good', <Ago key="until" at={volume.binnedUntil} />],
        ['Description', volume.description],
        ['Made', <Ago key="made" at={volume.createdAt} />],
        ['Changed', <Ago key="changed" at={volume.updatedAt} />],
        ['Id', <Copy key="id" text={volume.id} label="the id" />],
      ]}
    />
  </Section>
);

/** So many hosts are in the picture; all are in the table below it. */
const MOST_HOSTS = 5;

/** Of the page's table as well, so that it is read once. */
const usePublications = (tenant: string, volume: string) =>
  useRead('/tenants/{tenant}/publications', { params: { tenant }, query: { volume, limit: 100 } });

/** Which hosts reach it, and where it lies. */
function Way({ tenant, volume }: { tenant: string; volume: VolumeReply }) {
  const page = usePublications(tenant, volume.id).data?.data;
  if (page === undefined) return null;
  // A host that is still to be let in, or being put out, reaches it not yet, or no more.
  const applied = page.items.filter(({ state }) => state === 'applied');
  const at = `/tenants/${tenant}`;
  const backend = `${at}/backends/${encodeURIComponent(volume.backend)}`;
  const hosts = [...new Map(applied.map(({ host }) => [host.id, host])).values()];
  const shown: PathNode[] = hosts
    .slice(0, MOST_HOSTS)
    .map(({ id, name }) => ({ kind: 'Host', name, to: `${at}/hosts/${id}` }));
  const more = Math.max(0, hosts.length - MOST_HOSTS);
  if (more > 0 || (hosts.length > 0 && page.next !== null))
    shown.push({
      kind: 'Hosts',
      name: page.next === null ? `${more} more` : 'many more',
      to: `${at}/publications?volume=${volume.id}`,
    });
  if (shown.length === 0) shown.push({ kind: 'Host', name: 'none' });
  const names = shown.map(({ name }) => name).join(', ');
  const none = page.items.length === 0 ? 'No host may reach it' : 'No host reaches it now';
  const reached = hosts.length === 0 ? none : `It is reached by ${names}`;
  return (
    <Section title="Where it is">
      <PathPicture
        columns={[
          shown,
          [{ kind: 'Volume', name: volume.name }],
          [{ kind: 'Pool', name: volume.pool, to: backend }],
          [{ kind: 'Backend', name: volume.backend, to: backend }],
        ]}
        said={`${reached}; it lies in the pool ${volume.pool} of the backend ${volume.backend}.`}
      />
    </Section>
  );
}

function Publications({ tenant, volume }: { tenant: string; volume: VolumeReply }) {
  const may = useMay();
  const read = usePublications(tenant, volume.id);
  return (
    <Section title="Hosts that may reach it">
      {may('admin') && volume.state === 'ready' && <Publish tenant={tenant} volume={volume} />}
      <Loaded read={{ ...read, data: read.data?.data }}>
        {({ items }) => (
          <DataTable
            label="Publications of this volume"
            rows={items}
            keyOf={({ id }) => id}
            empty={<Empty what="It is published to no host." />}
            columns={[
              { head: 'Host', cell: ({ host }) => <To to={`/tenants/${tenant}/hosts/${host.id}`}>{host.name}</To> },
              { head: 'State', cell: ({ state }) => <StateBadge state={state} /> },
              { head: 'Protocol', cell: ({ accessProtocol }) => accessProtocol },
              { head: 'Target', cell: ({ target }) => target ?? '–' },
              { head: 'Portals', cell: ({ portals }) => portals.join(', ') || '–' },
              { head: 'LUN', cell: ({ lun }) => lun ?? '–', number: true },
              { head: 'Since', cell: ({ createdAt }) => <Ago at={createdAt} /> },
            ]}
          />
        )}
      </Loaded>
    </Section>
  );
}

function Actions({ tenant, volume, etag }: { tenant: string; volume: VolumeReply; etag: string | null }) {
  const may = useMay();
  const params = { tenant, volume: volume.id };
  const ready = volume.state === 'ready';
  return (
    <>
      {may('operator') && ready && (
        <Act
          primary
          label="Take a snapshot"
          title={`Take a snapshot of ${volume.name}`}
          verb="Take it"
          done="The snapshot is being taken"
          run={async form => {
            await call('POST', '/tenants/{tenant}/snapshots', {
              params: { tenant },
              body: {
                volume: volume.id,
                name: textOf(form, 'name') ?? '',
                description: textOf(form, 'description') ?? '',
              },
            });
            return undefined;
          }}
        >
          <TextInput name="name" label="Name" required maxLength={200} data-autofocus autoComplete="off" />
          <TextInput name="description" label="Description" maxLength={1000} autoComplete="off" />
        </Act>
      )}
      {may('operator') && ready && <CloneVolume tenant={tenant} volume={volume} />}
      {may('operator') && ready && (
        <Act
          label="Change"
          title={`Change ${volume.name}`}
          verb="Save"
          done="The volume was changed"
          run={async form => {
            const size = textOf(form, 'size') === volume.size ? volume.size : diskSizeOf(form, 'size');
            const template = textOf(form, 'template') ?? null;
            await call(
              'PATCH',
              '/tenants/{tenant}/volumes/{volume}',
              {
                params,
                body: {
                  ...(size === volume.size ? {} : { size }),
                  ...(template === volume.protectionTemplate ? {} : { protectionTemplate: template }),
                  description: textOf(form, 'description') ?? '',
                },
              },
              { etag },
            );
            return undefined;
          }}
        >
          <ChangeFields tenant={tenant} volume={volume} />
        </Act>
      )}
      {may('admin') && volume.state !== 'deleting' && (
        <Act
          danger
          label={volume.state === 'binned' ? 'Delete for good' : 'Delete'}
          title={`Delete ${volume.name}`}
          explain={
            volume.state === 'binned'
              ? 'Its data are gone then. Nothing brings them back.'
              : 'It goes into the recycle bin, unless it was made to be deleted at once.'
          }
          confirmName={volume.name}
          done="The volume is being deleted"
          run={async form => {
            const query = { force: form.get('force') === null ? 'false' : 'true' };
            await call('DELETE', '/tenants/{tenant}/volumes/{volume}', { params, query }, { etag });
            return undefined;
          }}
        >
          {(volume.publications > 0 || volume.snapshots > 0) && (
            <Checkbox name="force" label="End the sessions of hosts, and take its snapshots along" />
          )}
        </Act>
      )}
    </>
  );
}

function CloneVolume({ tenant, volume }: { tenant: string; volume: VolumeReply }) {
  const navigate = useNavigate();
  return (
    <Act
      label="Clone"
      title={`Clone ${volume.name}`}
      verb="Clone it"
      explain="A new volume with the data of this one as they are now, as after a power cut where a host writes just then. This one stays as it is."
      done="The clone is being made"
      run={async form => {
        const size = textOf(form, 'size') === volume.size ? volume.size : diskSizeOf(form, 'size');
        const body = {
          name: textOf(form, 'name') ?? '',
          backend: volume.backend,
          source: { volume: volume.id },
          ...(size === volume.size ? {} : { size }),
        };
        const { data } = await call('POST', '/tenants/{tenant}/volumes', { params: { tenant }, body });
        void navigate(`/tenants/${tenant}/volumes/${data.id}`);
        return undefined;
      }}
    >
      <TextInput name="name" label="Name" required maxLength={200} autoComplete="off" data-autofocus />
      <SizeInput name="size" label="Size" defaultValue={volume.size} required />
    </Act>
  );
}

function ChangeFields({ tenant, volume }: { tenant: string; volume: VolumeReply }) {
  const templates = useRead('/tenants/{tenant}/protection-templates', { params: { tenant }, query: { limit: 200 } });
  const names = new Set(templates.data?.data.items.map(({ name }) => name) ?? []);
  if (volume.protectionTemplate) names.add(volume.protectionTemplate);
  return (
    <>
      <SizeInput name="size" label="Size" defaultValue={volume.size} required />
      <NativeSelect
        name="template"
        label="Protection"
        defaultValue={volume.protectionTemplate ?? ''}
        data={[{ value: '', label: 'none' }, ...names]}
      />
      <TextInput
        name="description"
        label="Description"
        defaultValue={volume.description}
        maxLength={1000}
        autoComplete="off"
      />
    </>
  );
}
