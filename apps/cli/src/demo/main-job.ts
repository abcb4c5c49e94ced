import { randomBytes } from 'node:crypto';
import { LauncherError } from '../home.js';
import { DemoCosiClient } from './cosi-client.js';
import { Steps } from './steps.js';
import { type Granted, type Store, storeOf } from './stores.js';

const KEY = { type: 'KEY' };
const OBJECT = 'hello.txt';
const TEXT = 'written with credentials from COSI\n';

/**
 * The main job with real clients: a bucket over COSI, credentials for it, the store's stock client with them, and everything
 * taken back. Removes what it made, also when a step fails.
 */
export async function runMainJob(endpoint: string, say: (line: string) => void): Promise<void> {
  const cosi = new DemoCosiClient(endpoint);
  const name = `demo-${randomBytes(4).toString('hex')}`;
  const steps = new Steps(say);
  const { step } = steps;
  try {
    const info = await cosi.call<{ name: string; supported_protocols: { type: string }[] }>('DriverGetInfo', {});
    const store = storeOf(info.supported_protocols);
    say(`${info.name} at ${endpoint}`);
    const bucket = await step(`bucket ${name} is created`, () =>
      cosi.call<{ bucket_id: string }>('DriverCreateBucket', { name, protocols: [store.protocol] }),
    );
    steps.later(`bucket ${name} is deleted`, () => cosi.call('DriverDeleteBucket', { bucket_id: bucket.bucket_id }));
    const grant = (account: string, mode: string) =>
      cosi.call<Granted>('DriverGrantBucketAccess', {
        ...accessOf(store),
        account_name: account,
        buckets: [{ bucket_id: bucket.bucket_id, access_mode: { mode } }],
      });
    const revoke = ({ account_id }: Granted) =>
      cosi.call('DriverRevokeBucketAccess', {
        ...accessOf(store),
        account_id,
        buckets: [{ bucket_id: bucket.bucket_id }],
      });
    const writer = await step('writer gets READ_WRITE', () => grant(`${name}-writer`, 'READ_WRITE'));
    const revokeWriter = steps.later("writer's access is revoked", () => revoke(writer));
    await step('a repeat answers with the same key', async () => {
      if (store.secretOf(await grant(`${name}-writer`, 'READ_WRITE')) === store.secretOf(writer)) return;
      throw new LauncherError('a repeated grant answered with another key');
    });
    const reader = await step('reader gets READ_ONLY', () => grant(`${name}-reader`, 'READ_ONLY'));
    steps.later("reader's access is revoked", () => revoke(reader));

    const [asWriter, asReader] = [store.holder(writer), store.holder(reader)];
    await step(`writer puts ${OBJECT}`, () => asWriter.put(OBJECT, TEXT));
    const read = await step(`reader gets ${OBJECT}`, () => asReader.get(OBJECT));
    if (read !== TEXT) throw new LauncherError('the reader got something else than the writer wrote');
    await step('reader may not put', () => refused(asReader.put(OBJECT, TEXT), store.isForbidden));
    await step(`writer deletes ${OBJECT}`, () => asWriter.remove(OBJECT));
    await revokeWriter();
    await step('writer is refused', () => refused(asWriter.put(OBJECT, TEXT), store.isRevoked));
    await steps.takeBack();
  } finally {
    await steps.abandon();
    cosi.close();
  }
}

const accessOf = ({ protocol }: Store) => ({ protocol, authentication_type: KEY });

async function refused(call: Promise<unknown>, isExpected: (error: Error) => boolean): Promise<void> {
  const outcome = await call.then(
    () => 'the call was allowed',
    (error: Error) => (isExpected(error) ? undefined : `the call ended with ${error.name}: ${error.message}`),
  );
  if (outcome !== undefined) throw new LauncherError(`expected that the store refuses it, but ${outcome}`);
}
