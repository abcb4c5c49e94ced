import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { loadConfig } from '#platform/config/config';
import { Health } from '#platform/health/health';
import { createLogger } from '#platform/logging/log';
import { Shutdown } from '#platform/process/shutdown';
import { CbtClient, collect } from '#test/cbt/client';
import { S1, SNAPSHOTS, TENANT, TOKEN } from '#test/cbt/in-process-server';
import { MemoryChanges, MemorySnapshotSessions, synthetic } from '#test/cbt/memory-changes';
import { message } from '#test/cbt/wire';
import { type CbtListeners, openCbtListeners } from '../../apps/gateway/src/cbt-listeners.js';
import { GatewayTasks } from '../../apps/gateway/src/gateway-tasks.js';

const CSI = '/csi.v1.SnapshotMetadata/GetMetadataAllocated';
const SIDECAR = '/snapshotmetadata.SnapshotMetadata/GetMetadataAllocated';

describe('the doors of the gateway', () => {
  let home: string;
  let path: string;
  let doors: CbtListeners;
  let shutdown: Shutdown;
  let active: boolean;
  const clients: CbtClient[] = [];
  const opened = (client: CbtClient): CbtClient => {
    clients.push(client);
    return client;
  };

  beforeEach(async () => {
    home = mkdtempSync(join(tmpdir(), 'cbt-door-'));
    path = join(home, 'csi.sock');
    active = true;
    const config = loadConfig([], {
      TRIVET_HOME: home,
      TRIVET_CBT_LISTEN: '127.0.0.1:0',
      TRIVET_CBT_PUBLIC_ADDRESS: 'trivet.example.test:8745',
      TRIVET_CSI_ENDPOINT: `unix://${path}`,
      TRIVET_ENDPOINT_CHECK_MS: '20',
    });
    shutdown = new Shutdown({ deadlineMs: 5_000, exit: () => {} });
    const changes = new MemoryChanges();
    for (const snapshot of SNAPSHOTS) changes.add({ ...snapshot, capacityBytes: 2 ** 45 });
    changes.batches = from => synthetic(20_000_000, from);
    const sessions = new MemorySnapshotSessions();
    sessions.add(TOKEN, TENANT, 'acme', SNAPSHOTS);
    const health = new Health();
    health.setStarted();
    const context = { app: 'gateway', config, health, shutdown, log: createLogger('test') };
    doors = await openCbtListeners(context, {
      changes,
      sessions,
      tenant: async () => ({ tenantId: TENANT, active }),
      isActive: async () => active,
      tasks: new GatewayTasks(shutdown),
    });
    await health.readiness();
  });
  afterEach(async () => {
    for (const client of clients.splice(0)) client.close();
    await shutdown.stop('end of test');
    rmSync(home, { recursive: true, force: true });
  });

  const overTls = () => opened(CbtClient.overTls(doors.tls!.port, doors.tls!.caCert()));

  it('are trusted by the certificate that the home keeps for clients', async () => {
    const ca = readFileSync(join(home, 'tls', 'certificate.pem'), 'utf8');
    const client = opened(CbtClient.overTls(doors.tls!.port, ca));
    const answer = await client.call(SIDECAR, { 1: TOKEN, 2: 'acme', 3: S1, 4: 19_999_999 * 16_384 });
    expect(answer.code).toBe('OK');
  });

  it('are trusted at the address that sessions give to readers', () => {
    expect(new X509Certificate(doors.tls!.caCert()).checkHost('trivet.example.test')).toBe('trivet.example.test');
  });

  it('close and open with their tenant, and end its streams', async () => {
    const streams = [
      overTls().stream(SIDECAR, { 1: TOKEN, 2: 'acme', 3: S1, 5: 1 }),
      opened(CbtClient.overSocket(path)).stream(CSI, { 1: S1, 3: 1 }),
    ];
    const ends = streams.map(stream => collect(stream));
    // They flow: a caller who comes to a closed socket would be told something else.
    await Promise.all(streams.map(stream => once(stream, 'metadata')));
    active = false;
    expect((await Promise.all(ends)).map(({ code }) => code)).toEqual(['UNAVAILABLE', 'UNAVAILABLE']);
    await vi.waitFor(() => expect(existsSync(path)).toBe(false));
    active = true;
    await vi.waitFor(() => expect(existsSync(path)).toBe(true));
    const client = opened(CbtClient.overSocket(path));
    await vi.waitFor(async () => expect((await client.call(CSI, { 1: S1, 2: 19_999_999 * 16_384 })).code).toBe('OK'));
  });

  it('say what readiness says, and are gone when the process has stopped', async () => {
    const client = opened(CbtClient.overSocket(path));
    const probe = () => client.unary('/csi.v1.Identity/Probe');
    await vi.waitFor(async () => expect(await probe()).toEqual(message({ 1: message({ 1: 1 }) })), { timeout: 5_000 });
    await shutdown.stop('test');
    expect(existsSync(path)).toBe(false);
    await expect(probe()).rejects.toMatchObject({ code: 14 });
  });
});
