import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CreateBucketCommand, ListBucketsCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { AdminOps } from '#backends/rgw/admin-ops';
import { HttpTransport } from '#backends/s3/http-transport';
import { unleased } from '#platform/lease-signal';
import { programFile } from '#platform/package-root';
import { hashOfToken, newToken } from '#tenancy/credentials/secret-tokens';
import type { CosiSettings, CosiSetup, CosiTarget, StoreControl } from '#test/cosi/target';
import { TcpProxy } from '#test/deploy/tcp-proxy';
import { TestAppliance } from '#test/support/appliance';
import { parts } from '#test/support/parts';

const settingsEnv = ({ grantMismatch, accessModeNumbers }: CosiSettings): Record<string, string> => ({
  TRIVET_COSI_DRIVER_NAME: 'cosi.test.example',
  ...(grantMismatch ? { TRIVET_COSI_GRANT_MISMATCH: grantMismatch } : {}),
  ...(accessModeNumbers ? { TRIVET_COSI_ACCESS_MODE_NUMBERS: accessModeNumbers } : {}),
});

const openTarget = (appliance: TestAppliance, prefix: string, control: StoreControl): CosiTarget => ({
  socketPath: appliance.socketPath,
  driverName: 'cosi.test.example',
  prefix,
  control,
  close: () => appliance.close(),
});

/** A token of an administrator of the appliance. */
async function administratorOf({ database }: TestAppliance): Promise<string> {
  const [tenantId, userId, token] = [randomUUID(), randomUUID(), newToken()];
  const [tenant] = await database.query<{ id: string }>(
    `WITH made AS (INSERT INTO trivet.tenant (id, name) VALUES ($1, 'appliance') ON CONFLICT DO NOTHING RETURNING id)
     SELECT id FROM made UNION ALL SELECT id FROM trivet.tenant WHERE name = 'appliance'`,
    [tenantId],
  );
  const name = `importer-${userId}`;
  await database.query(
    "INSERT INTO trivet.tenant_user (tenant_id, id, name, password, role) VALUES ($1, $2, $3, 'none', 'admin')",
    [tenant!.id, userId, name],
  );
  await database.query(
    `INSERT INTO trivet.admin_token (tenant_id, id, user_id, kind, name, role, token_hash)
     VALUES ($1, $2, $2, 'token', 'importer', 'admin', $3)`,
    [tenant!.id, userId, hashOfToken(token)],
  );
  return token;
}

/** As an administrator would: by the command line, over the API. */
export async function importBucket(appliance: TestAppliance, name: string): Promise<void> {
  const entry = programFile('trivet');
  const tokenFile = join(appliance.folder, `importer-${randomUUID()}`);
  writeFileSync(tokenFile, await administratorOf(appliance), { mode: 0o600 });
  await promisify(execFile)(process.execPath, [entry, 'bucket', 'import', name], {
    env: { PATH: '/usr/bin:/bin', TRIVET_ADMIN_URL: appliance.cspUrl, TRIVET_ADMIN_TOKEN_FILE: tokenFile },
  });
}

/** Gateway and worker from dist on the fake store. */
export const openOnFake: CosiSetup = async (settings = {}) => {
  const appliance = await TestAppliance.start({ backend: 'fake', env: settingsEnv(settings) });
  const fake = appliance.fake!;
  const control: StoreControl = {
    makeForeignBucket: async name => fake.seedForeignBucket(name),
    registerBucket: async name => {
      fake.seedForeignBucket(name);
      await importBucket(appliance, name);
    },
    putObject: async name => fake.seedObjects(name, 1),
    buckets: async () => fake.buckets().map(({ name }) => name),
    accounts: async () => fake.principals().map(({ uid }) => uid),
    setDown: async down => {
      if (down) fake.addFault({ mode: 'fail-before', error: 'unavailable', count: 1_000_000 });
      else fake.clearFaults();
    },
  };
  return openTarget(appliance, 'ct', control);
};

/** Gateway and worker from dist on a real RGW, reached through a relay that can be cut. */
export const openOnRgw: CosiSetup = async (settings = {}) => {
  const rgw = parts().rgw!;
  const { hostname, port } = new URL(rgw.endpoint);
  const relay = await TcpProxy.to(hostname, Number(port));
  const endpoint = `http://127.0.0.1:${relay.port}`;
  const prefix = `ct${relay.port.toString(36)}`;
  const appliance = await TestAppliance.start({
    backend: 'rgw',
    env: { ...settingsEnv(settings), TRIVET_RGW_PUBLIC_ENDPOINT: rgw.endpoint },
    rgwEndpoint: endpoint,
  });
  const transport = new HttpTransport({ endpoint: rgw.endpoint, region: rgw.region, name: 'rgw', expiring: true });
  const keys = {
    accessKeyId: readFileSync(rgw.accessKeyFile, 'utf8').trim(),
    secretAccessKey: readFileSync(rgw.secretKeyFile, 'utf8').trim(),
  };
  const admin = new AdminOps(transport, keys);
  const never = unleased(AbortSignal.timeout(600_000));
  const clientOf = (credentials: typeof keys) =>
    new S3Client({
      endpoint: rgw.endpoint,
      region: rgw.region,
      forcePathStyle: true,
      credentials,
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
    });
  // The administrator's own buckets are foreign to the appliance.
  const foreign = clientOf(keys);
  const owners = new Set<string>();
  const asOwner = async (name: string) => {
    const bucket = await admin.getBucket(name, never);
    const user = await admin.getUser(bucket!.owner, never);
    owners.add(bucket!.owner);
    return clientOf({ accessKeyId: user!.keys[0]!.access_key, secretAccessKey: user!.keys[0]!.secret_key });
  };
  const control: StoreControl = {
    makeForeignBucket: async name => {
      await foreign.send(new CreateBucketCommand({ Bucket: name }));
    },
    registerBucket: async name => {
      await foreign.send(new CreateBucketCommand({ Bucket: name }));
      await importBucket(appliance, name);
    },
    putObject: async name => {
      await (await asOwner(name)).send(new PutObjectCommand({ Bucket: name, Key: 'object', Body: 'x' }));
    },
    buckets: async () => {
      const known = await appliance.database.query<{ name: string }>('SELECT DISTINCT name FROM trivet.bucket');
      const foreignOnes = (await foreign.send(new ListBucketsCommand({}))).Buckets ?? [];
      const names = new Set([...known.map(({ name }) => name), ...foreignOnes.map(({ Name }) => Name!)]);
      const there = await Promise.all(
        [...names]
          .filter(name => name.startsWith(prefix))
          .map(async name => [name, await admin.getBucket(name, never)]),
      );
      return there
        .filter(([, bucket]) => bucket !== undefined)
        .map(([name]) => name as string)
        .sort();
    },
    accounts: async () => {
      const known = await appliance.database.query<{ uid: string }>('SELECT account_id AS uid FROM trivet.access');
      const users = await Promise.all(
        known.map(async ({ uid }) => ((await admin.getUser(uid, never)) ? uid : undefined)),
      );
      return users.filter(uid => uid !== undefined).sort();
    },
    setDown: async down => (down ? relay.cut() : relay.mend()),
  };
  return {
    ...openTarget(appliance, prefix, control),
    close: async () => {
      await appliance.close();
      transport.close();
      await relay.close();
    },
  };
};
