/** A worker killed around each call that changes something at a real store: nothing is left behind, nothing lost, and what Grant answers is the same. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ObjectBackendHarness } from '#backends/conformance/object-world';
import type { Grant } from '#backends/object-backend';
import { handlersOf } from '#operations/definitions/define-operation';
import { OBJECT_OPERATIONS } from '#storage/object/object-operations';
import type { CosiClient, Outcome, Reply } from '#test/cosi/client';
import { letLeasesEnd } from '#test/crash/dead-worker';
import { persistWhile } from '#test/crash/persist';
import { failpointsOf } from '#test/failpoints/failpoints-of';
import { type ApplianceOptions, TestAppliance } from '#test/support/appliance';
import { until } from '#test/support/parts';

export interface KilledStore<H extends ObjectBackendHarness> {
  open(): Promise<H>;
  appliance(store: H): ApplianceOptions;
  protocol: 'S3' | 'AZURE' | 'GCS';
  traits?: readonly string[];
  /** Of a grant, beside its name and buckets; a key, when absent. */
  authentication?: object;
  /** Calls that change something there, by kind; others change nothing, or are not made. */
  changes: Readonly<Record<string, readonly string[]>>;
  /** Writes with what was granted. */
  writeAs(store: H, credentials: Reply, bucket: string): Promise<unknown>;
  /**
   * Of a store that is a stand-in, ours or somebody else's (moto), a normal run is killed behind each call alone, where it may have
   * done something that nobody heard of; before it, as at every store, nothing has happened yet: a long run has those, too.
   */
  isStandIn?: true;
  /** False: the harness cannot see what another appliance granted, and what keys open tells it. */
  showsGrants?: false;
  /** What the answer says of keys, where there are any. */
  keyOf?(credentials: Reply): string;
  /** Of a store that has no principals: what stands there for the account. */
  keysThere?(store: H, account: string, bucket: string): Promise<string[]>;
}

const isLong = process.env.TRIVET_TEST_LONG !== undefined;
const CHANGES_OF_KEYS = ['access.rotate', 'access.retire'];
const ROTATION = '{"rotation": {"afterSeconds": 7200, "graceSeconds": 3600}}';

/** Before and after each of the calls, and before the end; what only undoing passes is not met here. */
function pointsOf(kind: string, calls: readonly string[], traits: readonly string[] = []): string[] {
  const { fail: _, undo: __, ...handler } = handlersOf(OBJECT_OPERATIONS, {} as never).find(one => one.kind === kind)!;
  const wanted = calls.flatMap(call => [`${kind}:${call}:call`, `${kind}:${call}:answered`]);
  const also = [`${kind}:key:again`, `${kind}:end:before`];
  return failpointsOf(handler, traits).filter(
    point => wanted.includes(point) || (also.includes(point) && (traits.includes('issuesKeys') || point === also[1])),
  );
}

