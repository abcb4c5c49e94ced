import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { loadConfig } from '#platform/config/config';
import { PACKAGE_ROOT } from '#platform/package-root';

/** deploy/kubernetes/snapshot-sessions: that its parts name each other as they are. What they do is tested with a stand-in for an API server. */
const FOLDER = join(PACKAGE_ROOT, 'deploy', 'kubernetes', 'snapshot-sessions');
const read = (name: string) => readFileSync(join(FOLDER, name), 'utf8');
// biome-ignore lint/suspicious/noExplicitAny: YAML
const documents = (name: string): any[] => parseAllDocuments(read(name)).map(document => document.toJS());
const { namespace, resources } = parse(read('kustomization.yaml')) as { namespace: string; resources: string[] };
const deployment = documents('connector.yaml').find(({ kind }) => kind === 'Deployment');
const pod = deployment.spec.template.spec;
const [container] = pod.containers;
const env: Record<string, string> = Object.fromEntries(
  container.env.map(({ name, value }: { name: string; value: string }) => [name, value]),
);
const [webhookService, sidecarService] = documents('service.yaml');
const config = loadConfig(['TRIVET_GATEWAYS', 'TRIVET_CONNECTOR_SOCKETS'], env);
const portOf = (name: string) => container.ports.find((port: { name: string }) => port.name === name).containerPort;

describe('manifests of snapshot sessions', () => {
  it('are all listed, but for the example', () => {
    expect(
      readdirSync(FOLDER)
        .filter(file => file !== 'kustomization.yaml' && !file.endsWith('.example.yaml'))
        .sort(),
    ).toEqual([...resources].sort());
    expect(documents('namespace.yaml')[0].metadata.name).toBe(namespace);
  });

  it('run one connector with settings that it accepts', () => {
    const { version } = JSON.parse(readFileSync(join(PACKAGE_ROOT, 'package.json'), 'utf8'));
    expect(deployment.spec).toMatchObject({ replicas: 1, strategy: { type: 'Recreate' } });
    expect(container).toMatchObject({ image: `trivet:${version}`, args: ['connector'] });
    expect(config.TRIVET_KUBERNETES).toBe('in-cluster');
    expect(config.TRIVET_CONNECTOR_SOCKETS.map(({ endpoint }) => endpoint)).toContain(config.TRIVET_SESSION_ENDPOINT);
    expect(config.TRIVET_CONNECTOR_LISTEN.port).toBe(portOf('http'));
    const given = pod.volumes.flatMap(({ name, secret }: { name: string; secret?: { items: { path: string }[] } }) => {
      const mount = container.volumeMounts.find((each: { name: string }) => each.name === name);
      return (secret?.items ?? []).map(({ path }) => join(mount.mountPath, path));
    });
    const used = Object.entries(env).filter(([name]) => name.endsWith('_FILE'));
    expect(given.sort()).toEqual(used.map(([, path]) => path).sort());
  });

  it('lead the API server and backup software to it', () => {
    const { labels } = deployment.spec.template.metadata;
    for (const service of [webhookService, sidecarService]) expect(labels).toMatchObject(service.spec.selector);
    expect(config.TRIVET_SESSION_WEBHOOK_LISTEN).toMatchObject({
      port: portOf(webhookService.spec.ports[0].targetPort),
    });
    expect(config.TRIVET_CBT_LISTEN).toMatchObject({ port: portOf(sidecarService.spec.ports[0].targetPort) });
    const { name } = sidecarService.metadata;
    expect(config.TRIVET_CBT_PUBLIC_ADDRESS).toBe(`${name}.${namespace}.svc:${sidecarService.spec.ports[0].port}`);
    for (const { webhooks } of documents('webhooks.yaml'))
      expect(webhooks).toEqual([
        expect.objectContaining({
          failurePolicy: 'Fail',
          sideEffects: 'None',
          clientConfig: expect.objectContaining({
            service: expect.objectContaining({
              namespace,
              name: webhookService.metadata.name,
              port: webhookService.spec.ports[0].port,
            }),
          }),
        }),
      ]);
  });

  it('lead to it also while no gateway is ready: requests wait with a reason, and are not refused', () => {
    expect(container.readinessProbe.httpGet.path).toBe('/readyz');
    // Ready without a gateway (test/clusters/connector.spec.ts); one that starts or has ended is asked nothing.
    for (const { spec } of [webhookService, sidecarService]) expect(spec.publishNotReadyAddresses).toBeUndefined();
  });

  it('have an example of a policy that lets one address reach the webhook, and backup software the sidecar', () => {
    const [policy] = documents('network-policy.example.yaml');
    expect(policy.metadata.namespace).toBe(namespace);
    expect(deployment.spec.template.metadata.labels).toMatchObject(policy.spec.podSelector.matchLabels);
    const open: { from?: object[]; ports: { port: string }[] }[] = policy.spec.ingress;
    const ports = open.flatMap(rule => rule.ports.map(({ port }) => port));
    expect(ports.sort()).toEqual(container.ports.map(({ name }: { name: string }) => name).sort());
    const ofWebhook = open.find(rule =>
      rule.ports.some(({ port }) => port === webhookService.spec.ports[0].targetPort),
    );
    expect(ofWebhook!.from).toEqual([{ ipBlock: { cidr: expect.stringMatching(/\/32$/) } }]);
  });

  it('give nobody but the connector a right to session data', () => {
    const all = documents('rbac.yaml');
    const roles = all.filter(({ rules }) => JSON.stringify(rules ?? []).match(/snapshotsessiondatas|"\*"/));
    expect(roles.map(({ metadata }) => metadata.name)).toEqual(['trivet-session-manager']);
    const bindings = all.filter(({ roleRef }) => roleRef);
    for (const { subjects } of bindings)
      expect(subjects).toEqual([{ kind: 'ServiceAccount', name: pod.serviceAccountName, namespace }]);
  });
});
