import { type RequestOptions, request } from 'node:https';
import { KubeConfig } from '@kubernetes/client-node';
import type { KubeObject } from '#test/support/kube/stored-objects';

const MANAGER = 'trivet-test';
/** Of the API server itself. */
const ACCOUNT = /^system:serviceaccount:([^:]+):([^:]+)$/;

interface Webhooks extends KubeObject {
  webhooks: { clientConfig: { caBundle?: string; url?: string; service?: { path?: string } } }[];
}

/**
 * A kube-apiserver that is there, by the kubeconfig of an administrator (TRIVET_TEST_APISERVER). It must reach 127.0.0.1 here, where the
 * webhooks are. What tests leave there the next ones remove; nothing else is to be in it.
 */
export class RealApiServer {
  private readonly config = new KubeConfig();

  constructor(kubeconfig: string) {
    this.config.loadFromFile(kubeconfig);
  }

  /** As `kubectl apply --server-side`. Webhooks are called at this port of ours. */
  async apply(
    documents: readonly unknown[],
    { namespace, caBundle, webhookPort }: { namespace?: string; caBundle?: string; webhookPort?: number } = {},
  ): Promise<void> {
    for (const given of documents as KubeObject[]) {
      if (!given?.kind || given.kind === 'Kustomization') continue;
      const isPlaced = !/^(Cluster|Custom|Mutating|Validating|Namespace$)/.test(given.kind);
      const metadata = {
        ...given.metadata,
        ...(isPlaced && namespace ? { namespace: given.metadata.namespace ?? namespace } : {}),
      };
      const object = { ...withGroups(given), metadata } as KubeObject;
      if (/WebhookConfiguration$/.test(given.kind))
        for (const { clientConfig } of (object as Webhooks).webhooks) {
          clientConfig.url = `https://127.0.0.1:${webhookPort}${clientConfig.service!.path}`;
          clientConfig.caBundle = caBundle ?? '';
          delete clientConfig.service;
        }
      const query = `fieldManager=${MANAGER}&force=true`;
      await this.call('PATCH', `${pathOf(object)}?${query}`, object, 'application/apply-patch+yaml');
    }
  }

  /** Of the library's own calls those with schemas lose what their types do not name. */
  private async call(method: string, path: string, body: object, type = 'application/json'): Promise<KubeObject> {
    const { server } = this.config.getCurrentCluster()!;
    const options: RequestOptions = { method, headers: { 'content-type': type } };
    await this.config.applyToHTTPSOptions(options as never);
    return new Promise((resolve, reject) => {
      const asked = request(new URL(path, server), options, reply => {
        let text = '';
        reply.setEncoding('utf8').on('data', chunk => {
          text += chunk;
        });
        reply.on('end', () => {
          if (reply.statusCode! < 300) resolve(JSON.parse(text));
          else reject(new Error(`${method} ${path}: ${reply.statusCode} ${text}`));
        });
      });
      asked.once('error', reject);
      asked.end(JSON.stringify(body));
    });
  }

  /** Of this user: a service account comes with a token of its own, all others are impersonated. */
  async kubeconfig(user: string, namespace: string): Promise<string> {
    const cluster = this.config.getCurrentCluster()!;
    const own = this.config.getCurrentUser()!;
    const [, of, name] = ACCOUNT.exec(user) ?? [];
    const { certData, keyData, certFile, keyFile, token } = own;
    const credentials = {
      ...(token ? { token } : {}),
      ...(certData ? { 'client-certificate-data': certData } : {}),
      ...(keyData ? { 'client-key-data': keyData } : {}),
      ...(certFile ? { 'client-certificate': certFile } : {}),
      ...(keyFile ? { 'client-key': keyFile } : {}),
    };
    const shown = name
      ? { token: await this.token(of!, name) }
      : { ...credentials, ...(user === 'admin' ? {} : { as: user }) };
    const { server, caData, caFile, skipTLSVerify } = cluster;
    return JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [
        {
          name: 'real',
          cluster: {
            server,
            ...(caData ? { 'certificate-authority-data': caData } : {}),
            ...(caFile ? { 'certificate-authority': caFile } : {}),
            ...(skipTLSVerify ? { 'insecure-skip-tls-verify': true } : {}),
          },
        },
      ],
      users: [{ name: 'real', user: shown }],
      contexts: [{ name: 'real', context: { cluster: 'real', user: 'real', namespace } }],
      'current-context': 'real',
    });
  }

  async token(namespace: string, name: string, audiences: string[] = []): Promise<string> {
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { audiences } };
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`;
    const { status } = (await this.call('POST', path, body)) as { status?: { token?: string } };
    return status!.token!;
  }
}

function pathOf({ apiVersion, kind, metadata: { namespace, name } }: KubeObject): string {
  const root = apiVersion === 'v1' ? '/api/v1' : `/apis/${apiVersion}`;
  const plural = `${kind.toLowerCase()}s`;
  return `${root}${namespace ? `/namespaces/${namespace}` : ''}/${plural}/${name}`;
}

const RBAC = 'rbac.authorization.k8s.io';

/** What a kubectl fills in. */
function withGroups(given: KubeObject): KubeObject {
  const { kind, roleRef, subjects } = given as KubeObject & { roleRef?: object; subjects?: { kind: string }[] };
  const isRole = /Role(Binding)?$/.test(kind);
  const copy = structuredClone({ ...given, ...(isRole && !given.apiVersion ? { apiVersion: `${RBAC}/v1` } : {}) });
  if (!roleRef) return copy;
  return Object.assign(copy, {
    roleRef: { apiGroup: RBAC, ...roleRef },
    subjects: subjects?.map(subject => (subject.kind === 'ServiceAccount' ? subject : { apiGroup: RBAC, ...subject })),
  });
}
