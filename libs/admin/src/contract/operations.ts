import { z } from 'zod';
import { backendName, count, id, listOf, name, pageOf, paging, reason, tenantName, time } from '#admin/contract/common';
import { route } from '#admin/contract/route';

const tag = 'operations';
export const OPERATION_STATES = ['pending', 'running', 'succeeded', 'failed', 'cancelled', 'needs_attention'] as const;

export const storedError = z
  .object({
    kind: z.string().meta({ description: 'Stable; for programs' }),
    message: z.string().meta({ description: 'For people' }),
    retry: z
      .enum(['never', 'later', 'person'])
      .meta({ description: 'Whether it is tried again by itself, or a person has to look' }),
  })
  .nullable();

export const operation = z
  .object({
    id,
    tenant: tenantName,
    kind: z.string().meta({ description: 'What it is about, and what is done', examples: ['volume.create'] }),
    class: z.enum(['fast', 'copy', 'destroy', 'index']).meta({ description: 'Class of the queue that it waits in' }),
    state: z.enum(OPERATION_STATES).meta({ description: 'needs_attention: it waits for a person' }),
    resource: z
      .object({
        kind: z.string().meta({ description: 'As in the kind of the operation' }),
        id,
        name: z.string().meta({ description: 'As it was called when the operation was accepted' }),
      })
      .meta({ description: 'What it is about' }),
    backend: z.string().meta({ description: 'Name of the backend; empty for what is about several' }),
    actor: z
      .string()
      .nullable()
      .meta({ description: 'Who asked for it: a login, an API token, or a door; null for what comes by itself' }),
    step: z.string().nullable().meta({ description: 'That is under way, or was reached; null before the first' }),
    attempt: count.meta({ description: 'How often it was begun' }),
    crashes: count.meta({ description: 'Attempts that ended with their worker' }),
    error: storedError.meta({ description: 'Of the last attempt' }),
    cancelRequested: z.boolean().meta({ description: 'Somebody asked it to stop' }),
    createdAt: time,
    startedAt: time.nullable().meta({ description: 'When it was first begun; null until then' }),
    finishedAt: time.nullable().meta({ description: 'When it ended; null until then' }),
    nextRunAt: time.nullable().meta({
      description: 'Of an operation that waits for its next attempt; null while it waits for its backend or its host',
    }),
    waitsForBackend: z
      .object({ reason: z.string().meta({ description: 'Why it does not answer' }), nextProbeAt: time })
      .nullable()
      .meta({ description: 'Its backend does not answer: it goes on by itself once a probe is answered' }),
    waitsForHost: z
      .string()
      .nullable()
      .meta({ description: 'The storage host that has its pool is silent: it goes on by itself once that is back' }),
  })
  .meta({ id: 'Operation' });
export type OperationReply = z.output<typeof operation>;

export const operationEvent = z
  .object({
    id: z.string().meta({ description: 'As in the event stream' }),
    at: time,
    type: z.string().meta({
      description: 'Stable; for programs',
      examples: ['accepted', 'claimed', 'retry', 'succeeded', 'needs_attention', 'resolved'],
    }),
    detail: z.record(z.string(), z.unknown()).meta({ description: 'What there is to say of it, by its type' }),
  })
  .meta({ id: 'OperationEvent' });

export const operationDetail = operation
  .extend({
    events: z.array(operationEvent).meta({ description: 'Oldest first; the last 500' }),
    steps: z
      .array(
        z.object({
          name: z.string().meta({ description: 'Name of the step' }),
          state: z.enum(['done', 'current', 'waiting']).meta({ description: 'How far it is' }),
        }),
      )
      .meta({ description: 'Of its kind, in their order; empty for a kind that is unknown here' }),
    lease: z
      .object({
        worker: z.string().meta({ description: 'Host and process of the worker' }),
        until: time,
        fence: z.string().meta({ description: 'Grows with each lease; writes of an older one are refused' }),
      })
      .nullable()
      .meta({ description: 'Who has it' }),
    dispatch: z
      .object({
        number: count.meta({ description: 'How often workers were told of it' }),
        at: time.nullable().meta({ description: 'When they were told last' }),
      })
      .meta({ description: 'Of the queue' }),
    waitsFor: z
      .array(
        z.object({
          operation: id,
          kind: z.string().meta({ description: 'Its kind' }),
          slot: z.string().meta({ description: 'Slot of the resource that both need' }),
        }),
      )
      .meta({ description: 'Operations that are before it in line' }),
    items: z
      .object({
        total: count.meta({ description: 'All of them' }),
        waiting: count.meta({ description: 'Not begun' }),
        running: count.meta({ description: 'Under way' }),
        done: count.meta({ description: 'Ended well' }),
        failed: count.meta({ description: 'Refused, failed, cancelled, or before a person' }),
        skipped: count.meta({ description: 'Never begun: the bulk was stopped before' }),
        failures: z
          .array(
            z.object({
              id,
              name: z.string().meta({ description: 'Name of what it is about' }),
              operation: id.nullable().meta({ description: 'That failed; null: it was refused' }),
              message: z.string().meta({ description: 'Why' }),
            }),
          )
          .meta({ description: 'The first 20 that failed; listBulkItems has all' }),
      })
      .nullable()
      .meta({ description: 'Of a bulk, what has become of its items; null of all others' }),
    request: z.record(z.string(), z.unknown()).meta({ description: 'What was asked; it never holds a secret' }),
    result: z.unknown().meta({ description: 'What it gave; null until it succeeded' }),
    traceparent: z
      .string()
      .nullable()
      .meta({ description: 'Of the call that asked for it (W3C Trace Context); null for none' }),
    advice: z.string().nullable().meta({ description: 'What a person may do about it now' }),
    actions: z.array(z.enum(['retry', 'cancel', 'resolve', 'release'])).meta({ description: 'Possible in its state' }),
  })
  .meta({ id: 'OperationDetail' });
