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

interface Case {
  folder: string;
  code: string;
  /** The rule that must refuse it. */
  refused: string | undefined;
}

const CASES: Case[] = [];
const POSTGRES = 'packages: pg|pg-[^/]+|ioredis';
const QUEUE = 'packages: bullmq';
const STORES = 'packages: @aws-sdk|@smithy';
const PROTOCOLS = 'packages: @nestjs/(core|microservices|platform-fastify)|fastify|@grpc|grpc-health-check';

const refuse = (folder: string, module: string, rule: string, names = '{ a }') =>
  CASES.push({ folder, code: `import ${names} from '${module}';\nexport const b = [a];`, refused: rule });
const allow = (folder: string, module: string, names = '{ a }') =>
  CASES.push({ folder, code: `import ${names} from '${module}';\nexport const b = [a];`, refused: undefined });
/** The room's own rule refuses it. */
const shut = (folder: string, module: string) => refuse(folder, module, folder.split('/').slice(0, 2).join('/'));

const PROTOCOL_ROOMS = ['admin', 'cbt', 'cosi', 'csp'];
/** Those that have a table of their folders have nothing beside those. */
const folderOf = (room: string): string => `libs/${room}/src${room === 'admin' ? '/requests' : ''}`;
const DOMAIN: Record<string, string> = {
  storage: 'libs/storage/src/block/volumes',
  changes: 'libs/changes/src',
  operations: 'libs/operations/src/queue',
  backends: 'libs/backends/src/rgw',
  tenancy: 'libs/tenancy/src/tenants',
};
for (const room of PROTOCOL_ROOMS) {
  const folder = folderOf(room);
  for (const other of PROTOCOL_ROOMS)
    (other === room ? allow : shut)(folder, `#${folderOf(other).replace(/libs.(\w+).src/, '$1')}/anything`);
  for (const adapter of ['rgw/rgw-kind', 'registry']) shut(folder, `#backends/${adapter}`);
  (room === 'admin' ? allow : shut)(folder, '#backends/kind-forms');
  for (const port of ['object-backend', 'block-backend', 'exporter', 'extent-source'])
    allow(folder, `#backends/${port}`);
  for (const below of ['storage', 'changes', 'operations', 'tenancy', 'platform']) allow(folder, `#${below}/anything`);
  for (const module of ['@nestjs/common', 'fastify', '@grpc/grpc-js']) allow(folder, module);
}
for (const [room, folder] of Object.entries(DOMAIN)) {
  for (const above of PROTOCOL_ROOMS) shut(folder, `#${above}/anything`);
  for (const module of [
    '@nestjs/microservices',
    '@nestjs/platform-fastify',
    '@nestjs/core',
    'fastify',
    '@grpc/grpc-js',
  ])
    refuse(folder, module, PROTOCOLS);
  if (room !== 'backends') shut(folder, '#backends/rgw/rgw-kind');
  if (room !== 'backends') refuse(folder, '@aws-sdk/client-s3', STORES);
}
for (const port of ['object-backend', 'block-backend', 'exporter', 'extent-source', 'registry'])
  allow(DOMAIN.storage!, `#backends/${port}`);
allow(DOMAIN.storage!, '#operations/accepting/accept');
allow(DOMAIN.changes!, '#storage/anything');
shut(DOMAIN.storage!, '#changes/anything');
for (const room of ['operations', 'backends', 'tenancy'])
  for (const above of ['storage', 'changes']) shut(DOMAIN[room]!, `#${above}/anything`);
shut(DOMAIN.operations!, '#backends/object-backend');
shut(DOMAIN.tenancy!, '#backends/object-backend');
shut(DOMAIN.tenancy!, '#operations/accepting/accept');
shut(DOMAIN.backends!, '#operations/accepting/accept');
allow(DOMAIN.backends!, '@smithy/signature-v4');
allow(DOMAIN.operations!, 'bullmq');
for (const room of [...PROTOCOL_ROOMS, 'storage', 'operations', 'backends', 'tenancy', 'changes']) {
  const folder = DOMAIN[room] ?? folderOf(room);
  refuse(folder, 'pg', POSTGRES);
  refuse(folder, 'ioredis', POSTGRES);
  if (room !== 'operations') refuse(folder, 'bullmq', QUEUE);
  for (const names of ['{ DataSource as a }', '* as a', 'a']) refuse(folder, 'typeorm', 'typeorm', names);
  for (const names of ['{ env as a }', '* as a', 'a']) refuse(folder, 'node:process', 'environment', names);
  refuse(folder, `${'../'.repeat(folder.split('/').length - 1)}platform/src/database/database`, 'subpath imports');
  allow(folder, '#platform/errors');
  CASES.push(
    {
      folder,
      code: "import type { DataSource } from 'typeorm';\nexport const b = {} as DataSource;",
      refused: undefined,
    },
    { folder, code: 'export const b = process.env.TRIVET_HOME;', refused: 'lint/style/noProcessEnv' },
    { folder, code: "export const b = await import('typeorm');", refused: 'typeorm' },
    { folder, code: "export const b = await import('node:process');", refused: 'environment' },
    { folder, code: "export const b = process.getBuiltinModule('node:process');", refused: 'environment' },
  );
}
const PLATFORM = 'libs/platform/src/database';
for (const above of ['cosi', 'storage', 'operations', 'backends', 'tenancy', 'admin', 'changes'])
  shut(PLATFORM, `#${above}/anything`);
