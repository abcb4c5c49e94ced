import 'reflect-metadata';
import type { AddressInfo } from 'node:net';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { CspModule } from '#csp/csp.module';
import type { CspWaits } from '#csp/csp-options';
import { Health } from '#platform/health/health';
import { MemoryBlockStorage } from '#test/csp/memory-block-storage';
import { MemorySessions } from '#test/csp/memory-sessions';
import type { CspTarget } from '#test/csp/target';
import { LogMemory } from '#test/support/log-memory';
import { createHttp } from '../../apps/gateway/src/http.js';

export interface Room extends CspTarget {
  storage: MemoryBlockStorage;
  sessions: MemorySessions;
  app: NestFastifyApplication;
  log: LogMemory;
}

export interface RoomOptions {
  waits?: Partial<CspWaits>;
  contextPath?: string;
}

/** The room alone behind the gateway's HTTP door, over the domain's double, on a real socket. */
export async function openRoom({ waits, contextPath }: RoomOptions = {}): Promise<Room> {
  const storage = new MemoryBlockStorage();
  const sessions = new MemorySessions();
  sessions.users.set('csp', { password: 'right horse', tenantId: 'tenant-1', role: 'operator' });
  sessions.users.set('viewer', { password: 'only looking', tenantId: 'tenant-1', role: 'viewer' });
  sessions.users.set('csp@other', { password: 'other horse', tenantId: 'tenant-2', role: 'operator' });
  for (const tenant of ['tenant-1', 'tenant-2']) {
    const first = { backendId: 'backend-1', backendKind: 'memory' };
    const second = { backendId: 'backend-2', backendKind: 'memory' };
    sessions.backends.set(
      tenant,
      new Map([
        ['', first],
        ['local', first],
        ['10.10.10.1', first],
        ['second', second],
      ]),
    );
  }
  const log = new LogMemory();
  const module = CspModule.register({
    contextPath,
    useFactory: () => ({ storage: storage.storage, sessions, waits, log }),
  });
  const app = await createHttp({ health: new Health(), imports: [module] });
  await app.listen(0, '127.0.0.1');
  const { port } = app.getHttpServer().address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    contextPath: contextPath ?? 'csp',
    username: 'csp',
    password: 'right horse',
    arrayIp: 'local',
    initiator: 'iqn.2026-01.example.test:initiator',
    storage,
    sessions,
    app,
    log,
    close: () => app.close(),
  };
}
