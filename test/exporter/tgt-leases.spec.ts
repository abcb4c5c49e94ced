import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { DaemonRef } from '#backends/exporter';
import { HostFences } from '#backends/host-fence';
import { demandLeases } from '#backends/lease-demand';
import { bootClock } from '#backends/linux/boot-clock';
import { withFileLock } from '#backends/linux/file-lock';
import { DaemonFolder } from '#backends/tgt/daemon-folder';
import { splitPortal } from '#backends/tgt/portals';
import { TgtExporter } from '#backends/tgt/tgt-exporter';
import { TgtLeases } from '#backends/tgt/tgt-leases';
import { unleased } from '#platform/lease-signal';
import { hasTgt } from '#test/exporter/tgt-harness';
import { freePort } from '#test/support/free-port';
import { until } from '#test/support/parts';

const LONG_MS = 3_600_000;
const soon = () => unleased(AbortSignal.timeout(30_000));

describe.runIf(hasTgt())('a host that may have a pool for a while', () => {
  let folder: string;
  let leases: TgtLeases;
  let exporter: TgtExporter;
  let daemon: DaemonRef;
  beforeEach(async () => {
    demandLeases();
    folder = mkdtempSync(join(tmpdir(), 'trivet-lease-'));
    const cluster = { moving: () => [], sets: () => [daemon.portals] };
    leases = new TgtLeases(folder, cluster);
    const none = { pathOf: () => '', inspectImage: async () => ({ state: 'absent' }) as const };
    exporter = new TgtExporter({ folder, volumes: none, fences: new HostFences(join(folder, 'fences')), cluster });
    daemon = { tenantId: randomUUID(), pool: 'pool', portals: [`127.0.0.1:${await freePort()}`] };
  });
  afterEach(async () => {
    await exporter.stopDaemon(daemon, soon());
    rmSync(folder, { recursive: true, force: true });
  });

  it('serves nothing before it has it, and nothing after', async () => {
    await expect(exporter.ensureDaemon(daemon, soon())).rejects.toThrow('is not served by this storage host now');
    await leases.hold(daemon, bootClock() + LONG_MS);
    await exporter.ensureDaemon(daemon, soon());
    expect(await leases.drop(daemon, { orderly: true }, soon())).toBe(true);
    expect(await exporter.daemonInstance(daemon, soon())).toBeUndefined();
    await expect(exporter.ensureDaemon(daemon, soon())).rejects.toThrow('another one has it, or takes it over');
  });

  it('has its daemon ended when that is over, without a word from anybody, and goes on when it gets it again', async () => {
    const end = bootClock() + 1_500;
    await leases.hold(daemon, end);
    await exporter.ensureDaemon(daemon, soon());
    await until('the daemon is gone', async () => (await exporter.daemonInstance(daemon, soon())) === undefined);
    expect(bootClock()).toBeGreaterThanOrEqual(end);
    await leases.hold(daemon, bootClock() + LONG_MS);
    const { instance } = await exporter.ensureDaemon(daemon, soon());
    expect(await exporter.daemonInstance(daemon, soon())).toBe(instance);
  });

  it('says of a daemon that stands still that it was not ended in order', async () => {
    await leases.hold(daemon, bootClock() + LONG_MS);
    await exporter.ensureDaemon(daemon, soon());
    const [pid] = await exporter.writers(daemon, soon());
    process.kill(pid!, 'SIGSTOP');
    expect(await leases.drop(daemon, { orderly: false }, soon())).toBe(false);
    expect(await exporter.daemonInstance(daemon, soon())).toBeUndefined();
  });

  it('says of a daemon that has died that it was not ended in order: the cluster waits for it', async () => {
    await leases.hold(daemon, bootClock() + LONG_MS);
    await exporter.ensureDaemon(daemon, soon());
    const [pid] = await exporter.writers(daemon, soon());
    process.kill(pid!, 'SIGKILL');
    await until('it is gone', async () => (await exporter.daemonInstance(daemon, soon())) === undefined);
    expect(await leases.drop(daemon, { orderly: true }, soon())).toBe(false);
    // Nothing is left of it by now, and the cluster still waits.
    expect(await leases.drop(daemon, { orderly: true }, soon())).toBe(false);
    await leases.hold(daemon, bootClock() + LONG_MS);
    await exporter.ensureDaemon(daemon, soon());
    expect(await leases.drop(daemon, { orderly: true }, soon())).toBe(true);
  });

  it('is told alike by two workers of the host that end a daemon at once', async () => {
    await leases.hold(daemon, bootClock() + LONG_MS);
    await exporter.ensureDaemon(daemon, soon());
    const dropped = () => leases.drop(daemon, { orderly: true }, soon());
    expect(await Promise.all([dropped(), dropped()])).toEqual([true, true]);
    expect(await dropped()).toBe(true);
  });

  it('has not what another worker of the host has given up since it was asked for', async () => {
    await leases.hold(daemon, bootClock() + LONG_MS);
    const asked = bootClock();
    await leases.drop(daemon, { orderly: true }, soon());
    await leases.hold(daemon, bootClock() + LONG_MS, asked);
    await expect(exporter.ensureDaemon(daemon, soon())).rejects.toThrow('is not served by this storage host now');
    await leases.hold(daemon, bootClock() + LONG_MS);
    await exporter.ensureDaemon(daemon, soon());
  });

  it('lets nobody begin anything while a daemon is ended in order, and the guard leave it alone', async () => {
    const end = bootClock() + LONG_MS;
    await leases.hold(daemon, end);
    await exporter.ensureDaemon(daemon, soon());
    const { path, lock } = DaemonFolder.of(folder, daemon);
    const lease = () => readFileSync(join(path, 'lease'), 'utf8').trim();
    const held = lease();
    const dropped = await withFileLock(lock, soon(), async () => {
      const dropping = leases.drop(daemon, { orderly: true }, soon());
      await until('it is given up', () => lease() !== held);
      expect(lease()).toMatch(new RegExp(`^${held} leaving \\d+$`));
      const target = { daemon, tid: 1, iqn: `iqn.2026-01.dev.trivet:${randomUUID()}` };
      const removed = exporter.removeTarget(target, { force: true }, '1', soon());
      await expect(removed).rejects.toThrow('is not served by this storage host now');
      return { dropping };
    });
    expect(await dropped.dropping).toBe(true);
    expect(lease()).toMatch(/^0 \S+ ended \d+$/);
  });

  it('waits for a portal that another worker of the host still sends initiators on from', async () => {
    await leases.holdForever(daemon);
    const portal = splitPortal(daemon.portals[0]!);
    const other = createServer().listen(portal.port, portal.address);
    await once(other, 'listening');
    const ensured = exporter.ensureDaemon(daemon, soon());
    ensured.catch(() => {});
    const { log } = DaemonFolder.of(folder, daemon);
    await until('tgtd has tried it', () => existsSync(log) && readFileSync(log, 'utf8').includes('bind to portal'));
    other.close();
    expect(await ensured).toEqual({ instance: await exporter.daemonInstance(daemon, soon()) });
  });

  it('opens of the portals those at its own addresses, and says so where there is none', async () => {
    await leases.holdForever(daemon);
    const elsewhere = '192.0.2.77:3260';
    await exporter.ensureDaemon({ ...daemon, portals: [elsewhere, ...daemon.portals] }, soon());
    await expect(exporter.ensureDaemon({ ...daemon, portals: [elsewhere] }, soon())).rejects.toThrow(
      `pool pool: none of its portals (${elsewhere}) is at an address of this storage host`,
    );
  });
});
