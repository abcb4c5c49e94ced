import { type EndpointReply, endpointRoutes } from '#admin/contract/endpoints';
import { EXIT } from '../api/api-error.js';
import { facts, showOne } from '../api/output.js';
import { choice, needed, noun, text, type Values } from '../command-line/command.js';
import { LauncherError } from '../home.js';
import { deletion, listing, ofTenant, states } from './api-commands.js';
import { LABEL, NAME, reason } from './options.js';

const spoken = {
  protocol: needed(choice('protocol', ['cosi', 'csi'], 'what is spoken there')),
  backend: text('name', 'of cosi: where its buckets are'),
  driverName: text('name', 'else that of the configuration'),
  group: text('name', 'who may connect beside root'),
  grantMismatch: choice(
    'code',
    ['already_exists', 'invalid_argument'],
    'of cosi: how a repeated grant with another content is refused',
  ),
  accessModeNumbers: choice('revision', ['auto', 'r1', 'r3'], 'of cosi: how the numbers of access modes are read'),
};

export const ENDPOINT = noun('endpoint', 'COSI and CSI sockets, each bound to a tenant, a backend and a driver name', [
  listing('sockets of a tenant', '--tenant acme', {
    route: endpointRoutes.list,
    most: 200,
    none: 'no sockets yet: trivet endpoint create NAME --protocol cosi --backend NAME',
    columns: {
      NAME: row => row.name,
      PROTOCOL: row => row.protocol,
      BACKEND: row => row.backend ?? '',
      DRIVER: row => row.driverName,
      STATE: row => (row.state === 'active' && !row.open ? 'not open' : row.state),
      SOCKET: row => row.socket,
      PROBLEM: row => row.problem ?? '',
    },
  }),
  ofTenant(
    'create',
    'open a socket; every gateway does within seconds',
    'k8s --protocol cosi --backend store --tenant acme',
    {
      was: ['endpoint add'],
      args: { name: LABEL },
      options: spoken,
      run: async (given, api, tenant) => {
        const { reply } = await api.call(endpointRoutes.create, { params: { tenant }, body: bodyOf(given) });
        showOne(reply, given.json, () => `${reply.name}: ${reply.socket}`);
      },
    },
  ),
  ofTenant('show', 'one of them, and whether it is open', 'k8s --tenant acme', {
    args: { name: NAME },
    run: async ({ name, json }, api, tenant) => {
      const { reply } = await api.call(endpointRoutes.get, { params: { tenant, endpoint: name } });
      showOne(reply, json, () => describe(reply));
    },
  }),
  ofTenant('change', 'give it another driver name', 'k8s --driver-name cosi.acme.example --tenant acme', {
    args: { name: NAME },
    options: { driverName: needed(text('name', 'as the class in Kubernetes names its driver')), reason },
    run: async ({ name, driverName, reason: why, json }, api, tenant) => {
      const body = { driverName, ...(why === undefined ? {} : { reason: why }) };
      const reply = await api.change(endpointRoutes, { tenant, endpoint: name }, body);
      showOne(reply, json, () => `${reply.name} is ${reply.driverName} now`);
    },
  }),
  ...states(endpointRoutes, 'k8s --tenant acme', ({ name, state }) => `${name} is ${state}`, [
    ['suspend', 'close it, and keep what was made through it', 'suspended'],
    ['resume', 'open it again', 'active'],
  ]),
  deletion('close it and remove its folder; what was made through it stays', 'k8s --tenant acme', endpointRoutes, {
    was: ['endpoint remove'],
  }),
]);

function bodyOf({ name, protocol, backend, driverName, group, ...cosi }: { name: string } & Values<typeof spoken>) {
  const { grantMismatch, accessModeNumbers } = cosi;
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

const describe = (reply: EndpointReply): string =>
  facts([
    ['name', reply.name],
    ['id', reply.id],
    ['protocol', reply.protocol],
    ['backend', reply.backend ?? 'all of the tenant'],
    ['driver', reply.driverName],
    ['state', reply.state],
    ['socket', `${reply.socket}, ${reply.open ? 'open' : 'not open'} at the gateway that answers`],
    ['problem', reply.problem],
    ['group', reply.group],
    ['made', reply.createdAt],
    ['changed', reply.updatedAt],
  ]);
