import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openApiText } from '#admin/openapi/document';
import { problemsMarkdown } from '#admin/problems/problem-docs';
import { cbtOpenApiText } from '#cbt/openapi';
import { PACKAGE_ROOT } from '#platform/package-root';

export function openapi(): void {
  for (const [file, text] of [
    ['openapi.json', openApiText()],
    ['openapi-cbt.json', cbtOpenApiText()],
    ['problems.md', problemsMarkdown()],
  ] as const) {
    writeFileSync(join(PACKAGE_ROOT, 'docs', file), text);
    process.stdout.write(`docs/${file}\n`);
  }
}
