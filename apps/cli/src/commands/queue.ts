import { Argument, type Command } from 'commander';
import { workerRoutes } from '#admin/contract/operations';
import type { ReplyOf } from '#admin/contract/route';
import { type ApiOptions, overApi, withApi } from '../api/api-command.js';
import { sayJson, showOne, showPage, span } from '../api/output.js';

type Queue = ReplyOf<typeof workerRoutes.queues>['items'][number];
const CLASSES = ['fast', 'copy', 'destroy', 'index'] as const;

export function register(program: Command): void {
  const queue = program
    .command('queue')
    .description('classes of operations: how many wait and run; pause and resume them');
  const command = (name: string, description: string): Command => overApi(queue.command(name).description(description));

  command('list', 'all of them').action((options: ApiOptions) =>
    withApi(options, async api => {
      const { reply } = await api.call(workerRoutes.queues);
      if (options.json) return sayJson(reply);
      showPage<Queue>(
        { items: reply.items, next: null },
        {
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
        },
      );
    }),
  );
  change(command('pause', 'begin none of them any more; what runs ends, what comes waits'), true);
  change(command('resume', 'go on'), false);
}

function change(command: Command, paused: boolean): void {
  command.addArgument(new Argument('<class>', 'of operations').choices(CLASSES));
  if (paused) command.requiredOption('--reason <text>', 'why; shown to everybody who waits');
  else command.option('--reason <text>', 'why; kept in the audit log');
  command.action((name: Queue['class'], { reason, ...options }: ApiOptions & { reason?: string }) =>
    withApi(options, async api => {
      const body = { paused, ...(reason === undefined ? {} : { reason }) };
      const { reply } = await api.call(workerRoutes.changeQueue, { params: { class: name }, body });
      const { waiting, running } = reply;
      showOne(
        reply,
        options.json,
        () => `${name} is ${paused ? 'paused' : 'running'}: ${waiting} wait, ${running} run`,
      );
    }),
  );
}