export function describeStoreKills<H extends ObjectBackendHarness>(name: string, killed: KilledStore<H>): void {
  describe(`killed around each call to ${name}`, () => {
    let store: H;
    let appliance: TestAppliance;
    let client: CosiClient;
    let count = 0;

    beforeAll(async () => {
      store = await killed.open();
      const env = { TRIVET_LEASE_MS: '2000', TRIVET_RECONCILE_MS: '150' };
      appliance = await TestAppliance.create({ ...killed.appliance(store), env });
      await appliance.gateway();
      await appliance.worker();
      client = appliance.client();
    });
    afterAll(async () => {
      await appliance?.close();
      await store?.close();
    });

    const passing = ({ code }: Outcome) => ['ABORTED', 'UNAVAILABLE', 'DEADLINE_EXCEEDED'].includes(code);
    async function ask(method: string, request: object): Promise<Reply> {
      const outcome = (await persistWhile(passing, () => client.call('r1', method, request))).at(-1)!;
      expect(outcome, outcome.message).toMatchObject({ code: 'OK' });
      return outcome.reply;
    }
    const requests = (bucket: string) => {
      const authentication = killed.authentication ?? { authentication_type: { type: 'KEY' } };
      const protocol = { protocol: { type: killed.protocol }, ...authentication };
      return {
        create: { name: bucket, protocols: [{ type: killed.protocol }], parameters: { deletePolicy: 'purge' } },
        grant: {
          ...protocol,
          account_name: `ba-${bucket}`,
          buckets: [{ bucket_id: bucket, access_mode: { mode: 'READ_WRITE' } }],
        },
        revoke: (account_id: string) => ({ ...protocol, account_id, buckets: [{ bucket_id: bucket }] }),
        delete: { bucket_id: bucket },
      };
    };
    /** As if its time had come. */
    async function changeKey(account: string, what: string): Promise<void> {
      await appliance.database.query(`UPDATE trivet.access SET ${what} WHERE account_id = $1`, [account]);
      await until(
        'its key is changed',
        async () => {
          const [row] = await appliance.database.query<{ done: boolean }>(
            `SELECT key_operation IS NULL AND coalesce(least(rotate_at, former_until) > now(), true) AS done
               FROM trivet.access WHERE account_id = $1`,
            [account],
          );
          return row?.done === true;
        },
        60_000,
      );
    }

    /** Everything that a bucket goes through, with the worker killed in the one operation. */
    async function live(kind: string, point: string): Promise<void> {
      const bucket = `${store.prefix}k${++count}`;
      const wish = requests(bucket);
      const grant = () => ask('DriverGrantBucketAccess', wish.grant);
      let account = '';
      const calls: Record<string, () => Promise<unknown>> = {
        'bucket.create': () => ask('DriverCreateBucket', wish.create),
        'access.grant': grant,
        'access.rotate': () => changeKey(account, `desired = desired || '${ROTATION}', rotate_at = now()`),
        'access.retire': () => changeKey(account, 'former_until = now()'),
        'access.revoke': () => ask('DriverRevokeBucketAccess', wish.revoke(account)),
        'bucket.delete': () => ask('DriverDeleteBucket', wish.delete),
      };
      const step = async (name: string): Promise<void> => {
        if (name !== kind) return void (await calls[name]!());
        const doomed = appliance.process('worker');
        await doomed.arm(`${point}=kill`);
        const answer = calls[name]!();
        answer.catch(() => {});
        expect(await doomed.ended()).toMatchObject({ signal: 'SIGKILL' });
        await letLeasesEnd(appliance);
        await appliance.worker();
        await answer;
      };
      const expectGrants = async (...grants: Grant[]) => {
        if (killed.showsGrants !== false) expect(await store.grants(bucket)).toEqual(grants);
      };
      const keysThere = async () =>
        killed.keysThere?.(store, account, bucket) ?? (await store.principalKeys(account))?.map(key => key.accessKeyId);
      const expectKeys = async (...ids: string[]) => expect((await keysThere())?.sort()).toEqual(ids.sort());

      await step('bucket.create');
      await step('access.grant');
      let granted = await grant();
      expect(await grant()).toEqual(granted);
      account = granted.account_id;
      await expectGrants({ uid: account, mode: 'read_write' });
      if (killed.keyOf) await expectKeys(killed.keyOf(granted.credentials));
      await killed.writeAs(store, granted.credentials, bucket);
      if (CHANGES_OF_KEYS.includes(kind)) {
        const former = granted;
        await step('access.rotate');
        granted = await grant();
        expect(granted.account_id).toBe(account);
        expect(await grant()).toEqual(granted);
        const keys = [former, granted].map(({ credentials }) => killed.keyOf!(credentials));
        expect(new Set(keys).size).toBe(2);
        await expectKeys(...keys);
        for (const { credentials } of [former, granted]) await killed.writeAs(store, credentials, bucket);
        if (kind === 'access.retire') {
          await step('access.retire');
          await expectKeys(keys[1]!);
          await expect(killed.writeAs(store, former.credentials, bucket)).rejects.toThrow();
          await killed.writeAs(store, granted.credentials, bucket);
          expect(await grant()).toEqual(granted);
        }
      }
      await step('access.revoke');
      await expectGrants();
      if (killed.keyOf) await expect(killed.writeAs(store, granted.credentials, bucket)).rejects.toThrow();
      expect(await store.principalKeys(account)).toBeUndefined();
      await step('bucket.delete');
      expect(await store.foreignBucketExists(bucket)).toBe(false);
      await appliance.settled();
    }

    it.each(
      Object.entries(killed.changes).flatMap(([kind, calls]) =>
        pointsOf(kind, calls, killed.traits)
          .filter(point => isLong || !killed.isStandIn || !point.endsWith(':call'))
          .map(point => [kind, point] as const),
      ),
    )('%s at %s', live);
  });
}

/** Of an answer of S3. */
export const s3KeysOf = ({ s3 }: Reply): { accessKeyId: string; secretAccessKey: string } => ({
  accessKeyId: s3.access_key_id,
  secretAccessKey: s3.access_secret_key,
});
