import { spawnSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { createSecureContext } from 'node:tls';
import { afterAll, describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { type Config, EXIT_CONFIG, loadConfig } from '#platform/config/config';
import { oidcSettings } from '#platform/config/oidc-settings';
import { registry, startProcessMetrics } from '#platform/metrics/metrics';
import { PACKAGE_ROOT } from '#platform/package-root';
import {
  CONNECTOR_ENVIRONMENT,
  CONNECTOR_FLAGS,
  NODE_FLAGS,
  SESSION_CONNECTOR_FLAGS,
} from '#platform/process/node-flags';
import '#admin/requests/call-metrics';
import '#cbt/cbt-metrics';
import '#cosi/cosi-metrics';
import '#csp/csp-metrics';
import '#platform/metrics/block-metrics';
import '#platform/metrics/takeover-metrics';
import '#platform/metrics/worker-metrics';
import { REQUIRED as DAEMONS } from '#platform/process/platform.module';
import { entrypoint } from '#test/deploy/entrypoint';
import '../../apps/connector/src/connector-metrics.js';
import '../../apps/gateway/src/clusters/cluster-metrics.js';

const folder = mkdtempSync(join(tmpdir(), 'trivet-manifests-'));
afterAll(() => rmSync(folder, { recursive: true }));

const read = (path: string) => readFileSync(join(PACKAGE_ROOT, path), 'utf8');
const MIGRATE = ['TRIVET_DATABASE_OWNER_URL', 'TRIVET_KEK_FILE'] as const satisfies (keyof Config)[];
const REQUIRED: Record<string, readonly (keyof Config)[]> = { gateway: DAEMONS, worker: DAEMONS, migrate: MIGRATE };
const { version } = JSON.parse(read('package.json')) as { version: string };
const GRACE_SECONDS = loadConfig([], {}).TRIVET_SHUTDOWN_MS / 1000;

/** The settings as the process will see them, with files where only the target machine has them. */
function accepted(role: string, env: Record<string, string>): Config {
  const readable = Object.entries(env).map(([name, value]) => {
    if (!/^TRIVET_(DATABASE|REDIS).*_FILE$/.test(name)) return [name, value];
    const path = join(folder, basename(value));
    writeFileSync(path, 'postgresql://user:password@db/trivet');
    return [name, path];
  });
  return loadConfig(REQUIRED[role], Object.fromEntries(readable));
}

describe('systemd units', () => {
  const parseUnit = (name: string) => {
    const file = name.includes('.') ? name : `trivet-${name}.service`;
    const lines = read(`deploy/systemd/${file}`).split('\n');
    const all = (key: string) =>
      lines.filter(line => line.startsWith(`${key}=`)).map(line => line.slice(key.length + 1));
    return { all, one: (key: string) => all(key).at(-1) };
  };
  const pairs = (lines: string[]): [string, string][] =>
    lines.map(line => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]);
  const shared = pairs(
    read('deploy/systemd/trivet.env')
      .split('\n')
      .filter(line => /^\w/.test(line)),
  );
  /** Settings that stand there as comments, in their order. */
  const offered = () =>
    pairs([...read('deploy/systemd/trivet.env').matchAll(/^#(TRIVET_\w+=.*)$/gm)].map(([, line]) => line!));
  /** systemd's specifiers, as the manual gives them for system units. */
  const expand = (value: string) =>
    value.replace('%d', '/run/credentials/x').replace('%t', '/run').replace('%S', '/var/lib');

  it.each(['gateway', 'worker', 'migrate'])(
    '%s runs an entry point that exists, with settings that it accepts',
    role => {
      const unit = parseUnit(role);
      const [, ...words] = unit.one('ExecStart')!.replaceAll('/opt/trivet/', '').split(' ');
      const flags = words.filter(word => word.startsWith('--'));
      const [script, ...rest] = words.filter(word => !word.startsWith('--'));
      expect(flags).toEqual(role === 'migrate' ? [] : NODE_FLAGS);
      expect(script).toBe(`dist/programs/${role === 'migrate' ? 'trivet' : role}.js`);
      expect(existsSync(join(PACKAGE_ROOT, script!))).toBe(true);
      expect(rest).toEqual(role === 'migrate' ? ['migrate'] : []);
      const env = Object.fromEntries(
        [...shared, ...pairs(unit.all('Environment'))].map(([name, value]) => [name, expand(value)]),
      );
      const config = accepted(role, env);
      if (role === 'gateway') {
        const [cosi, endpoints] = unit.one('RuntimeDirectory')!.split(' ');
        expect(config.COSI_ENDPOINT).toBe(`/run/${cosi}/cosi.sock`);
        expect(config.TRIVET_SOCKET_DIR).toBe(`/run/${endpoints}`);
      }
    },
  );

  it.each(['gateway', 'worker', 'migrate'])('%s reads only credentials that it is given', role => {
    const unit = parseUnit(role);
    const given = unit.all('LoadCredential').map(line => line.split(':')[0]);
    const used = unit.all('Environment').flatMap(line => line.match(/%d\/([\w-]+)/)?.[1] ?? []);
    expect(used.sort()).toEqual(given.sort());
    expect(given.includes('database-engine-url')).toBe(role !== 'migrate');
    expect(given.includes('database-owner-url')).toBe(role === 'migrate');
  });

  it.each(['gateway', 'worker'])('%s is restarted unless its configuration is wrong, and may stop in order', role => {
    const unit = parseUnit(role);
    expect(unit.one('Restart')).toBe('always');
    expect(unit.one('RestartPreventExitStatus')).toBe('78');
    expect(Number(unit.one('TimeoutStopSec'))).toBeGreaterThan(GRACE_SECONDS);
    expect(unit.all('SystemCallFilter')).toContain('@system-service');
    expect(unit.one('CapabilityBoundingSet')).toBe('');
  });

  it('come up by themselves when the database answers only after they were started', () => {
    for (const role of ['gateway', 'worker']) {
      const unit = parseUnit(role);
      expect(unit.all('After').join(' ').split(' ')).toContain('trivet-migrate.service');
      expect(unit.all('Wants').join(' ').split(' ')).toContain('trivet-migrate.service');
      for (const binding of ['Requires', 'Requisite', 'BindsTo', 'PartOf']) expect(unit.all(binding)).toEqual([]);
    }
    const migrate = parseUnit('migrate');
    expect(migrate.one('Type')).toBe('oneshot');
    // The others that systemd takes with this type leave exit codes out.
    expect(migrate.one('Restart')).toBe('on-failure');
    expect(Number(migrate.one('RestartSec'))).toBeGreaterThan(0);
    // What it ends with when nothing answers is the code of a wrong configuration.
    for (const key of ['RestartPreventExitStatus', 'SuccessExitStatus'])
      expect(migrate.all(key).join(' ').split(' ')).not.toContain(String(EXIT_CONFIG));
    for (const role of ['gateway', 'worker', 'migrate']) expect(parseUnit(role).one('StartLimitIntervalSec')).toBe('0');
  });

  it('let the worker of the host that has pools write there, with one right, and leave its tgtd alone', () => {
    const lines = read('deploy/systemd/block-volumes.conf').split('\n');
    const all = (key: string) =>
      lines.filter(line => line.startsWith(`${key}=`)).map(line => line.slice(key.length + 1));
    for (const key of ['CapabilityBoundingSet', 'AmbientCapabilities'])
      expect(all(key)).toEqual(['CAP_LINUX_IMMUTABLE']);
    const unit = parseUnit('worker');
    expect(unit.one('KillMode')).toBe('process');
    expect(unit.one('RuntimeDirectoryPreserve')).toBe('yes');
    expect(unit.one('ProtectSystem')).toBe('strict');
    const commented = offered().slice(0, 3);
    expect(commented.map(([name]) => name)).toEqual(['TRIVET_POOLS', 'TRIVET_ISCSI_PORTALS', 'TRIVET_HOST']);
    const own = pairs(unit.all('Environment')).map(([name, value]) => [name, expand(value)]);
    const config = accepted('worker', Object.fromEntries([...shared, ...own, ...commented]));
    expect(config.TRIVET_POOLS!.map(({ path }) => path)).toEqual(all('ReadWritePaths'));
    expect(config.TRIVET_TGT_DIR).toBe(`/run/${unit.one('RuntimeDirectory')}`);
  });

  it('have what logins by OpenID Connect need, once a line is no comment any more', () => {
    const commented = offered().slice(3);
    expect(commented.map(([name]) => name)).toEqual([
      'TRIVET_PUBLIC_URL',
      'TRIVET_OIDC_ISSUER',
      'TRIVET_OIDC_CLIENT_ID',
    ]);
    const unit = parseUnit('oidc.conf');
    const [credential, file] = unit.one('LoadCredential')!.split(':') as [string, string];
    expect(file).toBe(`/etc/trivet/${credential}`);
    const [[name, value]] = pairs(unit.all('Environment')) as [[string, string]];
    expect(value).toBe(`%d/${credential}`);
    const secret = join(folder, credential);
    writeFileSync(secret, 'of the client');
    const gateway = pairs(parseUnit('gateway').all('Environment')).map(([name, value]) => [name, expand(value)]);
    const config = accepted('gateway', Object.fromEntries([...shared, ...gateway, ...commented, [name, secret]]));
    expect(oidcSettings(config)).toMatchObject({
      redirectUri: 'https://trivet.example.org:8743/login/provider',
      clientSecret: 'of the client',
    });
  });

  const analyze = spawnSync('systemd-analyze', ['--version']);
  it.runIf(analyze.status === 0)('are understood by systemd', () => {
    for (const role of ['gateway', 'worker', 'migrate']) {
      const path = join(PACKAGE_ROOT, `deploy/systemd/trivet-${role}.service`);
      const { stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', path], { encoding: 'utf8' });
      const complaints = stderr
        .split('\n')
        .filter(line => line.includes('trivet') && !line.includes('is not executable'));
      expect(complaints).toEqual([]);
    }
  });

  it.runIf(analyze.status === 0)(
    'open no more of the host than deploy/README.md says, by systemd-analyze security',
    () => {
      const root = mkdtempSync(join(tmpdir(), 'trivet-units-'));
      try {
        const units = join(root, 'etc/systemd/system');
        const addition = join(units, 'trivet-worker.service.d');
        mkdirSync(addition, { recursive: true });
        const exposureOf = (role: string): number => {
          const unit = `trivet-${role}.service`;
          cpSync(join(PACKAGE_ROOT, 'deploy/systemd', unit), join(units, unit));
          const { stdout } = spawnSync(
            'systemd-analyze',
            ['security', '--offline=true', `--root=${root}`, '--no-pager', unit],
            {
              encoding: 'utf8',
            },
          );
          return Number(/Overall exposure level for \S+: ([\d.]+)/.exec(stdout)![1]);
        };
        const bare = ['gateway', 'worker', 'migrate'].map(exposureOf);
        cpSync(join(PACKAGE_ROOT, 'deploy/systemd/block-volumes.conf'), join(addition, 'block-volumes.conf'));
        const [, most, mostWithVolumes] = /exposure level (\d\.\d), the worker with volumes (\d\.\d)/.exec(
          read('deploy/README.md'),
        )!;
        for (const exposure of bare) expect(exposure).toBeLessThanOrEqual(Number(most));
        expect(exposureOf('worker')).toBeLessThanOrEqual(Number(mostWithVolumes));
      } finally {
        rmSync(root, { recursive: true });
      }
    },
  );
});

interface Container {
  name: string;
  image: string;
  args: string[];
  env: { name: string; value?: string; valueFrom?: { fieldRef: { fieldPath: string } } }[];
  ports?: { containerPort: number }[];
  volumeMounts: { name: string; mountPath: string }[];
  securityContext: { readOnlyRootFilesystem: boolean; allowPrivilegeEscalation: boolean };
}
interface MountedSecret {
  secretName: string;
  items: { key: string; path: string }[];
  defaultMode: number;
}
interface Pod {
  serviceAccountName?: string;
  terminationGracePeriodSeconds?: number;
  securityContext: Record<string, unknown>;
  containers: Container[];
  volumes: { name: string; secret?: MountedSecret; projected?: ProjectedSecrets; emptyDir?: object }[];
}
interface ProjectedSecrets {
  defaultMode: number;
  sources: { secret: { name: string; items: MountedSecret['items'] } }[];
}

/** Of a volume, mounted as it is or together with others. */
const secretsIn = ({ secret, projected }: Pod['volumes'][number]): MountedSecret[] =>
  secret
    ? [secret]
    : (projected?.sources ?? []).map(({ secret: { name, items } }) => ({
        secretName: name,
        items,
        defaultMode: projected!.defaultMode,
      }));

describe('Kubernetes manifests', () => {
  const documents = (name: string) => parseAllDocuments(read(`deploy/kubernetes/${name}`)).map(doc => doc.toJS());
  const { namespace, resources: listed } = parse(read('deploy/kubernetes/kustomization.yaml')) as {
    namespace: string;
    resources: string[];
  };
  const [config] = documents('config.yaml');
  const podOf = (role: string): Pod =>
    documents(`${role}.yaml`).find(({ kind }) => /^(Deployment|Job)$/.test(kind)).spec.template.spec;
  const secretKeys = Object.keys(documents('secret.example.yaml')[0].stringData);

  it('are all listed, but for the examples', () => {
    const files = readdirSync(join(PACKAGE_ROOT, 'deploy/kubernetes')).filter(file => file.endsWith('.yaml'));
    const examples = files.filter(file => file.endsWith('.example.yaml'));
    expect(examples.sort()).toEqual([
      'connector.example.yaml',
      'hpe-csi.example.yaml',
      'secret.example.yaml',
      'snapshot-metadata.example.yaml',
    ]);
    expect(files.filter(file => file !== 'kustomization.yaml' && !examples.includes(file)).sort()).toEqual(
      [...listed].sort(),
    );
  });

  it('give the migrations the settings of the others, by kustomize, too', () => {
    const [own] = documents('migrate.yaml');
    expect(own).toMatchObject({ kind: 'ConfigMap', data: config.data });
    expect(documents('migrate.yaml').at(-1).spec.template.spec.containers[0].envFrom).toEqual([
      { configMapRef: { name: own.metadata.name } },
    ]);
    const { replacements } = parse(read('deploy/kubernetes/kustomization.yaml'));
    expect(replacements).toEqual([
      {
        source: { kind: 'ConfigMap', name: config.metadata.name, fieldPath: 'data' },
        targets: [{ select: { kind: 'ConfigMap', name: own.metadata.name }, fieldPaths: ['data'] }],
      },
    ]);
  });

  it("lead the HPE CSI driver to the gateway's pods", () => {
    const [service] = documents('service.yaml');
    const labels = documents('gateway.yaml')[0].spec.template.metadata.labels;
    expect(labels).toMatchObject(service.spec.selector);
    const [port] = service.spec.ports as { port: number; targetPort: string }[];
    const gateway = podOf('gateway').containers[0]!;
    expect(gateway.ports).toContainEqual({ name: port!.targetPort, containerPort: port!.port });
    const [backend, chap, storageClass, snapshotClass] = documents('hpe-csi.example.yaml');
    expect(backend.stringData).toMatchObject({
      serviceName: `${service.metadata.name}.${namespace}.svc`,
      servicePort: String(port!.port),
      username: 'csp',
    });
    const parameters = Object.entries({ ...storageClass.parameters, ...snapshotClass.parameters }) as [
      string,
      string,
    ][];
    const named = (suffix: RegExp) => new Set(parameters.filter(([key]) => suffix.test(key)).map(([, value]) => value));
    expect(named(/-secret-name$/)).toEqual(new Set([backend.metadata.name]));
    expect(named(/-secret-namespace$/)).toEqual(new Set([backend.metadata.namespace]));
    expect(storageClass.parameters).toMatchObject({
      chapSecretName: chap.metadata.name,
      chapSecretNamespace: chap.metadata.namespace,
    });
  });

  it("lead readers of changed blocks to the community's sidecar beside a gateway", () => {
    const all = documents('snapshot-metadata.example.yaml');
    const kinds = (kind: string) => all.filter(each => each.kind === kind);
    const [deployment] = kinds('Deployment');
    const { labels } = deployment.spec.template.metadata;
    const pod: Pod = deployment.spec.template.spec;
    const [gateway, sidecar] = pod.containers;
    const [service] = kinds('Service');
    const [found] = kinds('SnapshotMetadataService');
    expect(labels).toMatchObject(service.spec.selector);
    // Requests of the driver must not come here.
    expect(labels).not.toMatchObject(documents('service.yaml')[0].spec.selector);
    const { name, namespace: where } = service.metadata;
    expect(found).toMatchObject({
      apiVersion: 'cbt.storage.k8s.io/v1beta1',
      spec: { address: `${name}.${where}.svc:${service.spec.ports[0].port}`, audience: expect.stringMatching(/./) },
    });
    expect(where).toBe(namespace);
    expect(gateway!.image).toBe(`trivet:${version}`);
    const own = Object.fromEntries(gateway!.env.map(({ name, value }) => [name, value!]));
    const settings = accepted('gateway', { ...config.data, ...own });
    expect(settings.TRIVET_CSI_DRIVER_NAME).toBe(found.metadata.name);
    expect(documents('hpe-csi.example.yaml').at(-1).driver).toBe(found.metadata.name);
    const folder = (container: Pod['containers'][number]) =>
      container.volumeMounts.find(mount => mount.name === 'csi')!.mountPath;
    expect(own.TRIVET_CSI_ENDPOINT).toBe(`unix://${folder(gateway!)}/csi.sock`);
    expect(sidecar!.args).toContain(`--csi-address=${folder(sidecar!)}/csi.sock`);
    for (const { subjects } of kinds('ClusterRoleBinding').slice(0, 2))
      expect(subjects[0]).toMatchObject({ name: pod.serviceAccountName, namespace });
  });

  it('put the stock sidecar beside a connector, which has settings that it accepts and no credential but its token', () => {
    const all = documents('connector.example.yaml');
    const of = (kind: string) => all.filter(each => each.kind === kind);
    const [deployment] = of('Deployment');
    const where = of('Namespace')[0].metadata.name;
    for (const { metadata } of all.filter(({ kind }) => !/^(Namespace|ClusterRole.*)$/.test(kind)))
      expect(metadata.namespace).toBe(where);
    // As RBAC has it for the sidecar beside a gateway.
    expect(of('ClusterRole')[0].rules).toEqual(documents('rbac.yaml')[1].rules);
    expect(of('ClusterRoleBinding')[0].subjects[0]).toMatchObject({ name: 'trivet-cosi', namespace: where });
    const pod: Pod = deployment.spec.template.spec;
    const [connector, sidecar] = pod.containers as [Container, Container];
    const [gatewaysPod] = [podOf('gateway')];
    expect(sidecar).toEqual(gatewaysPod.containers[1]);
    expect(pod.securityContext).toEqual(gatewaysPod.securityContext);
    expect(connector.securityContext).toEqual(gatewaysPod.containers[0]!.securityContext);
    expect([connector.image, connector.args]).toEqual([`trivet:${version}`, ['connector']]);
    const env = Object.fromEntries(connector.env.map(({ name, value }) => [name, value!]));
    const settings = loadConfig(['TRIVET_GATEWAYS', 'TRIVET_CONNECTOR_SOCKETS'], env);
    const folderOf = (name: string) => connector.volumeMounts.find(mount => mount.name === name)!.mountPath;
    expect(settings.TRIVET_CONNECTOR_SOCKETS!.map(({ path }) => path)).toEqual([`${folderOf('cosi')}/cosi.sock`]);
    expect(connector.ports).toEqual([{ name: 'http', containerPort: settings.TRIVET_CONNECTOR_LISTEN.port }]);
    expect(folderOf('home')).toBe(/^ENV TRIVET_HOME=(.+)$/m.exec(read('deploy/docker/Dockerfile'))?.[1]);
    const [secret] = of('Secret');
    expect(settings.TRIVET_JOIN_TOKEN_FILE).toBe(`${folderOf('join')}/${Object.keys(secret.stringData)[0]}`);
    const mounted = pod.volumes.flatMap(({ secret: from }) => from ?? []);
    expect(mounted.map(({ secretName }) => secretName)).toEqual([secret.metadata.name]);
    expect(new Set(connector.volumeMounts.map(({ name }) => name))).toEqual(
      new Set(pod.volumes.map(({ name }) => name)),
    );
    // Of one key there is one volume.
    expect(deployment.spec).toMatchObject({ replicas: 1, strategy: { type: 'Recreate' } });
    const claimed = pod.volumes.find(({ name }) => name === 'home');
    expect(claimed).toMatchObject({
      persistentVolumeClaim: { claimName: of('PersistentVolumeClaim')[0].metadata.name },
    });
  });

  it('have an image that starts a connector by its flags, with more heap for one with sessions', () => {
    const flags = (env: Record<string, string>) =>
      entrypoint(folder, ['connector'], env)
        .stdout.trim()
        .split(' ')
        .filter(word => word.startsWith('--'));
    expect(flags({})).toEqual([...CONNECTOR_FLAGS]);
    expect(flags({ TRIVET_KUBERNETES: 'in-cluster' })).toEqual([...SESSION_CONNECTOR_FLAGS]);
    const environment = Object.entries(CONNECTOR_ENVIRONMENT).map(entry => `${entry.join('=')}\n`);
    expect(entrypoint(folder, ['connector']).stderr).toBe(environment.join(''));
  });

  it.each(['gateway', 'worker', 'migrate'])('%s gets settings that it accepts, and only the secrets it reads', role => {
    const pod = podOf(role);
    const container = pod.containers[0]!;
    expect(container.image).toBe(`trivet:${version}`);
    expect(container.args).toEqual([role]);
    const own = Object.fromEntries(container.env.map(({ name, value }) => [name, value!]));
    const settings = accepted(role, { ...config.data, ...own });
    const listen = role === 'gateway' ? settings.TRIVET_HTTP_LISTEN : settings.TRIVET_WORKER_METRICS_LISTEN;
    if (role !== 'migrate') expect(container.ports).toContainEqual({ name: 'http', containerPort: listen.port });
    expect(container.ports ?? []).toHaveLength({ gateway: 2, worker: 1, migrate: 0 }[role]!);
    const given = pod.volumes.flatMap(volume => {
      const folder = container.volumeMounts.find(mount => mount.name === volume.name)!.mountPath;
      return secretsIn(volume).flatMap(({ items }) => items.map(({ path }) => join(folder, path)));
    });
    const used = Object.entries(own).filter(([name]) => name.endsWith('_FILE'));
    expect(given.sort()).toEqual(used.map(([, path]) => path).sort());
    for (const secret of pod.volumes.flatMap(secretsIn)) {
      expect(secret.defaultMode & 0o037).toBe(0);
      if (secret.secretName === 'trivet') for (const { key } of secret.items) expect(secretKeys).toContain(key);
    }
  });

  it('let workers work for the node that they are on, whatever their pods are called', () => {
    const fields = podOf('worker').containers[0]!.env.flatMap(({ name, valueFrom }) =>
      valueFrom ? [[name, valueFrom.fieldRef.fieldPath]] : [],
    );
    expect(fields).toEqual([['TRIVET_HOST', 'spec.nodeName']]);
    const env = { TRIVET_HOST: 'ip-10-0-0-1.eu-central-1.compute.internal' };
    expect(loadConfig([], env)).toMatchObject(env);
  });

  it('lead readers of changed blocks to the TLS door of any pod, by the name that sessions give them', () => {
    const [, service] = documents('service.yaml');
    expect(documents('gateway.yaml')[0].spec.template.metadata.labels).toMatchObject(service.spec.selector);
    const [{ port, targetPort }] = service.spec.ports as [{ port: number; targetPort: string }];
    const gateway = podOf('gateway').containers[0]!;
    const own = Object.fromEntries(gateway.env.map(({ name, value }) => [name, value!]));
    const settings = accepted('gateway', { ...config.data, ...own });
    expect(settings.TRIVET_CBT_LISTEN).toEqual({ host: '0.0.0.0', port });
    expect(gateway.ports).toContainEqual({ name: targetPort, containerPort: port });
    expect(settings.TRIVET_CBT_PUBLIC_ADDRESS).toBe(`${service.metadata.name}.${namespace}.svc:${port}`);
  });

  /** A command of deploy/README.md, its continued lines joined. */
  const documented = (start: string) =>
    read('deploy/README.md')
      .replaceAll(/\\\n\s+/g, '')
      .split('\n')
      .find(line => line.startsWith(`    ${start}`))!
      .trim();

  it('mount the Secret of the certificate as deploy/README.md makes it', () => {
    const secrets = podOf('gateway').volumes.flatMap(secretsIn);
    const mounted = secrets.find(({ secretName }) => secretName !== 'trivet')!;
    const command = documented('kubectl --namespace trivet create secret');
    expect(command.split(' ')).toContain(mounted.secretName);
    const made = [...command.matchAll(/--from-file=([^= ]+)/g)].map(([, key]) => key);
    expect(made).toEqual(mounted.items.map(({ key }) => key));
  });

  const openssl = spawnSync('openssl', ['version']);
  it.runIf(openssl.status === 0)('have a certificate for that name, as deploy/README.md makes it', () => {
    const [program, ...args] = documented('openssl req').split(' ') as [string, ...string[]];
    const made = spawnSync(program, args, { cwd: folder, encoding: 'utf8' });
    expect(made.status, made.stderr).toBe(0);
    const [cert, key] = ['tls.crt', 'tls.key'].map(name => readFileSync(join(folder, name), 'utf8'));
    createSecureContext({ cert, key });
    const address = podOf('gateway').containers[0]!.env.find(({ name }) => name === 'TRIVET_CBT_PUBLIC_ADDRESS')!
      .value!;
    const host = address.split(':')[0]!;
    expect(new X509Certificate(cert!).checkHost(host)).toBe(host);
  });

  it.each(['gateway', 'worker', 'migrate'])('%s runs without rights, and mounts what it declares', role => {
    const pod = podOf(role);
    expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 10001, fsGroup: 10001 });
    const mounted = new Set(pod.containers.flatMap(container => container.volumeMounts.map(({ name }) => name)));
    expect(mounted).toEqual(new Set(pod.volumes.map(({ name }) => name)));
    for (const { securityContext, image } of pod.containers) {
      expect(securityContext).toMatchObject({ readOnlyRootFilesystem: true, allowPrivilegeEscalation: false });
      expect(image).toMatch(/:v?\d+\.\d+\.\d+$/);
    }
    if (role !== 'migrate') expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(GRACE_SECONDS);
  });

  it('puts the stock sidecar beside the gateway, on the same socket, with the mismatch code that it survives', () => {
    const pod = podOf('gateway');
    const [gateway, sidecar] = pod.containers as [Container, Container];
    const socket = gateway.env.find(({ name }) => name === 'COSI_ENDPOINT')!.value!;
    expect(sidecar.image).toMatch(/^registry\.k8s\.io\/sig-storage\/objectstorage-sidecar:v0\.2\./);
    expect(sidecar.args).toContain(`--driver-addr=${socket}`);
    const mount = (container: Container) => container.volumeMounts.find(({ name }) => name === 'cosi')!.mountPath;
    expect(mount(sidecar)).toBe(mount(gateway));
    expect(socket.startsWith(`unix://${mount(gateway)}/`)).toBe(true);
    expect(pod.volumes.find(({ name }) => name === 'cosi')).toEqual({ name: 'cosi', emptyDir: {} });
    expect(gateway.env).toContainEqual({ name: 'TRIVET_COSI_GRANT_MISMATCH', value: 'invalid_argument' });
    expect(sidecar.volumeMounts.map(({ name }) => name)).toEqual(['cosi']);
  });
});

/** Names of the series of histograms are those of their metric. */
const metricsIn = (expr: string): string[] =>
  [...expr.matchAll(/\b((?:trivet|nodejs|process)_\w+)/g)].map(([, name]) => name!.replace(/_(bucket|sum|count)$/, ''));

describe('alert rules', () => {
  interface Rule {
    alert: string;
    expr: string;
    labels: { severity: string };
    annotations: { summary: string; description: string };
  }
  const { groups } = parse(read('deploy/prometheus/alerts.yaml')) as { groups: { rules: Rule[] }[] };
  const rules = groups.flatMap(group => group.rules);

  it('each have an entry in the runbook', () => {
    const titles = [...read('docs/runbook.md').matchAll(/^## (.+)$/gm)].flatMap(([, title]) => title!.split(', '));
    for (const { alert } of rules) expect(titles).toContain(alert);
  });

  it('are there for all that stands still', () => {
    const watched = new Set(rules.flatMap(({ expr }) => metricsIn(expr)));
    for (const name of [
      'trivet_operations_needs_attention',
      'trivet_operations_waiting_for_backend',
      'trivet_oldest_pending_seconds',
      'trivet_queues_paused',
      'trivet_workers',
      'trivet_storage_hosts',
      'trivet_clusters',
      'trivet_pools',
      'trivet_ready',
    ])
      expect(watched).toContain(name);
  });

  it.each(rules.map(rule => [rule.alert, rule] as const))(
    '%s is about metrics and labels that exist',
    async (_, rule) => {
      startProcessMetrics('test', version);
      const metrics = await registry.getMetricsAsJSON();
      const known = new Map(metrics.map(metric => [metric.name, metric]));
      const names = metricsIn(rule.expr);
      expect(names.length).toBeGreaterThan(0);
      for (const name of names) expect(known.has(name), name).toBe(true);
      const labels = (registry.getSingleMetric(names[0]!) as unknown as { labelNames?: string[] } | undefined)
        ?.labelNames;
      const grouped = [...rule.expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list]) => list!.split(/,\s*/));
      for (const label of grouped) expect(['instance', 'le', ...(labels ?? [])]).toContain(label);
      expect(['page', 'ticket']).toContain(rule.labels.severity);
      expect(rule.annotations.description.length).toBeGreaterThan(20);
    },
  );
});

describe('the dashboard of Grafana', () => {
  interface Panel {
    title: string;
    type: string;
    description?: string;
    targets?: { expr: string; legendFormat: string }[];
  }
  const { panels } = JSON.parse(read('deploy/grafana/trivet.json')) as { panels: Panel[] };
  const drawn = panels.filter(({ type }) => type !== 'row');

  it.each(drawn.map(panel => [panel.title, panel] as const))(
    '%s is about metrics and labels that exist',
    (_, panel) => {
      startProcessMetrics('test', version);
      for (const { expr, legendFormat } of panel.targets ?? []) {
        const names = metricsIn(expr);
        expect(names.length).toBeGreaterThan(0);
        const labels = new Set(['instance', 'le']);
        for (const name of names) {
          const metric = registry.getSingleMetric(name) as unknown as { labelNames?: string[] } | undefined;
          expect(metric, name).toBeDefined();
          for (const label of metric?.labelNames ?? []) labels.add(label);
        }
        const grouped = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list]) => list!.split(/,\s*/));
        const matched = [...expr.matchAll(/(\w+)(?:=~|!~|!=|=)"/g)].map(([, label]) => label!);
        const legends = [...legendFormat.matchAll(/{{(\w+)}}/g)].map(([, label]) => label!);
        for (const label of [...grouped, ...matched, ...legends]) expect([...labels], panel.title).toContain(label);
      }
    },
  );

  it('shows every metric of Trivet that there is', () => {
    const shown = new Set(drawn.flatMap(({ targets = [] }) => targets.flatMap(({ expr }) => metricsIn(expr))));
    const all = registry
      .getMetricsAsArray()
      .map(({ name }) => name)
      .filter(name => name.startsWith('trivet_'));
    expect(all.filter(name => !shown.has(name))).toEqual([]);
  });

  it('names alerts that there are', () => {
    const alerts = read('deploy/prometheus/alerts.yaml');
    const named = drawn.flatMap(({ description = '' }) => description.match(/Trivet[A-Z]\w+/g) ?? []);
    expect(named.length).toBeGreaterThan(5);
    for (const name of named) expect(alerts).toContain(`- alert: ${name}\n`);
  });
});
