import { z } from 'zod';
import { backendHealth, circuit, daysToFull } from '#admin/contract/backends';
import { backendName, bytes, count, id, name, pageOf, paging, tenantName, time } from '#admin/contract/common';
import { route } from '#admin/contract/route';

const health = z.enum(['ok', 'degraded', 'down', 'absent']);

export const overview = z
  .object({
    version: z.string().meta({ description: 'Release of the gateway that answers' }),
    at: time,
    legs: z
      .array(
        z.object({
          name: z.enum(['cosi', 'csp', 'cbt']).meta({ description: 'Which interface' }),
          health: health.meta({ description: 'absent: nobody uses it here' }),
          detail: z.string().meta({ description: 'Why, for people' }),
        }),
      )
      .meta({ description: 'Interfaces of drivers, each with its health' }),
    backends: z
      .array(
        z.object({
          tenant: tenantName,
          name,
          kind: z.string().meta({ description: 'Its kind' }),
          health: backendHealth,
          circuit,
          detail: z.string().meta({ description: 'What its test or its pools said last' }),
          since: time.nullable().meta({
            description: 'Since when it is down, as far as known; of one that is up when it last answered or was seen',
          }),
        }),
      )
      .meta({ description: 'Of every tenant that the caller sees' }),
    workers: z
      .object({
        up: count.meta({ description: 'That said something within 15 s' }),
        lost: count.meta({ description: 'That are silent and did not end in order' }),
      })
      .meta({ description: 'Who carries operations out' }),
    operations: z
      .object({
        waiting: count.meta({ description: 'Accepted and not begun' }),
        running: count.meta({ description: 'That a worker has' }),
        stuck: count.meta({ description: 'Wait for a person, or have failed more than three times' }),
        waitingForBackend: count.meta({ description: 'That no worker has, because their backend does not answer' }),
        oldestWaitingMs: z
          .number()
          .nullable()
          .meta({ description: 'Age of the one that waits longest; null when none waits' }),
        perSecond: z.number().meta({ description: 'Ended, over the last minute' }),
        trend: z
          .array(
            z.object({
              at: time,
              ended: count.meta({ description: 'That ended in that minute' }),
              failed: count.meta({ description: 'Of these' }),
            }),
          )
          .meta({ description: 'Of each minute of the last hour, oldest first' }),
      })
      .meta({ description: 'The work that was accepted' }),
    slowCalls: z
      .array(
        z.object({
          tenant: tenantName,
          backend: backendName,
          call: z.string().meta({ description: 'Name of the call', examples: ['growImage'] }),
          operations: count.meta({ description: 'That wait for an answer to such a call, each for a minute or more' }),
          oldest: z
            .object({
              operation: id,
              what: z.string().meta({ description: 'Its kind and what it is about' }),
              since: time.meta({ description: 'Begin of the call' }),
            })
            .meta({ description: 'That waits longest' }),
        }),
      )
      .meta({
        description: 'Calls of running operations that have not returned, the one that was begun first before others',
      }),
    capacity: z
      .array(
        z.object({
          tenant: tenantName,
          backend: backendName,
          pool: z.string().meta({ description: 'Name of the pool' }),
          total: bytes,
          used: bytes,
          daysToFull,
          trend: z
            .array(z.object({ at: time, used: bytes }))
            .meta({ description: 'Of each hour of the last week, as far as it is known' }),
        }),
      )
      .meta({ description: 'Of the pools of block volumes' }),
    attention: z
      .array(
        z.object({
          severity: z.enum(['error', 'warning']).meta({ description: 'error: something does not work' }),
          what: z.string().meta({ description: 'What is wrong' }),
          means: z.string().meta({ description: 'What follows from it' }),
          todo: z.string().meta({ description: 'What to do' }),
          link: z.string().nullable().meta({ description: 'Path of the dashboard' }),
          oldest: z
            .object({
              operation: id,
              what: z.string().meta({ description: 'Its kind and what it is about' }),
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
    id: z.string().meta({ description: 'Grows with each entry' }),
    at: time,
    tenant: tenantName,
    actor: z
      .object({
        kind: z
          .enum(['user', 'token', 'command', 'system', 'socket'])
          .meta({ description: 'command: the command line beside the database; system: the appliance by itself' }),
        name: z.string().meta({ description: 'Who: a login, or the name of a socket' }),
        token: z
          .string()
          .nullable()
          .meta({ description: 'Name of an API token; id of the session of a driver’s login' }),
        address: z.string().meta({ description: 'From where; empty when it is not known' }),
      })
      .meta({ description: 'Who did it' }),
    door: z.enum(['admin', 'csp', 'cosi', 'cbt']).nullable().meta({ description: 'By which it came in; null: none' }),
    action: z.string().meta({ description: 'Kind of the thing, and what was done', examples: ['tenant.suspend'] }),
    subject: z
      .object({
        kind: z.string().meta({ description: 'What it is' }),
        id: z.string().meta({ description: 'Its id' }),
        name: z.string().meta({ description: 'Its name at that time' }),
      })
      .meta({ description: 'What was changed' }),
    before: z.unknown().meta({ description: 'As it was; null of what is new' }),
    after: z.unknown().meta({ description: 'As it is, or what was asked for; null of what is gone' }),
    reason: z.string().nullable().meta({ description: 'As it was given; null for none' }),
    operation: id.nullable().meta({ description: 'That carries it out; null for none' }),
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
    type: z.enum(['operation', 'audit']).meta({ description: 'Which of the two below it has' }),
    at: time,
    tenant: tenantName,
    operation: z
      .object({
        id,
        kind: z.string().meta({ description: 'Kind of the operation' }),
        state: z.string().meta({ description: 'Its state behind the event' }),
        event: z.string().meta({ description: 'As `type` of the operation’s events' }),
        resource: z
          .object({
            kind: z.string().meta({ description: 'What it is' }),
            id,
            name: z.string().meta({ description: 'Its name' }),
          })
          .meta({ description: 'What the operation is about' }),
        error: z.string().nullable().meta({ description: 'Of the attempt that ended; null for none' }),
      })
      .optional()
      .meta({ description: 'Of the type operation' }),
    audit: auditEntry.optional().meta({ description: 'Of the type audit' }),
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
