import { z } from 'zod';
import { credentialsOfKinds, fitsItsKind, formsOfKinds, registrationsOfKinds } from '#admin/contract/backend-kinds';
import { bytes, count, id, listOf, name, ofTenant, pageOf, paging, reason, time } from '#admin/contract/common';
import { route } from '#admin/contract/route';

const ofBackend = ofTenant.extend({ backend: name });
const one = { tenant: '{tenant}', backend: '{backend}' };
export const label = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'expected 1 to 63 of a-z, 0-9 and -, a letter or digit first')
  .meta({ description: 'A new name' });

const description = z.string().max(500).meta({ description: 'For people' });

export const backendHealth = z.enum(['up', 'degraded', 'down', 'unknown']).meta({
  description: 'degraded: some of its pools are down; unknown: nobody has used or tested it yet, or looks at it',
});

export const circuit = z.enum(['closed', 'open', 'half_open']).nullable().meta({
  description:
    'closed: it answers; open: it does not, and its work is held back; half_open: it did not, and work is tried on it until a probe is answered; null: nobody has heard from it yet',
});

/** As its kind has it; of a kind that is not in the document the registry itself is the judge. Credentials are never read. */
const config = z.record(z.string(), z.unknown()).meta({ description: 'As its kind has it' });
const credentials = z.record(z.string(), z.string()).meta({ writeOnly: true, description: 'Of its kind; never read' });
const share = z.strictObject({
  name: label,
  share: name.meta({ description: 'Name of a backend of the tenant `appliance`' }),
  description: description.default(''),
});
const changes = z.strictObject({
  description: description.optional(),
  state: z
    .enum(['active', 'cordoned', 'draining'])
    .optional()
    .meta({ description: 'cordoned: nothing new is made there; draining: until it holds nothing' }),
  config: config.optional(),
  credentials: credentials.optional(),
  thinRatios: z
    .record(z.string(), z.number().gt(0).max(1_000))
    .optional()
    .meta({
      description:
        'By pool: how many times its size it promises to volumes. Not of a share: the pool is the appliance’s',
      examples: [{ fast: 3 }],
    }),
  reason: reason.optional(),
});
const schema = z.record(z.string(), z.unknown());

export const daysToFull = z
  .number()
  .nullable()
  .meta({ description: 'If it goes on as in the last week; null: it does not grow, or too little is known' });

export const backend = z
  .object({
    id,
    name,
    kind: z.string().meta({
      description: 'One of those of /backend-kinds',
      examples: ['rgw', 's3', 'azure', 'garage', 'gcs', 'reflink', 'rbd'],
    }),
    description: z.string().meta({ description: 'For people' }),
    state: z
      .enum(['active', 'cordoned', 'draining'])
      .meta({ description: 'cordoned: nothing new is made there; draining: until it holds nothing' }),
    shared: z.boolean().meta({ description: 'A share of a backend of the appliance' }),
    config,
    health: z
      .object({
        state: backendHealth,
        circuit,
        reason: z.string().nullable().meta({ description: 'Why it is not up; null when it is' }),
        since: time.nullable().meta({
          description: 'Since when it is down, as far as known; of one that is up when it last answered or was seen',
        }),
      })
      .meta({ description: 'Whether it answers' }),
    capabilities: z
      .record(z.string(), z.unknown())
      .nullable()
      .meta({ description: 'What it can do, as it was found; null: not known yet' }),
    holds: z
      .object({
        volumes: count.meta({ description: 'With those of its recycle bin' }),
        snapshots: count.meta({ description: 'Snapshots, with those that are kept for the change index' }),
        buckets: count.meta({ description: 'Buckets, with registered ones' }),
        accesses: count.meta({ description: 'Accounts that were granted access' }),
        operations: count.meta({ description: 'Unfinished operations' }),
      })
      .meta({ description: 'What of the tenant is there' }),
    capacity: z.object({ total: bytes, used: bytes, reserved: bytes }).nullable().meta({ description: 'Of its pools' }),
    pools: z
      .array(
        z.object({
          name: z.string().meta({ description: 'Name of the pool' }),
          state: z.enum(['up', 'down']).meta({ description: 'down: it cannot be used now' }),
          reason: z.string().nullable().meta({ description: 'Why it is down; null when it is up' }),
          total: bytes,
          used: bytes,
          promised: bytes.meta({
            description: 'To the volumes of all who share it, until they leave the recycle bin',
          }),
          thinRatio: z.number().meta({ description: 'It promises so many times its size' }),
          daysToFull,
        }),
      )
      .nullable()
      .meta({ description: 'As a worker last saw them; null: an object store' }),
    version: count.meta({ description: 'Grows with each change' }),
    createdAt: time,
    updatedAt: time,
  })
  .meta({ id: 'Backend' });
