import { randomUUID } from 'node:crypto';
import { Agent, request } from 'node:https';
import type { UserInfo } from '#test/support/kube/rbac';
import { type KubeObject, StatusError } from '#test/support/kube/stored-objects';

export interface AdmissionRequest {
  operation: 'CREATE' | 'UPDATE' | 'DELETE';
  group: string;
  version: string;
  resource: string;
  kind: string;
  namespace?: string | undefined;
  name?: string | undefined;
  user: UserInfo;
  object: KubeObject | null;
  old: KubeObject | null;
}

interface Webhook {
  name: string;
  clientConfig: {
    caBundle: string;
    url?: string;
    service?: { namespace: string; name: string; path?: string; port?: number };
  };
  rules: { operations: string[]; apiGroups: string[]; apiVersions: string[]; resources: string[] }[];
  failurePolicy: 'Fail' | 'Ignore';
  timeoutSeconds: number;
}

/** Where a Service leads to: its DNS name, and the real address. */
export type Resolve = (service: string, port: number) => { host: string; port: number };

/** Calls what WebhookConfigurations name, the mutating ones first. */
export class Admission {
  private readonly mutating: Webhook[] = [];
  private readonly validating: Webhook[] = [];
  private readonly agent = new Agent({ keepAlive: true });

  constructor(private readonly resolve: Resolve) {}

  /** Documents of other kinds count for nothing. `caBundle`: where they have none. */
  add(documents: readonly unknown[], caBundle = ''): void {
    for (const { kind, webhooks } of documents as { kind: string; webhooks: Webhook[] }[]) {
      const filled = (webhooks ?? []).map(webhook => ({
        ...webhook,
        clientConfig: { ...webhook.clientConfig, caBundle: webhook.clientConfig.caBundle || caBundle },
      }));
      if (kind === 'MutatingWebhookConfiguration') this.mutating.push(...filled);
      if (kind === 'ValidatingWebhookConfiguration') this.validating.push(...filled);
    }
  }

  /** As after a `kubectl delete`. */
  clear(): void {
    this.mutating.length = 0;
    this.validating.length = 0;
  }

  async mutate(asked: AdmissionRequest): Promise<KubeObject> {
    let object = asked.object!;
    for (const webhook of this.mutating.filter(each => matches(each, asked))) {
      const { patch } = await this.call(webhook, { ...asked, object });
      for (const step of patch ? (JSON.parse(Buffer.from(patch, 'base64').toString()) as Step[]) : [])
        object = patched(object, step);
    }
    return object;
  }

  async validate(asked: AdmissionRequest): Promise<void> {
    for (const webhook of this.validating.filter(each => matches(each, asked))) await this.call(webhook, asked);
  }

  private async call(webhook: Webhook, asked: AdmissionRequest): Promise<{ patch?: string }> {
    const { name, failurePolicy } = webhook;
    let response: { uid: string; allowed: boolean; status?: { message?: string; code?: number }; patch?: string };
    const uid = randomUUID();
    try {
      response = await this.post(webhook, reviewOf(asked, uid));
      if (response.uid !== uid) throw new Error('the answer is to another request');
    } catch (error) {
      if (failurePolicy === 'Ignore') return {};
      throw new StatusError(500, 'InternalError', `failed calling webhook "${name}": ${(error as Error).message}`);
    }
    const { allowed, status, patch } = response;
    if (!allowed)
      throw new StatusError(
        status?.code ?? 403,
        'Forbidden',
        `admission webhook "${name}" denied the request: ${status?.message}`,
      );
    return patch ? { patch } : {};
  }

  private post({ clientConfig, timeoutSeconds }: Webhook, review: object) {
    const { url, service, caBundle } = clientConfig;
    const servername = url ? new URL(url).hostname : `${service!.name}.${service!.namespace}.svc`;
    const at = url
      ? { host: servername, port: Number(new URL(url).port) }
      : this.resolve(servername, service!.port ?? 443);
    const path = url ? new URL(url).pathname : (service!.path ?? '/');
    return new Promise<{ uid: string; allowed: boolean }>((resolve, reject) => {
      const call = request(
        {
          ...at,
          path: `${path}?timeout=${timeoutSeconds}s`,
          method: 'POST',
          servername,
          agent: this.agent,
          ca: Buffer.from(caBundle, 'base64'),
          headers: { 'content-type': 'application/json' },
          signal: AbortSignal.timeout(timeoutSeconds * 1_000),
        },
        reply => {
          let text = '';
          reply.setEncoding('utf8').on('data', chunk => {
            text += chunk;
          });
          reply.on('end', () => {
            if (reply.statusCode !== 200) return reject(new Error(`status ${reply.statusCode}: ${text}`));
            try {
              resolve(JSON.parse(text).response);
            } catch (error) {
              reject(error);
            }
          });
        },
      );
      call.once('error', reject);
      call.end(JSON.stringify(review));
    });
  }
}

function matches({ rules }: Webhook, { operation, group, version, resource }: AdmissionRequest): boolean {
  const has = (list: string[], value: string) => list.includes('*') || list.includes(value);
  return rules.some(
    rule =>
      has(rule.operations, operation) &&
      has(rule.apiGroups, group) &&
      has(rule.apiVersions, version) &&
      has(rule.resources, resource),
  );
}

const reviewOf = (asked: AdmissionRequest, uid: string) => ({
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  request: {
    uid,
    kind: { group: asked.group, version: asked.version, kind: asked.kind },
    resource: { group: asked.group, version: asked.version, resource: asked.resource },
    ...(asked.namespace ? { namespace: asked.namespace } : {}),
    ...(asked.name ? { name: asked.name } : {}),
    operation: asked.operation,
    userInfo: asked.user,
    object: asked.object,
    oldObject: asked.old,
    dryRun: false,
  },
});

interface Step {
  op: string;
  path: string;
  value: unknown;
}

/** RFC 6902 as far as webhooks use it here: `add`, which also replaces. */
function patched(object: KubeObject, { op, path, value }: Step): KubeObject {
  if (op !== 'add') throw new Error(`a patch with ${op}`);
  const copy = structuredClone(object);
  const steps = path
    .slice(1)
    .split('/')
    .map(step => step.replaceAll('~1', '/').replaceAll('~0', '~'));
  let at = copy as unknown as Record<string, unknown>;
  for (const step of steps.slice(0, -1)) {
    if (typeof at[step] !== 'object') throw new Error(`a patch of ${path}, where ${step} is not`);
    at = at[step] as Record<string, unknown>;
  }
  at[steps.at(-1)!] = value;
  return copy;
}
