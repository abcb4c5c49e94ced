import { NumberInput, Stack, TextInput } from '@mantine/core';
import type { ClusterReply } from '#admin/contract/clusters';
import { call } from '../api/client';
import { useMay } from '../api/me';
import { Act, textOf } from '../parts/act';
import { Ago } from '../parts/ago';
import { Copy } from '../parts/copy';
import { To } from '../parts/links';
import { COMMON, ListPage } from '../parts/list-page';
import { Empty } from '../parts/page';
import { StateBadge } from '../parts/state-badge';
import { useTenant } from '../shell/tenant';

const EVERY_MS = 10_000;

/** Clusters whose connectors carry sockets of this tenant, and what each of these says of itself. */
export function ClustersPage() {
  const tenant = useTenant();
  const admin = useMay()('admin');
  return (
    <ListPage
      title="Clusters"
      path="/tenants/{tenant}/clusters"
      params={{ tenant }}
      every={EVERY_MS}
      intro="Kubernetes clusters whose connectors carry sockets of this tenant over mutual TLS."
      actions={admin && <LetIn tenant={tenant} />}
      empty={<Empty what="No cluster was let in." command="trivet cluster join-token" />}
      columns={[
        { head: 'Name', cell: ({ name }) => name },
        { head: 'State', cell: ({ state }) => <StateBadge state={state} /> },
        { head: 'May ask for', cell: ({ endpoints }) => endpoints?.join(', ') ?? 'any endpoint' },
        { head: 'Connectors', cell: cluster => <Connectors cluster={cluster} />, wide: true },
        {
          head: 'Sessions open',
          cell: ({ sessionsOpen }) =>
            sessionsOpen > 0 ? <To to={`/tenants/${tenant}/snapshot-sessions`}>{sessionsOpen}</To> : sessionsOpen,
        },
        { head: 'Seen', cell: ({ seenAt }) => <Ago at={seenAt} /> },
        { head: 'Certificate ends', cell: ({ certificateUntil }) => <Ago at={certificateUntil} /> },
        COMMON.made,
        {
          head: 'Actions',
          cell: ({ name, state }) =>
            admin &&
            state !== 'revoked' && (
              <span className="row-actions">
                <Rotate tenant={tenant} name={name} />
                <Revoke tenant={tenant} name={name} />
              </span>
            ),
        },
      ]}
    />
  );
}

const Connectors = ({ cluster: { name, release, connectors } }: { cluster: ClusterReply }) =>
  connectors.length === 0 ? (
    <span className="dimmed">of {release}</span>
  ) : (
    <ul aria-label={`Connectors of ${name}`}>
      {connectors.map(({ name: of, release: its, seenAt, connections }) => (
        <li key={of}>
          {of}, {its}:{' '}
          {Object.entries(connections)
            .map(([endpoint, count]) => `${endpoint} ${count} connections`)
            .join(', ') || 'serves nothing'}{' '}
          <span className="dimmed">
            <Ago at={seenAt} />
          </span>
        </li>
      ))}
    </ul>
  );

interface OfCluster {
  tenant: string;
  name: string;
}

const Rotate = ({ tenant, name }: OfCluster) => (
  <Act
    small
    label="Rotate"
    title={`Replace the certificates of ${name}`}
    explain="Its connectors make new keys within a minute. What was signed before opens nothing any more an hour later."
    reason="optional"
    done={`${name} replaces its certificates`}
    run={async (_, reason) => {
      const path = '/tenants/{tenant}/clusters/{cluster}/rotate';
      await call('POST', path, { params: { tenant, cluster: name }, body: { reason } });
      return undefined;
    }}
  />
);

const Revoke = ({ tenant, name }: OfCluster) => (
  <Act
    small
    danger
    label="Revoke"
    title={`Revoke cluster ${name}`}
    explain="Its connections end within 5 seconds at all gateways, and none of its certificates opens anything any more."
    reason="optional"
    confirmName={name}
    done={`Cluster ${name} was revoked`}
    run={async (_, reason) => {
      const path = '/tenants/{tenant}/clusters/{cluster}/revoke';
      await call('POST', path, { params: { tenant, cluster: name }, body: { reason } });
      return undefined;
    }}
  />
);

const LetIn = ({ tenant }: { tenant: string }) => (
  <Act
    label="Let a cluster in"
    title="Make a join token"
    verb="Make it"
    primary
    explain="Its connector takes the token once, for a key that it has made itself."
    done="The token was made"
    run={async form => {
      const endpoints = textOf(form, 'endpoints')?.split(/[\s,]+/);
      const body = {
        cluster: textOf(form, 'cluster') ?? '',
        expiresInMinutes: Number(textOf(form, 'minutes') ?? 60),
        ...(endpoints ? { endpoints } : {}),
      };
      const { data } = await call('POST', '/tenants/{tenant}/clusters/join-tokens', { params: { tenant }, body });
      return <Shown token={data.token} cluster={data.cluster} />;
    }}
  >
    <TextInput
      name="cluster"
      label="Name"
      description="How the cluster will be called"
      required
      pattern="[a-z0-9][a-z0-9\-]{0,62}"
      autoComplete="off"
      data-autofocus
    />
    <TextInput
      name="endpoints"
      label="Endpoints"
      description="That it may ask for, separated by commas; empty: any of the tenant"
      autoComplete="off"
    />
    <NumberInput
      name="minutes"
      label="Minutes"
      description="How long the token lives"
      min={1}
      max={10_080}
      defaultValue={60}
    />
  </Act>
);

const Shown = ({ token, cluster }: { token: string; cluster: string }) => (
  <Stack gap="xs">
    <div className="notice notice-warn" role="note">
      <p className="notice-title">This is the only time that the join token of {cluster} is shown</p>
      Put it into the Secret that the connector reads, TRIVET_JOIN_TOKEN_FILE.
    </div>
    <Copy text={token} label="the token" />
  </Stack>
);
