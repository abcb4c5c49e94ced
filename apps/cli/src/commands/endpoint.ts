import { type Command, Option } from 'commander';
import { type EndpointReply, endpointRoutes } from '#admin/contract/backends';
import { inTenant, ofTenant, type TenantOptions } from '../api/api-command.js';
import { EXIT } from '../api/api-error.js';
import { limitOf, listed, showOne, showPage } from '../api/output.js';
import { LauncherError } from '../home.js';

interface AddOptions extends TenantOptions {
  protocol: 'cosi' | 'csi';
  backend?: string;
  driverName?: string;
  group?: string;
  grantMismatch?: 'already_exists' | 'invalid_argument';
  accessModeNumbers?: 'auto' | 'r1' | 'r3';
}

export function register(program: Command): void {
  const endpoint = program
    .command('endpoint')
    .description('COSI and CSI sockets, each bound to a tenant, a backend and a driver name');
  const command = (name: string, description: string): Command =>
    ofTenant(endpoint.command(name).description(description));

  command('list', 'sockets of a tenant')
    .option('--limit <n>', 'how many', limitOf, 200)
    .action((options: TenantOptions & { limit: number }) =>
      inTenant(options, async (api, tenant) =>
        showPage(
          await listed<EndpointReply, typeof endpointRoutes.list>(
            api,
            endpointRoutes.list,
            { params: { tenant } },
            options.limit,
          ),
          {
            json: options.json,
            none: 'no sockets yet: trivet endpoint add NAME --protocol cosi --backend NAME',
            columns: {
              NAME: row => row.name,
              PROTOCOL: row => row.protocol,
              BACKEND: row => row.backend ?? '',
              DRIVER: row => row.driverName,
              STATE: row => (row.state === 'active' && !row.open ? 'not open' : row.state),
              SOCKET: row => row.socket,
              PROBLEM: row => row.problem ?? '',
            },
          },
        ),
      ),
    );
  command('add', 'open a socket; every gateway does within seconds')
    .argument('<name>', 'small letters, digits and -')
    .addOption(
      new Option('--protocol <protocol>', 'what is spoken there').choices(['cosi', 'csi']).makeOptionMandatory(),
    )
    .option('--backend <name>', 'of cosi: where its buckets are')
    .option('--driver-name <name>', 'else that of the configuration')
    .option('--group <name>', 'who may connect beside root')
    .addOption(
      new Option('--grant-mismatch <code>', 'of cosi: how a repeated grant with another content is refused').choices([
        'already_exists',
        'invalid_argument',
      ]),
    )
    .addOption(
      new Option('--access-mode-numbers <revision>', 'of cosi: how the numbers of access modes are read').choices([
        'auto',
        'r1',
        'r3',
      ]),
    )
    .action((name: string, options: AddOptions) =>
      inTenant(options, async (api, tenant) => {
        const { reply } = await api.call(endpointRoutes.create, { params: { tenant }, body: bodyOf(name, options) });
        showOne(reply, options.json, () => `${reply.name}: ${reply.socket}`);
      }),
    );
  change(command('suspend', 'close it, and keep what was made through it'), 'suspended');
  change(command('resume', 'open it again'), 'active');
  command('remove', 'close it and remove its folder; what was made through it stays')
    .argument('<name>')
    .action((name: string, options: TenantOptions) =>
      inTenant(options, async (api, tenant) => {
        const params = { tenant, endpoint: name };
        const { etag } = await api.call(endpointRoutes.get, { params });
        await api.call(endpointRoutes.delete, { params, ifMatch: etag });
        showOne({ name, state: 'removed' }, options.json, () => `${name} is removed`);
      }),
    );
}

function change(command: Command, state: EndpointReply['state']): void {
  command
    .argument('<name>')
    .option('--reason <text>', 'why; kept in the audit log')
    .action((name: string, { reason, ...options }: TenantOptions & { reason?: string }) =>
      inTenant(options, async (api, tenant) => {
        const params = { tenant, endpoint: name };
        const { etag } = await api.call(endpointRoutes.get, { params });
        const body = { state, ...(reason === undefined ? {} : { reason }) };
        const { reply } = await api.call(endpointRoutes.change, { params, body, ifMatch: etag });
        showOne(reply, options.json, () => `${reply.name} is ${reply.state}`);
      }),
    );
}

function bodyOf(name: string, options: AddOptions) {
  const { protocol, backend, driverName, group, grantMismatch, accessModeNumbers } = options;
  if (protocol === 'csi') {
    if (backend ?? grantMismatch ?? accessModeNumbers)
      throw new LauncherError(
        'a csi socket serves the snapshots of all backends: --backend and the options of cosi are not for it',
        EXIT.data,
      );
    return { name, protocol, driverName, group };
  }
  if (backend === undefined) throw new LauncherError('a cosi socket is bound to a backend: give --backend', EXIT.data);
  return { name, protocol, backend, driverName, group, grantMismatch, accessModeNumbers };
}
