/** `./trivet bench cosi --backend KIND`: what a creation and a grant cost at a real store, beside what its API needs at least. */
import { CountingRelay } from '#test/bench/counting-relay';
import { type Figure, median } from '#test/bench/measure';
import type { CosiClient, Reply } from '#test/cosi/client';
import { openGarageHarness } from '#test/object-backend/garage-harness';
import { openGcsHarness } from '#test/object-backend/gcs-harness';
import { type ApplianceOptions, TestAppliance } from '#test/support/appliance';
import { parts } from '#test/support/parts';

interface Store {
  relays: CountingRelay[];
  options: ApplianceOptions;
  close(): Promise<unknown>;
}

interface StoreKind {
  protocol: 'S3' | 'AZURE' | 'GCS';
  /** Requests without which the API of the store has no bucket that says whose it is, and no key with rights. */
  least: { creation: string[]; grant: string[] };
  open(): Promise<Store | undefined>;
}

const single = async (target: string, options: (url: string) => ApplianceOptions): Promise<Store> => {
  const relay = await CountingRelay.start(target);
  return { relays: [relay], options: options(relay.url), close: () => relay.close() };
};

const KINDS: Readonly<Record<string, StoreKind>> = {
  rgw: {
    protocol: 'S3',
    least: {
      creation: ['CreateBucket', 'PutBucketTagging', 'PutPublicAccessBlock'],
      grant: ['user with its key', 'PutBucketPolicy'],
    },
    open: async () => {
      const { rgw } = parts();
      return rgw ? single(rgw.endpoint, url => ({ backend: 'rgw', rgwEndpoint: url })) : undefined;
    },
  },
  s3: {
    protocol: 'S3',
    least: {
      creation: ['CreateBucket', 'PutBucketTagging', 'PutPublicAccessBlock'],
      grant: ['CreateUser', 'PutUserPolicy', 'CreateAccessKey', 'one request as the holder'],
    },
    open: async () => {
      const { moto } = parts();
      return moto ? single(moto.endpoint, url => ({ backend: 's3', s3Endpoint: url })) : undefined;
    },
  },
  azure: {
    protocol: 'AZURE',
    least: { creation: ['Create Container'], grant: ['Set Container ACL', 'one request as the holder'] },
    open: async () => {
      const { azurite } = parts();
      return azurite ? single(azurite.endpoint, url => ({ backend: 'azure', azureEndpoint: url })) : undefined;
    },
  },
  garage: {
    protocol: 'S3',
    least: { creation: ['CreateBucket'], grant: ['ImportKey', 'AllowBucketKey'] },
    open: async () => {
      const garage = await openGarageHarness();
      const { config, credentials } = garage.parts;
      const [admin, s3] = [
        await CountingRelay.start(config.adminEndpoint!),
        await CountingRelay.start(config.endpoint!),
      ];
      return {
        relays: [admin, s3],
        options: {
          backend: 'garage',
          store: { config: { adminEndpoint: admin.url, endpoint: s3.url }, credentials },
        },
        close: () => Promise.all([admin.close(), s3.close(), garage.close()]),
      };
    },
  },
  gcs: {
    protocol: 'GCS',
    least: {
      creation: ['buckets.insert'],
      grant: [
        'serviceAccounts.create',
        'buckets.getIamPolicy',
        'buckets.setIamPolicy',
        'hmacKeys.create',
        'one request as the holder',
      ],
    },
    open: async () => {
      const gcs = await openGcsHarness();
      const { config, credentials } = gcs.parts;
      const relay = await CountingRelay.start(gcs.server.endpoint);
      const places = { endpoint: relay.url, iamEndpoint: relay.url };
      return {
        relays: [relay],
        options: { backend: 'gcs', store: { config: { ...config, ...places }, credentials } },
        close: () => Promise.all([relay.close(), gcs.close()]),
      };
    },
  },
};

export const STORE_KINDS = Object.keys(KINDS);

export async function benchStore(name: string, quick: boolean): Promise<Figure[]> {
  const kind = KINDS[name]!;
  const store = await kind.open();
  if (!store) throw new Error(`there is no ${name} here: name its part in TRIVET_REQUIRE (rgw, moto, azurite)`);
  // Nothing comes in between: no audit, no look at what is stuck.
  const env = { TRIVET_RECONCILE_MS: '600000', TRIVET_AUDIT_MS: '86400000', TRIVET_LOG_LEVEL: 'warn' };
  const appliance = await TestAppliance.start({ ...store.options, env });
  try {
    return await figuresOf(appliance.client(), kind, store.relays, quick ? 3 : 50);
  } finally {
    await appliance.close();
    await store.close();
  }
}

interface Cost {
  requests: number;
  totalMs: number;
  aboveMs: number;
}

async function figuresOf(
  client: CosiClient,
  { protocol, least }: StoreKind,
  relays: readonly CountingRelay[],
  count: number,
): Promise<Figure[]> {
  const seen = () => relays.flatMap(relay => relay.seen);
  const costOf = async (call: () => Promise<unknown>): Promise<Cost> => {
    for (const relay of relays) relay.seen.length = 0;
    const startedAt = performance.now();
    await call();
    const totalMs = performance.now() - startedAt;
    return { requests: seen().length, totalMs, aboveMs: totalMs - seen().reduce((sum, { ms }) => sum + ms, 0) };
  };
  const tag = Date.now().toString(36);
  const authentication = { protocol: { type: protocol }, authentication_type: { type: 'KEY' } };
  const create = (n: number) =>
    must(client, 'DriverCreateBucket', { name: `bench-${tag}-${n}`, protocols: [{ type: protocol }], parameters: {} });
  const grant = (n: number) =>
    must(client, 'DriverGrantBucketAccess', {
      ...authentication,
      account_name: `bench-${tag}-${n}`,
      buckets: [{ bucket_id: `bench-${tag}-${n}`, access_mode: { mode: 'READ_WRITE' } }],
    });
  const costs = { creation: [] as Cost[], grant: [] as Cost[], repeat: [] as Cost[] };
  // The first opens connections, and V8 compiles.
  for (let n = 0; n < count + 3; n++) {
    const [creation, granted] = [await costOf(() => create(n)), await costOf(() => grant(n))];
    const repeat = await costOf(async () => {
      await create(n);
      await grant(n);
    });
    if (n < 3) continue;
    costs.creation.push(creation);
    costs.grant.push(granted);
    costs.repeat.push(repeat);
  }
  const figure = (what: 'creation' | 'grant'): Figure => {
    const of = (key: keyof Cost) => median(costs[what].map(cost => cost[key]));
    const value = `${of('requests')} requests, ${of('totalMs').toFixed(1)} ms, ${of('aboveMs').toFixed(1)} ms above them`;
    return {
      name: `a ${what}`,
      value,
      limit: '',
      baseline: `${least[what].length} requests (${least[what].join(', ')})`,
    };
  };
  const touched = costs.repeat.reduce((sum, { requests }) => sum + requests, 0);
  const repeatMs = median(costs.repeat.map(({ totalMs }) => totalMs)) / 2;
  return [
    figure('creation'),
    figure('grant'),
    {
      name: 'requests of repeats of both',
      value: `${touched}, ${repeatMs.toFixed(1)} ms a call`,
      limit: '0 requests',
      baseline: '',
      ok: touched === 0,
    },
  ];
}

async function must(client: CosiClient, method: string, request: object): Promise<Reply> {
  for (;;) {
    const { code, message, reply } = await client.call('r1', method, request);
    if (code === 'OK') return reply;
    if (code !== 'ABORTED') throw new Error(`${method}: ${code} ${message}`);
  }
}
