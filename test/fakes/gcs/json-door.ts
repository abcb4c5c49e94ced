/** JSON of Cloud Storage, IAM and the Resource Manager, as far as Trivet asks it. Each request needs its right in the project. */
import { type Account, type Bucket, type GcsProject, type HmacKey, Refusal } from '#test/fakes/gcs/gcs-project';

export interface JsonRequest {
  method: string;
  /** Without the prefix of the API, its parts decoded. */
  parts: string[];
  query: URLSearchParams;
  // biome-ignore lint/suspicious/noExplicitAny: what a client sent
  body: any;
}

type Answer = object | undefined;

const shownBucket = (project: GcsProject, bucket: Bucket) => {
  const { objects, uploads, policy, isElsewhere, metageneration, ...shown } = bucket;
  return {
    kind: 'storage#bucket',
    id: bucket.name,
    projectNumber: '1',
    project: project.id,
    ...shown,
    metageneration: `${metageneration}`,
  };
};

const shownKey = ({ accessId, state, email }: HmacKey) => ({
  accessId,
  state,
  serviceAccountEmail: email,
  etag: state,
});

function requireGeneration(bucket: Bucket, query: URLSearchParams): void {
  const wanted = query.get('ifMetagenerationMatch');
  if (wanted !== null && wanted !== String(bucket.metageneration))
    throw new Refusal(412, 'conditionNotMet', 'At least one of the pre-conditions you specified did not hold.');
}

function requireRight(project: GcsProject, right: string): void {
  if (project.withheld.has(right))
    throw new Refusal(
      403,
      'forbidden',
      `trivet does not have ${right} access. Permission '${right}' denied on resource (or it may not exist).`,
    );
}

export function answerStorage(project: GcsProject, { method, parts, query, body }: JsonRequest): Answer {
  const [kind, name, sub, item] = parts;
  const may = (right: string) => requireRight(project, right);
  if (kind === 'projects' && sub === 'hmacKeys') return answerKeys(project, method, query, body, item, may);
  if (kind !== 'b') throw new Refusal(404, 'notFound');
  if (name === undefined) {
    if (query.get('project') !== project.id) throw new Refusal(403, 'forbidden', 'another project');
    if (method === 'GET') {
      may('storage.buckets.list');
      return { kind: 'storage#buckets', items: [...project.buckets.values()].map(one => shownBucket(project, one)) };
    }
    may('storage.buckets.create');
    return shownBucket(project, project.create(body));
  }
  const bucket = project.bucket(name);
  if (sub === 'iam') return answerPolicy(project, bucket, method, query, body, may);
  if (sub === 'o') return answerObjects(project, bucket, method, query, item, may);
  switch (method) {
    case 'GET':
      may('storage.buckets.get');
      return shownBucket(project, bucket);
    case 'PATCH': {
      may('storage.buckets.update');
      requireGeneration(bucket, query);
      const { labels = {}, ...others } = body;
      Object.assign(bucket, others);
      for (const [key, value] of Object.entries<string | null>(labels))
        if (value === null) delete bucket.labels[key];
        else bucket.labels[key] = value;
      bucket.metageneration++;
      return shownBucket(project, bucket);
    }
    case 'DELETE':
      may('storage.buckets.delete');
      requireGeneration(bucket, query);
      project.delete(bucket);
      return undefined;
    default:
      throw new Refusal(400, 'invalid', method);
  }
}

type May = (right: string) => void;

function answerPolicy(
  project: GcsProject,
  bucket: Bucket,
  method: string,
  query: URLSearchParams,
  body: Parameters<GcsProject['setPolicy']>[1],
  may: May,
): Answer {
  if (method === 'GET') {
    may('storage.buckets.getIamPolicy');
    // Whoever asks for less than version 3 hears of no conditions, and would write bindings without them.
    const isWhole = query.get('optionsRequestedPolicyVersion') === '3';
    const { etag, version, bindings } = bucket.policy;
    return {
      kind: 'storage#policy',
      etag,
      version,
      bindings: isWhole ? bindings : bindings.filter(one => !one.condition),
    };
  }
  may('storage.buckets.setIamPolicy');
  project.setPolicy(bucket, body);
  return bucket.policy;
}

