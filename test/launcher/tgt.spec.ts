import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';
import type { DaemonRef } from '#backends/exporter';
import { HostFences } from '#backends/host-fence';
import { TgtExporter } from '#backends/tgt/tgt-exporter';
import { HOME_MARK } from '#platform/config/config';
import { unleased } from '#platform/lease-signal';
import { hasTgt } from '#test/exporter/tgt-harness';
import { freePort } from '#test/support/free-port';
import { type TestHome, TestHomes } from './cli.js';

const homes = new TestHomes();
afterAll(() => homes.clear());
afterEach(() => vi.unstubAllEnvs());
const soon = () => unleased(AbortSignal.timeout(60_000));

/** What the worker of this home would do; nothing of the supervisor knows of it. */
async function startTgtd(home: TestHome, elsewhere?: string): Promise<{ pid: number; folder: string }> {
  const { TRIVET_TGT_DIR = '', TRIVET_ISCSI_PORTALS = '' } = home.environment();
  const folder = elsewhere ?? TRIVET_TGT_DIR;
  const portal = elsewhere === undefined ? TRIVET_ISCSI_PORTALS : `127.0.0.1:${await freePort()}`;
  vi.stubEnv(HOME_MARK, home.home);
  const exporter = new TgtExporter({
    folder,
    fences: new HostFences(`${folder}/fences`),
    volumes: { pathOf: () => '', inspectImage: async () => ({ state: 'absent' }) },
  });
  const daemon: DaemonRef = { tenantId: 'a-tenant', pool: 'default', portals: [portal] };
  await exporter.ensureDaemon(daemon, soon());
  const [pid] = await exporter.writers(daemon, soon());
  return { pid: pid as number, folder };
}

const commandLine = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
};

describe.skipIf(!hasTgt())('tgtd of a home', () => {
  it('is shown by status, goes on without the supervisor, and ends with down or the next up', async () => {
    // Long, so that sockets cannot be inside.
    const home = homes.at('x'.repeat(100), 'home');
    Object.assign(home.settings, { TRIVET_RGW_ENDPOINT: 'http://127.0.0.1:9', TRIVET_REDIS_URL: 'none' });
    const up = () => home.must('up', '--detach', '--parts-only', '--no-install');
    await up();
    expect(home.environment().TRIVET_ISCSI_PORTALS).toMatch(/^127\.0\.0\.1:\d+$/);

    const first = await startTgtd(home);
    expect(commandLine(first.pid)).toContain(first.folder);
    expect((await home.status()).processes).toContainEqual(
      expect.objectContaining({ name: 'tgtd.default', pid: first.pid, state: 'running' }),
    );
    process.kill(home.supervisor, 'SIGKILL');
    expect(commandLine(first.pid)).toContain(first.folder);
    await up();
    expect(commandLine(first.pid)).not.toContain(first.folder);

    const second = await startTgtd(home);
    process.kill(second.pid, 'SIGSTOP');
    // Of a backend that was registered with a folder of its own, which is gone meanwhile.
    const third = await startTgtd(home, join(homes.folder, 't'));
    rmSync(third.folder, { recursive: true });
    await home.must('down', '--purge', '--yes');
    for (const { pid, folder } of [second, third]) expect(commandLine(pid)).not.toContain(folder);
  });
});
