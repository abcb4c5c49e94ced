/** S3 of Garage, as far as Trivet and the holders of keys in the tests ask it: signatures are verified, rights are enforced. */
import { randomUUID } from 'node:crypto';
import { type Bucket, type GarageCluster, type Key, Refusal, type Rights } from '#test/fakes/garage/garage-cluster';
import { type S3Request, signatureOf } from '#test/fakes/s3-signature';

interface Answer {
  status: number;
  text: string | Buffer;
}

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
const unescaped = (text: string): string =>
  text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&quot;', '"').replaceAll('&amp;', '&');

function whoSigned(cluster: GarageCluster, request: S3Request): Key {
  const { keyId, isRight } = signatureOf(request, id => cluster.keys.get(id)?.secret);
  if (keyId === undefined) throw new Refusal(403, 'AccessDenied', 'Forbidden: no signature');
  const key = cluster.keys.get(keyId);
  if (!key) throw new Refusal(403, 'AccessDenied', `Forbidden: No such key: ${keyId}`);
  if (!isRight) throw new Refusal(403, 'AccessDenied', 'Forbidden: Invalid signature');
  return key;
}

export function answerS3(cluster: GarageCluster, request: S3Request): Answer {
  try {
    const key = whoSigned(cluster, request);
    const [, name = '', ...rest] = request.url.pathname.split('/').map(decodeURIComponent);
    if (name === '') return { status: 200, text: '<ListAllMyBucketsResult><Buckets/></ListAllMyBucketsResult>' };
    const bucket = cluster.bucketFor(key.id, name);
    if (!bucket) throw new Refusal(404, 'NoSuchBucket');
    const may = (right: keyof Rights) => {
      if (!bucket.rights.get(key.id)?.[right])
        throw new Refusal(403, 'AccessDenied', 'Forbidden: Operation is not allowed for this key.');
    };
    return rest.join('/') === '' ? onBucket(bucket, request, may) : onObject(bucket, rest.join('/'), request, may);
  } catch (error) {
    const { status, code, message } = error instanceof Refusal ? error : new Refusal(500, 'InternalError', `${error}`);
    return { status, text: `<Error><Code>${code}</Code><Message>${escaped(message)}</Message></Error>` };
  }
}

type May = (right: keyof Rights) => void;

function onBucket(bucket: Bucket, { method, url, body }: S3Request, may: May): Answer {
  const query = url.searchParams;
  if (method === 'POST' && query.has('delete')) {
    may('write');
    const keys = [...body.toString().matchAll(/<Key>([^<]*)<\/Key>/g)].map(([, key]) => unescaped(key!));
    for (const key of keys) bucket.objects.delete(key);
    return { status: 200, text: '<DeleteResult/>' };
  }
  if (method === 'HEAD') {
    may('read');
    return { status: 200, text: '' };
  }
  if (method !== 'GET') throw new Refusal(501, 'NotImplemented');
  if (query.has('uploads')) {
    may('read');
    const rows = [...bucket.uploads].map(
      ([id, key]) => `<Upload><Key>${escaped(key)}</Key><UploadId>${id}</UploadId></Upload>`,
    );
    return {
      status: 200,
      text: `<ListMultipartUploadsResult><IsTruncated>false</IsTruncated>${rows.join('')}</ListMultipartUploadsResult>`,
    };
  }
  if (query.get('list-type') !== '2') throw new Refusal(501, 'NotImplemented');
  may('read');
  const most = Number(query.get('max-keys') ?? 1_000);
  const keys = [...bucket.objects.keys()].sort();
  const written = (key: string) => (query.get('encoding-type') === 'url' ? encodeURIComponent(key) : escaped(key));
  const rows = keys.slice(0, most).map(key => `<Contents><Key>${written(key)}</Key></Contents>`);
  const encoding = query.get('encoding-type') === 'url' ? '<EncodingType>url</EncodingType>' : '';
  return {
    status: 200,
    text: `<ListBucketResult>${encoding}<IsTruncated>${keys.length > most}</IsTruncated>${rows.join('')}</ListBucketResult>`,
  };
}

function onObject(bucket: Bucket, key: string, { method, url, body }: S3Request, may: May): Answer {
  switch (method) {
    case 'PUT': {
      may('write');
      const { maxObjects } = bucket.quotas;
      if (maxObjects !== null && !bucket.objects.has(key) && bucket.objects.size >= maxObjects)
        throw new Refusal(403, 'AccessDenied', 'Forbidden: Object quota is reached');
      bucket.objects.set(key, body);
      return { status: 200, text: '' };
    }
    case 'POST': {
      if (!url.searchParams.has('uploads')) throw new Refusal(501, 'NotImplemented');
      may('write');
      const id = randomUUID();
      bucket.uploads.set(id, key);
      const text = `<InitiateMultipartUploadResult><UploadId>${id}</UploadId></InitiateMultipartUploadResult>`;
      return { status: 200, text };
    }
    case 'GET': {
      may('read');
      const found = bucket.objects.get(key);
      if (!found) throw new Refusal(404, 'NoSuchKey');
      return { status: 200, text: found };
    }
    case 'DELETE':
      may('write');
      bucket.objects.delete(key);
      return { status: 204, text: '' };
    default:
      throw new Refusal(501, 'NotImplemented');
  }
}
