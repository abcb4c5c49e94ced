import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { migrate } from '#platform/migrate';
import { PACKAGE_ROOT } from '#platform/package-root';
import { schemaText } from '#platform/schema-sql';
import { postgresPart } from '../parts/postgres.js';
import { withThrowAwayParts } from '../testing/throw-away.js';

export function register(program: Command): void {
  program
    .command('schema')
    .description('write docs/schema.sql, which is made of the migrations, by a PostgreSQL of its own')
    .action(async (_options, command: Command) => {
      const options = {
        install: false,
        only: [postgresPart],
        version: command.parent?.version() ?? '',
        say: (line: string): void => void process.stderr.write(`parts: ${line}\n`),
        interrupt: new AbortController(),
      };
      await withThrowAwayParts(options, async (_home, parts) => {
        await parts.start();
        const url = parts.env.TRIVET_DATABASE_OWNER_URL ?? '';
        await migrate(url);
        writeFileSync(join(PACKAGE_ROOT, 'docs', 'schema.sql'), await schemaText(url));
      });
      process.stdout.write('docs/schema.sql\n');
    });
}
