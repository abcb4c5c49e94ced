import { auditRoutes } from '#admin/contract/overview';
import { withApi } from '../api/api-command.js';
import { ApiError } from '../api/api-error.js';
import { command, noun, text } from '../command-line/command.js';
import { listing } from './api-commands.js';
import { OVER_API } from './options.js';
import { sinceAndUntil } from './times.js';

const filters = {
  tenant: text('name', 'about one tenant'),
  actor: text('name', 'by one user, as it logs in'),
  action: text('action', 'for example tenant.suspend, or how it begins: tenant.'),
  subject: text('name', 'about one thing, by its name or id'),
  ...sinceAndUntil('written'),
};

export const AUDIT = noun('audit', 'who changed what', [
  {
    ...listing('the newest first', '--action session. --since yesterday', {
      route: auditRoutes.list,
      most: 50,
      filters,
      none: 'no such entries',
      columns: {
        AT: row => row.at,
        TENANT: row => row.tenant,
        WHO: row => (row.actor.kind === 'token' ? `${row.actor.name} (token ${row.actor.token})` : row.actor.name),
        DOOR: row => row.door ?? '',
        FROM: row => row.actor.address,
        ACTION: row => row.action,
        WHAT: row => row.subject.name || row.subject.id,
        REASON: row => row.reason ?? '',
      },
    }),
    was: ['audit'],
  },
  command('export', 'all of it, one JSON object a line, the oldest first', '--tenant acme > audit.ndjson', {
    was: ['audit --export'],
    options: { ...filters, url: OVER_API.url, tokenFile: OVER_API.tokenFile },
    run: ({ url, tokenFile, ...query }) =>
      withApi({ url, tokenFile }, async api =>
        copyLines(await api.stream(auditRoutes.export, { query }, new AbortController().signal)),
      ),
  }),
]);

/** As fast as whoever reads them takes them. A log that ends in the middle of a line is no log. */
async function copyLines(body: AsyncIterable<Uint8Array>): Promise<void> {
  let last = 0x0a;
  try {
    for await (const chunk of body) {
      if (chunk.length > 0) last = chunk[chunk.length - 1]!;
      if (!process.stdout.write(chunk)) await new Promise(resolve => process.stdout.once('drain', resolve));
    }
  } catch {
    throw ApiError.broken('the connection broke: what was written is not the whole log');
  }
  if (last !== 0x0a) throw ApiError.broken('the answer ended in the middle of a line: it is not the whole log');
}
