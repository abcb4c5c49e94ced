import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { gcsCredentials } from '#backends/gcs/gcs-config';
import { gcsKind } from '#backends/gcs/gcs-kind';
import { GoogleAuth } from '#backends/gcs/google-auth';
import { memberOf } from '#backends/gcs/workload-identity';

const { privateKey } = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
});
const file = (type: string) =>
  JSON.stringify({ type, client_email: 'trivet@p.iam.gserviceaccount.com', private_key: privateKey });
const soon = () => AbortSignal.timeout(5_000);

describe('the kind gcs', () => {
  it('takes names that Google gives to everybody', () => {
    for (const name of ['photos', 'bc-5b8c2d66-8a3a-4b3a-9b6e-4a6c0a1b2c3d'])
      expect(() => gcsKind.checkBucketName(name, 'name')).not.toThrow();
    for (const name of ['goog-photos', 'my-google-photos', 'g00gle', 'with.dots', 'Upper', 'ab'])
      expect(() => gcsKind.checkBucketName(name, 'name'), name).toThrow();
  });

  it('reads what a class may ask for, and says why it may not ask for the rest', () => {
    const kmsKey = 'projects/p/locations/europe/keyRings/r/cryptoKeys/k';
    expect(
      gcsKind.parseBucketParameters({ region: 'europe-west3', versioning: 'true', tags: 'team=blue', kmsKey }),
    ).toEqual({
      region: 'europe-west3',
      versioning: true,
      objectLock: false,
      tags: { team: 'blue' },
      deletePolicy: 'retain',
      encryption: 'SSE-KMS',
      kmsKey,
    });
    for (const parameters of [
      { quotaMaxSize: '1Gi' },
      { objectLock: 'true' },
      { placement: 'x' },
      { encryption: 'SSE-S3' },
      { kmsKey: 'arn:aws:kms:x' },
      { tags: 'Team=blue' },
      { tags: 'team=Blue' },
      { tags: '1=blue' },
    ])
      expect(() => gcsKind.parseBucketParameters(parameters as never), JSON.stringify(parameters)).toThrow(
        /parameters\[/,
      );
  });

  it('counts members of a policy, and none for who is revoked', () => {
    const counts = { read_write: 1, read_only: 2, write_only: 3, revoked: 4 };
    expect(gcsKind.policyBytes('photos', counts)).toBe(6);
  });

  it('knows where Google is, and tells users', () => {
    const config = gcsKind.parseConfig({ project: 'my-project', location: 'europe-west3' });
    expect(config).toMatchObject({ location: 'EUROPE-WEST3', endpoint: 'https://storage.googleapis.com' });
    expect(gcsKind.accessPoint(config)).toEqual({
      endpoint: 'https://storage.googleapis.com',
      region: 'auto',
      addressing: 'path',
      project: 'my-project',
    });
    for (const wrong of [{}, { project: 'UPPER' }, { project: 'my-project', softDeleteDays: 3 }])
      expect(() => gcsKind.parseConfig(wrong)).toThrow(/configuration of the gcs backend/);
  });

  it('lets service accounts of a cluster in by its pool, under names that Google and GKE give them', () => {
    const pool = 'projects/123456789012/locations/global/workloadIdentityPools/cluster-one';
    const account = { namespace: 'shop', name: 'uploader' };
    expect(memberOf(pool, account)).toBe(
      `principal://iam.googleapis.com/${pool}/subject/system:serviceaccount:shop:uploader`,
    );
    expect(memberOf('my-project.svc.id.goog', account)).toBe('serviceAccount:my-project.svc.id.goog[shop/uploader]');
    expect(() => memberOf(pool, { ...account, name: 'n'.repeat(120) })).toThrow(/longer than 127/);
    const config = { project: 'my-project' };
    for (const right of [pool, 'my-project.svc.id.goog'])
      expect(gcsKind.parseConfig({ ...config, workloadIdentityPool: right })).toMatchObject({
        workloadIdentityPool: right,
      });
    for (const wrong of [
      'cluster-one',
      `${pool}/subject/x`,
      `${pool}/*`,
      'projects/p/locations/global/workloadIdentityPools/one',
    ])
      expect(() => gcsKind.parseConfig({ ...config, workloadIdentityPool: wrong }), wrong).toThrow(
        /workloadIdentityPool/,
      );
    const { serviceAccounts } = gcsKind.accessPoint(gcsKind.parseConfig({ ...config, workloadIdentityPool: pool }));
    expect(serviceAccounts?.protocol).toBe('gcs');
    expect(serviceAccounts?.nameOf('trivet-sa-one')).toMatch(
      /^trivet-[0-9a-f]{23}@my-project\.iam\.gserviceaccount\.com$/,
    );
  });

  it('takes a key of a service account alone: other files name addresses to call and programs to run', () => {
    expect(gcsCredentials.safeParse({ serviceAccountKey: file('service_account') }).success).toBe(true);
    expect(gcsCredentials.safeParse({}).success).toBe(true);
    for (const serviceAccountKey of [file('external_account'), file('authorized_user'), '{}', 'key'])
      expect(gcsCredentials.safeParse({ serviceAccountKey }).success).toBe(false);
  });
});

describe('who Trivet is at Google', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'gcs-'));
  });
  afterEach(() => {
    vi.unstubAllEnvs();
    rmSync(folder, { recursive: true });
  });

  it('is told by a token that its key signed, without asking anybody', async () => {
    const headers = await new GoogleAuth({ serviceAccountKey: file('service_account') }, 'my-project').headers(soon());
    const [, claims = ''] = headers.authorization!.replace('Bearer ', '').split('.');
    expect(JSON.parse(Buffer.from(claims, 'base64url').toString())).toMatchObject({
      iss: 'trivet@p.iam.gserviceaccount.com',
      scope: 'https://www.googleapis.com/auth/cloud-platform',
    });
  });

  it('is what the process is, by workload identity, where it was given no key', async () => {
    const asked: string[] = [];
    const sts = createServer(async (message, response) => {
      asked.push(await text(message));
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ access_token: 'federated', token_type: 'Bearer', expires_in: 3_600 }));
    });
    await new Promise<void>(resolve => sts.listen(0, '127.0.0.1', resolve));
    const token = join(folder, 'token');
    writeFileSync(token, 'of the cluster');
    const credentials = join(folder, 'credentials.json');
    writeFileSync(
      credentials,
      JSON.stringify({
        type: 'external_account',
        audience: '//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/k',
        subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
        token_url: `http://127.0.0.1:${(sts.address() as AddressInfo).port}/token`,
        credential_source: { file: token },
      }),
    );
    vi.stubEnv('GOOGLE_APPLICATION_CREDENTIALS', credentials);
    try {
      const auth = new GoogleAuth({}, 'my-project');
      for (let n = 0; n < 2; n++) expect((await auth.headers(soon())).authorization).toBe('Bearer federated');
      expect(asked).toHaveLength(1);
      expect(decodeURIComponent(asked[0]!.replaceAll('+', ' '))).toContain('of the cluster');
    } finally {
      sts.closeAllConnections();
      await new Promise(resolve => sts.close(resolve));
    }
  });

  it('is nobody where there is nothing, and ends with the call', async () => {
    vi.stubEnv('GOOGLE_APPLICATION_CREDENTIALS', join(folder, 'none'));
    const auth = new GoogleAuth({}, 'my-project');
    await expect(auth.headers(soon())).rejects.toMatchObject({ status: 401, code: 'NoGoogleCredentials' });
    const aborted = AbortSignal.abort(new Error('over'));
    await expect(auth.headers(aborted)).rejects.toThrow('over');
  });
});
