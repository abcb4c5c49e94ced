import { join } from 'node:path';
import { fakeKind } from '#backends/fake/fake-kind';
import type { ObjectBackendKind } from '#backends/object-backend';
import { BullDoorbell, NotifyDoorbell } from '#operations/doorbell';
import { Operations } from '#operations/operations';
import { Database } from '#platform/database';
import { isStorageError } from '#platform/errors';
import { uuidv7 } from '#platform/uuid';
import type { Caller, Endpoint } from '#storage/caller';
import type { ObjectStorage } from '#storage/object-storage';
import { ObjectStorageService } from '#storage/storage';
import type { TestAppliance } from '#test/support/appliance';

/** A door of another tenant on a running appliance, in this process: the gateway has one socket, for `default`. */
export interface Door {
  tenantId: string;
  backendId: string;
  endpointId: string;
  storage: ObjectStorage;
  caller(): Caller;
  /** OK or the kind of error. */
  createBucket(name: string): Promise<string>;
  close(): Promise<void>;
}

/** Registers a tenant with its own backend row on the same fake store, and opens a door to it. */
export async function addTenant(appliance: TestAppliance, name: string): Promise<Door> {
  const [tenantId, backendId, endpointId] = [uuidv7(), uuidv7(), uuidv7()];
  const config = { file: appliance.env.TRIVET_FAKE_BACKEND_FILE ?? join(appliance.folder, 'fake.db') };
  const { query } = appliance.database;
  await query('INSERT INTO trivet.tenant (id, name) VALUES ($1, $2)', [tenantId, name]);
  await query('INSERT INTO trivet.backend (tenant_id, id, name, kind, config) VALUES ($1, $2, $3, $4, $5)', [
    tenantId,
    backendId,
    'fake',
    'fake',
    JSON.stringify(config),
  ]);
  await query(
    "INSERT INTO trivet.endpoint (tenant_id, id, name, protocol, backend_id) VALUES ($1, $2, 'cosi', 'cosi', $3)",
    [tenantId, endpointId, backendId],
  );
  return openDoor(appliance, { tenantId, backendId, endpointId });
}

export async function openDoor(
  appliance: TestAppliance,
  ids: { tenantId: string; backendId: string; endpointId: string },
): Promise<Door> {
  const { TRIVET_DATABASE_URL: appUrl, TRIVET_REDIS_URL: redis, TRIVET_TENANT_CAP: cap = '64' } = appliance.env;
  const database = await Database.connect({ appUrl: appUrl!, applicationName: 'trivet:test', poolSize: 4 });
  const doorbell = redis === 'none' ? new NotifyDoorbell(database) : new BullDoorbell(redis!, appliance.redisPrefix);
  const operations = new Operations(database, doorbell, Number(cap));
  const storage = new ObjectStorageService({
    database,
    operations,
    secrets: appliance.secrets,
    kindOf: () => fakeKind as ObjectBackendKind,
    waitMs: 25_000,
  });
  const endpoint: Endpoint = {
    id: ids.endpointId,
    tenantId: ids.tenantId,
    backendId: ids.backendId,
    backendKind: 'fake',
    protocols: ['s3'],
    accessPoint: { endpoint: 'http://fake.invalid', region: 'default', addressing: 'path' },
    driverName: 'test',
    name: 'test',
    grantMismatch: 'already_exists',
    accessModeNumbers: 'auto',
  };
  const caller = (): Caller => ({ endpoint });
  return {
    ...ids,
    storage,
    caller,
    createBucket: async name => {
      try {
        await storage.createBucket(caller(), { name, protocols: [], parameters: {} });
        return 'OK';
      } catch (error) {
        if (isStorageError(error)) return error.kind;
        throw error;
      }
    },
    close: async () => {
      await operations.close();
      await database.close();
    },
  };
}
