import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CbtServer } from '#cbt/cbt-server';
import { OpenStreams } from '#cbt/open-streams';
import { CbtClient } from '#test/cbt/client';
import { MemoryChanges, type MemorySnapshot, MemorySnapshotSessions } from '#test/cbt/memory-changes';
import { LogMemory } from '#test/support/log-memory';
import { makeSelfSigned } from '../../apps/gateway/src/self-signed.js';

export const TENANT = 'tenant-1';
export const TOKEN = 'a'.repeat(52);
export const VOLUME = '019a0000-0000-7000-8000-0000000000a0';
export const OTHER_VOLUME = '019a0000-0000-7000-8000-0000000000b0';
const idOf = (n: number): string => `019a0000-0000-7000-8000-00000000000${n}`;
export const [S1, S2, S3, DELETED, ELSEWHERE, UNCOVERED] = [1, 2, 3, 4, 5, 6].map(idOf) as [
  string,
  string,
  string,
  string,
  string,
  string,
];
export const UNKNOWN = idOf(9);
export const CAPACITY = 2 ** 40 + 512;

export interface Room {
  server: CbtServer;
  streams: OpenStreams;
  changes: MemoryChanges;
  sessions: MemorySnapshotSessions;
  log: LogMemory;
  socketPath: string;
  tlsPort: number;
  /** Clients of both doors. */
  overSocket: CbtClient;
  overTls: CbtClient;
  close(): Promise<void>;
}

let certificate: Promise<{ cert: string; key: string }> | undefined;

/** One for all tests of a process: making it is slow. */
export async function testCertificate(): Promise<{ cert: string; key: string }> {
  certificate ??= makeSelfSigned([]).then(pem => {
    const at = pem.indexOf('-----BEGIN PRIVATE KEY-----');
    return { cert: pem.slice(0, at), key: pem.slice(at) };
  });
  return certificate;
}

/** Snapshots of a volume, each with one range at its own number of MiB; one is deleted, one is of another volume. */
export const SNAPSHOTS: MemorySnapshot[] = [S1, S2, S3, DELETED, ELSEWHERE, UNCOVERED].map((id, n) => ({
  id,
  name: `snap-${n + 1}`,
  tenantId: TENANT,
  volumeId: id === ELSEWHERE ? OTHER_VOLUME : VOLUME,
  cut: id === DELETED ? 0 : n + 1,
  capacityBytes: CAPACITY,
  deleted: id === DELETED,
  ranges: [
    [0, 4_096],
    [(n + 1) * 2 ** 20, 65_536],
    [2 ** 40, 512],
  ],
}));

export async function openRoom(options: { stallMs?: number; streams?: number } = {}): Promise<Room> {
  const folder = mkdtempSync(join(tmpdir(), 'cbt-'));
  const socketPath = join(folder, 'csi.sock');
  const changes = new MemoryChanges();
  for (const snapshot of SNAPSHOTS) changes.add(snapshot);
  const sessions = new MemorySnapshotSessions();
  sessions.add(
    TOKEN,
    TENANT,
    'acme',
    SNAPSHOTS.filter(({ id }) => id !== UNCOVERED),
  );
  const log = new LogMemory();
  const streams = new OpenStreams(options.streams);
  const server = new CbtServer({
    changes,
    sessions,
    streams,
    logger: log,
    stallMs: options.stallMs ?? 60_000,
    driverName: 'csi.example.test',
    version: '1.2.3',
  });
  await server.openSocket(TENANT, { path: socketPath });
  const pair = await testCertificate();
  const tls = await server.openTls(pair, { host: '127.0.0.1', port: 0 });
  server.setReady(true);
  const overSocket = CbtClient.overSocket(socketPath);
  const overTls = CbtClient.overTls(tls.port, pair.cert);
  return {
    server,
    streams,
    changes,
    sessions,
    log,
    socketPath,
    tlsPort: tls.port,
    overSocket,
    overTls,
    close: async () => {
      overSocket.close();
      overTls.close();
      await server.close(1_000);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
