import { ALERT_RULES, type AlertDetailReply, alertRoutes } from '#admin/contract/alerts';
import { ago, facts, showOne } from '../api/output.js';
import { choice, noun, one, text } from '../command-line/command.js';
import { listing, overApi } from './api-commands.js';

const args = { id: one('as `alert list` shows it') };

export const ALERT = noun('alert', 'what is wrong with the appliance, and who was told', [
  listing('those that are open, acknowledged and ended, the newest first', '--state open', {
    route: alertRoutes.list,
    most: 50,
    none: 'nothing is wrong, and was in 90 days',
    filters: {
      state: choice('state', ['open', 'acknowledged', 'ended'], 'only those'),
      rule: choice('rule', ALERT_RULES, 'only of this one'),
      severity: choice('severity', ['warning', 'error'], 'only those'),
    },
    columns: {
      STATE: row => (row.silenced ? `${row.state}, silenced` : row.state),
      SEVERITY: row => row.severity,
      RULE: row => row.rule,
      SINCE: row => `${ago(row.since)} ago`,
      BY: row => row.acknowledged?.by ?? '-',
      WHAT: row => row.what,
      ID: row => row.id,
    },
  }),
  overApi('show', 'one of them, what to do about it, and who was told', '0198c0de-0000-7000-8000-000000000000', {
    args,
    run: async ({ id, json }, api) => {
      const { reply } = await api.call(alertRoutes.get, { params: { alert: id } });
      showOne(reply, json, () => described(reply));
    },
  }),
  overApi(
    'acknowledge',
    'say that you look after it: nobody else is told of it',
    '0198c0de-0000-7000-8000-000000000000 --note "on my way"',
    {
      args,
      options: { note: text('text', 'what those are told who were told of it') },
      run: async ({ id, note, json }, api) => {
        const body = note === undefined ? {} : { note };
        const { reply } = await api.call(alertRoutes.acknowledge, { params: { alert: id }, body });
        showOne(reply, json, () => `${reply.rule} is acknowledged by ${reply.acknowledged?.by}: ${reply.what}`);
      },
    },
  ),
]);

const described = (alert: AlertDetailReply): string =>
  [
    facts([
      ['what', alert.what],
      ['means', alert.means],
      ['to do', alert.todo],
      ['rule', `${alert.rule}, ${alert.severity}`],
      ['object', alert.object],
      ['state', alert.silenced ? `${alert.state}, silenced` : alert.state],
      ['since', alert.since],
      ['acknowledged', alert.acknowledged && `${alert.acknowledged.at} by ${alert.acknowledged.by}`],
      ['note', alert.acknowledged?.note],
      ['ended', alert.endedAt],
    ]).trimEnd(),
    ...alert.deliveries.map(
      ({ receiver, event, state, attempts, error, sentAt, createdAt }) =>
        `told ${receiver} that it ${event === 'opened' ? 'is there' : event}: ${state} ${sentAt ?? createdAt}, ${attempts} tries${error ? `; ${error}` : ''}`,
    ),
  ].join('\n');
