import { accessRoutes } from '#admin/contract/buckets';
import type { ReplyOf } from '#admin/contract/route';
import { EXIT } from '../api/api-error.js';
import { operationIn, PATIENCE_S, saidOf } from '../api/goes-on.js';
import { facts, showOne } from '../api/output.js';
import { toSecretFile } from '../api/secret-file.js';
import { choice, initially, needed, noun, one, parsed, repeated, text } from '../command-line/command.js';
import { LauncherError } from '../home.js';
import { listing, ofTenant } from './api-commands.js';
import { findBucket } from './bucket.js';
import { collectSetting, reason, SECRET_FILE, wholeNumber } from './options.js';

const ID = '0198c0de-0000-7000-8000-000000000000';
const access = one('its id, as `access list` shows it');
const why = needed(reason);
const DAY = 86_400;
const YEAR = 365 * DAY;
const PROTOCOLS = ['s3', 'azure', 'gcs'] as const;
const MODES = ['read_write', 'read_only', 'write_only'] as const;
type Mode = (typeof MODES)[number];

export const ACCESS = noun('access', 'who was granted access to buckets', [
  listing('accounts with what they may reach', '--tenant acme', {
    route: accessRoutes.list,
    most: 1_000,
    filters: {
      search: text('text', 'part of the name'),
      authentication: choice('how', ['key', 'service_account'], 'only those with a key, or without one'),
    },
    none: 'nobody has access: trivet access issue NAME --bucket BUCKET=read_only, or a COSI client asks for it',
    columns: {
      NAME: row => row.name,
      STATE: row => (row.stale ? 'stale' : row.state),
      BACKEND: row => row.backend,
      BUCKETS: row => row.grants.map(grantText).join(', '),
      'FORMER KEY UNTIL': row => row.formerKeyUntil ?? '',
      'KEY CHANGES': row => row.rotatesAt ?? '',
      'ENDS BY ITSELF': row => row.expiresAt ?? '',
      'SERVICE ACCOUNT': row => accountText(row) ?? '',
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
          ['key', keyText(reply)],
          ['state', reply.stale ? `${reply.state}, stale: the next Grant heals it` : reply.state],
          ['backend', reply.backend],
          ...reply.grants.map((grant, at) => [at === 0 ? 'buckets' : '', grantText(grant)] as const),
          ...(reply.serviceAccount === null ? changesOf(reply) : []),
          ['ends by itself', reply.expiresAt ?? 'never'],
          ['operation', reply.operation],
          ['granted', reply.createdAt],
        ]),
      );
    },
  }),
  ofTenant(
    'issue',
    'give a person or a program a key of its own to buckets',
    'report --bucket photos=read_only --output report.key --tenant acme',
    {
      args: { name: one('what it is for') },
      options: {
        bucket: needed(
          repeated(parsed('bucket=mode', 'read_write, read_only or write_only; again for each', collectSetting)),
        ),
        protocol: choice('protocol', PROTOCOLS, 'the first one that the backend speaks when absent'),
        rotateAfter: parsed('seconds', 'its key is changed so often by itself', wholeNumber(3_600)),
        rotateGrace: parsed('seconds', 'so long the former is let in; half of that when absent', wholeNumber(0)),
        output: SECRET_FILE,
      },
      run: async ({ name, bucket, protocol, rotateAfter, rotateGrace, output, json }, api, tenant) => {
        const buckets: { bucket: string; mode: Mode }[] = [];
        for (const [given, mode] of Object.entries(bucket))
          buckets.push({ bucket: await findBucket(api, tenant, given), mode: modeOf(mode) });
        const rotation = rotationOf(rotateAfter, rotateGrace);
        await toSecretFile(output, async write => {
          const body = { name, protocol, buckets, ...(rotation && { rotation }) };
          const answer = await api.call(accessRoutes.issue, { params: { tenant }, body, waitSeconds: PATIENCE_S });
          const { key, ...reply } = answer.reply;
          if (key === null) {
            const later = `trivet access key ${reply.id} --reason REASON --tenant ${tenant}`;
            showOne(reply, json, () => saidOf(operationIn(answer), later, `${name} is being granted, then: ${later}`));
            if (write) throw new LauncherError(`its key is not there yet, later: ${later}`, EXIT.later);
            return;
          }
          tellKey(write, output, json, { ...reply, key }, `${name} (${reply.id}) is granted`);
        });
      },
    },
  ),
  ofTenant('key', 'show the key that an issued one has now; the audit log says so', `${ID} --reason "it was moved"`, {
    args: { access },
    options: { reason: why, output: SECRET_FILE },
    run: async ({ access: id, reason: said, output, json }, api, tenant) =>
      toSecretFile(output, async write => {
        const params = { tenant, access: id };
        const { reply } = await api.call(accessRoutes.key, { params, body: { reason: said } });
        tellKey(write, output, json, { id, key: reply }, `the key of ${id}`);
      }),
  }),
  ofTenant(
    'rotate',
    'change its key: the next Grant, or `access key`, answers another one',
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

type Key = ReplyOf<typeof accessRoutes.key>;

/** At the terminal in lines, in a file as the API says it. */
function tellKey(
  write: ((secret: string) => void) | undefined,
  output: string | undefined,
  json: boolean | undefined,
  { key, ...rest }: { id: string; key: Key },
  said: string,
): void {
  write?.(JSON.stringify(key, null, 2));
  if (write) showOne({ ...rest, file: output }, json, () => `${said}; its key is in ${output}`);
  else showOne({ ...rest, key }, json, () => `${said}\n${facts(Object.entries(key))}`);
}

function modeOf(given: string): Mode {
  const mode = MODES.find(known => known === given);
  if (mode === undefined)
    throw new LauncherError(`--bucket: there are ${MODES.join(', ')}, and no ${given}`, EXIT.data);
  return mode;
}

function rotationOf(afterSeconds: number | undefined, grace: number | undefined) {
  if (afterSeconds === undefined && grace !== undefined)
    throw new LauncherError('--rotate-grace comes with --rotate-after', EXIT.data);
  return afterSeconds === undefined
    ? undefined
    : { afterSeconds, graceSeconds: grace ?? Math.min(DAY, Math.floor(afterSeconds / 2)) };
}

type Access = ReplyOf<typeof accessRoutes.get>;

const accountText = ({ serviceAccount }: Access): string | undefined =>
  serviceAccount === null ? undefined : `${serviceAccount.namespace}/${serviceAccount.name}`;

function keyText(access: Access): string {
  const account = accountText(access);
  if (account !== undefined) return `none: service account ${account} comes in as ${access.serviceAccount?.as}`;
  return access.issued ? 'trivet access key shows it' : 'with the driver that it was granted to';
}

const changesOf = ({ formerKeyUntil, rotatesAt }: Access): readonly (readonly [string, string])[] => [
  ['former key', formerKeyUntil === null ? 'none' : `is let in until ${formerKeyUntil}`],
  ['key changes', rotatesAt ?? 'when somebody asks for it'],
];

const grantText = ({ bucket, mode }: Access['grants'][number]): string => `${bucket} (${mode.replaceAll('_', ' ')})`;
