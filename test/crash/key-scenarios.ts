/** Changes of the key of an access. No caller of COSI asks for one: its time comes, and the next Grant answers what it has then. */
import type { Outcome } from '#test/cosi/client';
import { credentialsOf } from '#test/crash/jobs';
import type { Scenario as KillScenario } from '#test/crash/kill-points';
import { grantBoth, makeAccess, type Stage } from '#test/crash/scenarios';
import { until } from '#test/support/parts';

type Scenario = KillScenario<Stage>;

interface Keys {
  formerUntil: Date | null;
  rotates: boolean;
  operation: string | null;
}

const keysOf = async ({ appliance, name }: Stage): Promise<Keys> =>
  (
    await appliance.database.query<Keys>(
      `SELECT former_until AS "formerUntil", rotate_at <= now() AS rotates, key_operation AS operation
         FROM trivet.access WHERE name = $1 AND state <> 'gone'`,
      [name],
    )
  )[0]!;
const set = ({ appliance, name }: Stage, what: string) =>
  appliance.database.query(`UPDATE trivet.access SET ${what} WHERE name = $1 AND state <> 'gone'`, [name]);
const isDone = async (stage: Stage): Promise<boolean> => {
  const { operation, rotates } = await keysOf(stage);
  return operation === null && !rotates;
};

/** Its class says how long the former key stays, as if it had been granted so. */
const ROTATION = '{"afterSeconds": 7200, "graceSeconds": 3600}';

async function prepare(stage: Stage): Promise<void> {
  await makeAccess(stage);
  await set(stage, `desired = desired || '{"rotation": ${ROTATION}}'`);
}

/** Once: who comes again gets what there is. */
async function rotate(stage: Stage): Promise<Outcome> {
  if ((await keysOf(stage)).formerUntil === null) await set(stage, 'rotate_at = now()');
  await until('its key is changed, or is not', () => isDone(stage), 60_000);
  return grantBoth(stage);
}
async function retire(stage: Stage): Promise<Outcome> {
  await set(stage, 'former_until = CASE WHEN former_until IS NOT NULL THEN now() END');
  await until('its former key has ended', async () => (await keysOf(stage)).formerUntil === null, 60_000);
  return grantBoth(stage);
}

/** The keys that the store lets in, and the one that Grant answers among them. */
async function expectKeys(stage: Stage, count: number, isSame: boolean): Promise<void> {
  const { account, fake } = stage;
  const answered = credentialsOf(await grantBoth(stage));
  const principal = fake.principals().find(({ uid }) => uid === account!.accountId);
  const names = fake.grants(stage.bucket).map(({ uid }) => uid);
  const there = principal ? principal.keys.map(key => key.accessKeyId) : names;
  if (there.length !== count || !there.includes(answered.accessKeyId))
    throw new Error(`the store has ${there.length} keys, expected ${count} with the one that was answered`);
  if ((answered.accessKeyId === account!.accessKeyId) !== isSame) throw new Error(`isSame is not ${isSame}`);
  if (count === 2 && !there.includes(account!.accessKeyId)) throw new Error('the former key is not let in');
}

const rotation: Omit<Scenario, 'name' | 'covers'> = {
  kind: 'access.rotate',
  prepare,
  act: rotate,
  code: 'OK',
  after: stage => expectKeys(stage, 2, false),
};
const retirement: Omit<Scenario, 'name' | 'covers'> = {
  kind: 'access.retire',
  prepare: async stage => {
    await prepare(stage);
    await rotate(stage);
  },
  act: retire,
  code: 'OK',
  after: stage => expectKeys(stage, 1, false),
};
type Refusal = (stage: Stage, error: 'unavailable' | 'resource_exhausted') => void;
const refuseKey: Refusal = ({ fake, account }, error) =>
  fake.addFault({ method: 'putPrincipal', resource: account!.accountId, mode: 'fail-before', error });
/** At the last of its buckets: the one before has it already. */
const refuseName: Refusal = ({ fake, other }, error) =>
  fake.addFault({ method: 'putGrants', resource: other, mode: 'fail-before', error });

const scenarios = (refuse: Refusal, written: string): readonly Scenario[] => [
  {
    ...rotation,
    name: 'a key that cannot be changed stays, and nothing is left beside it',
    covers: /:undo:/,
    alsoAt: ['access.rotate:end:before', 'access.rotate:end:after', `access.rotate:${written}:call@2`],
    arm: stage => refuse(stage, 'resource_exhausted'),
    after: stage => expectKeys(stage, 1, true),
    // Its next time has come.
    again: 'OK',
  },
  {
    ...rotation,
    name: 'a change of a key is tried again',
    covers: /:retry:/,
    arm: stage => refuse(stage, 'unavailable'),
  },
  { ...rotation, name: 'a key is changed', covers: /./ },
  {
    ...retirement,
    name: 'the end of a former key is tried again',
    covers: /:retry:/,
    arm: stage => refuse(stage, 'unavailable'),
  },
  { ...retirement, name: 'a former key ends', covers: /./ },
];

export const KEY_SCENARIOS = scenarios(refuseKey, 'putPrincipal');
/** Where the store signs, keys are names at buckets. */
export const NAME_SCENARIOS = scenarios(refuseName, 'putGrants');
