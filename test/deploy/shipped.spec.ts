import { execFileSync, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, posix } from 'node:path';
import ts from 'typescript';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PACKAGE_ROOT } from '#platform/package-root';
import { createDatabase } from '#test/support/database';

/** The build that `npm run build`, the launcher and the image share. */
const COMPILE = 'tsc -p tsconfig.build.json';
const BUNDLE = 'node bundle.mjs';
/** Nobody writes sources there, and they are large. */
const NOT_WALKED = ['node_modules', 'dist', '.git', '.trivet'];

const packageAt = (name: string): string => join(PACKAGE_ROOT, 'node_modules', name);
const text = (path: string, root = PACKAGE_ROOT): string => readFileSync(join(root, path), 'utf8');
const dockerfile = text('deploy/docker/Dockerfile');
const manifest = JSON.parse(text('package.json')) as {
  scripts: Record<string, string>;
  imports: Record<string, { types: string }>;
};

/** Files below a folder, by their paths from there. */
function filesBelow(root: string, folder = ''): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap(entry => {
    const path = posix.join(folder, entry.name);
    if (!entry.isDirectory()) return entry.isFile() ? [path] : [];
    return NOT_WALKED.includes(entry.name) ? [] : filesBelow(root, path);
  });
}

/** As Docker reads it: the last line that matches a path or a folder above it decides. */
const ignoreLines = text('.dockerignore')
  .split('\n')
  .filter(line => line !== '' && !line.startsWith('#'))
  .map(line => {
    const pattern = line
      .replace(/^!/, '')
      .replace(/[.+^${}()|[\]\\]/g, '\\$&')
      .replace(/\*\*\/|\*/g, found => (found === '*' ? '[^/]*' : '(?:.*/)?'));
    return { lets: line.startsWith('!'), pattern: new RegExp(`^${pattern}(?:/|$)`) };
  });
const isInContext = (path: string): boolean => ignoreLines.findLast(({ pattern }) => pattern.test(path))?.lets ?? true;

