import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { openApiText } from '#admin/openapi/document';
import { problemsMarkdown } from '#admin/problem-docs';
import { cbtOpenApiText } from '#cbt/openapi';
import { PACKAGE_ROOT } from '#platform/package-root';

export function register(program: Command): void {
  program
    .command('openapi')
    .description('write docs/openapi.json, docs/openapi-cbt.json and docs/problems.md, which are made of the code')
    .action(() => {
      for (const [file, text] of [
        ['openapi.json', openApiText()],
        ['openapi-cbt.json', cbtOpenApiText()],
        ['problems.md', problemsMarkdown()],
      ] as const) {
        writeFileSync(join(PACKAGE_ROOT, 'docs', file), text);
        process.stdout.write(`docs/${file}\n`);
      }
    });
}
