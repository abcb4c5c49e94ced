import { hostRoutes } from '#admin/contract/volumes';
import { noun } from '../command-line/command.js';
import { listing } from './api-commands.js';

export const HOST = noun('host', 'hosts that volumes are published to', [
  listing('hosts, their initiators and how many volumes they have', '--tenant acme', {
    route: hostRoutes.list,
    most: 1_000,
    none: 'no hosts yet: CSP clients name theirs before they publish a volume',
    columns: {
      NAME: row => row.name,
      VOLUMES: row => String(row.publications),
      CHAP: row => row.chapUser ?? '-',
      INITIATORS: row => [...row.iqns, ...row.nqns, ...row.wwpns].join(' '),
      UUID: row => row.uuid,
    },
  }),
]);