const sources = filesBelow(PACKAGE_ROOT);
const context = sources.filter(isInContext);
/** What suites alone have; by the names of its files it is known wherever it lies. */
const ofTests = sources.filter(path => /^test\/(fakes|failpoints)\/|^libs\/.*\/conformance\//.test(path));
const namesOfTests = new Set(ofTests.map(path => basename(path, '.ts')));
const isOfTests = (path: string): boolean =>
  /(^|\/)(test|fakes?|conformance)\/|\.spec\./.test(path) ||
  namesOfTests.has(basename(path).replace(/\.(js|js\.map|tsx?)$/, ''));

describe('the context of the image', () => {
  it('has the sources that are built, and none of tests', () => {
    for (const path of ['dist/a.js', 'node_modules/a/b.js', 'apps/dashboard/node_modules/a.js', 'test/a.ts', '.git/a'])
      expect(isInContext(path), path).toBe(false);
    expect(context).toEqual(
      expect.arrayContaining(['apps/worker/src/main.ts', 'libs/platform/src/process/failpoint.ts']),
    );
    expect(ofTests.length).toBeGreaterThan(20);
    expect(context.filter(isOfTests)).toEqual([]);
  });
});

describe('the import graph', () => {
  const mains = sources.filter(path => /^apps\/[^/]+\/src\/main\.tsx?$/.test(path));

  it('begins at each app', () => {
    expect(mains.sort()).toEqual(
      [
        'cli/src/main.ts',
        'connector/src/main.ts',
        'dashboard/src/main.tsx',
        'gateway/src/main.ts',
        'worker/src/main.ts',
      ].map(path => `apps/${path}`),
    );
  });

  it.each(mains)('from %s stays in what the image is built from, and meets no test', main => {
    const reached = reachedFrom(main);
    expect(reached.size).toBeGreaterThan(50);
    expect([...reached].filter(path => !context.includes(path) || isOfTests(path))).toEqual([]);
  });

  it.each(['gateway', 'worker'])('from the entry of tests to that of production: %s', name => {
    const reached = reachedFrom(`test/entry/${name}.ts`);
    expect(reached).toContain(`apps/${name}/src/main.ts`);
    expect(reached).toContain('test/fakes/kinds.ts');
    expect([...reached].filter(isOfTests).length).toBeGreaterThan(15);
  });
});

describe('what is built', () => {
  let folder: string;
  let shipped: string[];

  // The steps of the image, without npm and the page: that is of the same sources, as its import graph says.
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'trivet-shipped-'));
    for (const path of context) cpSync(join(PACKAGE_ROOT, path), join(folder, path));
    symlinkSync(join(PACKAGE_ROOT, 'node_modules'), join(folder, 'node_modules'));
    const compiler = join(PACKAGE_ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
    execFileSync(process.execPath, [compiler, ...COMPILE.split(' ').slice(1)], { cwd: folder, stdio: 'inherit' });
    execFileSync(process.execPath, BUNDLE.split(' ').slice(1), { cwd: folder, stdio: 'inherit' });
    const [, removed] = /&& (find libs .* -delete)$/m.exec(dockerfile)!;
    execFileSync('sh', ['-c', removed!], { cwd: folder });
    shipped = shippedFrom(folder);
  }, 180_000);
  afterAll(() => rmSync(folder, { recursive: true }));

  it('is the same for the image, for npm and for the launcher', () => {
    expect(dockerfile).toContain(`RUN npx ${COMPILE} && ${BUNDLE} && `);
    expect(manifest.scripts.build).toMatch(new RegExp(`^${COMPILE} && ${BUNDLE} && `));
    expect(text('trivet')).toContain('*) project=tsconfig.build.json ');
    expect(text('trivet')).toContain('tsc -p "$project" && node bundle.mjs $programs');
  });

  it('of a clone with tests is what the image has', () => {
    const { config } = ts.readConfigFile(join(PACKAGE_ROOT, 'tsconfig.build.json'), ts.sys.readFile);
    const { fileNames } = ts.parseJsonConfigFileContent(config, ts.sys, PACKAGE_ROOT);
    const compiled = fileNames.map(path => `dist/${path.slice(PACKAGE_ROOT.length + 1).replace(/\.ts$/, '.js')}`);
    expect(compiled.sort()).toEqual(shipped.filter(path => /^dist\/(?!programs\/).*\.js$/.test(path)).sort());
  });

  it('has what the processes need, and nothing of tests', () => {
    const programs = ['connector', 'gateway', 'trivet', 'worker'].flatMap(name =>
      ['bundle.js', 'bundle.js.map', 'js'].map(end => `dist/programs/${name}.${end}`),
    );
    const apart = ['kubernetes.bundle.js', 'kubernetes.bundle.js.map', 'build.json', 'packages.json'].map(
      file => `dist/programs/${file}`,
    );
    expect(shipped.filter(path => path.startsWith('dist/programs/')).sort()).toEqual([...programs, ...apart].sort());
    expect(shipped).toEqual(expect.arrayContaining(['package.json', 'deploy/docker/entrypoint.sh']));
    expect(shipped.filter(path => path.startsWith('libs/')).length).toBeGreaterThan(10);
    expect(shipped.filter(isOfTests)).toEqual([]);
  });

  it('runs with the packages that the image keeps, and is told of all that it reads beside itself', async () => {
    const database = await createDatabase();
    const kept = JSON.parse(text('dist/programs/packages.json', folder)) as string[];
    for (const name of ['connector', 'gateway', 'trivet', 'worker']) {
      const read = text(`dist/programs/${name}.bundle.js`, folder).matchAll(/\/node_modules\/((?:@[\w-]+\/)?[\w.-]+)/g);
      expect(new Set(kept), name).toEqual(new Set([...kept, ...[...read].map(([, found]) => found)]));
    }
    // As keep-packages.mjs leaves them.
    const alone = mkdtempSync(join(tmpdir(), 'trivet-alone-'));
    try {
      for (const path of shipped) cpSync(join(folder, path), join(alone, path));
      for (const path of ['proto', 'package.json']) cpSync(join(folder, path), join(alone, path), { recursive: true });
      mkdirSync(join(alone, 'node_modules'));
      const installed = [...kept, 'typeorm', '@aws-sdk/core'].filter(name => existsSync(packageAt(name)));
      for (const name of installed) {
        mkdirSync(dirname(join(alone, 'node_modules', name)), { recursive: true });
        cpSync(packageAt(name), join(alone, 'node_modules', name), { recursive: true });
      }
      const list = join(alone, 'dist', 'programs', 'packages.json');
      execFileSync(process.execPath, [join(PACKAGE_ROOT, 'deploy/docker/keep-packages.mjs'), list], { cwd: alone });
      expect(existsSync(join(alone, 'node_modules', 'typeorm'))).toBe(false);
      const run = (path: string, args: string[] = [], settings = {}) => {
        const env = { PATH: '/usr/bin:/bin', ...settings };
        const { status, stderr } = spawnSync(process.execPath, [join(alone, path), ...args], {
          cwd: alone,
          env,
          encoding: 'utf8',
        });
        return { status, stderr };
      };
      for (const name of ['connector', 'gateway', 'worker'])
        expect(run(`dist/programs/${name}.js`), name).toEqual({
          status: 78,
          stderr: expect.stringMatching(/: required, but not set$/m),
        });
      // What speaks to a database would look for its driver's package by itself.
      writeFileSync(join(alone, 'kek'), randomBytes(32).toString('base64'), { mode: 0o600 });
      const migrated = run('dist/programs/trivet.js', ['migrate'], {
        TRIVET_DATABASE_OWNER_URL: database.ownerUrl,
        TRIVET_KEK_FILE: join(alone, 'kek'),
      });
      expect(migrated).toEqual({ status: 0, stderr: '' });
      // Started beside the programs, of what tsc left.
      expect(run('dist/libs/backends/src/rbd/ceph-child.js')).toEqual({ status: 0, stderr: '' });
      expect(run('dist/libs/backends/src/reflink/cut-watchdog.js').stderr).toContain('Error: no orders');
    } finally {
      rmSync(alone, { recursive: true });
      await database.drop();
    }
  });

  it.each([
    ['a setting of tests', /TRIVET_(FAKE|FAILPOINT)/],
    ['the database of the fakes', /node:sqlite/],
    ['an action of failpoints', /\bFailpointError\b/],
  ])('nowhere names %s', (_what, words) => {
    expect(ofTests.some(path => words.test(text(path)))).toBe(true);
    // Of a package, the client for Kubernetes has a store of answers that nobody opens.
    const isOfPackages = (path: string) =>
      words.source === 'node:sqlite' && path === 'dist/programs/kubernetes.bundle.js';
    expect(shipped.filter(path => !isOfPackages(path) && words.test(text(path, folder)))).toEqual([]);
  });

  it.each([
    ['hookFailpoints', 'dist/libs/platform/src/process/failpoint.js'],
    ['addBackendKinds', 'dist/libs/backends/src/registry.js'],
  ])('has nobody who calls %s', (name, where) => {
    const called = new RegExp(`\\b${name}\\b`, 'g');
    const naming = shipped.filter(path => path.endsWith('.js') && called.test(text(path, folder)));
    expect(naming).toEqual([where]);
    expect(text(where, folder).match(called)).toHaveLength(1);
  });
});

