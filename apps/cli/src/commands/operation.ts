import {
  OPERATION_STATES,
  type OperationDetailReply,
  type OperationReply,
  operationRoutes,
} from '#admin/contract/operations';
import type { ApiClient } from '../api/api-client.js';
import { describeOperation } from '../api/describe-operation.js';
import { ago, say, sayJson, showOne } from '../api/output.js';
import { progressLine, watchAll, watchOne } from '../api/watch.js';
import { type Watched, watchChanges } from '../api/watch-changes.js';
import { choiceList, flag, many, maybe, needed, noun, one, text } from '../command-line/command.js';
import { listing, overApi } from './api-commands.js';
import { reason, WATCH } from './options.js';
import { sinceAndUntil } from './times.js';

const ids = many('one or several');
const EXAMPLE = '0198c0de-0000-7000-8000-000000000000';

export const OPERATION = noun('operation', 'the work that Trivet has accepted', [
  listing('the newest first', '--stuck', {
    route: operationRoutes.list,
    most: 20,
    filters: {
      state: choiceList('states', OPERATION_STATES, 'one or several, with commas'),
      kind: text('kind', 'for example volume.create, or all of volume'),
      tenant: text('name', 'of one tenant'),
      backend: text('name', 'at one backend'),
      resource: text('name', 'about one thing, by its name or id'),
      related: text('id', 'about a volume or host, its publications and snapshots; with --tenant'),
      error: text('kind', 'whose last attempt ended so, for example unavailable'),
      ...sinceAndUntil('accepted'),
      stuck: flag('those that wait for a person, or have failed more than three times'),
      oldest: flag('the oldest first'),
    },
    query: ({ oldest, ...filters }) => ({ ...filters, ...(oldest ? { sort: 'createdAt' } : {}) }),
    none: 'no such operations',
    columns: {
      ID: row => row.id,
      TENANT: row => row.tenant,
      KIND: row => row.kind,
      RESOURCE: row => row.resource.name,
      STATE: row => (row.waitsForHost ? 'waits for host' : row.waitsForBackend ? 'waits for backend' : row.state),
      ATTEMPT: row => String(row.attempt),
      AGE: row => ago(row.createdAt),
      ERROR: row => row.error?.message ?? '',
    },
    offline: ['state', 'limit', 'json'],
    runOffline: async ({ state, limit }) => ({
      items: await (await import('./operation-offline.js')).readOperations(state, limit),
    }),
  }),
  overApi('show', 'its steps, attempts, lease and next retry, and what can be done', EXAMPLE, {
    args: { id: one('as `operation list` shows it') },
    options: { watch: WATCH },
    run: async ({ id, watch, json }, api) => {
      const read = async () => (await api.call(operationRoutes.get, { params: { operation: id } })).reply;
      if (watch) return watchChanges(api, watchedOperation(id, read, json));
      const reply = await read();
      showOne(reply, json, () => describeOperation(reply));
    },
  }),
  overApi('watch', 'what happens, live; or one operation to its end, which gives the exit code', '--tenant acme', {
    args: { id: maybe('the one') },
    options: { tenant: text('name', 'of one tenant') },
    run: async ({ id, ...options }, api) => {
      process.exitCode = await (id === undefined ? watchAll(api, options) : watchOne(api, id, options));
    },
  }),
  overApi(
    'retry',
    'try again now what waits, after what held it back was mended',
    `${EXAMPLE} --reason "the disk is back"`,
    {
      args: { ids },
      options: { reason },
      run: (given, api) => act(api, 'retry', given, 'runs again within seconds'),
      offline: ['reason'],
      runOffline: async given => (await import('./operation-offline.js')).retryOffline(given),
    },
  ),
  ...(
    [
      ['cancel', 'ask one to stop, and to undo what it did', 'was asked to stop'],
      ['resolve', 'end one that waits for a person as failed', 'has ended as failed'],
      ['release', 'take one from its worker by force', 'was taken from its worker, and begins again'],
    ] as const
  ).map(([verb, about, said]) =>
    overApi(verb, about, `${EXAMPLE} --reason "the order was withdrawn"`, {
      args: { ids },
      options: { reason: needed(reason) },
      run: (given, api) => act(api, verb, given, said),
    }),
  ),
]);

/** To its end. */
const watchedOperation = (
  operation: string,
  read: () => Promise<OperationDetailReply>,
  json: boolean | undefined,
): Watched<OperationDetailReply> => ({
  query: { operation },
  read,
  json,
  lines: reply => describeOperation(reply).split('\n'),
  changes: (before, now) => {
    const same = JSON.stringify(before) === JSON.stringify(now);
    return same ? [] : [json ? JSON.stringify(now) : progressLine(now)];
  },
  isOver: ({ finishedAt }) => finishedAt !== null,
});

interface Given {
  ids: readonly string[];
  reason: string | undefined;
  json?: boolean;
}

async function act(
  api: ApiClient,
  verb: 'retry' | 'cancel' | 'resolve' | 'release',
  { ids: operations, reason: why, json }: Given,
  said: string,
): Promise<void> {
  const replies: OperationReply[] = [];
  for (const operation of operations) {
    const body = { reason: why } as { reason: string };
    replies.push((await api.call(operationRoutes[verb], { params: { operation }, body })).reply);
    if (!json) say(`${operation} ${said}`);
  }
  if (json) sayJson(replies.length === 1 ? replies[0] : replies);
}
