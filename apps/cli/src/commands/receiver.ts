import { receiverRoutes, type TargetBody } from '#admin/contract/alerts';
import { EXIT } from '../api/api-error.js';
import { readJsonFile } from '../api/given-file.js';
import { ago, facts, showOne } from '../api/output.js';
import { choice, flag, needed, noun, parsed, text, UsageError } from '../command-line/command.js';
import { LauncherError } from '../home.js';
import { listing, overApi } from './api-commands.js';
import { LABEL, NAME, wholeNumber } from './options.js';

const TARGET_FILE = text(
  'file',
  'where it is, in JSON: kind (webhook, slack, teams, pagerduty, smtp) and what that asks for; - is standard input',
);
const SETTINGS = {
  severity: choice('severity', ['warning', 'error'], 'the least that it is told of'),
  onlyEscalated: choice('yes|no', ['yes', 'no'], 'it is told alone of what another one escalates to it'),
  escalateTo: text('receiver', 'who is told when nobody has acknowledged; none: nobody'),
  escalateAfterMinutes: parsed('n', 'how long after', wholeNumber(1, 10_080)),
};

export const RECEIVER = noun('receiver', 'who is told of alerts', [
  listing('all of them', '', {
    route: receiverRoutes.list,
    most: 200,
    none: 'nobody is told of alerts: trivet receiver create NAME',
    columns: {
      NAME: row => row.name,
      KIND: row => row.kind,
      ADDRESS: row => row.address,
      STATE: row => (row.enabled ? (row.error === null ? 'on' : 'failing') : 'off'),
      FROM: row => (row.onlyEscalated ? 'escalated' : row.severity),
      ESCALATES: row => (row.escalation ? `${row.escalation.to} after ${row.escalation.afterMinutes} min` : '-'),
      WAITING: row => String(row.waiting),
      'LAST TAKEN': row => (row.lastSentAt === null ? 'never' : `${ago(row.lastSentAt)} ago`),
    },
  }),
  overApi('show', 'one of them, and why it does not take what it is told', 'on-call', {
    args: { name: NAME },
    run: async ({ name, json }, api) => {
      const { reply } = await api.call(receiverRoutes.get, { params: { receiver: name } });
      showOne(reply, json, () =>
        facts([
          ['name', reply.name],
          ['kind', reply.kind],
          ['address', reply.address],
          ['enabled', reply.enabled ? 'yes' : 'no'],
          ['told of', reply.onlyEscalated ? 'what is escalated to it' : `${reply.severity} and worse`],
          ['escalates', reply.escalation && `to ${reply.escalation.to} after ${reply.escalation.afterMinutes} min`],
          ['waiting', String(reply.waiting)],
          ['error', reply.error],
          ['last taken', reply.lastSentAt],
        ]),
      );
    },
  }),
  overApi('create', 'have somebody told of alerts', 'on-call --target-file pagerduty.json --severity error', {
    args: { name: LABEL },
    options: { targetFile: needed(TARGET_FILE), ...SETTINGS },
    run: async ({ name, targetFile, json, ...given }, api) => {
      const body = { name, target: targetIn(targetFile), ...settingsOf(given) };
      const { reply } = await api.call(receiverRoutes.create, { body });
      showOne(reply, json, () => `${reply.name} is told from now on; next: trivet receiver test ${reply.name}`);
    },
  }),
  overApi('change', 'give it another target or other settings; those that are not named stay', 'on-call --off', {
    args: { name: NAME },
    options: { targetFile: TARGET_FILE, ...SETTINGS, on: flag('tell it again'), off: flag('tell it nothing') },
    run: async ({ name, targetFile, on, off, json, ...given }, api) => {
      if (on && off) throw new UsageError('give --on or --off');
      const body = {
        ...(targetFile === undefined ? {} : { target: targetIn(targetFile) }),
        ...(on || off ? { enabled: on === true } : {}),
        ...settingsOf(given),
      };
      const { get, change } = receiverRoutes;
      const changed = await api.change({ get, change }, { receiver: name }, body);
      showOne(changed, json, () => `${name} is changed`);
    },
  }),
  overApi('delete', 'tell it no more; what waits for it goes with it', 'on-call', {
    args: { name: NAME },
    run: async ({ name, json }, api) => {
      const { get, delete: change } = receiverRoutes;
      await api.change({ get, change }, { receiver: name }, undefined as never);
      showOne({ name, state: 'deleted' }, json, () => `${name} is deleted`);
    },
  }),
  overApi('test', 'send it a test, and say what became of it', 'on-call', {
    args: { name: NAME },
    run: async ({ name, json }, api) => {
      const { reply } = await api.call(receiverRoutes.test, { params: { receiver: name } });
      showOne(reply, json, () => (reply.state === 'sent' ? `${name} took it` : `${name} did not take it`));
      if (reply.state !== 'sent') throw new LauncherError(reply.error ?? 'it was not taken', EXIT.data);
    },
  }),
]);

/** The API says what is wrong with it. */
const targetIn = (file: string): TargetBody => readJsonFile('--target-file', file) as TargetBody;

function settingsOf({
  severity,
  onlyEscalated,
  escalateTo,
  escalateAfterMinutes,
}: {
  severity: 'warning' | 'error' | undefined;
  onlyEscalated: 'yes' | 'no' | undefined;
  escalateTo: string | undefined;
  escalateAfterMinutes: number | undefined;
}) {
  const none = escalateTo === 'none';
  if (!none && (escalateTo === undefined) !== (escalateAfterMinutes === undefined))
    throw new UsageError('--escalate-to and --escalate-after-minutes go together');
  return {
    ...(severity === undefined ? {} : { severity }),
    ...(onlyEscalated === undefined ? {} : { onlyEscalated: onlyEscalated === 'yes' }),
    ...(escalateTo === undefined
      ? {}
      : { escalation: none ? null : { to: escalateTo, afterMinutes: escalateAfterMinutes! } }),
  };
}
