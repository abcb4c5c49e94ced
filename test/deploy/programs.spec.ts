import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { PACKAGE_ROOT, programFile } from '#platform/package-root';
import { NODE_FLAGS } from '#platform/process/node-flags';

const folder = mkdtempSync(join(tmpdir(), 'trivet-programs-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Says at the end which files were loaded as modules, by import or by require. */
const COUNTING = `data:text/javascript,
  import { registerHooks } from 'node:module';
  import { writeFileSync } from 'node:fs';
  const loaded = [];
  registerHooks({ load(url, context, next) { if (url.startsWith('file:')) loaded.push(url); return next(url, context); } });
  process.on('exit', () => writeFileSync(process.env.LOADED, JSON.stringify(loaded)));`;

describe.each(['gateway', 'worker', 'test-gateway', 'test-worker', 'connector'] as const)('%s', name => {
  it('is one file, and reads none of the packages but the library for system calls', () => {
    const env = { PATH: '/usr/bin:/bin', LOADED: join(folder, name) };
    const { status, stderr } = spawnSync(
      process.execPath,
      [...NODE_FLAGS, '--import', COUNTING.replaceAll('\n', ' '), programFile(name)],
      { env, encoding: 'utf8' },
    );
    expect(status, stderr).toBe(78);
    const loaded = (JSON.parse(readFileSync(env.LOADED, 'utf8')) as string[]).map(url =>
      url.slice(`file://${PACKAGE_ROOT}/`.length),
    );
    expect(loaded.slice(0, 2)).toEqual([`dist/programs/${name}.js`, `dist/programs/${name}.bundle.js`]);
    const others = loaded.slice(2).filter(path => !/^node_modules\/(koffi|@koromix)\//.test(path));
    expect(others).toEqual([]);
  });
});

describe('the client for Kubernetes', () => {
  const text = (name: string): string =>
    readFileSync(programFile(name as 'connector').replace(/js$/, 'bundle.js'), 'utf8');

  it('is in a file of its own, without the classes of all kinds', () => {
    const has = (name: string, word: string): boolean => text(name).includes(word);
    expect(has('connector', './kubernetes.bundle.js')).toBe(true);
    expect(has('connector', 'SERVICEACCOUNT_ROOT')).toBe(false);
    expect(has('kubernetes', 'SERVICEACCOUNT_ROOT')).toBe(true);
    expect(has('kubernetes', 'V1PodSpec')).toBe(false);
  });

  it('gives what a connector uses, and needs nothing of its program', () => {
    const script = `import(${JSON.stringify(programFile('connector').replace('connector.js', 'kubernetes.bundle.js'))})
      .then(all => console.log(Object.keys(all).sort().join()))`;
    const names = execFileSync(process.execPath, [...NODE_FLAGS, '-e', script], { encoding: 'utf8' });
    expect(names.trim()).toBe('HttpMethod,IsomorphicFetchHttpLibrary,KubeConfig,RequestContext,Watch');
  });
});

describe('what is bundled', () => {
  it.each(['gateway', 'worker', 'connector', 'trivet', 'kubernetes'])('has one byte for each letter: %s', name => {
    const text = readFileSync(programFile('connector').replace('connector.js', `${name}.bundle.js`), 'utf8');
    expect(text.match(/.{0,20}[^\0-\x7f]/)).toBeNull();
  });

  it('names our sources in the trace of an error', () => {
    const { status, stderr } = spawnSync(process.execPath, [...NODE_FLAGS, programFile('test-worker')], {
      env: { PATH: '/usr/bin:/bin', TRIVET_FAILPOINT: 'nonsense' },
      encoding: 'utf8',
    });
    expect(status).toBe(1);
    const frames = [...stderr.matchAll(/\((?:.*\/)?(test\/failpoints\/failpoints\.ts):(\d+):\d+\)/g)];
    expect(frames.length, stderr).toBeGreaterThan(1);
    const lines = readFileSync(join(PACKAGE_ROOT, frames[0]![1]!), 'utf8').split('\n');
    expect(lines[Number(frames[0]![2]) - 1]).toContain('throw new Error');
  });

  it('says an error that nobody catches, and not the line of the bundle that threw it', () => {
    const { status, stderr } = spawnSync(process.execPath, [...NODE_FLAGS, programFile('test-worker')], {
      env: { PATH: '/usr/bin:/bin', TRIVET_FAILPOINT: 'nonsense' },
      encoding: 'utf8',
    });
    expect(status).toBe(1);
    expect(stderr).toMatch(/^Error: failpoint: expected/);
    expect(stderr.length).toBeLessThan(4_000);
  });

  it('says its release and its commit from any folder', () => {
    const { version } = JSON.parse(readFileSync(join(PACKAGE_ROOT, 'package.json'), 'utf8'));
    const told = execFileSync(process.execPath, [programFile('trivet'), '--version'], {
      cwd: folder,
      encoding: 'utf8',
    });
    const isClone = existsSync(join(PACKAGE_ROOT, '.git'));
    const commit = /^, commit [0-9a-f]{12}(, changed since)? of \d{4}-\d\d-\d\d\n$/;
    expect(told.slice(0, version.length)).toBe(version);
    expect(told.slice(version.length)).toMatch(isClone ? commit : /^\n$/);
  });
});
