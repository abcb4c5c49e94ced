import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import openapiTS, { astToString, COMMENT_HEADER } from 'openapi-typescript';
import ts from 'typescript';
import { expect, it } from 'vitest';
import { PACKAGE_ROOT } from '#platform/package-root';

const FOLDER = join(PACKAGE_ROOT, 'docs', 'examples', 'typescript');

it('is generated from docs/openapi.json; else run `npm run example` and commit what it writes', async () => {
  const document = pathToFileURL(join(PACKAGE_ROOT, 'docs', 'openapi.json'));
  const generated = `${COMMENT_HEADER}${astToString(await openapiTS(document))}`;
  expect(generated === readFileSync(join(FOLDER, 'trivet-api.d.ts'), 'utf8')).toBe(true);
});

it('compiles: a path, parameter or field that is not there does not', () => {
  const { config } = ts.readConfigFile(join(FOLDER, 'tsconfig.json'), ts.sys.readFile);
  const { options, fileNames } = ts.parseJsonConfigFileContent(config, ts.sys, FOLDER);
  expect(fileNames.map(name => name.replace(`${FOLDER}/`, ''))).toContain('make-bucket.ts');
  const found = ts.getPreEmitDiagnostics(ts.createProgram(fileNames, options));
  expect(found.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, ' '))).toEqual([]);
});
