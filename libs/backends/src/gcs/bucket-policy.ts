/**
 * Rights in the IAM policy of a bucket. Ours are the bindings whose condition bears Trivet's title for this appliance and tenant;
 * all others stay as they are. The condition holds for the bucket and whatever is in it.
 */
import { z } from 'zod';
import type { Grant } from '#backends/object-backend';
import { StorageError } from '#platform/errors';

const binding = z.looseObject({
  role: z.string(),
  members: z.array(z.string()).default([]),
  condition: z.looseObject({ title: z.string().default(''), expression: z.string().default('') }).optional(),
});
export type Binding = z.output<typeof binding>;

export const policyDocument = z.looseObject({
  etag: z.string(),
  version: z.number().optional(),
  bindings: z.array(binding).default([]),
});
export type Policy = z.output<typeof policyDocument>;

/** Of all bindings of a policy together (https://cloud.google.com/iam/quotas). */
export const MAX_MEMBERS = 1_500;
/** Conditions are of version 3. */
export const POLICY_VERSION = 3;

/** Who may only create cannot replace what is there: that would delete it. */
const ROLES = {
  read_write: 'roles/storage.objectUser',
  read_only: 'roles/storage.objectViewer',
  write_only: 'roles/storage.objectCreator',
} as const;

export const titleOf = (digest: string): string => `trivet-${digest}`;
export const memberOf = (email: string): string => `serviceAccount:${email}`;

export interface Ours {
  bucketName: string;
  title: string;
  emailOf(uid: string): string;
}

/** Who is revoked needs no word where nobody may what nothing allows. */
function bindingsOf({ bucketName, title, emailOf }: Ours, grants: readonly Grant[]): Binding[] {
  const condition = { title, expression: `resource.name.startsWith("projects/_/buckets/${bucketName}")` };
  return (['read_only', 'read_write', 'write_only'] as const).flatMap(mode => {
    const members = grants.filter(grant => grant.mode === mode).map(({ uid }) => memberOf(emailOf(uid)));
    return members.length === 0 ? [] : [{ role: ROLES[mode], members: [...new Set(members)].sort(), condition }];
  });
}

const canonical = (bindings: readonly Binding[]): string =>
  JSON.stringify(
    bindings
      .map(({ role, members, condition }) => [role, members.toSorted(), condition?.title, condition?.expression])
      .sort((a, b) => (String(a[0]) < String(b[0]) ? -1 : 1)),
  );

/** The policy that says exactly `grants` in our bindings; undefined: it does. Throws `resource_exhausted`. */
export function policyWith(policy: Policy, ours: Ours, grants: readonly Grant[]): Policy | undefined {
  const isOurs = ({ condition }: Binding): boolean => condition?.title === ours.title;
  const wanted = bindingsOf(ours, grants);
  if (canonical(policy.bindings.filter(isOurs)) === canonical(wanted)) return undefined;
  const bindings = [...policy.bindings.filter(one => !isOurs(one)), ...wanted];
  const members = bindings.reduce((sum, one) => sum + one.members.length, 0);
  if (members > MAX_MEMBERS)
    throw new StorageError(
      'resource_exhausted',
      `the policy of bucket ${ours.bucketName} would have ${members} members, of ${MAX_MEMBERS} that it may have`,
      { resource: `bucket ${ours.bucketName}` },
    );
  return { ...policy, version: POLICY_VERSION, bindings };
}
