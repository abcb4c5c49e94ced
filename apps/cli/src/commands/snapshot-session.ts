import { snapshotSessionRoutes } from '#admin/contract/protection';
import { ago, facts, showOne, span } from '../api/output.js';
import { noun, one } from '../command-line/command.js';
import { listing, ofTenant } from './api-commands.js';

const EXAMPLE = '0198c0de-0000-7000-8000-000000000000 --tenant acme';
const session = one('as `snapshot-session list` shows it');

export const SNAPSHOT_SESSION = noun('snapshot-session', 'who may read changed blocks of which snapshots', [
  listing('those that are not over, never their tokens', '--tenant acme', {
    route: snapshotSessionRoutes.list,
    most: 200,
    none: 'no sessions: backup software opens them',
    columns: {
      NAME: row => row.name,
      STATE: row => row.state,
      'OPENED BY': row => row.createdBy ?? '-',
      SNAPSHOTS: row => String(row.snapshots.length),
      ENDS: row => `in ${left(row)}`,
      AGE: row => ago(row.createdAt),
      ID: row => row.id,
    },
  }),
  ofTenant('show', 'one of them, and the snapshots that it covers', EXAMPLE, {
    args: { session },
    run: async ({ session: id, json }, api, tenant) => {
      const { reply } = await api.call(snapshotSessionRoutes.get, { params: { tenant, session: id } });
      showOne(reply, json, () =>
        facts([
          ['name', reply.name],
          ['id', reply.id],
          ['state', reply.state],
          ['error', reply.error],
          ['driver', reply.driver],
          ['opened by', reply.createdBy],
          ['opened', reply.createdAt],
          ['ends', `${reply.expiresAt}, in ${left(reply)}`],
          ...reply.snapshots.map((snapshot, at) => [at === 0 ? 'snapshots' : '', covered(snapshot)] as const),
        ]),
      );
    },
  }),
  ofTenant('end', 'its token opens no stream any more; those that run are let finish', EXAMPLE, {
    args: { session },
    run: async ({ session: id, json }, api, tenant) => {
      await api.call(snapshotSessionRoutes.end, { params: { tenant, session: id } });
      showOne({ id, state: 'ended' }, json, () => `${id} is ended`);
    },
  }),
]);

const left = ({ expiresAt }: { expiresAt: string }): string => span(Math.max(0, Date.parse(expiresAt) - Date.now()));

/** What it was asked for by, and what that meant when the session became ready. */
const covered = ({ asked, id, volume }: { asked: string; id: string | null; volume: string | null }): string =>
  [asked, volume === null ? '' : ` of volume ${volume}`, id === null || id === asked ? '' : `, ${id}`].join('');