export type OperationDetailReply = z.output<typeof operationDetail>;

const ofOperation = z.strictObject({ operation: id });
const access = { scope: 'any', role: 'viewer' } as const;
const act = (
  verb: 'retry' | 'cancel' | 'resolve' | 'release',
  summary: string,
  description: string,
  role: 'operator' | 'admin',
) =>
  route({
    id: `${verb}Operation`,
    method: 'POST',
    path: `/operations/{operation}/${verb}`,
    tag,
    summary,
    description,
    access: { scope: 'any', role },
    params: ofOperation,
    body: z.strictObject({ reason: verb === 'retry' ? reason.optional() : reason }),
    status: 200,
    reply: operationDetail,
    refusals: [409],
    examples: [{ name: 'one', params: { operation: '{operation}' }, body: { reason: 'the backend is back' } }],
  });

export const operationRoutes = {
  list: route({
    id: 'listOperations',
    method: 'GET',
    path: '/operations',
    tag,
    summary: 'Operations, by filters',
    description:
      'In the order of their ids, which grow with the time of acceptance. A page takes no longer because little fits the filters: it may hold fewer items than asked for, even none, before the end, so go on while `next` is not null.',
    access,
    query: z.strictObject({
      ...paging,
      sort: z
        .enum(['-createdAt', 'createdAt'])
        .default('-createdAt')
        .meta({ description: 'Order; with - the newest come first' }),
      state: z
        .string()
        .transform(text => text.split(','))
        .pipe(z.array(z.enum(OPERATION_STATES)).max(6))
        .optional()
        .meta({ description: 'One or several, with commas', examples: ['pending,running'] }),
      kind: z
        .string()
        .max(64)
        .optional()
        .meta({ description: 'A kind, or its part before the dot', examples: ['volume', 'volume.create'] }),
      tenant: tenantName.optional(),
      backend: backendName.optional(),
      resource: name.optional().meta({ description: 'Id or name of what it is about' }),
      related: id.optional().meta({
        description:
          'Id of a volume or host: what was done to it, to its publications that there are, and to its newest snapshots. Administrators of the appliance name the tenant, too.',
      }),
      error: z.string().max(64).optional().meta({ description: 'Kind of the last error' }),
      since: time.optional(),
      until: time.optional(),
      stuck: z
        .enum(['true', 'false'])
        .optional()
        .meta({ description: 'Waits for a person, or has failed more than three times' }),
    }),
    status: 200,
    reply: pageOf(operation),
    examples: [
      { name: 'newest' },
      { name: 'what is stuck', query: { stuck: 'true' } },
      { name: 'of volumes', query: { kind: 'volume', limit: '10' } },
    ],
  }),
  get: route({
    id: 'getOperation',
    method: 'GET',
    path: '/operations/{operation}',
    tag,
    summary: 'One operation: its steps, attempts, lease and next retry',
    access,
    params: ofOperation,
    status: 200,
    reply: operationDetail,
    examples: [{ name: 'one', params: { operation: '{operation}' } }],
  }),
  retry: act('retry', 'Try again now', 'Of one that waits for its next attempt or for a person.', 'operator'),
  cancel: act(
    'cancel',
    'Ask it to stop',
    'It stops between two steps and undoes what it did; only kinds that can be undone.',
    'operator',
  ),
  resolve: act(
    'resolve',
    'Say that it needs no more attention',
    'Ends one that waits for a person as failed, without asking the backend. `advice` of the answer says what has become of the resource; it is free for the same call again, and what was left at the backend is for the audit to find.',
    'admin',
  ),
  release: act(
    'release',
    'Take it from its worker by force',
    'Its lease ends now: whatever its worker writes from now on is refused. Another one begins it again as soon as what the first may have sent to the backend can have no effect any more, within TRIVET_LEASE_MS.',
    'admin',
  ),
};

