import { accessRoutes } from '#admin/contract/buckets';
import type { ReplyOf } from '#admin/contract/route';
import { facts, showOne } from '../api/output.js';
import { initially, needed, noun, one, parsed, text } from '../command-line/command.js';
import { listing, ofTenant } from './api-commands.js';
import { reason, wholeNumber } from './options.js';

const ID = '0198c0de-0000-7000-8000-000000000000';
const access = one('its id, as `access list` shows it');
const why = needed(reason);
const DAY = 86_400;
const YEAR = 365 * DAY;

export const ACCESS = noun('access', 'who was granted access to buckets; no command shows their keys', [
  listing('accounts with what they may reach', '--tenant acme', {
    route: accessRoutes.list,
    most: 1_000,
    filters: { search: text('text', 'part of the name') },
    none: 'nobody has access: a COSI client asks for it',
    columns: {
      NAME: row => row.name,
      STATE: row => (row.stale ? 'stale' : row.state),
      BACKEND: row => row.backend,
      BUCKETS: row => row.grants.map(grantText).join(', '),
      'FORMER KEY UNTIL': row => row.formerKeyUntil ?? '',
      'KEY CHANGES': row => row.rotatesAt ?? '',
      ID: row => row.id,
    },
  }),
  ofTenant('show', 'one of them', `${ID} --tenant acme`, {
    args: { access },
    run: async ({ access: id, json }, api, tenant) => {
      const { reply } = await api.call(accessRoutes.get, { params: { tenant, access: id } });
      showOne(reply, json, () =>
        facts([
          ['name', reply.name],
          ['id', reply.id],
          ['account', reply.accountId],
          ['state', reply.stale ? `${reply.state}, stale: the next Grant heals it` : reply.state],
          ['backend', reply.backend],
          ...reply.grants.map((grant, at) => [at === 0 ? 'buckets' : '', grantText(grant)] as const),
          ['former key', reply.formerKeyUntil === null ? 'none' : `is let in until ${reply.formerKeyUntil}`],
          ['key changes', reply.rotatesAt ?? 'when somebody asks for it'],
          ['operation', reply.operation],
          ['granted', reply.createdAt],
        ]),
      );
    },
  }),
  ofTenant(
    'rotate',
    'change its key: the next Grant answers another one',
    `${ID} --reason "somebody left" --tenant acme`,
    {
      args: { access },
      options: {
        reason: why,
        grace: initially(
          parsed('seconds', 'so long the key that it has now is let in; 0: it ends at once', wholeNumber(0, YEAR)),
          DAY,
        ),
      },
      run: async ({ access: id, reason: said, grace, json }, api, tenant) => {
        const body = { reason: said, graceSeconds: grace };
        const { status, reply } = await api.call(accessRoutes.rotate, { params: { tenant, access: id }, body });
        showOne(reply, json, () =>
          status === 202
            ? `the key of ${reply.name} is being changed`
            : `the key of ${reply.name} is changed: the next Grant answers it; the former is let in until ${reply.formerKeyUntil ?? 'now'}`,
        );
      },
    },
  ),
  ofTenant(
    'revoke',
    'its key ends first: whoever uses it is refused',
    `${ID} --reason "the key leaked" --tenant acme`,
    {
      args: { access },
      options: { reason: why },
      run: async ({ access: id, reason: said, json }, api, tenant) => {
        const { status } = await api.call(accessRoutes.revoke, {
          params: { tenant, access: id },
          body: { reason: said },
        });
        const state = status === 202 ? 'revoking' : 'gone';
        showOne({ id, state }, json, () => (status === 202 ? `${id} is being revoked` : `${id} is revoked`));
      },
    },
  ),
]);

const grantText = ({ bucket, mode }: ReplyOf<typeof accessRoutes.get>['grants'][number]): string =>
  `${bucket} (${mode.replaceAll('_', ' ')})`;
