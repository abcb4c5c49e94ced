import { createPrivateKey, X509Certificate } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { type Config, loadConfig } from '#platform/config/config';
import { loadKeyring } from '#platform/crypto/kek';
import { PACKAGE_ROOT } from '#platform/package-root';
import { REQUIRED as DAEMONS } from '#platform/process/platform.module';
import { wrongIn } from '#test/support/command-line';
import { LookedUpCluster } from '#test/support/kube/looked-up-cluster';
import { problemsOfResource } from '#test/support/kube/resource-schemas';
import { parts } from '#test/support/parts';
import { CHART, MANIFESTS, renderChart, renderManifests } from '../../apps/cli/src/chart/chart.js';
import { CommandError, runCommand } from '../../apps/cli/src/parts/command.js';

// biome-ignore lint/suspicious/noExplicitAny: YAML
type Document = any;

const folder = mkdtempSync(join(tmpdir(), 'trivet-chart-'));
const cluster = new LookedUpCluster();
const kubeconfig = join(folder, 'kubeconfig');
beforeAll(async () => {
  await cluster.start();
  writeFileSync(kubeconfig, cluster.kubeconfig, { mode: 0o600 });
});
afterAll(async () => {
  await cluster.stop();
  rmSync(folder, { recursive: true });
});

const helm = parts().helm?.path ?? '';
const documentsIn = (text: string): Document[] =>
  parseAllDocuments(text)
    .map(document => document.toJS())
    .filter(document => document !== null);
const render = async (...more: string[]): Promise<Document[]> => documentsIn(await renderChart(helm, more));
const valuesOf = (name: string): string[] => ['--values', join(CHART, 'ci', `${name}-values.yaml`)];
/** As an installation renders it, which may look into the cluster. */
const lookingInto = ['--dry-run=server', '--disable-openapi-validation', '--kubeconfig', kubeconfig];
const ofKind = (documents: Document[], kind: string): Document[] => documents.filter(each => each.kind === kind);
const byName = (documents: Document[], kind: string, name: string): Document =>
  documents.find(each => each.kind === kind && each.metadata.name === name);
const manifests = (path: string): Document[] => documentsIn(readFileSync(join(MANIFESTS, path), 'utf8'));

/** Each of the chart's combinations of values, with what must be there before: Secrets that somebody else makes. */
const COMBINATIONS: Record<string, { outside: string[]; runs: string[]; looks?: true }> = {
  clusters: { outside: ['trivet'], runs: ['gateway', 'migrate', 'worker'] },
  'connector-everything': {
    outside: ['trivet-join-token', 'trivet-snapshot-metadata-tls'],
    runs: ['connector'],
  },
  'connector-only': { outside: ['trivet-join-token'], runs: ['connector'] },
  'cosi-v1alpha2': {
    outside: ['trivet', 'trivet-join-token', 'trivet-tls'],
    runs: ['connector', 'gateway', 'migrate', 'worker'],
    looks: true,
  },
  generated: { outside: [], runs: ['gateway', 'migrate', 'worker'], looks: true },
  operator: { outside: ['trivet', 'trivet-tls'], runs: ['gateway', 'migrate', 'worker'] },
  'own-images': { outside: ['trivet', 'trivet-snapshot-metadata-tls'], runs: ['gateway', 'migrate', 'worker'] },
  'session-manager': { outside: ['trivet-connector', 'trivet-sessions-tls'], runs: ['connector'] },
  'session-sidecar': { outside: ['trivet-connector', 'trivet-sessions-tls'], runs: ['connector'] },
  sessions: { outside: ['trivet-connector', 'trivet-sessions-tls'], runs: ['connector'] },
  'several-secrets': {
    outside: ['keys', 'oidc', 'postgres', 'redis', 'rgw-user', 'trivet-tls'],
    runs: ['gateway', 'migrate', 'worker'],
  },
  'without-redis-and-buckets': { outside: ['trivet', 'trivet-tls'], runs: ['gateway', 'migrate'] },
};
const REQUIRED: Record<string, readonly (keyof Config)[]> = {
  gateway: DAEMONS,
  worker: DAEMONS,
  migrate: ['TRIVET_DATABASE_OWNER_URL', 'TRIVET_KEK_FILE'],
  connector: ['TRIVET_GATEWAYS', 'TRIVET_CONNECTOR_SOCKETS'],
};

