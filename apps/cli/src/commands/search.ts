import { searchRoutes } from '#admin/contract/search';
import { showPage } from '../api/output.js';
import { initially, one, parsed } from '../command-line/command.js';
import { overApi } from './api-commands.js';
import { OUTPUT, wholeNumber } from './options.js';

export const SEARCH = overApi(
  'search',
  'find things by the beginning of a name, by id, serial number, initiator or address',
  'orders',
  {
    args: { text: one('what is looked for') },
    options: { limit: initially(parsed('n', 'how many of each kind', wholeNumber(1, 20)), 20), output: OUTPUT },
    run: async ({ text, limit, json, output }, api) => {
      const { reply } = await api.call(searchRoutes.search, { query: { q: text, limit } });
      const items = reply.groups.flatMap(({ kind, items: found }) => found.map(item => ({ kind, ...item })));
      const more = reply.groups.filter(group => group.more).map(({ kind }) => kind);
      showPage(
        { items },
        {
          json,
          output,
          none: `nothing that you may see begins with ${text}, or has it as its id or address`,
          columns: {
            KIND: row => row.kind,
            NAME: row => row.name,
            TENANT: row => row.tenant,
            STATE: row => row.state ?? '',
            DETAIL: row => row.detail ?? '',
            ID: row => row.id,
          },
        },
      );
      if (more.length > 0) process.stderr.write(`trivet: there are more of the kinds ${more.join(', ')}\n`);
    },
  },
);
