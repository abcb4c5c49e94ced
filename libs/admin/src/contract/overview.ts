import { z } from 'zod';
import { backendHealth, circuit, daysToFull } from '#admin/contract/backends';
import { bytes, count, id, name, pageOf, paging, tenantName, time } from '#admin/contract/common';
import { route } from '#admin/contract/route';

const health = z.enum(['ok', 'degraded', 'down', 'absent']);

export const overview = z
  .object({
    version: z.string(),
    at: time,
    legs: z.array(z.object({ name: z.enum(['cosi', 'csp', 'cbt']), health, detail: z.string() })),
    backends: z.array(
      z.object({
        tenant: tenantName,
        name,
        kind: z.string(),
        health: backendHealth,
        circuit,
        detail: z.string(),
        since: time.nullable().meta({
          description: 'Since when it is down, as far as known; of one that is up when it last answered or was seen',
        }),
      }),
    ),
    workers: z.object({ up: count, lost: count }),
    operations: z.object({
      waiting: count,
      running: count,
      stuck: count.meta({ description: 'Wait for a person, or have failed more than three times' }),
      waitingForBackend: count.meta({ description: 'That no worker has, because their backend does not answer' }),
      oldestWaitingMs: z.number().nullable(),
      perSecond: z.number().meta({ description: 'Ended, over the last minute' }),
      trend: z
        .array(z.object({ at: time, ended: count, failed: count }))
        .meta({ description: 'Of each minute of the last hour, oldest first' }),
    }),
    slowCalls: z
      .array(
        z.object({
          tenant: tenantName,
          backend: name,
          call: z.string().meta({ examples: ['growImage'] }),
          operations: count.meta({ description: 'That wait for an answer to such a call, each for a minute or more' }),
          oldest: z.object({ operation: id, what: z.string(), since: time.meta({ description: 'Begin of the call' }) }),
        }),
      )
      .meta({
        description: 'Calls of running operations that have not returned, the one that was begun first before others',
      }),
    capacity: z.array(
      z.object({
        tenant: tenantName,
        backend: name,
        pool: z.string(),
        total: bytes,
        used: bytes,
        daysToFull,
        trend: z
          .array(z.object({ at: time, used: bytes }))
          .meta({ description: 'Of each hour of the last week, as far as it is known' }),
      }),
    ),
    attention: z
      .array(
        z.object({
          severity: z.enum(['error', 'warning']),
          what: z.string().meta({ description: 'What is wrong' }),
          means: z.string().meta({ description: 'What follows from it' }),
          todo: z.string().meta({ description: 'What to do' }),
          link: z.string().nullable().meta({ description: 'Path of the dashboard' }),
          oldest: z
            .object({
              operation: id,
              what: z.string(),
              at: time.meta({ description: 'Its acceptance, or when its call began' }),
            })
            .nullable()
            .meta({ description: 'Of several operations that one cause holds up, the one that waits longest' }),
        }),
      )
      .meta({ description: 'Most severe first; empty when all is well' }),
  })
  .meta({ id: 'Overview' });
export type OverviewReply = z.output<typeof overview>;

export const overviewRoutes = {
  get: route({
    id: 'getOverview',
    method: 'GET',
    path: '/overview',
    tag: 'overview',
    summary: 'Health, work and capacity at one glance; of the whole appliance for its administrators',
    access: { scope: 'any', role: 'viewer' },
    status: 200,
    reply: overview,
    examples: [{ name: 'now' }],
  }),
};

export const auditEntry = z
  .object({
    id: z.string(),
    at: time,
    tenant: tenantName,
    actor: z.object({
      kind: z.enum(['user', 'token', 'command', 'system', 'socket']),
      name: z.string(),
      token: z.string().nullable().meta({ description: 'Name of an API token; id of the session of a driver’s login' }),
      address: z.string(),
    }),
    door: z.enum(['admin', 'csp', 'cosi', 'cbt']).nullable().meta({ description: 'By which it came in; null: none' }),
    action: z.string().meta({ examples: ['tenant.suspend'] }),
    subject: z.object({ kind: z.string(), id: z.string(), name: z.string() }),
    before: z.unknown(),
    after: z.unknown(),
    reason: z.string().nullable(),
    operation: id.nullable(),
  })
  .meta({ id: 'AuditEntry' });

const auditFilter = {
  tenant: tenantName.optional(),
  actor: name.optional(),
  action: z.string().max(64).optional().meta({ description: 'An action, or how it begins' }),
  subject: name.optional(),
  since: time.optional(),
  until: time.optional(),
};

export const auditRoutes = {
  list: route({
    id: 'listAudit',
    method: 'GET',
    path: '/audit',
    tag: 'audit',
    summary: 'Who changed what, newest first',
    access: { scope: 'any', role: 'viewer' },
    query: z.strictObject({ ...paging, ...auditFilter }),
    status: 200,
    reply: pageOf(auditEntry),
    examples: [{ name: 'newest' }, { name: 'of users', query: { action: 'user.' } }],
  }),
  export: route({
    id: 'exportAudit',
    method: 'GET',
    path: '/audit/export',
    tag: 'audit',
    summary: 'The whole log by the same filters, one entry a line, oldest first',
    access: { scope: 'any', role: 'admin' },
    query: z.strictObject(auditFilter),
    status: 200,
    streams: 'application/x-ndjson',
    reply: auditEntry,
    examples: [{ name: 'all' }],
  }),
};

/** One of the stream's messages: SSE `id`, `event: <type>`, `data: <this>`. */
export const event = z
  .object({
    type: z.enum(['operation', 'audit']),
    at: time,
    tenant: tenantName,
    operation: z
      .object({
        id,
        kind: z.string(),
        state: z.string(),
        event: z.string().meta({ description: 'As `type` of the operation’s events' }),
        resource: z.object({ kind: z.string(), id, name: z.string() }),
        error: z.string().nullable(),
      })
      .optional(),
    audit: auditEntry.optional(),
  })
  .meta({ id: 'Event' });

export const eventRoutes = {
  stream: route({
    id: 'streamEvents',
    method: 'GET',
    path: '/events',
    tag: 'events',
    summary: 'What happens, as server-sent events; Last-Event-ID resumes without a gap',
    description:
      'Without Last-Event-ID it begins now. An id that is older than what is kept, or is none, gets an event `reset` first: read the lists again. A reader that does not read is ended, and resumes. It ends with the login, with the tenant’s suspension, and when the server stops.',
    access: { scope: 'any', role: 'viewer' },
    query: z.strictObject({ tenant: tenantName.optional(), operation: id.optional() }),
    status: 200,
    streams: 'text/event-stream',
    reply: event,
    examples: [{ name: 'from now on' }],
  }),
};
