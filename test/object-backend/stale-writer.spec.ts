import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { GetBucketVersioningCommand, ListObjectsV2Command, PutObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { threadsOf } from '#backends/linux/process-state';
import type { BucketRef, BucketSpec, ObjectBackend, Principal } from '#backends/object-backend';
import { readPolicy } from '#backends/rgw/bucket-grants';
import { rgwKind } from '#backends/rgw/rgw-kind';
import { unleased } from '#platform/lease-signal';
import { PACKAGE_ROOT } from '#platform/package-root';
import { openRgwHarness, type RgwHarness, rgwParts } from '#test/object-backend/rgw-harness';
import { until } from '#test/support/parts';

const SCRIPT = join(PACKAGE_ROOT, 'dist', 'test', 'object-backend', 'stale-child.js');
/** Long enough to come to the place on a busy machine. */
const LEASE_MS = 4_000;
const parts = rgwParts();
const soon = () => unleased(AbortSignal.timeout(60_000));
const plain = rgwKind.parseBucketParameters({});
const spec = (given: Partial<BucketSpec>): BucketSpec => ({ ...plain, ...given });

/** What the stale worker is in the middle of, and what its successor, and others after it, have done since. */
interface Case {
  place: string;
  method: keyof ObjectBackend;
  /** Before it: what is there. Gives its arguments. */
  given: (world: World) => Promise<unknown[]>;
  meanwhile: (world: World) => Promise<void>;
}

class World {
  readonly ref: BucketRef;
  readonly principal: Principal;
  readonly backend: ObjectBackend;

  constructor(readonly harness: RgwHarness) {
    const id = randomUUID().slice(0, 8);
    this.backend = harness.backend;
    this.ref = { name: `${harness.prefix}${id}`, incarnation: randomUUID() };
    const accessKeyId = `STALE${id.toUpperCase()}`;
    this.principal = { uid: `stale-${id}`, accessKeyId, secretAccessKey: randomUUID(), displayName: 'stale' };
  }

  async make(given: BucketSpec = plain, ref = this.ref): Promise<void> {
    await this.backend.createBucket(ref, given, soon());
    await this.backend.configureBucket(ref, given, soon());
  }

  async put(Key: string): Promise<void> {
    await (await this.harness.ownerClient()).send(new PutObjectCommand({ Bucket: this.ref.name, Key, Body: 'x' }));
  }

  /** Everything that the calls can change. */
  async state(): Promise<unknown> {
    const { harness, ref, principal } = this;
    const { name } = ref;
    const keys = await harness.principalKeys(principal.uid);
    const bucket = await harness.admin.getBucket(name, soon());
    if (!bucket) return { keys };
    const client = await harness.ownerClient();
    const { Status } = await client.send(new GetBucketVersioningCommand({ Bucket: name }));
    const { Contents } = await client.send(new ListObjectsV2Command({ Bucket: name }));
    return {
      keys,
      bucket,
      Status,
      objects: Contents?.map(({ Key }) => Key),
      version: await harness.admin.bucketVersion(name, bucket.id, soon()),
      policy: await readPolicy(await harness.userOf(client), name, soon()),
    };
  }

  async clear(): Promise<void> {
    await this.backend.removePrincipal(this.principal.uid, soon());
  }
}

const another = ({ ref }: World): BucketRef => ({ name: ref.name, incarnation: randomUUID() });
const grantee = (uid: string) => [{ uid, mode: 'read_write' as const }];

const cases: Case[] = [
  {
    place: 'PUT-bucket',
    method: 'createBucket',
    given: async ({ ref }) => [ref, plain],
    async meanwhile(world) {
      await world.make();
      await world.backend.deleteBucket(world.ref, soon());
    },
  },
  ...(['PUT-tagging', 'PUT-publicAccessBlock', 'PUT-versioning', 'PUT-bucket-quota'] as const).map(
    (place): Case => ({
      place,
      method: 'configureBucket',
      async given(world) {
        const old = spec({ versioning: true, quotaMaxObjects: '7', tags: { stale: 'yes' } });
        await world.backend.createBucket(world.ref, old, soon());
        return [world.ref, old];
      },
      async meanwhile(world) {
        const now = spec({ tags: { fresh: 'yes' } });
        await world.backend.configureBucket(world.ref, now, soon());
        await world.backend.deleteBucket(world.ref, soon());
        await world.make(now, another(world));
      },
    }),
  ),
  {
    place: 'PUT-policy',
    method: 'putGrants',
    async given(world) {
      await world.make();
      return [world.ref, grantee('trivet-revoked')];
    },
    async meanwhile({ backend, ref }) {
      await backend.putGrants(ref, grantee('trivet-revoked'), soon());
      await backend.putGrants(ref, grantee('trivet-kept'), soon());
    },
  },
  {
    place: 'DELETE-policy',
    method: 'putGrants',
    async given(world) {
      await world.make();
      await world.backend.putGrants(world.ref, grantee('trivet-a'), soon());
      return [world.ref, []];
    },
    async meanwhile({ backend, ref }) {
      await backend.putGrants(ref, grantee('trivet-kept'), soon());
    },
  },
  {
    place: 'PUT-metadata-user',
    method: 'putPrincipal',
    given: async ({ principal }) => [principal],
    async meanwhile({ backend, principal }) {
      await backend.putPrincipal(principal, soon());
      await backend.removePrincipal(principal.uid, soon());
    },
  },
  {
    place: 'DELETE-user-key',
    method: 'removeKey',
    async given({ backend, principal }) {
      await backend.putPrincipal(principal, soon());
      return [principal];
    },
    async meanwhile({ backend, principal }) {
      await backend.removeKey(principal, soon());
      await backend.putPrincipal(principal, soon());
    },
  },
  {
    place: 'DELETE-user',
    method: 'removePrincipal',
    async given({ backend, principal }) {
      await backend.putPrincipal(principal, soon());
      return [principal.uid];
    },
    async meanwhile({ backend, principal }) {
      await backend.removePrincipal(principal.uid, soon());
      await backend.putPrincipal(principal, soon());
    },
  },
  {
    place: 'POST-delete',
    method: 'emptyBucket',
    async given(world) {
      await world.make();
      await world.put('a');
      return [world.ref];
    },
    async meanwhile(world) {
      await world.backend.emptyBucket(world.ref, soon());
      await world.put('a');
    },
  },
  {
    place: 'DELETE-bucket',
    method: 'deleteBucket',
    async given(world) {
      await world.make();
      return [world.ref];
    },
    async meanwhile(world) {
      await world.backend.deleteBucket(world.ref, soon());
      await world.make(plain, another(world));
    },
  },
];

describe.skipIf(!parts)('a worker that stood still beyond its lease', () => {
  let harness: RgwHarness;
  const children: ChildProcess[] = [];
  const worlds: World[] = [];
  beforeAll(async () => {
    harness = await openRgwHarness(parts!);
  });
  afterAll(async () => {
    for (const child of children) child.kill('SIGKILL');
    for (const world of worlds) await world.clear();
    await harness.close();
  });

  async function overtaken({ place, method, given, meanwhile }: Case, at: 'ready' | 'signed'): Promise<void> {
    const world = new World(harness);
    worlds.push(world);
    const args = await given(world);
    const failpoint = `rgw.${place}:${at}=stop@1`;
    const request = { ...harness.opened, method, args, leaseMs: LEASE_MS, failpoint };
    const child = spawn(process.execPath, [SCRIPT, JSON.stringify(request)], { stdio: ['ignore', 'pipe', 'inherit'] });
    children.push(child);
    const said = text(child.stdout!);
    await until(`it stops at ${place}`, () => {
      if (child.exitCode !== null) throw new Error(`it ended instead of stopping at ${place}`);
      return threadsOf(child.pid!).get(String(child.pid))?.state === 'T';
    });
    const stoppedAt = Date.now();
    await meanwhile(world);
    const before = await world.state();
    await until('its time is over', () => Date.now() > stoppedAt + LEASE_MS + 1_500);
    child.kill('SIGCONT');
    expect(await said).toMatch(/^refused/);
    expect(await world.state()).toEqual(before);
  }

  // Past the look at its lease: from here on it is the store that refuses.
  it.concurrent.each(cases)('changes nothing with a request that it has signed: $place', async one => {
    await overtaken(one, 'signed');
  });

  it.concurrent.each(cases.filter(({ place }) => ['PUT-policy', 'DELETE-bucket'].includes(place)))(
    'sends nothing more once it looks at its lease: $place',
    async one => {
      await overtaken(one, 'ready');
    },
  );
});

describe.skipIf(!parts)('a clock that differs from ours', () => {
  it('does not make the store refuse what is in time', async () => {
    const harness = await openRgwHarness(parts!);
    const real = Date.now;
    try {
      const { principal, backend } = new World(harness);
      // Slow by more than any horizon: the store would take each request for one of the past.
      Date.now = () => real() - 120_000;
      await backend.removePrincipal(principal.uid, soon());
      await backend.putPrincipal(principal, unleased(AbortSignal.timeout(10_000), 5_000));
      await backend.removePrincipal(principal.uid, unleased(AbortSignal.timeout(10_000), 5_000));
    } finally {
      Date.now = real;
      await harness.close();
    }
  });
});
