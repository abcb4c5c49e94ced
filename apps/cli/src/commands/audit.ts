import type { Command } from 'commander';
import { auditRoutes } from '#admin/contract/overview';
import type { ReplyOf } from '#admin/contract/route';
import { type ApiOptions, overApi, withApi } from '../api/api-command.js';
import { ApiError } from '../api/api-error.js';
import { limitOf, listed, showPage } from '../api/output.js';

type Entry = ReplyOf<typeof auditRoutes.list>['items'][number];

interface AuditOptions extends ApiOptions {
  export?: boolean;
  limit: number;
  tenant?: string;
  actor?: string;
  action?: string;
  subject?: string;
  since?: string;
  until?: string;
}

export function register(program: Command): void {
  overApi(program.command('audit').description('who changed what, the newest first'))
    .option('--export', 'all of it, one JSON object a line, the oldest first')
    .option('--tenant <name>', 'about one tenant')
    .option('--actor <name>', 'by one user, as it logs in')
    .option('--action <action>', 'for example tenant.suspend, or how it begins: tenant.')
    .option('--subject <name>', 'about one thing, by its name or id')
    .option('--since <time>', 'at it or later; RFC 3339')
    .option('--until <time>', 'before it')
    .option('--limit <n>', 'how many', limitOf, 50)
    .action(({ url, tokenFile, json, limit, export: whole, ...filters }: AuditOptions) =>
      withApi({ url, tokenFile }, async api => {
        if (whole) {
          const body = await api.stream(auditRoutes.export, { query: filters }, new AbortController().signal);
          return copyLines(body);
        }
        const page = await listed<Entry, typeof auditRoutes.list>(api, auditRoutes.list, { query: filters }, limit);
        showPage(page, {
          json,
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
        });
      }),
    );
}

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
