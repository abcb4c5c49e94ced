/** Whose signature a request of S3 bears, as a store looks at it (version 4, in the header). */
import { createHash, createHmac } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

export interface S3Request {
  method: string;
  url: URL;
  /** As it was sent: what is signed. */
  path: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

const GIVEN =
  /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, ?SignedHeaders=([^,]+), ?Signature=(\w+)$/;

const sha256 = (text: string | Buffer): string => createHash('sha256').update(text).digest('hex');
const hmac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest();
const encode = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, one => `%${one.charCodeAt(0).toString(16).toUpperCase()}`);

/**
 * The id that the request names, none without a signature; and whether the signature is that of its secret and the body what was
 * signed (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html).
 */
export function signatureOf(
  { method, url, path, headers, body }: S3Request,
  secretOf: (keyId: string) => string | undefined,
): { keyId?: string; isRight: boolean } {
  const match = GIVEN.exec(headers.authorization ?? '');
  if (!match) return { isRight: false };
  const [, keyId, day, region, names, signature] = match as unknown as [string, string, string, string, string, string];
  const hash = String(headers['x-amz-content-sha256']);
  const query = [...url.searchParams]
    .map(([name, value]) => `${encode(name)}=${encode(value)}`)
    .sort()
    .join('&');
  const lines = names.split(';').map(name => `${name}:${String(headers[name]).trim()}\n`);
  const canonical = [method, path, query, lines.join(''), names, hash].join('\n');
  const scope = `${day}/${region}/s3/aws4_request`;
  const text = ['AWS4-HMAC-SHA256', headers['x-amz-date'], scope, sha256(canonical)].join('\n');
  const secret = secretOf(keyId) ?? '';
  const signing = [region, 's3', 'aws4_request'].reduce(hmac, hmac(`AWS4${secret}`, day));
  const isBody = hash === 'UNSIGNED-PAYLOAD' || hash === sha256(body);
  return { keyId, isRight: isBody && hmac(signing, text).toString('hex') === signature };
}