const task = z
  .object({
    name: z.string().meta({ description: 'Stable; for programs', examples: ['pools'] }),
    scope: z.enum(['worker', 'appliance', 'gateway']).meta({
      description:
        'worker: each worker does it, and has an entry; appliance: one worker at a time; gateway: each gateway, and here that of the one that answers',
    }),
    workerId: id.nullable().meta({
      description: 'The worker that does it; of the appliance’s, that does it at this moment; null of a gateway’s',
    }),
    state: z.enum(['ok', 'late']).meta({ description: 'late: without a success for longer than lateAfterMs' }),
    lastSuccessAt: time.nullable().meta({ description: 'null: none yet' }),
    durationMs: z.number().nullable().meta({ description: 'Of the last success' }),
    error: z.string().nullable().meta({ description: 'Of the last run, unless that succeeded' }),
    lateAfterMs: z.number().meta({ description: 'How long it may be without a success' }),
  })
  .meta({ id: 'Task' });
export type TaskReply = z.output<typeof task>;

export const workerRoutes = {
  workers: route({
    id: 'listWorkers',
    method: 'GET',
    path: '/workers',
    tag: 'workers',
    summary: 'Workers that said something within the last day',
    access: { scope: 'appliance', role: 'viewer' },
    status: 200,
    reply: z.object({
      items: z
        .array(
          z
            .object({
              id,
              host: z.string().meta({ description: 'Name of its host' }),
              pid: z.int().meta({ description: 'Its process' }),
              version: z.string().meta({ description: 'Its release' }),
              concurrency: count.meta({ description: 'Operations that it carries out at once, at most' }),
              running: count.meta({ description: 'That it has now' }),
              state: z.enum(['up', 'lost']).meta({ description: 'lost: silent for more than 15 s' }),
              startedAt: time,
              seenAt: time,
            })
            .meta({ id: 'Worker' }),
        )
        .meta({ description: 'All of them' }),
    }),
    examples: [{ name: 'all' }],
  }),
  tasks: route({
    id: 'listTasks',
    method: 'GET',
    path: '/tasks',
    tag: 'workers',
    summary: 'What workers and this gateway do without being asked, and whether it is late',
    access: { scope: 'appliance', role: 'viewer' },
    status: 200,
    reply: listOf(task),
    examples: [{ name: 'all' }],
  }),
  queues: route({
    id: 'listQueues',
    method: 'GET',
    path: '/queues',
    tag: 'workers',
    summary: 'Classes of operations, and how many wait and run',
    access: { scope: 'appliance', role: 'viewer' },
    status: 200,
    reply: listOf(queueForm()),
    examples: [{ name: 'all' }],
  }),
  changeQueue: route({
    id: 'changeQueue',
    method: 'PATCH',
    path: '/queues/{class}',
    tag: 'workers',
    summary: 'Pause or resume a class of operations',
    description: 'What runs ends; what comes waits. It holds over restarts and a wiped Redis.',
    access: { scope: 'appliance', role: 'admin' },
    params: z.strictObject({
      class: z.enum(['fast', 'copy', 'destroy', 'index']).meta({ description: 'Class of operations' }),
    }),
    body: z.strictObject({
      paused: z.boolean().meta({ description: 'true: nothing of it begins any more' }),
      reason: reason.optional(),
    }),
    status: 200,
    reply: queueForm(),
    examples: [
      { name: 'pause', params: { class: 'copy' }, body: { paused: true, reason: 'the pool is being moved' } },
      { name: 'resume', params: { class: 'copy' }, body: { paused: false } },
    ],
  }),
};

function queueForm() {
  return z
    .object({
      class: z
        .enum(['fast', 'copy', 'destroy', 'index'])
        .meta({ description: 'copy moves data, destroy removes them, index reads what changed, fast is the rest' }),
      paused: z.boolean().meta({ description: 'Nothing of it begins' }),
      reason: z.string().nullable().meta({ description: 'As it was given; null for none' }),
      changedBy: z.string().nullable().meta({ description: 'Who paused or resumed it; null: nobody yet' }),
      changedAt: time,
      waiting: count.meta({ description: 'Accepted and not begun' }),
      running: count.meta({ description: 'That a worker has' }),
      oldestWaitingMs: z
        .number()
        .nullable()
        .meta({ description: 'Age of the one that waits longest; null when none waits' }),
    })
    .meta({ id: 'Queue' });
}
