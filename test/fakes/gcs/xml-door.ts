/** Cloud Storage's XML API, which is S3 for the holders of HMAC keys: signatures are verified, rights are enforced. */
import { randomUUID } from 'node:crypto';
import { type Bucket, type GcsProject, type HmacKey, Refusal } from '#test/fakes/gcs/gcs-project';
import { type S3Request, signatureOf } from '#test/fakes/s3-signature';

interface Answer {
  status: number;
  text: string | Buffer;
}

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

function whoSigned(project: GcsProject, request: S3Request): HmacKey {
  const { keyId, isRight } = signatureOf(request, id => project.knownKey(id)?.secret);
  if (keyId === undefined) throw new Refusal(401, 'AuthenticationRequired', 'Authentication required.');
  const key = project.knownKey(keyId);
  if (key?.state !== 'ACTIVE' || !isRight) throw new Refusal(403, 'SignatureDoesNotMatch', 'Access denied.');
  return key;
}

/** @param isTrivet it came with a token of Trivet's own account */
export function answerXml(project: GcsProject, request: S3Request, isTrivet: boolean): Answer {
  try {
    const key = isTrivet ? undefined : whoSigned(project, request);
    const [, name = '', ...rest] = request.url.pathname.split('/').map(decodeURIComponent);
    const bucket = project.buckets.get(name);
    if (!bucket) throw new Refusal(404, 'NoSuchBucket', 'The specified bucket does not exist.');
    const may = (right: string) => {
      if (key && !project.may(key.email, bucket, right)) throw new Refusal(403, 'AccessDenied', 'Access denied.');
    };
    const object = rest.join('/');
    return object === '' ? onBucket(bucket, request, may) : onObject(project, bucket, object, request, may);
  } catch (error) {
    const { status, reason, message } =
      error instanceof Refusal ? error : new Refusal(500, 'InternalError', `${error}`);
    return { status, text: `<Error><Code>${reason}</Code><Message>${escaped(message)}</Message></Error>` };
  } finally {
    if (!isTrivet) project.asked();
  }
}

type May = (right: string) => void;

function onBucket(bucket: Bucket, { method, url }: S3Request, may: May): Answer {
  const query = url.searchParams;
  if (method !== 'GET') throw new Refusal(501, 'NotImplemented');
  if (query.has('uploads')) {
    may('storage.multipartUploads.list');
    const rows = [...bucket.uploads].map(
      ([id, key]) => `<Upload><Key>${encodeURIComponent(key)}</Key><UploadId>${id}</UploadId></Upload>`,
    );
    return { status: 200, text: `<ListMultipartUploadsResult>${rows.join('')}</ListMultipartUploadsResult>` };
  }
  may('storage.objects.list');
  const keys = [...bucket.objects].filter(([, all]) => all.some(({ isLive }) => isLive)).map(([key]) => key);
  const rows = keys.map(key => `<Contents><Key>${escaped(key)}</Key></Contents>`);
  return { status: 200, text: `<ListBucketResult><IsTruncated>false</IsTruncated>${rows.join('')}</ListBucketResult>` };
}

function onObject(
  project: GcsProject,
  bucket: Bucket,
  key: string,
  { method, url, body }: S3Request,
  may: May,
): Answer {
  const live = bucket.objects.get(key)?.find(({ isLive }) => isLive);
  switch (method) {
    case 'PUT':
      may('storage.objects.create');
      // Who replaces an object deletes it.
      if (live) may('storage.objects.delete');
      project.put(bucket, key, body);
      return { status: 200, text: '' };
    case 'POST': {
      may('storage.multipartUploads.create');
      const id = randomUUID();
      bucket.uploads.set(id, key);
      const text = `<InitiateMultipartUploadResult><UploadId>${id}</UploadId></InitiateMultipartUploadResult>`;
      return { status: 200, text };
    }
    case 'GET':
      may('storage.objects.get');
      if (!live) throw new Refusal(404, 'NoSuchKey', 'The specified key does not exist.');
      return { status: 200, text: live.body };
    case 'DELETE': {
      const upload = url.searchParams.get('uploadId');
      if (upload !== null) {
        may('storage.multipartUploads.abort');
        if (!bucket.uploads.delete(upload))
          throw new Refusal(404, 'NoSuchUpload', 'The requested upload was not found.');
        return { status: 204, text: '' };
      }
      may('storage.objects.delete');
      project.remove(bucket, key);
      return { status: 204, text: '' };
    }
    default:
      throw new Refusal(501, 'NotImplemented');
  }
}
