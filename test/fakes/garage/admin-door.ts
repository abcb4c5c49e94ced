/** The admin API, version 2, as far as Trivet asks it. */
import { type Bucket, type GarageCluster, type Key, Refusal, type Rights } from '#test/fakes/garage/garage-cluster';

type Query = URLSearchParams;
// biome-ignore lint/suspicious/noExplicitAny: what a client sent
type Body = any;
type Operation = (cluster: GarageCluster, query: Query, body: Body) => unknown;

const NONE: Rights = { read: false, write: false, owner: false };
const aliasesOf = (bucket: Bucket, keyId: string): string[] =>
  [...bucket.localAliases].filter(one => one.startsWith(`${keyId}/`)).map(one => one.slice(keyId.length + 1));

function bucketInfo(cluster: GarageCluster, bucket: Bucket) {
  const relevant = new Set([...bucket.rights.keys(), ...[...bucket.localAliases].map(one => one.split('/')[0]!)]);
  return {
    id: bucket.id,
    created: new Date(0).toISOString(),
    globalAliases: [...bucket.globalAliases],
    websiteAccess: bucket.website,
    websiteConfig: null,
    keys: [...relevant].map(id => ({
      accessKeyId: id,
      name: cluster.key(id).name,
      permissions: bucket.rights.get(id) ?? NONE,
      bucketLocalAliases: aliasesOf(bucket, id),
    })),
    objects: bucket.objects.size,
    bytes: [...bucket.objects.values()].reduce((sum, { length }) => sum + length, 0),
    unfinishedUploads: bucket.uploads.size,
    unfinishedMultipartUploads: bucket.uploads.size,
    unfinishedMultipartUploadParts: 0,
    unfinishedMultipartUploadBytes: 0,
    quotas: bucket.quotas,
  };
}

function keyInfo(cluster: GarageCluster, { id, secret, name }: Key, showSecret: boolean) {
  const buckets = [...cluster.buckets.values()].filter(one => one.rights.has(id) || aliasesOf(one, id).length > 0);
  return {
    accessKeyId: id,
    name,
    expired: false,
    secretAccessKey: showSecret ? secret : null,
    permissions: { createBucket: false },
    buckets: buckets.map(bucket => ({
      id: bucket.id,
      globalAliases: [...bucket.globalAliases],
      localAliases: aliasesOf(bucket, id),
      permissions: bucket.rights.get(id) ?? NONE,
    })),
  };
}

const change =
  (value: boolean): Operation =>
  (cluster, _, { bucketId, accessKeyId, permissions }) => {
    const bucket = cluster.bucket(bucketId);
    cluster.allow(bucket, accessKeyId, permissions, value);
    return bucketInfo(cluster, bucket);
  };

const OPERATIONS: Readonly<Record<string, Operation>> = {
  'GET GetClusterHealth': () => ({ status: 'healthy', knownNodes: 1, connectedNodes: 1 }),
  'GET ListKeys': cluster =>
    [...cluster.keys.values()].slice(0, 10_000).map(({ id, name }) => ({ id, name, expired: false })),
  'GET GetKeyInfo': (cluster, query) =>
    keyInfo(cluster, cluster.key(query.get('id')!), query.get('showSecretKey') === 'true'),
  'POST CreateKey': (cluster, _, { name }) => keyInfo(cluster, cluster.createKey(name), true),
  'POST ImportKey': (cluster, _, { accessKeyId, secretAccessKey, name }) =>
    keyInfo(cluster, cluster.importKey(accessKeyId, secretAccessKey, name), false),
  'POST DeleteKey': (cluster, query) => {
    cluster.deleteKey(query.get('id')!);
    return null;
  },
  'GET GetBucketInfo': (cluster, query) => {
    const alias = query.get('globalAlias');
    const bucket = alias === null ? cluster.bucket(query.get('id')!) : cluster.bucketNamed(alias);
    if (!bucket) throw new Refusal(404, 'NoSuchBucket', `Bucket not found: ${alias}`);
    return bucketInfo(cluster, bucket);
  },
  'POST CreateBucket': (cluster, _, { globalAlias, localAlias }) =>
    bucketInfo(cluster, cluster.create(globalAlias, localAlias)),
  'POST DeleteBucket': (cluster, query) => {
    cluster.delete(query.get('id')!);
    return null;
  },
  'POST UpdateBucket': (cluster, query, { websiteAccess, quotas }) => {
    const bucket = cluster.bucket(query.get('id')!);
    if (websiteAccess) bucket.website = websiteAccess.enabled;
    if (quotas) bucket.quotas = { maxSize: quotas.maxSize ?? null, maxObjects: quotas.maxObjects ?? null };
    return bucketInfo(cluster, bucket);
  },
  'POST CleanupIncompleteUploads': (cluster, _, { bucketId }) => {
    const { uploads } = cluster.bucket(bucketId);
    const uploadsDeleted = uploads.size;
    uploads.clear();
    return { uploadsDeleted };
  },
  'POST AllowBucketKey': change(true),
  'POST DenyBucketKey': change(false),
  'POST AddBucketAlias': (cluster, _, { bucketId, globalAlias, localAlias, accessKeyId }) => {
    const bucket = cluster.bucket(bucketId);
    if (globalAlias === undefined) cluster.addLocalAlias(bucket, accessKeyId, localAlias);
    else cluster.addGlobalAlias(bucket, globalAlias);
    return bucketInfo(cluster, bucket);
  },
  'POST RemoveBucketAlias': (cluster, _, { bucketId, localAlias, accessKeyId }) => {
    const bucket = cluster.bucket(bucketId);
    bucket.localAliases.delete(`${accessKeyId}/${localAlias}`);
    return bucketInfo(cluster, bucket);
  },
};

export function answerAdmin(
  cluster: GarageCluster,
  token: string,
  request: { method: string; url: URL; authorization: string | undefined; body: Buffer },
): { status: number; text: string } {
  try {
    if (request.authorization === undefined)
      throw new Refusal(403, 'AccessDenied', 'Forbidden: Bearer token must be provided in Authorization header');
    if (request.authorization !== `Bearer ${token}`)
      throw new Refusal(403, 'AccessDenied', 'Forbidden: Invalid bearer token');
    const operation = OPERATIONS[`${request.method} ${request.url.pathname.replace(/^\/v2\//, '')}`];
    if (!operation) throw new Refusal(400, 'InvalidRequest', 'Unknown API endpoint');
    const body: Body = request.body.length === 0 ? {} : JSON.parse(request.body.toString());
    return { status: 200, text: JSON.stringify(operation(cluster, request.url.searchParams, body), null, 2) };
  } catch (error) {
    const { status, code, message } = error instanceof Refusal ? error : new Refusal(500, 'InternalError', `${error}`);
    return { status, text: JSON.stringify({ code, message, region: 'garage', path: request.url.pathname }) };
  }
}
