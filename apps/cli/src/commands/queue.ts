import { workerRoutes } from '#admin/contract/operations';
import type { ApiClient } from '../api/api-client.js';
import { showOne, span } from '../api/output.js';
import { needed, noun, oneOf, text } from '../command-line/command.js';
import { listing, overApi } from './api-commands.js';
import { reason } from './options.js';

const CLASS = oneOf(['fast', 'copy', 'destroy', 'index'], 'of operations');

interface Given {
  class: 'fast' | 'copy' | 'destroy' | 'index';
  reason: string | undefined;
  json?: boolean;
}

const setPaused =
  (paused: boolean) =>
  async ({ class: name, reason: why, json }: Given, api: ApiClient): Promise<void> => {
    const { reply } = await api.call(workerRoutes.changeQueue, {
      params: { class: name },
      body: { paused, reason: why },
    });
    const { waiting, running } = reply;
    showOne(reply, json, () => `${name} is ${paused ? 'paused' : 'running'}: ${waiting} wait, ${running} run`);
  };

export const QUEUE = noun('queue', 'classes of operations: how many wait and run; pause and resume them', [
  listing('all of them', '', {
    route: workerRoutes.queues,
    none: 'no queues',
    columns: {
      CLASS: row => row.class,
      STATE: row => (row.paused ? 'paused' : 'running'),
      WAITING: row => String(row.waiting),
      RUNNING: row => String(row.running),
      OLDEST: row => (row.oldestWaitingMs === null ? '' : span(row.oldestWaitingMs)),
      BY: row => (row.paused ? (row.changedBy ?? '') : ''),
      REASON: row => (row.paused ? (row.reason ?? '') : ''),
    },
  }),
  overApi('pause', 'begin none of them any more; what runs ends, what comes waits', 'copy --reason "until the night"', {
    args: { class: CLASS },
    options: { reason: needed(text('text', 'why; shown to everybody who waits')) },
    run: setPaused(true),
  }),
  overApi('resume', 'go on', 'copy', { args: { class: CLASS }, options: { reason }, run: setPaused(false) }),
]);