export type BackendReply = z.output<typeof backend>;

export const backendTest = z
  .object({
    ok: z.boolean().meta({ description: 'All checks passed' }),
    checks: z
      .array(
        z.object({
          name: z.string().meta({ description: 'What was looked at' }),
          ok: z.boolean().meta({ description: 'It is as it has to be' }),
          detail: z.string().meta({ description: 'What was found, for people' }),
        }),
      )
      .meta({ description: 'In the order in which they were made' }),
    milliseconds: z.number().meta({ description: 'How long it took' }),
  })
  .meta({ id: 'BackendTest' });

export const backendKind = z
  .object({
    kind: z.string().meta({ description: 'As `kind` of a registration has it' }),
    title: z.string().meta({ description: 'What it is, in a few words' }),
    description: z.string().meta({ description: 'What it is for' }),
    config: schema.meta({ description: 'JSON Schema: its properties have a title, and say what they are for' }),
    credentials: schema.meta({ description: 'Likewise; what is secret has the format `password`' }),
  })
  .meta({ id: 'BackendKind' });
export type BackendKindReply = z.output<typeof backendKind>;

export const backendRoutes = {
  kinds: route({
    id: 'listBackendKinds',
    method: 'GET',
    path: '/backend-kinds',
    tag: 'backends',
    summary: 'Kinds of backend that can be registered, and what each is configured by',
    access: { scope: 'appliance', role: 'viewer' },
    status: 200,
    reply: listOf(backendKind),
    examples: [{ name: 'all' }],
  }),
  list: route({
    id: 'listBackends',
    method: 'GET',
    path: '/tenants/{tenant}/backends',
    tag: 'backends',
    summary: 'Backends of a tenant; those of the tenant `appliance` can be shared',
    access: { scope: 'tenant', role: 'viewer' },
    params: ofTenant,
    query: z.strictObject({ ...paging }),
    status: 200,
    reply: pageOf(backend),
    examples: [{ name: 'all', params: { tenant: '{tenant}' } }],
  }),
  get: route({
    id: 'getBackend',
    method: 'GET',
    path: '/tenants/{tenant}/backends/{backend}',
    tag: 'backends',
    summary: 'One backend',
    access: { scope: 'tenant', role: 'viewer' },
    params: ofBackend,
    status: 200,
    reply: backend,
    etag: 'gives',
    examples: [{ name: 'one', params: one }],
  }),
  create: route({
    id: 'createBackend',
    method: 'POST',
    path: '/tenants/{tenant}/backends',
    tag: 'backends',
    summary: 'Register a backend, or share one of the appliance with a tenant',
    description:
      'Registered with the tenant `appliance` it can be shared: give its name in `share` when registering it with another tenant.',
    access: { scope: 'appliance', role: 'admin' },
    params: ofTenant,
    body: z
      .union([
        z.strictObject({
          name: label,
          kind: z.string().max(32).meta({ description: 'One of those of /backend-kinds' }),
          description: description.default(''),
          config,
          credentials: credentials.default({}),
        }),
        share,
      ])
      .superRefine(fitsItsKind),
    shownBody: z.union([...registrationsOfKinds({ name: label, description: description.default('') }), share]),
    status: 201,
    reply: backend,
    etag: 'gives',
    refusals: [409],
    examples: [
      {
        name: 'a Ceph RGW',
        params: { tenant: '{tenant}' },
        body: {
          name: 'objects',
          kind: 'rgw',
          config: { endpoint: 'http://10.0.0.5:7480', publicEndpoint: 'https://s3.example.net' },
          credentials: { accessKeyId: 'AKIDOFTRIVET', secretAccessKey: 'as RGW has it' },
        },
      },
      {
        name: 'files',
        params: { tenant: '{tenant}' },
        body: {
          name: 'volumes',
          kind: 'reflink',
          config: {
            pools: [{ name: 'fast', path: '/srv/trivet/fast', portals: ['10.0.0.5:3260'] }],
            exporter: { kind: 'tgt', folder: '/run/trivet/tgt' },
          },
        },
      },
      {
        name: 'images of Ceph',
        params: { tenant: '{tenant}' },
        body: {
          name: 'images',
          kind: 'rbd',
          config: {
            monitors: ['10.0.0.5', '10.0.0.6', '10.0.0.7'],
            user: 'trivet',
            pools: [{ name: 'images', cephPool: 'trivet', portals: ['10.0.0.5:3260'] }],
            exporter: { kind: 'tgt', folder: '/run/trivet/tgt' },
          },
          credentials: { key: 'QVNfQ0VQSF9IQVNfSVRfRk9SX1RIRV9VU0VS' },
        },
      },
      { name: 'a shared one', params: { tenant: '{tenant}' }, body: { name: 'shared', share: '{sharedBackend}' } },
    ],
  }),
  change: route({
    id: 'changeBackend',
    method: 'PATCH',
    path: '/tenants/{tenant}/backends/{backend}',
    tag: 'backends',
    summary: 'Change a backend; cordon it, drain it, or take it back',
    description:
      'cordoned: nothing new is made there. draining: the same, until it holds nothing. Workers follow within seconds.',
    access: { scope: 'appliance', role: 'admin' },
    params: ofBackend,
    body: changes,
    shownBody: changes.extend({ config: formsOfKinds.optional(), credentials: credentialsOfKinds.optional() }),
    status: 200,
    reply: backend,
    etag: 'needs',
    refusals: [409],
    examples: [{ name: 'cordon', params: one, body: { state: 'cordoned', reason: 'new disks' } }],
  }),
  delete: route({
    id: 'deleteBackend',
    method: 'DELETE',
    path: '/tenants/{tenant}/backends/{backend}',
    tag: 'backends',
    summary: 'Forget a backend that holds nothing of ours and has no endpoint',
    access: { scope: 'appliance', role: 'admin' },
    params: ofBackend,
    status: 204,
    etag: 'needs',
    refusals: [409],
    examples: [{ name: 'one', params: one }],
  }),
  tryOut: route({
    id: 'tryBackend',
    method: 'POST',
    path: '/tenants/{tenant}/backends/test',
    tag: 'backends',
    summary: 'Test a backend that is not registered yet: nothing is registered, and nothing changed there',
    description:
      'Refused where registering it would be refused: by its form, by its addresses, by a name or a pool that is taken. Otherwise the answer has each check with what to do. Pools are looked at from the host of the gateway; a worker takes them into use after registering. Credentials are neither kept nor answered; that somebody asked is in the audit log.',
    access: { scope: 'appliance', role: 'admin' },
    params: ofTenant,
    body: z
      .strictObject({
        name: label.optional().meta({ description: 'Refused when the tenant has one of this name' }),
        kind: z.string().max(32),
        config,
        credentials: credentials.default({}),
      })
      .superRefine(fitsItsKind),
    shownBody: z.union(registrationsOfKinds({ name: label.optional() })),
    status: 200,
    reply: backendTest,
    refusals: [409],
    examples: [
      {
        name: 'files',
        params: { tenant: '{tenant}' },
        body: {
          name: 'more-volumes',
          kind: 'reflink',
          config: {
            pools: [{ name: 'more', path: '/srv/trivet/more', portals: ['10.0.0.5:3260'] }],
            exporter: { kind: 'tgt', folder: '/run/trivet/tgt' },
          },
        },
      },
    ],
  }),
  test: route({
    id: 'testBackend',
    method: 'POST',
    path: '/tenants/{tenant}/backends/{backend}/test',
    tag: 'backends',
    summary: 'Ask a registered backend whether it answers, knows us and can do what we need; changes nothing there',
    access: { scope: 'tenant', role: 'operator' },
    params: ofBackend,
    status: 200,
    reply: backendTest,
    examples: [{ name: 'one', params: one }],
  }),
};
