import { ALERT_RULES, silenceRoutes } from '#admin/contract/alerts';
import { showOne } from '../api/output.js';
import { choice, needed, noun, one, parsed, text } from '../command-line/command.js';
import { listing, overApi } from './api-commands.js';
import { wholeNumber } from './options.js';

export const SILENCE = noun('silence', 'of what nobody is told for a while', [
  listing('those that are not over', '', {
    route: silenceRoutes.list,
    most: 200,
    none: 'nothing is silenced',
    columns: {
      RULE: row => row.rule ?? 'any',
      OBJECT: row => row.object ?? 'any',
      UNTIL: row => row.until,
      BY: row => row.by,
      REASON: row => row.reason,
      ID: row => row.id,
    },
  }),
  overApi(
    'create',
    'have nobody told of a rule, an object or both; what is still open at its end is told then',
    '--rule pool_filling --object acme/local/main --minutes 60 --reason "it is being enlarged"',
    {
      options: {
        rule: choice('rule', ALERT_RULES, 'any when absent'),
        object: text('object', 'as `alert show` has it; any when absent'),
        minutes: needed(parsed('n', 'for how long', wholeNumber(1, 43_200))),
        reason: needed(text('text', 'why; kept in the audit log')),
      },
      run: async ({ rule = null, object = null, minutes, reason, json }, api) => {
        const { reply } = await api.call(silenceRoutes.create, { body: { rule, object, minutes, reason } });
        showOne(reply, json, () => `${reply.rule ?? 'every rule'} is silent until ${reply.until}: ${reply.id}`);
      },
    },
  ),
  overApi('delete', 'end one before its time', '0198c0de-0000-7000-8000-000000000000', {
    args: { id: one('as `silence list` shows it') },
    run: async ({ id, json }, api) => {
      await api.call(silenceRoutes.delete, { params: { silence: id } });
      showOne({ id, state: 'deleted' }, json, () => `${id} is over`);
    },
  }),
]);
