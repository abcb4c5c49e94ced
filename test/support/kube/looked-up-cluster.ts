import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Of each group and version, the kinds of the chart: kind, plural, whether it is in a namespace. */
const KINDS: Record<string, [kind: string, plural: string, namespaced?: false][]> = {
  v1: [
    ['Namespace', 'namespaces', false],
    ['Secret', 'secrets'],
    ['ConfigMap', 'configmaps'],
    ['Service', 'services'],
    ['ServiceAccount', 'serviceaccounts'],
    ['PersistentVolumeClaim', 'persistentvolumeclaims'],
    ['Pod', 'pods'],
  ],
  'apps/v1': [['Deployment', 'deployments']],
  'batch/v1': [['Job', 'jobs']],
  'policy/v1': [['PodDisruptionBudget', 'poddisruptionbudgets']],
  'rbac.authorization.k8s.io/v1': [
    ['ClusterRole', 'clusterroles', false],
    ['ClusterRoleBinding', 'clusterrolebindings', false],
    ['Role', 'roles'],
    ['RoleBinding', 'rolebindings'],
  ],
  'admissionregistration.k8s.io/v1': [
    ['MutatingWebhookConfiguration', 'mutatingwebhookconfigurations', false],
    ['ValidatingWebhookConfiguration', 'validatingwebhookconfigurations', false],
  ],
};

/** Helm changes nothing that is not of its release. */
const OF_RELEASE = {
  labels: { 'app.kubernetes.io/managed-by': 'Helm' },
  annotations: { 'meta.helm.sh/release-name': 'trivet', 'meta.helm.sh/release-namespace': 'trivet' },
};

/** A cluster that helm looks into while it renders: it has the Secrets that are put in here, and nothing is made in it. */
export class LookedUpCluster {
  /** By name, in any namespace. */
  readonly secrets = new Map<string, Record<string, string>>();
  private server: Server | undefined;

  async start(): Promise<void> {
    const server = createServer((request, reply) => {
      const found =
        request.method === 'GET' ? this.answer(new URL(request.url!, 'http://cluster').pathname) : undefined;
      const body = found ?? { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'NotFound', code: 404 };
      reply.writeHead(found ? 200 : 404, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    });
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
    this.server = server;
  }

  async stop(): Promise<void> {
    this.server?.closeAllConnections();
    await new Promise(resolve => this.server?.close(resolve));
  }

  get kubeconfig(): string {
    const name = 'looked-up';
    const server = `http://127.0.0.1:${(this.server!.address() as AddressInfo).port}`;
    return JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name, cluster: { server } }],
      users: [{ name, user: {} }],
      contexts: [{ name, context: { cluster: name, user: name } }],
      'current-context': name,
    });
  }

  private answer(path: string): object | undefined {
    if (path === '/version') return { major: '1', minor: '35', gitVersion: 'v1.35.0' };
    if (path === '/api') return { kind: 'APIVersions', versions: ['v1'] };
    if (path === '/apis') return { kind: 'APIGroupList', apiVersion: 'v1', groups: groups() };
    const listed = KINDS[path.replace(/^\/apis?\//, '')];
    if (listed) return resources(path.replace(/^\/apis?\//, ''), listed);
    // Every cluster has it.
    if (path === '/api/v1/namespaces/kube-system')
      return { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kube-system' } };
    const [, namespace, name] = /^\/api\/v1\/namespaces\/([^/]+)\/secrets\/([^/]+)$/.exec(path) ?? [];
    const data = this.secrets.get(name ?? '');
    return data && { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace, ...OF_RELEASE }, data };
  }
}

const groups = (): object[] =>
  Object.keys(KINDS)
    .filter(groupVersion => groupVersion.includes('/'))
    .map(groupVersion => {
      const [name, version] = groupVersion.split('/');
      return { name, versions: [{ groupVersion, version }], preferredVersion: { groupVersion, version } };
    });

const resources = (groupVersion: string, kinds: (typeof KINDS)[string]): object => ({
  kind: 'APIResourceList',
  apiVersion: 'v1',
  groupVersion,
  resources: kinds.map(([kind, name, namespaced = true]) => ({
    name,
    singularName: kind.toLowerCase(),
    namespaced,
    kind,
    verbs: ['get', 'list', 'create', 'update', 'patch', 'delete', 'watch'],
  })),
});
