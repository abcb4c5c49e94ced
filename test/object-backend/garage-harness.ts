/** Looks at Garage by other means than the port: for the conformance suite and the tests of access modes. */
import { randomUUID } from 'node:crypto';
import { PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import type { ObjectBackendHarness } from '#backends/conformance/object-world';
import { garageKind } from '#backends/garage/garage-kind';
import type { AccessMode, Grant, ObjectBackend } from '#backends/object-backend';
import type { Rights } from '#test/fakes/garage/garage-cluster';
import { GarageServer } from '#test/fakes/garage/garage-server';

export interface GarageHarness extends ObjectBackendHarness {
  server: GarageServer;
  open(tenantId: string): ObjectBackend;
  clientFor(keys: { accessKeyId: string; secretAccessKey: string }): S3Client;
}

const uidOf = (name: string): string => name.split(' of ')[0]!;

function modeOf({ read, write }: Rights): AccessMode | undefined {
  if (read && write) return 'read_write';
  if (write) return 'write_only';
  return read ? 'read_only' : undefined;
}

export async function openGarageHarness(): Promise<GarageHarness> {
  const server = await GarageServer.start();
  const { cluster, config, credentials } = server;
  const run = randomUUID().slice(0, 8);
  const prefix = `parts-${run}-`;
  const open = (tenantId: string, further: object = {}, secrets: object = {}) =>
    garageKind.open(
      garageKind.parseConfig({ ...config, ...further }),
      { ...credentials, ...secrets },
      {
        applianceId: `appliance-${run}`,
        tenantId,
      },
    );
  const clientFor = (keys: { accessKeyId: string; secretAccessKey: string }) =>
    new S3Client({
      endpoint: server.endpoint,
      region: 'garage',
      maxAttempts: 1,
      credentials: keys,
      forcePathStyle: true,
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
    });
  const other = cluster.createKey('somebody else');
  const make = async (name: string) =>
    void cluster.create(name, { accessKeyId: other.id, alias: `x${randomUUID()}`, allow: { owner: true } });
  const owner = clientFor({ accessKeyId: server.key.id, secretAccessKey: server.key.secret });
  const backend = open('default');
  const closed = 'http://127.0.0.1:1';
  return {
    backend,
    server,
    otherTenant: open('other'),
    unreachable: open('default', { adminEndpoint: closed, endpoint: closed }),
    refused: open('default', {}, { adminToken: 'nobody' }),
    prefix,
    open,
    clientFor,
    seedForeignBucket: make,
    replaceForeignBucket: async name => {
      cluster.delete(cluster.bucketNamed(name)!.id);
      await make(name);
    },
    foreignBucketExists: async name => cluster.bucketNamed(name) !== undefined,
    seedObjects: async (Bucket, count) => {
      for (let n = 0; n < count; n++)
        await owner.send(new PutObjectCommand({ Bucket, Key: `seed/${n} & <more>`, Body: `object ${n}` }));
    },
    seedLockedObject: async () => {
      throw new Error('Garage locks nothing');
    },
    dropTags: async name => cluster.bucketNamed(name)!.localAliases.clear(),
    bucketSpec: async name => {
      const { maxSize, maxObjects } = cluster.bucketNamed(name)!.quotas;
      return {
        versioning: false,
        ...(maxSize === null ? {} : { quotaMaxSize: String(maxSize) }),
        ...(maxObjects === null ? {} : { quotaMaxObjects: String(maxObjects) }),
        tags: {},
      };
    },
    principalKeys: async uid => {
      const found = [...cluster.keys.values()].filter(({ name }) => uidOf(name) === uid);
      return found.length === 0
        ? undefined
        : found.map(({ id, secret }) => ({ accessKeyId: id, secretAccessKey: secret }));
    },
    grants: async name => {
      const found: Grant[] = [];
      for (const [id, rights] of cluster.bucketNamed(name)?.rights ?? []) {
        const [mode, key] = [modeOf(rights), cluster.keys.get(id)!];
        if (mode && key.name.startsWith('trivet-')) found.push({ uid: uidOf(key.name), mode });
      }
      return found;
    },
    close: async () => {
      backend.close();
      owner.destroy();
      await server.close();
    },
  };
}
