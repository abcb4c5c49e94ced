import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PACKAGE_ROOT } from '#platform/package-root';

interface Finding {
  rule: string;
  file: string;
}

/** Line of code, the rule that must refuse it, or nothing. */
const CASES: [file: string, code: string, refused: string | undefined][] = [];
const IMPORT = 'lint/style/noRestrictedImports';

const refuse = (room: string, module: string, names = '{ a }') =>
  CASES.push([`libs/${room}/src`, `import ${names} from '${module}';\nexport const b = [a];`, IMPORT]);
const allow = (room: string, module: string, names = '{ a }') =>
  CASES.push([`libs/${room}/src`, `import ${names} from '${module}';\nexport const b = [a];`, undefined]);

const ROOMS = ['admin', 'cbt', 'cosi', 'csp'];
for (const room of ROOMS) {
  for (const other of ROOMS) (other === room ? allow : refuse)(room, `#${other}/anything`);
  refuse(room, '#backends/rgw/rgw-kind');
  refuse(room, '#backends/fake/fake-kind');
  refuse(room, '#backends/registry');
  refuse(room, 'bullmq');
  refuse(room, '@aws-sdk/client-s3');
  allow(room, '#backends/object-backend');
  allow(room, '#storage/object-storage');
  allow(room, '@nestjs/common');
}
for (const domain of ['storage', 'operations', 'changes']) {
  for (const module of ['@nestjs/microservices', '@nestjs/platform-fastify', 'fastify', '@grpc/grpc-js'])
    refuse(domain, module);
  for (const room of ROOMS) refuse(domain, `#${room}/anything`);
  refuse(domain, '#backends/rgw/rgw-kind');
  refuse(domain, '@aws-sdk/client-s3');
}
for (const room of ROOMS) (room === 'admin' ? allow : refuse)(room, '#backends/kind-forms');
allow('storage', '#backends/object-backend');
allow('storage', '#operations/accept');
refuse('operations', '#storage/caller');
refuse('operations', '#backends/object-backend');
refuse('backends', '#storage/caller');
refuse('backends', '#operations/accept');
allow('backends', '@smithy/signature-v4');
allow('operations', 'bullmq');
for (const room of ['backends', 'tenancy']) {
  for (const module of ['@nestjs/microservices', 'fastify', '@grpc/grpc-js']) refuse(room, module);
  for (const protocol of ROOMS) refuse(room, `#${protocol}/anything`);
}
for (const above of ['storage', 'operations', 'changes']) refuse('tenancy', `#${above}/anything`);
refuse('tenancy', '#backends/object-backend');
for (const room of ['storage', 'changes', 'backends', 'tenancy', 'platform']) refuse(room, 'bullmq');
for (const room of ['tenancy', 'platform']) refuse(room, '@aws-sdk/client-s3');
refuse('platform', '../../cosi/src/cosi.module');
for (const room of [...ROOMS, 'storage', 'operations', 'backends', 'tenancy', 'changes']) {
  refuse(room, 'pg');
  refuse(room, 'ioredis');
  refuse(room, 'typeorm', '{ DataSource as a }');
  refuse(room, 'typeorm', '* as a');
  refuse(room, 'typeorm', 'a');
  allow(room, 'typeorm', '{ Entity as a }');
  refuse(room, '../../platform/src/database');
  refuse(room, 'node:process', '{ env as a }');
  refuse(room, 'node:process', 'a');
  refuse(room, 'node:process', '* as a');
  allow(room, '#platform/errors');
  CASES.push(
    [`libs/${room}/src`, 'export const b = process.env.TRIVET_HOME;', 'lint/style/noProcessEnv'],
    [`libs/${room}/src`, "export const b = await import('typeorm');", IMPORT],
    [`libs/${room}/src`, "export const b = await import('node:process');", IMPORT],
  );
}
for (const room of ['cosi', 'storage', 'operations', 'backends', 'tenancy', 'admin'])
  refuse('platform', `#${room}/anything`);
