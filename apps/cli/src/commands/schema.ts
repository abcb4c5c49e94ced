import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PACKAGE_ROOT } from '#platform/package-root';
import { migrate } from '#platform/schema/migrate';
import { schemaText } from '#platform/schema/schema-sql';
import { postgresPart } from '../parts/postgres.js';
import { withThrowAwayParts } from '../testing/throw-away.js';
import { VERSION } from '../version.js';

export async function schema(): Promise<void> {
  const options = {
    install: false,
    only: [postgresPart],
    version: VERSION,
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
}
