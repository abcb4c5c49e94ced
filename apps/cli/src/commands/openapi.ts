import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openApiText } from '#admin/openapi/document';
import { problemsMarkdown } from '#admin/problems/problem-docs';
import { objectStoreTable, withTable } from '#backends/object-store-table';
import { objectBackendKinds } from '#backends/registry';
import { cbtOpenApiText } from '#cbt/openapi';
import { PACKAGE_ROOT } from '#platform/package-root';
import type { Table } from '../command-line/command.js';
import { verbsMarkdown } from '../verbs/verbs-markdown.js';

export function openapi(table: Table): void {
  const buckets = readFileSync(join(PACKAGE_ROOT, 'docs', 'buckets.md'), 'utf8');
  for (const [file, text] of [
    ['openapi.json', openApiText()],
    ['openapi-cbt.json', cbtOpenApiText()],
    ['problems.md', problemsMarkdown()],
    ['verbs.md', verbsMarkdown(table)],
    ['buckets.md', withTable(buckets, objectStoreTable(objectBackendKinds()))],
  ] as const) {
    writeFileSync(join(PACKAGE_ROOT, 'docs', file), text);
    process.stdout.write(`docs/${file}\n`);
  }
}