allow('platform', 'pg');
allow('platform', 'ioredis');
allow('platform', 'typeorm', '{ DataSource as a }');
CASES.push(
  ['apps/gateway/src', "import { a } from 'pg';\nexport const b = a;", IMPORT],
  ['apps/worker/src', "import { a } from 'bullmq';\nexport const b = a;", IMPORT],
  ['apps/gateway/src', "import { a } from '@aws-sdk/client-s3';\nexport const b = a;", IMPORT],
  ['apps/gateway/src', "import { DataSource } from 'typeorm';\nexport const b = DataSource;", IMPORT],
  ['apps/gateway/src', "import { env } from 'node:process';\nexport const b = env;", IMPORT],
  ['apps/gateway/src', "import { a } from '../../../libs/cosi/src/cosi.module.js';\nexport const b = a;", IMPORT],
  ['apps/gateway/src', "import { a } from '#cosi/cosi.module';\nexport const b = a;", undefined],
  ['apps/cli/src', "import { DataSource } from 'typeorm';\nexport const b = DataSource;", IMPORT],
  ['apps/cli/src', "import { a } from 'bullmq';\nexport const b = a;", IMPORT],
  ['apps/cli/src', "import { env } from 'node:process';\nexport const b = env;", IMPORT],
  ['apps/cli/src', "import { a } from '../../../libs/cosi/src/cosi.module.js';\nexport const b = a;", IMPORT],
  ['apps/dashboard/src', "import type { a } from '#platform/errors';\nexport const b = {} as a;", IMPORT],
  ['apps/dashboard/src', "import { a } from '../../../libs/platform/src/errors';\nexport const b = a;", IMPORT],
  ['apps/dashboard/src', "import { a } from 'node:fs';\nexport const b = a;", IMPORT],
  ['apps/dashboard/src', "import type { a } from '#admin/contract/common';\nexport const b = {} as a;", undefined],
  ['apps/worker/src', "import { a } from '#backends/rgw/rgw-kind';\nexport const b = a;", undefined],
  ['libs/storage/src', 'async function f(): Promise<void> {}\nf();', 'lint/nursery/noFloatingPromises'],
  ['libs/storage/src', 'async function f(): Promise<void> {}\nvoid f();', undefined],
);

describe('the arrows of the house', () => {
  const folder = mkdtempSync(join(tmpdir(), 'trivet-rules-'));
  const fileOf = (index: number) => join(CASES[index]![0], `case-${index}.ts`);
  let findings: Finding[];

  beforeAll(() => {
    copyFileSync(join(PACKAGE_ROOT, 'biome.json'), join(folder, 'biome.json'));
    symlinkSync(join(PACKAGE_ROOT, 'node_modules'), join(folder, 'node_modules'));
    for (const [index, [, code]] of CASES.entries()) {
      const file = join(folder, fileOf(index));
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, code);
    }
    findings = lint(folder);
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it.each(CASES.map(([where, code, refused], index) => ({ index, where, code: code.split('\n').at(0), refused })))(
    '$where: $code → $refused',
    ({ index, refused }) => {
      const rules = findings.filter(({ file }) => file.endsWith(fileOf(index))).map(({ rule }) => rule);
      expect(rules).toEqual(refused === undefined ? [] : [refused]);
    },
  );
});

describe('the environment', () => {
  it('is read in two files only, whatever a comment may excuse', () => {
    const readers = globSync('{apps,libs}/*/src/**/*.ts', { cwd: PACKAGE_ROOT })
      .filter(file => !file.endsWith('.spec.ts'))
      .filter(file => /\bprocess\.env\b/.test(readFileSync(join(PACKAGE_ROOT, file), 'utf8')));
    expect(readers.sort()).toEqual(['apps/cli/src/environment.ts', 'libs/platform/src/config.ts']);
  });
});

/** Linter errors of the rules above; other rules have no say here. */
function lint(folder: string): Finding[] {
  const biome = join(PACKAGE_ROOT, 'node_modules', '@biomejs', 'biome', 'bin', 'biome');
  const only = [IMPORT, 'lint/style/noProcessEnv', 'lint/nursery/noFloatingPromises'];
  const args = ['lint', '--vcs-enabled=false', '--max-diagnostics=none', '--reporter=json', '--diagnostic-level=error'];
  let out: string;
  try {
    out = execFileSync(process.execPath, [biome, ...args, ...only.map(rule => `--only=${rule.slice(5)}`), '.'], {
      cwd: folder,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
      maxBuffer: 64 * 1024 * 1024,
    });
  } catch (error) {
    out = (error as { stdout: string }).stdout;
  }
  const report = JSON.parse(out) as {
    diagnostics: { category: string; location: { path: string | { file: string } } }[];
  };
  return report.diagnostics.map(({ category, location }) => ({
    rule: category,
    file: typeof location.path === 'string' ? location.path : location.path.file,
  }));
}
