import type { ObjectBackendKind } from '#backends/object-backend';
import { Operations } from '#operations/accepting/operations';
import { BullDoorbell, NotifyDoorbell } from '#operations/queue/doorbell';
import { Database } from '#platform/database/database';
import { isStorageError } from '#platform/errors';
import { uuidv7 } from '#platform/uuid';
import type { Endpoint, EndpointCaller } from '#storage/object/endpoint';
import type { ObjectStorage } from '#storage/object/object-storage';
import { objectStorage } from '#storage/object/object-storage-service';
import { fakeKind } from '#test/fakes/object/fake-kind';
import type { TestAppliance } from '#test/support/appliance';
import { callerAt } from '#test/support/endpoint-caller';

/** A door of another tenant on a running appliance, in this process: the gateway has one socket, for `default`. */
export interface Door {
  tenantId: string;
  backendId: string;
  endpointId: string;
  storage: ObjectStorage;
  caller(): EndpointCaller;
  /** OK or the kind of error. */
  createBucket(name: string): Promise<string>;
  close(): Promise<void>;
}

/** Registers a tenant with its own backend row on the same fake store, and opens a door to it. */
export async function addTenant(appliance: TestAppliance, name: string): Promise<Door> {
  const [tenantId, backendId, endpointId] = [uuidv7(), uuidv7(), uuidv7()];
  const config = { file: appliance.fakeFile };
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
  const storage = objectStorage({
    database,
    operations,
    secrets: appliance.secrets,
    kindOf: () => fakeKind as ObjectBackendKind,
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
  const caller = (): EndpointCaller => callerAt(endpoint);
  return {
    ...ids,
    storage,
    caller,
    createBucket: async name => {
      try {
        await storage.buckets.create(caller(), { name, protocols: [], parameters: {} });
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