function answerObjects(
  project: GcsProject,
  bucket: Bucket,
  method: string,
  query: URLSearchParams,
  key: string | undefined,
  may: May,
): Answer {
  if (method === 'DELETE') {
    may('storage.objects.delete');
    project.remove(bucket, key!, query.get('generation') ?? undefined);
    return undefined;
  }
  may('storage.objects.list');
  const all = [...bucket.objects].flatMap(([name, generations]) =>
    generations
      .filter(({ isLive }) => isLive || query.get('versions') === 'true')
      .map(({ generation, body }) => ({ name, generation, size: String(body.length) })),
  );
  const from = Number(query.get('pageToken') ?? 0);
  const to = from + Number(query.get('maxResults') ?? 1_000);
  return { items: all.slice(from, to), ...(to < all.length ? { nextPageToken: String(to) } : {}) };
}

function answerKeys(
  project: GcsProject,
  method: string,
  query: URLSearchParams,
  body: { state: HmacKey['state'] },
  accessId: string | undefined,
  may: May,
): Answer {
  const email = query.get('serviceAccountEmail') ?? '';
  switch (method) {
    case 'POST': {
      may('storage.hmacKeys.create');
      const key = project.createKey(email);
      return { kind: 'storage#hmacKey', metadata: shownKey(key), secret: key.secret };
    }
    case 'GET':
      may('storage.hmacKeys.list');
      return { kind: 'storage#hmacKeysMetadata', items: project.keysOf(email).map(shownKey) };
    case 'PUT':
      may('storage.hmacKeys.update');
      return shownKey(project.setKeyState(accessId!, body.state));
    default:
      may('storage.hmacKeys.delete');
      project.setKeyState(accessId!, 'DELETED');
      return undefined;
  }
}

const shownAccount = (project: GcsProject, { email, displayName, description }: Account) => ({
  name: `projects/${project.id}/serviceAccounts/${email}`,
  projectId: project.id,
  email,
  displayName,
  description,
});

/** One that says nothing has no bindings, and who asks for less than version 3 hears of no conditions. */
function shownPolicy({ policy: { etag, version, bindings } }: Account, isWhole: boolean): object {
  const shown = isWhole ? bindings : bindings.filter(({ condition }) => !condition);
  return { etag, version, ...(shown.length === 0 ? {} : { bindings: shown }) };
}

export function answerIam(project: GcsProject, { method, parts, query, body }: JsonRequest): Answer {
  const [, id, , named] = parts;
  const [email, verb] = named?.split(':') ?? [];
  if (id !== project.id) throw new Refusal(403, 'PERMISSION_DENIED', 'another project');
  const may = (right: string) => requireRight(project, right);
  if (verb !== undefined) {
    may(`iam.serviceAccounts.${verb}`);
    const account = project.account(email!);
    if (verb === 'setIamPolicy') project.setAccountPolicy(account, body.policy);
    return shownPolicy(account, verb === 'setIamPolicy' || query.get('options.requestedPolicyVersion') === '3');
  }
  if (method === 'POST') {
    may('iam.serviceAccounts.create');
    return shownAccount(project, project.createAccount(body.accountId, body.serviceAccount));
  }
  may(`iam.serviceAccounts.${method === 'DELETE' ? 'delete' : 'get'}`);
  if (email === undefined)
    return { accounts: [...project.accounts.values()].slice(0, 1).map(one => shownAccount(project, one)) };
  if (method === 'DELETE') {
    project.deleteAccount(email);
    return {};
  }
  return shownAccount(project, project.account(email));
}

export const answerResources = (project: GcsProject, { body }: JsonRequest): Answer => ({
  permissions: body.permissions.filter((right: string) => !project.withheld.has(right)),
});
