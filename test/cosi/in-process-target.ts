import 'reflect-metadata';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { INestMicroservice } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { CosiModule } from '#cosi/cosi.module';
import { CosiServer } from '#cosi/cosi-server';
import type { Endpoint } from '#storage/object/endpoint';
import { MemoryObjectStorage } from '#test/cosi/memory-object-storage';
import type { CosiSettings, CosiTarget } from '#test/cosi/target';
import { LogMemory } from '#test/support/log-memory';

export const testEndpoint = (settings: CosiSettings = {}): Endpoint => ({
  id: 'endpoint-1',
  tenantId: 'tenant-1',
  backendId: 'backend-1',
  backendKind: 'memory',
  protocols: ['s3'],
  accessPoint: { endpoint: 'http://127.0.0.1:7480', region: 'default', addressing: 'path' },
  driverName: 'cosi.test.example',
  name: 'test',
  grantMismatch: 'already_exists',
  accessModeNumbers: 'auto',
  ...settings,
});

/** How long any call may wait here. */
export const WAIT_MS = 1_200_000;

export interface Room extends CosiTarget {
  folder: string;
  storage: MemoryObjectStorage;
  server: CosiServer;
  app: INestMicroservice;
  log: LogMemory;
}

/** The room alone, over the domain's double, on a real socket. */
export async function openRoom(settings: CosiSettings = {}, graceMs = 5_000): Promise<Room> {
  const folder = mkdtempSync(join(tmpdir(), 'cosi-'));
  const socketPath = join(folder, 'cosi.sock');
  const storage = new MemoryObjectStorage();
  const log = new LogMemory();
  const server = new CosiServer({ graceMs, waitMs: WAIT_MS, logger: log });
  const module = CosiModule.register({ useFactory: () => storage.storage });
  const app = await NestFactory.createMicroservice(module, { strategy: server, logger: false });
  await app.listen();
  const endpoint = testEndpoint(settings);
  await server.open(endpoint, { path: socketPath });
  const prefix = 'ct';
  return {
    folder,
    socketPath,
    driverName: endpoint.driverName,
    prefix,
    storage,
    server,
    app,
    log,
    control: {
      makeForeignBucket: async name => place(storage, name, 'foreign'),
      registerBucket: async name => place(storage, name, 'registered'),
      putObject: async name => {
        const bucket = storage.buckets.get(name);
        if (!bucket) throw new Error(`no bucket ${name}`);
        bucket.objects++;
      },
      buckets: async () => [...storage.buckets.keys()].filter(name => name.startsWith(prefix)).sort(),
      accounts: async () => [...storage.accesses.values()].map(access => access.id).sort(),
      setDown: async down => {
        storage.down = down;
      },
    },
    close: async () => {
      await app.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function place(storage: MemoryObjectStorage, name: string, made: 'foreign' | 'registered'): void {
  storage.buckets.set(name, { made, spec: '', deletePolicy: 'retain', objects: 0 });
}
