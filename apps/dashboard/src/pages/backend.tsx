import { Group, Stack, TextInput } from '@mantine/core';
import { useNavigate, useParams } from 'react-router';
import type { BackendKindReply, BackendReply } from '#admin/contract/backends';
import { call } from '../api/client';
import { useMay } from '../api/me';
import { InputError } from '../api/problem';
import { useRead } from '../api/read';
import { Act, textOf } from '../parts/act';
import { Ago } from '../parts/ago';
import { shareOf, showBytes, showDaysToFull } from '../parts/amounts';
import { CONFIG, CREDENTIALS, CredentialFields, useBackendKinds } from '../parts/backend-kinds';
import { Meter } from '../parts/charts';
import { DataTable } from '../parts/data-table';
import { To } from '../parts/links';
import { Empty, Facts, Loaded, Page, Section } from '../parts/page';
import { SchemaFields } from '../parts/schema-fields';
import { filledIn } from '../parts/schema-form';
import { StateBadge } from '../parts/state-badge';
import { TestResult } from '../parts/test-result';
import { useTenant } from '../shell/tenant';
import { Findings } from './backend-findings';
import { HEALTH_EVERY_MS } from './backends';
import { MovePool } from './move-pool';

const PATH = '/tenants/{tenant}/backends/{backend}';

export function BackendPage() {
  const tenant = useTenant();
  const { backend = '' } = useParams();
  const read = useRead(PATH, { params: { tenant, backend } }, { every: HEALTH_EVERY_MS });
  const data = read.data?.data;
  return (
    <Page
      title={`Backend ${backend}`}
      above={{ name: 'Backends', to: `/tenants/${tenant}/backends` }}
      actions={data && <Actions tenant={tenant} backend={data} etag={read.data?.etag ?? null} />}
    >
      <Loaded read={{ ...read, data }}>
        {found => (
          <Stack gap="md">
            {found.health.state === 'down' && (
              <div className="notice notice-bad" role="note">
                <p className="notice-title">
                  It cannot be used
                  {found.health.since && (
                    <>
                      , since <Ago at={found.health.since} />
                    </>
                  )}
                </p>
                {found.health.reason}. What waits for it goes on by itself when it can be used again.
              </div>
            )}
            <About backend={found} />
            {found.pools && (
              <Pools tenant={tenant} backend={found} etag={read.data?.etag ?? null} pools={found.pools} />
            )}
            {found.pools && <Findings tenant={tenant} backend={found.name} />}
            <Holds tenant={tenant} backend={found} />
            <Section title="Capabilities">
              <Plain values={found.capabilities} empty="It has not been asked yet." />
            </Section>
            <Section title="Configuration">
              <Plain values={found.config} empty="It has none." />
            </Section>
          </Stack>
        )}
      </Loaded>
    </Page>
  );
}

const About = ({ backend }: { backend: BackendReply }) => (
  <Section title="About">
    <Facts
      facts={[
        ['Health', <HealthFact key="health" health={backend.health} />],
        ['State', <StateBadge key="state" state={backend.state} />],
        ['Kind', backend.kind],
        ['Belongs to', backend.shared ? 'the appliance, shared' : 'this tenant'],
        ['Description', backend.description],
        ['Registered', <Ago key="made" at={backend.createdAt} />],
        ['Changed', <Ago key="changed" at={backend.updatedAt} />],
      ]}
    />
    {backend.capacity && (
      <Meter share={shareOf(backend.capacity.used, backend.capacity.total)} label="Used">
        {showBytes(backend.capacity.used)} of {showBytes(backend.capacity.total)} used,{' '}
        {showBytes(backend.capacity.reserved)} reserved
      </Meter>
    )}
  </Section>
);

const HealthFact = ({ health: { state, reason, since } }: Pick<BackendReply, 'health'>) => (
  <span>
    <StateBadge state={state} /> {reason}
    {since && (
      <span className="dimmed">
        {state === 'up' ? ' seen ' : ', since '}
        <Ago at={since} />
      </span>
    )}
  </span>
);

type Pool = NonNullable<BackendReply['pools']>[number];

function Pools({
  tenant,
  backend: { name, shared },
  etag,
  pools,
}: {
  tenant: string;
  backend: BackendReply;
  etag: string | null;
  pools: readonly Pool[];
}) {
  const may = useMay();
  return (
    <Section title="Pools">
      <DataTable
        label="Pools"
        rows={pools}
        keyOf={pool => pool.name}
        empty={<Empty what="No worker has looked at its pools yet." command="trivet up" />}
        columns={[
          { head: 'Pool', cell: pool => pool.name },
          { head: 'State', cell: pool => <StateBadge state={pool.state} title={pool.reason ?? undefined} /> },
          {
            head: 'Used',
            cell: pool => (
              <Meter share={shareOf(pool.used, pool.total)} label={`Used of pool ${pool.name}`}>
                {showBytes(pool.used)} of {showBytes(pool.total)}
              </Meter>
            ),
          },
          { head: 'Full in', cell: pool => showDaysToFull(pool.daysToFull) },
          {
            head: 'Promised',
            cell: pool => `${showBytes(pool.promised)} of ${showBytes(Number(pool.total) * pool.thinRatio)}`,
          },
          { head: 'Thin ratio', cell: pool => `${pool.thinRatio} ×`, number: true },
          {
            head: 'Actions',
            cell: pool =>
              shared
                ? 'the appliance’s'
                : may('admin', 'appliance') && (
                    <Group gap="xs">
                      <Act
                        small
                        label="Set the ratio"
                        title={`Thin ratio of pool ${pool.name}, tenant ${tenant}`}
                        explain="How many times its size the pool promises to volumes, of all who share it. Above 1 volumes may outgrow it: watch how full it gets."
                        verb="Set it"
                        reason="optional"
                        done={`The thin ratio of ${pool.name} was set`}
                        run={async (form, reason) => {
                          const ratio = Number(textOf(form, 'ratio'));
                          if (!(ratio > 0 && ratio <= 1_000))
                            throw new InputError('ratio', 'expected a number above 0, at most 1000, such as 2.5');
                          const body = { thinRatios: { [pool.name]: ratio }, reason };
                          await call('PATCH', PATH, { params: { tenant, backend: name }, body }, { etag });
                          return undefined;
                        }}
                      >
                        <TextInput
                          name="ratio"
                          label="Times its size"
                          required
                          defaultValue={pool.thinRatio}
                          autoComplete="off"
                        />
                      </Act>
                      <MovePool tenant={tenant} backend={name} pool={pool.name} />
                    </Group>
                  ),
          },
        ]}
      />
    </Section>
  );
}