interface PodOf {
  owner: Document;
  labels: Record<string, string>;
  spec: Document;
}
const podsOf = (documents: Document[]): PodOf[] =>
  documents.flatMap(owner => {
    if (owner.kind === 'Pod') return [{ owner, labels: owner.metadata.labels, spec: owner.spec }];
    const template = owner.spec?.template;
    return template ? [{ owner, labels: template.metadata.labels, spec: template.spec }] : [];
  });

describe.skipIf(helm === '')('the chart', () => {
  it('is what deploy/kubernetes was rendered from; else run `./trivet manifest`', async () => {
    const rendered = await renderManifests(helm);
    expect(rendered.size).toBeGreaterThan(5);
    for (const [name, text] of rendered) expect(readFileSync(join(MANIFESTS, name), 'utf8'), name).toBe(text);
  });

  it('has nothing that helm lint complains about', async () => {
    await expect(runCommand(helm, ['lint', '--strict', CHART])).resolves.toContain('0 chart(s) failed');
  });

  it('has combinations of values that are all tested', () => {
    const files = readdirSync(join(CHART, 'ci'));
    expect(files.sort()).toEqual(Object.keys(COMBINATIONS).map(name => `${name}-values.yaml`));
  });

  it('is whole as a package, which has no links', async () => {
    const said = await runCommand(helm, ['package', CHART, '--destination', folder]);
    const path = /: (\S+\.tgz)/.exec(said)![1]!;
    const text = await runCommand(helm, ['template', 'trivet', path, ...valuesOf('operator')]);
    const alerts = parse(readFileSync(join(PACKAGE_ROOT, 'deploy/prometheus/alerts.yaml'), 'utf8'));
    expect(ofKind(documentsIn(text), 'PrometheusRule')[0].spec).toEqual(alerts);
  });
});

