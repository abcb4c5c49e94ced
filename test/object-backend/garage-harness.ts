/** Looks at Garage by other means than the port: for the conformance suite and the tests of what keys open. */
import { randomUUID } from 'node:crypto';
import { PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import type { ObjectBackendHarness } from '#backends/conformance/object-world';
import { garageKind } from '#backends/garage/garage-kind';
import type { AccessMode, ObjectBackend } from '#backends/object-backend';
import { AdminCaller } from '#test/fakes/garage/admin-caller';
import { GarageProgram } from '#test/fakes/garage/garage-program';
import { GarageServer } from '#test/fakes/garage/garage-server';

/** What a backend of kind `garage` is registered by. */
export interface GarageParts {
  config: Record<string, string>;
  credentials: { adminToken: string; accessKeyId: string; secretAccessKey: string };
}

export interface GarageHarness extends ObjectBackendHarness {
  parts: GarageParts;
  admin: AdminCaller;
  /** The stand-in's memory; undefined where the program itself runs. */
  standIn: GarageServer['cluster'] | undefined;
  clientFor(keys: { accessKeyId: string; secretAccessKey: string }): S3Client;
  holdsBucket(name: string): Promise<boolean>;
}

interface KeyAt {
  accessKeyId: string;
  name: string;
  permissions: { read: boolean; write: boolean };
  bucketLocalAliases: string[];
}

const uidOf = (name: string): string => name.split(' of ')[0]!;

function modeOf({ read, write }: KeyAt['permissions']): AccessMode | undefined {
  if (read && write) return 'read_write';
  if (write) return 'write_only';
  return read ? 'read_only' : undefined;
}

export async function openGarageHarness(): Promise<GarageHarness> {
  const program = process.env.TRIVET_TEST_GARAGE;
  const garage = program ? await GarageProgram.start(program) : await GarageServer.start();
  const { adminEndpoint, endpoint, adminToken } = garage;
  const admin = new AdminCaller(garage);
  const newKey = async (name: string): Promise<{ accessKeyId: string; secretAccessKey: string }> => {
    const { accessKeyId, secretAccessKey } = await admin.post('CreateKey', { name });
    return { accessKeyId, secretAccessKey };
  };
  const ownKey = await newKey('trivet');
  const other = await newKey('somebody else');
  const parts: GarageParts = { config: { adminEndpoint, endpoint }, credentials: { adminToken, ...ownKey } };
  const run = randomUUID().slice(0, 8);
  const open = (tenantId: string, further: object = {}, secrets: object = {}): ObjectBackend =>
    garageKind.open(
      garageKind.parseConfig({ ...parts.config, ...further }),
      { ...parts.credentials, ...secrets },
      { applianceId: `appliance-${run}`, tenantId },
    );
  const clientFor = (credentials: { accessKeyId: string; secretAccessKey: string }) =>
    new S3Client({
      endpoint,
      region: 'garage',
      maxAttempts: 1,
      credentials,
      forcePathStyle: true,
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
    });
  const bucketNamed = (globalAlias: string) => admin.find('GetBucketInfo', { globalAlias });
  const make = async (globalAlias: string) => {
    const localAlias = { accessKeyId: other.accessKeyId, alias: `x${randomUUID()}`, allow: { owner: true } };
    await admin.post('CreateBucket', { globalAlias, localAlias });
  };
  const owner = clientFor(ownKey);
  const backend = open('default');
  const closed = 'http://127.0.0.1:1';
  return {
    backend,
    parts,
    admin,
    standIn: garage instanceof GarageServer ? garage.cluster : undefined,
    otherTenant: open('other'),
    unreachable: open('default', { adminEndpoint: closed, endpoint: closed }),
    refused: open('default', {}, { adminToken: 'nobody' }),
    prefix: `parts-${run}-`,
    clientFor,
    holdsBucket: async name => (await bucketNamed(name)) !== undefined,
    seedForeignBucket: make,
    replaceForeignBucket: async name => {
      await admin.post('DeleteBucket', {}, { id: (await bucketNamed(name)).id });
      await make(name);
    },
    foreignBucketExists: async name => (await bucketNamed(name)) !== undefined,
    seedObjects: async (Bucket, count) => {
      for (let n = 0; n < count; n++)
        await owner.send(new PutObjectCommand({ Bucket, Key: `seed/${n} & <more>`, Body: `object ${n}` }));
    },
    seedLockedObject: async () => {
      throw new Error('Garage locks nothing');
    },
    dropTags: async name => {
      const { id, keys } = await bucketNamed(name);
      for (const { accessKeyId, bucketLocalAliases } of keys as KeyAt[])
        for (const localAlias of bucketLocalAliases)
          await admin.post('RemoveBucketAlias', { bucketId: id, accessKeyId, localAlias });
    },
    bucketSpec: async name => {
      const { maxSize, maxObjects } = (await bucketNamed(name)).quotas;
      return {
        versioning: false,
        ...(maxSize === null ? {} : { quotaMaxSize: String(maxSize) }),
        ...(maxObjects === null ? {} : { quotaMaxObjects: String(maxObjects) }),
        tags: {},
      };
    },
    principalKeys: async uid => {
      const keys: { id: string; name: string }[] = await admin.get('ListKeys');
      const found = keys.filter(({ name }) => uidOf(name) === uid);
      if (found.length === 0) return undefined;
      const shown = found.map(({ id }) => admin.get('GetKeyInfo', { id, showSecretKey: 'true' }));
      return (await Promise.all(shown)).map(({ accessKeyId, secretAccessKey }) => ({ accessKeyId, secretAccessKey }));
    },
    grants: async name =>
      (((await bucketNamed(name))?.keys ?? []) as KeyAt[]).flatMap(key => {
        const mode = modeOf(key.permissions);
        return mode && key.name.startsWith('trivet-') ? [{ uid: uidOf(key.name), mode }] : [];
      }),
    close: async () => {
      backend.close();
      owner.destroy();
      await garage.close();
    },
  };
}