shut(PLATFORM, '../../../cosi/src/anything');
refuse(PLATFORM, 'bullmq', QUEUE);
refuse(PLATFORM, '@aws-sdk/client-s3', STORES);
allow(PLATFORM, 'pg');
allow(PLATFORM, 'ioredis');
allow(PLATFORM, 'typeorm', '{ DataSource as a }');

for (const app of ['gateway', 'worker', 'cli']) {
  const up = app === 'cli' ? '../' : '';
  const folder = `apps/${app}/src${app === 'cli' ? '/commands' : ''}`;
  refuse(folder, 'pg', POSTGRES);
  refuse(folder, 'bullmq', QUEUE);
  (app === 'cli' ? allow : (to: string, module: string) => refuse(to, module, STORES))(folder, '@aws-sdk/client-s3');
  refuse(folder, 'typeorm', 'typeorm', '{ DataSource as a }');
  refuse(folder, 'node:process', 'environment', '{ env as a }');
  refuse(folder, `${up}../../../libs/cosi/src/anything`, 'subpath imports');
  shut(folder, `${up}../../dashboard/src/anything`);
  for (const module of ['#cosi/anything', '#backends/rgw/rgw-kind', '#backends/registry']) allow(folder, module);
}
for (const module of ['#platform/errors', '../../../libs/platform/src/errors']) shut('apps/dashboard/src', module);
allow('apps/dashboard/src', '#admin/contract/common');
allow('apps/dashboard/src', 'react');
refuse('apps/dashboard/src', 'node:fs', 'browser');

// What keeps the rules whole.
refuse('libs/new/src', '#platform/errors', 'a room without a row');
refuse(PLATFORM, '#platform/absent', 'unknown');
refuse(PLATFORM, 'vitest', 'development only');
refuse(PLATFORM, '#test/anything', 'tests');
refuse(PLATFORM, './other.spec', 'tests');
refuse(PLATFORM, 'node:module', 'createRequire', '{ createRequire as a }');
refuse(PLATFORM, '@opentelemetry/api', 'packages: @opentelemetry');
refuse('libs/csp/src', 'koffi', 'packages: koffi');
refuse(PLATFORM, './circle', 'circle', 'type { a }');

// Within a room.
for (const [above, below, own, other] of [
  [
    'libs/storage/src/block/groups',
    'libs/storage/src/block/snapshots',
    '#storage/block/groups/a',
    '#storage/block/snapshots/a',
  ],
  [
    'libs/storage/src/block/snapshots',
    'libs/storage/src/block/volumes',
    '#storage/block/snapshots/a',
    '#storage/block/volumes/a',
  ],
  [
    'libs/storage/src/block/publications',
    'libs/storage/src/block/hosts',
    '#storage/block/publications/a',
    '#storage/block/hosts/a',
  ],
  [
    'libs/storage/src/block/volumes',
    'libs/storage/src/block/pools',
    '#storage/block/volumes/a',
    '#storage/block/pools/a',
  ],
  [
    'libs/storage/src/object/accesses',
    'libs/storage/src/object/buckets',
    '#storage/object/accesses/a',
    '#storage/object/buckets/a',
  ],
] as const) {
  allow(above, other);
  refuse(below, own, 'one way');
}
refuse('libs/storage/src/new', '#platform/errors', 'no row');
refuse('libs/backends/src/s3', '#backends/rgw/a', 'one way');
refuse('apps/cli/src/command-line', '../commands/a', 'one way');
refuse('apps/cli/src/processes', '../supervisor/a', 'one way');
refuse('apps/cli/src/new', '#platform/errors', 'no row');

