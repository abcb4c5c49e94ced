import { type Command, Option } from 'commander';
import { OPERATION_STATES, type OperationReply, operationRoutes } from '#admin/contract/operations';
import { type ApiOptions, overApi, withApi } from '../api/api-command.js';
import { describeOperation } from '../api/describe-operation.js';
import { ago, limitOf, listed, say, sayJson, showOne, showPage } from '../api/output.js';
import { watchAll, watchOne } from '../api/watch.js';

interface ListOptions extends ApiOptions {
  limit: number;
  state?: string;
  kind?: string;
  tenant?: string;
  backend?: string;
  resource?: string;
  error?: string;
  since?: string;
  until?: string;
  stuck?: boolean;
  oldest?: boolean;
}

export function register(program: Command): void {
  const operations = program.command('operations').description('the work that Trivet has accepted, over its API');
  const command = (name: string, description: string): Command =>
    overApi(operations.command(name).description(description));

  command('list', 'the newest first')
    .option('--state <states>', `one or several, with commas: ${OPERATION_STATES.join(', ')}`)
    .option('--kind <kind>', 'for example volume.create, or all of volume')
    .option('--tenant <name>', 'of one tenant')
    .option('--backend <name>', 'at one backend')
    .option('--resource <name>', 'about one thing, by its name or id')
    .option('--error <kind>', 'whose last attempt ended so, for example unavailable')
    .option('--since <time>', 'accepted at it or later; RFC 3339')
    .option('--until <time>', 'accepted before it')
    .option('--stuck', 'those that wait for a person, or have failed more than three times')
    .option('--oldest', 'the oldest first')
    .option('--limit <n>', 'how many', limitOf, 20)
    .action(({ url, tokenFile, json, limit, stuck, oldest, ...filters }: ListOptions) =>
      withApi({ url, tokenFile }, async api => {
        const query = {
          ...filters,
          ...(stuck ? { stuck: 'true' as const } : {}),
          ...(oldest ? { sort: 'createdAt' as const } : {}),
        };
        const page = await listed(api, operationRoutes.list, { query } as never, limit);
        showPage(page as { items: OperationReply[]; next: string | null }, {
          json,
          none: 'no such operations',
          columns: {
            ID: row => row.id,
            TENANT: row => row.tenant,
            KIND: row => row.kind,
            RESOURCE: row => row.resource.name,
            STATE: row => (row.waitsForBackend ? 'waits for backend' : row.state),
            ATTEMPT: row => String(row.attempt),
            AGE: row => ago(row.createdAt),
            ERROR: row => row.error?.message ?? '',
          },
        });
      }),
    );
  command('show', 'its steps, attempts, lease and next retry, and what can be done')
    .argument('<id>')
    .action((id: string, options: ApiOptions) =>
      withApi(options, async api => {
        const { reply } = await api.call(operationRoutes.get, { params: { operation: id } });
        showOne(reply, options.json, () => describeOperation(reply));
      }),
    );
  command('watch', 'what happens, live; or one operation to its end, which gives the exit code')
    .argument('[id]')
    .addOption(new Option('--tenant <name>', 'of one tenant'))
    .action((id: string | undefined, options: ApiOptions & { tenant?: string }) =>
      withApi(options, async api => {
        process.exitCode = await (id === undefined ? watchAll(api, options) : watchOne(api, id, options));
      }),
    );
  act(command('retry', 'try again now what waits, after what held it back was mended'), 'retry');
  act(command('cancel', 'ask one to stop, and to undo what it did'), 'cancel');
  act(command('resolve', 'end one that waits for a person as failed'), 'resolve');
  act(command('release', 'take one from its worker by force'), 'release');
}

type Verb = 'retry' | 'cancel' | 'resolve' | 'release';

const SAID: Readonly<Record<Verb, string>> = {
  retry: 'runs again within seconds',
  cancel: 'was asked to stop',
  resolve: 'has ended as failed',
  release: 'was taken from its worker, and begins again',
};

/** The argument, options and action of a verb. */
export function act(command: Command, verb: Verb): void {
  command.argument('<id...>', 'one or several');
  if (verb === 'retry') command.option('--reason <text>', 'why; kept in the audit log');
  else command.requiredOption('--reason <text>', 'why; kept in the audit log');
  command.action((ids: string[], options: ApiOptions & { reason?: string }) => actOn(verb, ids, options));
}

export const actOn = (verb: Verb, ids: readonly string[], options: ApiOptions & { reason?: string }): Promise<void> =>
  withApi(options, async api => {
    const { reason } = options;
    const replies: OperationReply[] = [];
    for (const operation of ids) {
      const body = { ...(reason === undefined ? {} : { reason }) } as { reason: string };
      const { reply } = await api.call(operationRoutes[verb], { params: { operation }, body });
      replies.push(reply);
      if (!options.json) say(`${operation} ${SAID[verb]}`);
    }
    if (options.json) sayJson(replies.length === 1 ? replies[0] : replies);
  });