describe.skipIf(helm === '').each(Object.entries(COMBINATIONS))('the chart with %s', (name, expected) => {
  let documents: Document[];
  let pods: PodOf[];
  beforeAll(async () => {
    documents = await render(...valuesOf(name), ...(expected.looks ? lookingInto : []));
    pods = podsOf(documents);
  });

  it('renders objects that Kubernetes knows, each once', async () => {
    const names = documents.map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? ''}/${metadata.name}`);
    expect(names).toEqual([...new Set(names)]);
    // Of the community; its schema is not among those that are at hand.
    const known = documents.filter(({ kind }) => kind !== 'SnapshotMetadataService');
    for (const document of known)
      expect(await problemsOfResource(document), `${document.kind} ${document.metadata.name}`).toEqual([]);
  });

  it('runs what it should, with settings that it accepts and files that are mounted', () => {
    const run = pods.flatMap(({ spec }) => spec.containers).filter(({ args }: Document) => args?.[0] in REQUIRED);
    expect(run.map(({ args }: Document) => args[0]).sort()).toEqual(expected.runs);
    for (const { spec } of pods)
      for (const container of spec.containers) {
        const [role] = container.args ?? [];
        if (!REQUIRED[role]) continue;
        const env: Record<string, string> = {};
        for (const { configMapRef } of container.envFrom ?? [])
          Object.assign(env, byName(documents, 'ConfigMap', configMapRef.name).data);
        for (const { name, value } of container.env) if (value !== undefined) env[name] = value;
        const files = filesOf(spec, container);
        for (const [variable, path] of Object.entries(env))
          if (variable.endsWith('_FILE')) expect(files, `${role} ${variable}`).toContain(path);
        const settings = loadConfig(REQUIRED[role], withReadableAddresses(env));
        for (const { containerPort } of container.ports ?? []) expect(listensOn(settings)).toContain(containerPort);
      }
  });

  it('has every Secret and ConfigMap that it names, but for those of others', () => {
    const named = new Set(pods.flatMap(({ spec }) => secretsOf(spec)));
    const made = [
      ...ofKind(documents, 'Secret').map(({ metadata }) => metadata.name),
      ...ofKind(documents, 'Certificate').map(({ spec }) => spec.secretName),
    ];
    expect([...named].filter(secret => !made.includes(secret)).sort()).toEqual(expected.outside);
    // What runs before the release has what it needs from before, too.
    for (const { owner, spec } of pods.filter(({ owner }) => owner.kind === 'Job')) {
      const weight = (document: Document): number => Number(document.metadata.annotations['helm.sh/hook-weight']);
      const needed = [
        ...secretsOf(spec).map(secret => byName(documents, 'Secret', secret)),
        ...spec.containers[0].envFrom.map(({ configMapRef }: Document) =>
          byName(documents, 'ConfigMap', configMapRef.name),
        ),
      ].filter(document => document !== undefined);
      expect(owner.metadata.annotations['helm.sh/hook']).toBe('pre-install,pre-upgrade');
      for (const document of needed) {
        expect(document.metadata.annotations['helm.sh/hook']).toBe('pre-install,pre-upgrade');
        expect(weight(document)).toBeLessThan(weight(owner));
      }
    }
  });

  it('keeps the restricted profile, and mounts what it declares', () => {
    const KINDS = ['configMap', 'emptyDir', 'projected', 'secret', 'persistentVolumeClaim'];
    for (const { spec } of pods) {
      expect(spec.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
      for (const volume of spec.volumes ?? [])
        expect(KINDS).toEqual(expect.arrayContaining(Object.keys(volume).filter(key => key !== 'name')));
      const mounted = new Set(
        spec.containers.flatMap(({ volumeMounts = [] }: Document) => volumeMounts.map(({ name }: Document) => name)),
      );
      expect(mounted).toEqual(new Set((spec.volumes ?? []).map(({ name }: Document) => name)));
      for (const { securityContext, resources } of spec.containers) {
        expect(securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        });
        expect(resources).toMatchObject({
          requests: { cpu: expect.anything() },
          limits: { memory: expect.anything() },
        });
      }
    }
  });

  it('has Services, policies, budgets and accounts that lead to its pods', () => {
    for (const { spec } of ofKind(documents, 'Service')) {
      const found = pods.filter(({ labels }) => isSelected(labels, spec.selector));
      expect(found.length).toBeGreaterThan(0);
      for (const { targetPort } of spec.ports) expect(portsOf(found[0]!.spec)).toContain(targetPort);
    }
    for (const document of ofKind(documents, 'NetworkPolicy')) {
      const found = pods.find(({ labels }) => isSelected(labels, document.spec.podSelector.matchLabels));
      const open = document.spec.ingress.flatMap(({ ports }: Document) => ports.map(({ port }: Document) => port));
      expect([...open].sort()).toEqual(portsOf(found!.spec).sort());
    }
    for (const { spec } of ofKind(documents, 'PodDisruptionBudget'))
      expect(pods.some(({ labels }) => isSelected(labels, spec.selector.matchLabels))).toBe(true);
    const accounts = ofKind(documents, 'ServiceAccount').map(({ metadata }) => metadata.name);
    const used = pods.flatMap(({ spec }) => spec.serviceAccountName ?? []);
    expect([...new Set(used)].sort()).toEqual([...accounts].sort());
    for (const binding of [...ofKind(documents, 'RoleBinding'), ...ofKind(documents, 'ClusterRoleBinding')]) {
      for (const { name, namespace } of binding.subjects)
        expect([accounts, namespace]).toEqual([expect.arrayContaining([name]), 'trivet']);
      if (binding.roleRef.name !== 'external-snapshot-metadata-runner')
        expect(byName(documents, binding.roleRef.kind, binding.roleRef.name)).toBeDefined();
    }
  });

  it('asks each of its doors whether it is ready, by `helm test`', () => {
    const tests = ofKind(documents, 'Pod');
    const doors = expected.runs.filter(role => role === 'gateway' || role === 'connector');
    expect(tests).toHaveLength(doors.length);
    for (const { metadata, spec } of tests) {
      expect(metadata.annotations['helm.sh/hook']).toBe('test');
      const [program, script, address] = spec.containers[0].command;
      expect(program).toBe('node');
      expect(existsSync(join(PACKAGE_ROOT, script.replace('/app/', '')))).toBe(true);
      const { hostname, port, pathname } = new URL(address);
      expect(pathname).toBe('/readyz');
      expect(byName(documents, 'Service', hostname).spec.ports).toContainEqual(
        expect.objectContaining({ port: Number(port) }),
      );
    }
  });
});

describe.skipIf(helm === '')('Secrets that the chart makes', () => {
  const given = [...valuesOf('generated'), ...lookingInto];
  const inData = (secret: Document): Record<string, string> =>
    secret.data ??
    Object.fromEntries(
      Object.entries(secret.stringData).map(([key, text]) => [key, Buffer.from(String(text)).toString('base64')]),
    );

  it('are good, are made once, and stay what they are over upgrades', async () => {
    cluster.secrets.clear();
    const first = await render(...given);
    const keys = byName(first, 'Secret', 'trivet-generated');
    const other = byName(await render(...given), 'Secret', 'trivet-generated');
    expect(keys.stringData.kek).not.toBe(other.stringData.kek);
    // Of no release, so that none can take it away, and never made anew.
    expect(keys.metadata.annotations).toMatchObject({
      'helm.sh/hook': 'pre-install,pre-upgrade',
      'helm.sh/hook-delete-policy': 'hook-failed',
    });
    const file = join(folder, 'kek');
    writeFileSync(file, keys.stringData.kek, { mode: 0o600 });
    expect(() => loadKeyring(file)).not.toThrow();
    for (const key of ['csp-password', 'admin-password']) expect(keys.stringData[key].length).toBeGreaterThan(20);

    const tls = byName(first, 'Secret', 'trivet-tls');
    const pem = (key: string): string => Buffer.from(tls.data[key], 'base64').toString();
    const [certificate, authority] = [pem('tls.crt'), pem('ca.crt')].map(text => new X509Certificate(text));
    expect(certificate!.checkHost('trivet-cbt.trivet.svc')).toBe('trivet-cbt.trivet.svc');
    expect(certificate!.verify(authority!.publicKey)).toBe(true);
    expect(certificate!.checkPrivateKey(createPrivateKey(pem('tls.key')))).toBe(true);

    for (const secret of [keys, tls]) cluster.secrets.set(secret.metadata.name, inData(secret));
    const upgrade = await render(...given);
    expect(byName(upgrade, 'Secret', 'trivet-generated')).toBeUndefined();
    expect(byName(upgrade, 'Secret', 'trivet-tls').data).toEqual(tls.data);
    const withoutKeys = (documents: Document[]) =>
      documents.filter(document => document.metadata.name !== 'trivet-generated');
    expect(withoutKeys(upgrade)).toEqual(withoutKeys(first));
    cluster.secrets.clear();
  });

  it('are not made where nobody can look whether they are there', async () => {
    const failed: unknown = await render(...valuesOf('generated')).catch(error => error);
    expect((failed as CommandError).stderr).toMatch(/has to look into the cluster/);
  });

  it('that are given begin the pods anew when they change', async () => {
    const annotations = async (...more: string[]) =>
      byName(await render(...given, ...more), 'Deployment', 'trivet-gateway').spec.template.metadata.annotations;
    const before = await annotations();
    expect(await annotations('--set', 'rgw.secretKey=other')).not.toEqual(before);
    expect(await annotations('--set', 'gateway.replicas=4')).toEqual(before);
  });
});

describe.skipIf(helm === '')('values that cannot be meant', () => {
  it.each<[string[], RegExp]>([
    [['database.appUrl=postgresql://a@b/c'], /either here or in the Secret trivet/],
    [['rgw.accessKey=a'], /either here or in the Secret trivet/],
    [['redis.existingSecret=redis'], /either in redis.url or in redis.existingSecret/],
    [['cosi.version=v1alpha2'], /cosi.sidecar.image: name the sidecar/],
    [['gateway.terminationGracePeriodSeconds=15'], /must be above gateway.drainSeconds and TRIVET_SHUTDOWN_MS/],
    [['config.TRIVET_SHUTDOWN_MS=60000'], /terminationGracePeriodSeconds: must be above/],
    [['worker.env.TRIVET_SHUTDOWN_MS=60000'], /worker.terminationGracePeriodSeconds: must be above/],
    [
      [
        'connector.enabled=true',
        'gateway.enabled=false',
        'connector.gateways={a:1}',
        'connector.terminationGracePeriodSeconds=15',
      ],
      /must be above connector.drainSeconds and TRIVET_SHUTDOWN_MS/,
    ],
    [['connector.enabled=true'], /connector: it carries nothing/],
    [['connector.enabled=true', 'gateway.enabled=false'], /connector.gateways: host:port/],
    [
      ['connector.enabled=true', 'gateway.enabled=false', 'connector.gateways={a:1}', 'connector.replicas=2'],
      /identity.accessMode must be ReadWriteMany/,
    ],
    [['tls.source=certManager'], /tls.issuerRef.name: required/],
    [['snapshotMetadata.enabled=true'], /snapshotMetadata.caCert/],
    [['gateway.replica=3'], /replica/],
  ])('are refused with a reason: %j', async (set, reason) => {
    const failed: unknown = await render(...set.flatMap(each => ['--set', each])).catch(error => error);
    expect(failed).toBeInstanceOf(CommandError);
    expect((failed as CommandError).stderr).toMatch(reason);
  });
});

describe.skipIf(helm === '')('what was written by hand before the chart', () => {
  it('of snapshot sessions is what the chart renders', async () => {
    const documents = await render(...valuesOf('sessions'), '--namespace', 'trivet-sessions');
    for (const written of ['rbac.yaml', 'service.yaml', 'webhooks.yaml'].flatMap(file =>
      manifests(`snapshot-sessions/${file}`),
    )) {
      const rendered = byName(documents, written.kind, written.metadata.name);
      expect(rendered, `${written.kind} ${written.metadata.name}`).toBeDefined();
      if (written.rules) expect(rendered.rules).toEqual(written.rules);
      if (written.subjects) expect(rendered).toMatchObject({ subjects: written.subjects, roleRef: written.roleRef });
      if (written.spec) expect(rendered.spec).toEqual(written.spec);
      for (const [at, { clientConfig, ...webhook }] of (written.webhooks ?? []).entries()) {
        expect(rendered.webhooks[at]).toMatchObject(webhook);
        expect(rendered.webhooks[at].clientConfig.service).toEqual(clientConfig.service);
      }
    }
    const envOf = (all: Document[]) =>
      Object.fromEntries(
        ofKind(all, 'Deployment')[0].spec.template.spec.containers[0].env.map(({ name, value }: Document) => [
          name,
          value,
        ]),
      );
    // By default there, and a folder that other sidecars share here.
    const { TRIVET_CSI_DRIVER_NAME, TRIVET_CONNECTOR_SOCKETS, ...rendered } = envOf(documents);
    const { TRIVET_CONNECTOR_SOCKETS: sockets, ...written } = envOf(manifests('snapshot-sessions/connector.yaml'));
    expect(rendered).toEqual(written);
    expect([TRIVET_CSI_DRIVER_NAME, TRIVET_CONNECTOR_SOCKETS.split('=')[0]]).toEqual([
      'csi.hpe.com',
      sockets.split('=')[0],
    ]);
  });

  it('of snapshot sessions has the same pod', async () => {
    const [rendered, written] = [
      await render(...valuesOf('sessions'), '--namespace', 'trivet-sessions'),
      manifests('snapshot-sessions/connector.yaml'),
    ].map(documents => {
      const { spec } = ofKind(documents, 'Deployment')[0];
      const { containers, volumes, topologySpreadConstraints, ...pod } = spec.template.spec;
      // The chart's resources are those of a connector without sessions, too.
      const [{ env, imagePullPolicy, resources, volumeMounts, ...container }, ...others] = containers;
      // Folders of the socket, which are named differently.
      const named = (all: Document[]) =>
        Object.fromEntries(all.filter(({ name }) => !['csi', 'sockets'].includes(name)).map(each => [each.name, each]));
      const { replicas, strategy } = spec;
      return { replicas, strategy, pod, container, others, volumes: named(volumes), mounts: named(volumeMounts) };
    });
    expect(written).toEqual(rendered);
  });

  it('of webhooks has one name for whatever a release is called, so that a cluster has one manager', async () => {
    const documents = await render(...valuesOf('sessions'), '--set', 'fullnameOverride=other');
    const hooks = documents.filter(({ webhooks }) => webhooks);
    expect(hooks.map(({ metadata }) => metadata.name)).toEqual([
      'trivet-snapshot-sessions',
      'trivet-snapshot-sessions',
    ]);
    for (const { webhooks } of hooks) expect(webhooks[0].clientConfig.service.name).toBe('other-session-webhook');
  });

  it('of a sidecar by itself has the rights that the chart gives it, and nothing of a manager', async () => {
    const [sidecar, manager] = await Promise.all(
      ['session-sidecar', 'session-manager'].map(name => render(...valuesOf(name), '--namespace', 'trivet-sessions')),
    );
    const written = manifests('snapshot-sessions/sidecar-rbac.example.yaml').filter(({ rules }) => rules);
    for (const kind of ['ClusterRole', 'Role'])
      expect(ofKind(sidecar!, kind).map(({ rules }) => rules)).toEqual(ofKind(written, kind).map(({ rules }) => rules));
    const ofData = (documents: Document[]) =>
      documents.flatMap(({ kind, rules = [] }) =>
        rules
          .filter(({ resources }: Document) => resources.includes('snapshotsessiondatas'))
          .map(({ verbs }: Document) => [kind, ...verbs]),
      );
    expect(ofData(sidecar!)).toEqual([['Role', 'get']]);
    expect(ofData(manager!)).toEqual([['ClusterRole', 'list', 'create', 'delete']]);
    const hooks = (documents: Document[]) => documents.filter(({ webhooks }) => webhooks).length;
    expect([hooks(sidecar!), hooks(manager!)]).toEqual([0, 2]);
    const named = (documents: Document[]) => ofKind(documents, 'Service').map(({ metadata }) => metadata.name);
    expect(named(sidecar!)).toEqual(['trivet-connector', 'trivet-snapshot-sessions']);
    expect(named(manager!)).toEqual(['trivet-connector', 'trivet-session-webhook']);
    const [config, other] = [sidecar!, manager!].map(documents => {
      const [{ env }] = ofKind(documents, 'Deployment')[0].spec.template.spec.containers;
      return loadConfig([], Object.fromEntries(env.map(({ name, value }: Document) => [name, value])));
    });
    expect([config!.TRIVET_SESSION_WEBHOOK_LISTEN, other!.TRIVET_CBT_LISTEN]).toEqual(['none', 'none']);
  });

  it('of definitions is what the chart installs, and never takes away', async () => {
    const documents = await render(...valuesOf('sessions'));
    for (const name of ['configurations', 'data', 'requests']) {
      const [written] = manifests(`snapshot-sessions/crd-${name}.yaml`);
      const rendered = byName(documents, 'CustomResourceDefinition', written.metadata.name);
      expect(rendered.spec).toEqual(written.spec);
      expect(rendered.metadata.annotations).toEqual({
        ...written.metadata.annotations,
        'helm.sh/resource-policy': 'keep',
      });
    }
  });

  it('of a connector alone has the same pod', async () => {
    const documents = await render(...valuesOf('connector-only'));
    const written = manifests('connector.example.yaml');
    const podOf = (all: Document[]) => ofKind(all, 'Deployment')[0].spec.template.spec;
    const [connector, sidecar] = podOf(documents).containers;
    const [writtenConnector, writtenSidecar] = podOf(written).containers;
    expect(sidecar).toEqual(writtenSidecar);
    expect(connector.env).toEqual(writtenConnector.env);
    expect(connector.lifecycle).toEqual(writtenConnector.lifecycle);
    expect(ofKind(documents, 'ClusterRole')[0].rules).toEqual(ofKind(written, 'ClusterRole')[0].rules);
  });
});

describe.skipIf(helm === '')('what helm says after an installation', () => {
  const notes = (...more: string[]): Promise<string> =>
    runCommand(helm, [
      'install',
      'trivet',
      CHART,
      '--namespace',
      'trivet',
      '--dry-run=client',
      '--kubeconfig',
      kubeconfig,
      ...more,
    ]).then(said => said.split('\nNOTES:\n')[1]!);

  it('is the next step: of the default the Secrets that have to be there', async () => {
    const said = await notes();
    expect(said).toContain('helm test trivet --namespace trivet');
    expect(said).toContain('It reads the Secret trivet,');
    expect(said).toContain('the Secret trivet-tls is there');
    expect(said).toContain('serviceName trivet-csp.trivet.svc');
  });

  it('is for a connector a command that there is', async () => {
    const said = await notes(...valuesOf('connector-everything'));
    const [, command] = /^ {4}trivet (cluster join-token .*) > join-token$/m.exec(said)!;
    expect(command!.split(' ')).toEqual(expect.arrayContaining(['buckets', 'csi']));
    expect(wrongIn(command!.split(' '))).toBeUndefined();
  });
});

/** Paths that are mounted from Secrets. */
function filesOf(spec: Document, container: Document): string[] {
  return spec.volumes.flatMap((volume: Document) => {
    const mount = container.volumeMounts.find(({ name }: Document) => name === volume.name);
    if (mount === undefined) return [];
    const items = [
      ...(volume.secret?.items ?? []),
      ...(volume.projected?.sources ?? []).flatMap(({ secret }: Document) => secret.items),
    ];
    return items.map(({ path }: Document) => join(mount.mountPath, path));
  });
}

function secretsOf(spec: Document): string[] {
  return (spec.volumes ?? []).flatMap(({ secret, projected }: Document) => [
    ...(secret ? [secret.secretName] : []),
    ...(projected?.sources ?? []).map(({ secret }: Document) => secret.name),
  ]);
}

/** Addresses in files are read at the start; the others are named alone. */
function withReadableAddresses(env: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).map(([name, value]) => {
      const [, system] = /^TRIVET_(DATABASE|REDIS).*_FILE$/.exec(name) ?? [];
      if (system === undefined) return [name, value];
      const path = join(folder, basename(value));
      writeFileSync(
        path,
        system === 'REDIS' ? 'rediss://:password@redis:6379' : 'postgresql://user:password@db/trivet',
      );
      return [name, path];
    }),
  );
}

const listensOn = (settings: Config): number[] =>
  Object.entries(settings).flatMap(([name, value]) =>
    name.endsWith('_LISTEN') && typeof value === 'object' ? [(value as { port: number }).port] : [],
  );

const isSelected = (labels: Record<string, string>, selector: Record<string, string>): boolean =>
  Object.entries(selector).every(([name, value]) => labels[name] === value);

const portsOf = (spec: Document): string[] =>
  spec.containers.flatMap(({ ports = [] }: Document) => ports.map(({ name }: Document) => name));
