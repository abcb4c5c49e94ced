/** Looks at the stand-in of Google by its memory: for the conformance suite and the tests of what keys open. */
import { randomUUID } from 'node:crypto';
import { S3Client } from '@aws-sdk/client-s3';
import type { ObjectBackendHarness } from '#backends/conformance/object-world';
import { gcsKind } from '#backends/gcs/gcs-kind';
import type { AccessMode, ObjectBackend } from '#backends/object-backend';
import type { Reply } from '#test/cosi/client';
import type { GcsProject } from '#test/fakes/gcs/gcs-project';
import { GcsServer } from '#test/fakes/gcs/gcs-server';

/** What a backend of kind `gcs` is registered by. */
export interface GcsParts {
  config: Record<string, unknown>;
  credentials: { serviceAccountKey: string };
}

export interface GcsHarness extends ObjectBackendHarness {
  server: GcsServer;
  project: GcsProject;
  parts: GcsParts;
  clientFor(keys: { accessKeyId: string; secretAccessKey: string }): S3Client;
  opened(further?: object, secrets?: object): ObjectBackend;
}

const MODES: Readonly<Record<string, AccessMode>> = {
  'roles/storage.objectUser': 'read_write',
  'roles/storage.objectViewer': 'read_only',
  'roles/storage.objectCreator': 'write_only',
};

const ROLE = 'roles/iam.workloadIdentityUser';
export const POOL = 'projects/123456789012/locations/global/workloadIdentityPools/cluster-one';

export async function openGcsHarness(kept: object = {}): Promise<GcsHarness> {
  const server = await GcsServer.start();
  const { project, endpoint, keyFile } = server;
  const places = (at: string) => ({ endpoint: at, iamEndpoint: at, resourceManagerEndpoint: at });
  const parts: GcsParts = {
    config: { project: project.id, location: 'europe-west3', ...places(endpoint), ...kept },
    credentials: { serviceAccountKey: keyFile },
  };
  const other = await GcsServer.start();
  const run = randomUUID().slice(0, 8);
  const open = (tenantId: string, further: object = {}, secrets: object = {}): ObjectBackend =>
    gcsKind.open(
      gcsKind.parseConfig({ ...parts.config, ...further }),
      { ...parts.credentials, ...secrets },
      { applianceId: `appliance-${run}`, tenantId },
    );
  const backend = open('default');
  const uidOf = (member: string): string => project.accounts.get(member.split(':').at(-1)!)!.displayName;
  const bindingsOf = (name: string) => (project.buckets.get(name)?.policy.bindings ?? []).filter(one => one.condition);
  const accountOf = (uid: string) => [...project.accounts.values()].find(({ displayName }) => displayName === uid);
  return {
    server,
    project,
    parts,
    backend,
    opened: (further, secrets) => open('default', further, secrets),
    otherTenant: open('other'),
    unreachable: open('default', places('http://127.0.0.1:1')),
    // A key file of another project's account.
    refused: open('default', {}, { serviceAccountKey: other.keyFile }),
    prefix: `parts-${run}-`,
    clientFor: credentials =>
      new S3Client({
        endpoint,
        region: 'auto',
        maxAttempts: 1,
        credentials,
        forcePathStyle: true,
        requestChecksumCalculation: 'WHEN_REQUIRED',
        responseChecksumValidation: 'WHEN_REQUIRED',
      }),
    seedForeignBucket: async name => void project.create({ name }),
    replaceForeignBucket: async name => {
      project.delete(project.bucket(name));
      project.create({ name });
    },
    foreignBucketExists: async name => project.buckets.has(name),
    seedObjects: async (name, count) => {
      const bucket = project.bucket(name);
      for (let n = 0; n < count; n++)
        for (const body of bucket.versioning.enabled ? ['older', 'newer'] : ['only'])
          project.put(bucket, `seed/${n} & <more>`, Buffer.from(`${body} ${n}`));
    },
    seedLockedObject: async name => {
      const bucket = project.bucket(name);
      project.put(bucket, 'kept', Buffer.from('kept'));
      bucket.objects.get('kept')![0]!.isHeld = true;
      return 'kept';
    },
    dropTags: async name => {
      project.bucket(name).labels = {};
    },
    bucketSpec: async name => {
      const { versioning, labels } = project.bucket(name);
      const tags = Object.entries(labels).filter(([key]) => !key.startsWith('trivet_'));
      return { versioning: versioning.enabled, tags: Object.fromEntries(tags) };
    },
    principalKeys: async uid => {
      const account = accountOf(uid);
      return (
        account &&
        project
          .keysOf(account.email)
          .map(({ accessId, secret }) => ({ accessKeyId: accessId, secretAccessKey: secret }))
      );
    },
    trustOf: async uid => {
      const bound = accountOf(uid)?.policy.bindings.find(({ role }) => role === ROLE);
      const [, namespace, name] =
        /subject\/system:serviceaccount:([^:]*):(.*)$/.exec(bound?.members.join() ?? '') ?? [];
      return namespace === undefined ? undefined : { namespace, name: name! };
    },
    seedTrust: async (uid, { namespace, name }) => {
      const members = [`principal://iam.googleapis.com/${POOL}/subject/system:serviceaccount:${namespace}:${name}`];
      project.setAccountPolicy(accountOf(uid)!, { bindings: [{ role: ROLE, members }] });
    },
    withKeysAlone: open('default', { workloadIdentityPool: undefined }),
    seedKey: async uid => void project.createKey(accountOf(uid)!.email),
    grants: async name =>
      bindingsOf(name).flatMap(({ role, members }) =>
        members.map(member => ({ uid: uidOf(member), mode: MODES[role]! })),
      ),
    close: async () => {
      backend.close();
      await server.close();
      await other.close();
    },
  };
}

/** Of an answer of COSI for protocol GCS. */
export const gcsKeysOf = ({ gcs }: Reply): { accessKeyId: string; secretAccessKey: string } => ({
  accessKeyId: gcs.access_id,
  secretAccessKey: gcs.access_secret,
});