describe('the imports between rooms', () => {
  const folder = mkdtempSync(join(tmpdir(), 'trivet-rules-'));
  const fileOf = (index: number) => join(CASES[index]!.folder, `case-${index}.ts`);
  let findings: { rule: string; file: string }[];

  beforeAll(() => {
    for (const name of ['biome.json', 'package.json', 'tsconfig.json', '.dependency-cruiser.mjs'])
      copyFileSync(join(PACKAGE_ROOT, name), join(folder, name));
    symlinkSync(join(PACKAGE_ROOT, 'node_modules'), join(folder, 'node_modules'));
    for (const [index, { code }] of CASES.entries()) {
      const file = join(folder, fileOf(index));
      const [, module] = /(?:from |import\()'(#.*|\.{1,2}\/.*)'/.exec(code) ?? [];
      if (module !== undefined && !module.endsWith('/absent'))
        write(
          module.startsWith('#test/')
            ? join(folder, `${module.slice(1)}.ts`)
            : module.startsWith('#')
              ? join(folder, `${module.replace(/^#(\w+)/, 'libs/$1/src')}.ts`)
              : `${join(dirname(file), module)}.ts`,
          module === './circle'
            ? `import type { b } from './case-${index}.js';\nexport type a = typeof b;`
            : 'export const a = 1;',
        );
      write(file, code.replace(/(from ')(\.{1,2}\/.*)'/, "$1$2.js'"));
    }
    findings = [...lintImports(folder), ...lintRest(folder)];
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it.each(
    CASES.map(({ folder: where, code, refused }, index) => ({ index, where, code: code.split('\n').at(0), refused })),
  )('$where: $code → $refused', ({ index, refused }) => {
    const rules = findings.filter(({ file }) => file.endsWith(fileOf(index))).map(({ rule }) => rule);
    if (refused === undefined) expect(rules).toEqual([]);
    else expect(rules).toContain(refused);
  });
});

describe('promises', () => {
  const findings = (code: string) => {
    const folder = mkdtempSync(join(tmpdir(), 'trivet-promises-'));
    try {
      copyFileSync(join(PACKAGE_ROOT, 'biome.json'), join(folder, 'biome.json'));
      write(join(folder, 'libs/storage/src/case.ts'), code);
      return lintRest(folder).map(({ rule }) => rule);
    } finally {
      rmSync(folder, { recursive: true });
    }
  };

  it('are waited for, or let go of in so many words', () => {
    expect(findings('async function f(): Promise<void> {}\nf();')).toEqual(['lint/nursery/noFloatingPromises']);
    expect(findings('async function f(): Promise<void> {}\nvoid f();')).toEqual([]);
  });
});

describe('the environment', () => {
  it('is read in two files only, whatever a comment may excuse', () => {
    const readers = globSync('{apps,libs}/*/src/**/*.ts', { cwd: PACKAGE_ROOT })
      .filter(file => !file.endsWith('.spec.ts'))
      .filter(file => /\bprocess\.env\b/.test(readFileSync(join(PACKAGE_ROOT, file), 'utf8')));
    expect(readers.sort()).toEqual(['apps/cli/src/environment.ts', 'libs/platform/src/config/config.ts']);
  });
});

function write(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

/** What .dependency-cruiser.mjs refuses. */
function lintImports(folder: string): { rule: string; file: string }[] {
  const cruiser = ['dependency-cruiser', 'bin', 'dependency-cruiser.mjs'];
  const report = JSON.parse(run(folder, cruiser, ['--output-type', 'json', 'apps', 'libs'])) as {
    summary: { violations: { from: string; rule: { name: string } }[] };
  };
  return report.summary.violations.map(({ from, rule }) => ({ rule: rule.name, file: from }));
}

/** Biome's linter errors of two rules; others have no say here. */
function lintRest(folder: string): { rule: string; file: string }[] {
  const only = ['style/noProcessEnv', 'nursery/noFloatingPromises'].map(rule => `--only=${rule}`);
  const options = ['--vcs-enabled=false', '--max-diagnostics=none', '--reporter=json', '--diagnostic-level=error'];
  const report = JSON.parse(run(folder, ['@biomejs', 'biome', 'bin', 'biome'], ['lint', ...options, ...only, '.'])) as {
    diagnostics: { category: string; location: { path: string | { file: string } } }[];
  };
  return report.diagnostics.map(({ category, location: { path } }) => ({
    rule: category,
    file: typeof path === 'string' ? path : path.file,
  }));
}

/** What a program of a package writes; it ends with an error when it has found something. */
function run(cwd: string, program: readonly string[], args: readonly string[]): string {
  const command = [join(PACKAGE_ROOT, 'node_modules', ...program), ...args];
  try {
    const stdio: ['ignore', 'pipe', 'ignore'] = ['ignore', 'pipe', 'ignore'];
    return execFileSync(process.execPath, command, { cwd, encoding: 'utf8', stdio, maxBuffer: 64 * 1024 * 1024 });
  } catch (error) {
    return (error as { stdout: string }).stdout;
  }
}
