export interface Route {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** After the prefix; `{id}` names nothing. */
  path: string;
  /** A body that is understood, before anything in it is looked for. */
  body?: Record<string, unknown>;
  /** Needs no token. */
  login?: boolean;
}

const ID = '00000000-0000-4000-8000-000000000000';

/** Every route there is. */
export const ROUTES: readonly Route[] = [
  { method: 'POST', path: '/tokens', body: { username: 'nobody', password: 'x' }, login: true },
  { method: 'DELETE', path: `/tokens/${ID}` },
  { method: 'POST', path: '/hosts', body: { name: 'n', uuid: ID, iqns: ['iqn.2026-01.example.test:n'] } },
  { method: 'GET', path: '/hosts' },
  { method: 'GET', path: `/hosts/${ID}` },
  { method: 'DELETE', path: `/hosts?uuid=${ID}` },
  { method: 'DELETE', path: `/hosts/${ID}` },
  { method: 'GET', path: '/volumes' },
  { method: 'GET', path: '/volumes?name=nothing' },
  { method: 'GET', path: `/volumes/${ID}` },
  { method: 'POST', path: '/volumes', body: { name: 'unknown-properties', size: 1048576 } },
  { method: 'PUT', path: `/volumes/${ID}`, body: { description: 'd' } },
  { method: 'DELETE', path: `/volumes/${ID}` },
  { method: 'PUT', path: `/volumes/${ID}/actions/publish`, body: { host_uuid: ID, access_protocol: 'iscsi' } },
  { method: 'PUT', path: `/volumes/${ID}/actions/unpublish`, body: { host_uuid: ID } },
  { method: 'GET', path: '/snapshots' },
  { method: 'GET', path: `/snapshots?volume_id=${ID}` },
  { method: 'GET', path: `/snapshots/${ID}` },
  { method: 'POST', path: '/snapshots', body: { name: 's', volume_id: ID } },
  { method: 'DELETE', path: `/snapshots/${ID}` },
  { method: 'GET', path: '/volume_groups' },
  { method: 'GET', path: `/volume_groups/${ID}` },
  { method: 'POST', path: '/volume_groups', body: { name: 'unknown-properties' } },
  { method: 'DELETE', path: `/volume_groups/${ID}` },
  { method: 'GET', path: `/snapshot_groups?volume_group_id=${ID}` },
  { method: 'GET', path: `/snapshot_groups/${ID}` },
  { method: 'POST', path: '/snapshot_groups', body: { name: 's', volume_group_id: ID } },
  { method: 'DELETE', path: `/snapshot_groups/${ID}` },
  { method: 'GET', path: '/replication_partners' },
  { method: 'GET', path: `/replication_partners/${ID}` },
];
