import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  appendFileSync,
  cpSync,
  existsSync,
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
import { createDatabase, type TestDatabase } from '#test/support/database';
import { freePort } from '#test/support/free-port';
import { until } from '#test/support/parts';

/** A copy of the sources: the build must not write into the dist that other tests run from. */
const clone = mkdtempSync(join(tmpdir(), 'trivet-nest-'));
/** A build from nothing takes 5 s on an idle machine. */
const PATIENCE_MS = 110_000;
const nest = join(clone, 'node_modules/@nestjs/cli/bin/nest.js');
const children: ChildProcess[] = [];
let database: TestDatabase;
let env: Record<string, string>;

beforeAll(async () => {
  for (const path of ['apps', 'libs', 'proto', 'package.json', 'tsconfig.json', 'nest-cli.json']) {
    cpSync(join(PACKAGE_ROOT, path), join(clone, path), {
      recursive: true,
      filter: from => !from.endsWith('.spec.ts'),
    });
  }
  symlinkSync(join(PACKAGE_ROOT, 'node_modules'), join(clone, 'node_modules'));
  database = await createDatabase();
  const kek = join(clone, 'kek');
  writeFileSync(kek, randomBytes(32).toString('base64'), { mode: 0o600 });
  env = {
    PATH: `${dirname(process.execPath)}:/usr/bin:/bin`,
    HOME: clone,
    TRIVET_DATABASE_URL: database.appUrl,
    TRIVET_DATABASE_ENGINE_URL: database.engineUrl,
    TRIVET_REDIS_URL: 'none',
    TRIVET_KEK_FILE: kek,
    TRIVET_HTTP_LISTEN: `127.0.0.1:${await freePort()}`,
    TRIVET_HTTPS_LISTEN: 'none',
    TRIVET_CBT_LISTEN: 'none',
  };
});
afterAll(async () => {
  for (const { pid } of children) {
    try {
      process.kill(-pid!, 'SIGKILL');
    } catch {
      // it has ended
    }
  }
  await database?.drop();
  rmSync(clone, { recursive: true, force: true });
});

describe("Nest's own commands", () => {
  it.each(['gateway', 'worker'])(
    'nest build %s',
    app => {
      const built = spawnSync(process.execPath, [nest, 'build', app], { cwd: clone, env, encoding: 'utf8' });
      expect(built.status, built.stdout + built.stderr).toBe(0);
      expect(existsSync(join(clone, 'dist/apps', app, 'src/main.js'))).toBe(true);
      expect(existsSync(join(clone, 'dist/libs/platform/src/process/boot.js'))).toBe(true);
    },
    150_000,
  );

  it('nest start worker is ready, and a signal stops it in order', async () => {
    const listen = `127.0.0.1:${await freePort()}`;
    const worker = spawn(process.execPath, [nest, 'start', 'worker'], {
      cwd: clone,
      env: { ...env, TRIVET_WORKER_METRICS_LISTEN: listen },
      detached: true,
    });
    children.push(worker);
    let output = '';
    worker.stdout.on('data', chunk => {
      output += chunk;
    });
    const ready = async () => (await fetch(`http://${listen}/readyz`).catch(() => undefined))?.ok;
    await until('the worker is ready', ready, PATIENCE_MS).catch(error => {
      throw new Error(`${error.message}\n${output}`);
    });
    process.kill(worker.pid!, 'SIGTERM');
    const ended = await Promise.race([once(worker, 'close'), new Promise(done => setTimeout(done, 35_000, 'late'))]);
    expect(ended, output).toEqual([0, null]);
    expect(output).toContain('"msg":"stopped"');
  }, 150_000);

  it('nest start gateway --watch serves, and starts anew after a change', async () => {
    const watch = spawn(process.execPath, [nest, 'start', 'gateway', '--watch'], { cwd: clone, env, detached: true });
    children.push(watch);
    let output = '';
    watch.stdout.on('data', chunk => {
      output += chunk;
    });
    const starts = () => output.split('"msg":"started"').length - 1;
    const ready = async () => (await fetch(`http://${env.TRIVET_HTTP_LISTEN}/readyz`).catch(() => undefined))?.ok;
    await until('the gateway serves', ready, PATIENCE_MS).catch(error => {
      throw new Error(`${error.message}\n${output}`);
    });
    // It serves a moment before it says so, and what it says comes through two pipes.
    await until('the gateway says that it serves', () => starts() > 0, PATIENCE_MS);
    expect(starts()).toBe(1);
    const changed = join(clone, 'apps/gateway/src/gateway.ts');
    appendFileSync(changed, '\nexport const CHANGED = 1;\n');
    await until('the gateway was started anew', () => starts() === 2, PATIENCE_MS);
    await until('the gateway serves again', ready, PATIENCE_MS);
    expect(readFileSync(join(clone, 'dist/apps/gateway/src/gateway.js'), 'utf8')).toContain('CHANGED');
  }, 300_000);
});
