import { handlersOf } from '#operations/definitions/define-operation';
import { OBJECT_OPERATIONS } from '#storage/object/object-operations';
import { historyOf, violations } from '#test/crash/history';
import { isPassing, Jobs } from '#test/crash/jobs';
import { KEY_SCENARIOS, NAME_SCENARIOS } from '#test/crash/key-scenarios';
import { acceptCase, casesOf, describeKillPoints, type KillableLeg, type KillCase } from '#test/crash/kill-points';
import { RIGHTS_SCENARIOS } from '#test/crash/rights-scenarios';
import { SCENARIOS, type Stage } from '#test/crash/scenarios';
import { mismatches } from '#test/crash/truth';
import { failpointsOf } from '#test/failpoints/failpoints-of';
import { FAKE_IAM_TRAITS } from '#test/fakes/object/fake-iam-backend';
import { FAKE_SIGNING_TRAITS } from '#test/fakes/object/fake-signing-backend';
import { TestAppliance } from '#test/support/appliance';

const objectLeg = (redis: boolean, backend: 'fake' | 'fake-iam' | 'fake-signing' = 'fake'): KillableLeg<Stage> => ({
  scenarios: SCENARIOS,
  handlers: handlersOf(OBJECT_OPERATIONS, {} as never),
  create: () => TestAppliance.create({ backend, redis, env: { TRIVET_RECONCILE_MS: '150' } }),
  stage: (appliance, name) => ({
    appliance,
    fake: appliance.fake!,
    jobs: new Jobs(appliance.client()),
    name,
    bucket: `${name}-a`,
    other: `${name}-b`,
  }),
  open: ({ appliance, name, bucket, other }) =>
    appliance.operations(`finished_at IS NULL AND resource_name IN ('${name}', '${bucket}', '${other}')`),
  isPassing,
  mismatches,
  violations: async appliance => violations(await historyOf(appliance)),
});

/** A kill at every failpoint of these kinds, as listed from the handlers, and at their acceptance. */
export function describeCrashPoints(kinds: readonly string[], { redis }: { redis: boolean }): void {
  const leg = objectLeg(redis);
  const cases = [...kinds.flatMap(kind => casesOf(leg, kind)), ...kinds.map(kind => acceptCase(leg, kind))];
  describeKillPoints(`killed at each point of ${kinds.join(' and ')}, ${redis ? 'with' : 'without'} Redis`, leg, cases);
}

const placeOf = ({ at }: KillCase<Stage>): string => at.replace(/@\d+$/, '');

/** As `describeCrashPoints`, of what changes keys when its time has come. */
export function describeKeyCrashPoints(backend: keyof typeof KEY_STORES): void {
  const kinds = ['access.rotate', 'access.retire'];
  const { title, traits, scenarios, also } = KEY_STORES[backend];
  const leg: KillableLeg<Stage> = {
    ...objectLeg(!traits, backend),
    scenarios,
    ...(traits && { traits: Object.keys(traits), begin: async ({ fake }) => fake!.seeLate(2) }),
  };
  const elsewhere = new Set(leg.handlers.flatMap(handler => failpointsOf(handler)));
  const isNew = (place: string): boolean => !traits || !elsewhere.has(place) || also?.test(place) === true;
  const cases = kinds.flatMap(kind => casesOf(leg, kind)).filter(one => isNew(placeOf(one)));
  describeKillPoints(`killed while keys are changed at ${title}`, leg, cases);
}

/** `also`: places of the others that write something else there. */
const KEY_STORES = {
  fake: { title: 'a store that takes them', traits: undefined, scenarios: KEY_SCENARIOS, also: undefined },
  'fake-iam': { title: 'a store that issues them', traits: FAKE_IAM_TRAITS, scenarios: KEY_SCENARIOS, also: undefined },
  'fake-signing': {
    title: 'a store that signs',
    traits: FAKE_SIGNING_TRAITS,
    scenarios: NAME_SCENARIOS,
    also: /:(principal:point|begin:point|undo:point|end:before|end:after)$/,
  },
};

/** The places that are passed only where rights belong to principals, and changes of them are seen late. */
export function describeRightsCrashPoints(kinds: readonly string[]): void {
  const leg: KillableLeg<Stage> = {
    ...objectLeg(false, 'fake-iam'),
    scenarios: RIGHTS_SCENARIOS,
    traits: Object.keys(FAKE_IAM_TRAITS),
    begin: async ({ fake }) => fake!.seeLate(2),
  };
  const elsewhere = new Set(leg.handlers.flatMap(handler => failpointsOf(handler)));
  const isNew = (one: KillCase<Stage>): boolean => {
    const [point, { scenario }] = [placeOf(one), one];
    return !elsewhere.has(point) || scenario.alsoAt?.includes(point) === true;
  };
  const cases = [
    ...new Map(
      kinds
        .flatMap(kind => casesOf(leg, kind))
        .filter(isNew)
        .map(one => [one.at, one]),
    ).values(),
  ];
  describeKillPoints(`killed where rights are seen late, at ${kinds.join(', ')}`, leg, cases);
}