function Holds({ tenant, backend: { name, holds } }: { tenant: string; backend: BackendReply }) {
  const of = encodeURIComponent(name);
  return (
    <Section title="What it holds">
      <Facts
        facts={[
          [
            'Volumes',
            <To key="volumes" to={`/tenants/${tenant}/volumes?backend=${of}`}>
              {holds.volumes}
            </To>,
          ],
          ['Snapshots', holds.snapshots],
          [
            'Buckets',
            <To key="buckets" to={`/tenants/${tenant}/buckets?backend=${of}`}>
              {holds.buckets}
            </To>,
          ],
          ['Accesses', holds.accesses],
          [
            'Operations under way',
            <To key="operations" to={`/operations?tenant=${tenant}&backend=${of}&state=pending,running`}>
              {holds.operations}
            </To>,
          ],
        ]}
      />
    </Section>
  );
}

const Plain = ({ values, empty }: { values: Record<string, unknown> | null; empty: string }) =>
  values && Object.keys(values).length > 0 ? (
    <Facts
      facts={Object.entries(values).map(
        ([name, value]) => [name, typeof value === 'object' ? JSON.stringify(value) : String(value)] as const,
      )}
    />
  ) : (
    <p className="dimmed">{empty}</p>
  );

const STATES = {
  active: {
    label: 'Take back',
    title: (name: string) => `Take ${name} back into use`,
    explain: 'New objects may be made there again.',
    done: 'It is in use again',
  },
  cordoned: {
    label: 'Cordon',
    title: (name: string) => `Cordon ${name}`,
    explain: 'Nothing new is made there. What is there goes on as before.',
    done: 'It was cordoned',
  },
  draining: {
    label: 'Drain',
    title: (name: string) => `Drain ${name}`,
    explain: 'Nothing new is made there, until it holds nothing. What is there stays until somebody deletes it.',
    done: 'It is draining',
  },
} as const;

function Actions({ tenant, backend, etag }: { tenant: string; backend: BackendReply; etag: string | null }) {
  const may = useMay();
  const navigate = useNavigate();
  const params = { tenant, backend: backend.name };
  return (
    <>
      {may('operator') && (
        <Act
          primary
          label="Test"
          title={`Test ${backend.name}`}
          explain="Asks whether it answers, knows us and can do what we need. Changes nothing there."
          verb="Test it now"
          done="The test has ended"
          run={async () => <TestResult {...(await call('POST', `${PATH}/test`, { params })).data} />}
        />
      )}
      {may('admin', 'appliance') && (
        <>
          <ChangeBackend backend={backend} params={params} etag={etag} />
          {(Object.keys(STATES) as (keyof typeof STATES)[])
            .filter(state => state !== backend.state)
            .map(state => (
              <Act
                key={state}
                label={STATES[state].label}
                title={STATES[state].title(backend.name)}
                explain={STATES[state].explain}
                reason="optional"
                done={STATES[state].done}
                run={async (_, reason) => {
                  await call('PATCH', PATH, { params, body: { state, reason } }, { etag });
                  return undefined;
                }}
              />
            ))}
          <Act
            danger
            label="Forget"
            title={`Forget ${backend.name}`}
            explain="Only a backend that holds nothing of ours and has no endpoint."
            confirmName={backend.name}
            done="The backend was forgotten"
            run={async () => {
              await call('DELETE', PATH, { params }, { etag });
              void navigate(`/tenants/${tenant}/backends`);
              return undefined;
            }}
          />
        </>
      )}
    </>
  );
}

function ChangeBackend({
  backend,
  params,
  etag,
}: {
  backend: BackendReply;
  params: { tenant: string; backend: string };
  etag: string | null;
}) {
  // A share follows the backend that it is a share of.
  const kind = useBackendKinds({ enabled: !backend.shared }).find(known => known.kind === backend.kind);
  return (
    <Act
      label="Change"
      title={`Change ${backend.name}`}
      verb="Save"
      done="The backend was changed"
      run={async form => {
        const body = { description: textOf(form, 'description') ?? '', ...(kind && changesOf(kind, form)) };
        await call('PATCH', PATH, { params, body }, { etag });
        return undefined;
      }}
    >
      <TextInput name="description" label="Description" defaultValue={backend.description} maxLength={500} />
      {kind && (
        <>
          <SchemaFields form={kind.config} at={CONFIG} value={backend.config} />
          <CredentialFields kind={kind} kept />
        </>
      )}
    </Act>
  );
}

function changesOf(kind: BackendKindReply, form: FormData) {
  const config = filledIn(kind.config, form, CONFIG) as Record<string, unknown>;
  const credentials = filledIn(kind.credentials, form, CREDENTIALS) as Record<string, string>;
  return Object.keys(credentials).length === 0 ? { config } : { config, credentials };
}