/** Every source that is imported from this one, in whatever way, itself included. */
function reachedFrom(main: string): Set<string> {
  const reached = new Set<string>();
  const open = [main];
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    if (reached.has(path)) continue;
    reached.add(path);
    if (!/\.tsx?$/.test(path)) continue;
    const imported = ts.preProcessFile(text(path)).importedFiles.map(({ fileName }) => fileName);
    open.push(...imported.flatMap(specifier => sourceOf(specifier, path)));
  }
  return reached;
}

/** None for what comes from a package or from Node. */
function sourceOf(specifier: string, from: string): string[] {
  const room = Object.keys(manifest.imports).find(pattern => specifier.startsWith(pattern.slice(0, -1)));
  const path = room
    ? posix.join(manifest.imports[room]!.types.replace('*', specifier.slice(room.length - 1)))
    : specifier.startsWith('.') && posix.join(dirname(from), specifier);
  if (!path) {
    expect(specifier, `an import of ${from}`).not.toMatch(/^[#./]/);
    return [];
  }
  const stem = path.replace(/\.js$/, '');
  const found = [path, `${stem}.ts`, `${stem}.tsx`, `${path}/index.ts`, `${path}/index.tsx`].find(
    candidate => existsSync(join(PACKAGE_ROOT, candidate)) && statSync(join(PACKAGE_ROOT, candidate)).isFile(),
  );
  expect(found, `${specifier}, imported by ${from}`).toBeDefined();
  return [found!];
}

/** What the last stage copies, but for Node and packages; `built` is the folder that the stage `build` leaves. */
function shippedFrom(built: string): string[] {
  const stage = dockerfile.slice(dockerfile.lastIndexOf('\nFROM '));
  const present = [...filesBelow(built), ...filesBelow(join(built, 'dist')).map(path => `dist/${path}`)];
  return [...stage.matchAll(/^COPY (?:--from=(\w+) )?(.*) \S+$/gm)].flatMap(([, from, paths]) => {
    if (from === 'packages') {
      expect(['/app/node_modules', '/app/sbom.cdx.json']).toContain(paths);
      return [];
    }
    if (from === 'manifest') {
      // Of the image that it begins with, and all that is taken of that.
      expect(paths).toBe('/usr/local/bin/node');
      return [];
    }
    return paths!.split(' ').flatMap(path => {
      const wanted = from === 'build' ? path.replace(/^\/app\//, '') : path;
      const found = (from === 'build' ? present : context).filter(file => `${file}/`.startsWith(`${wanted}/`));
      expect(found.length, `COPY ${path}`).toBeGreaterThan(0);
      return found;
    });
  });
}
