/**
 * Service accounts of a cluster come in as a service account of Google's, if its IAM policy lets them: a pool of workload
 * identities, which somebody made for the cluster, says who they are
 * (https://cloud.google.com/iam/docs/workload-identity-federation-with-kubernetes).
 */
import { z } from 'zod';
import { POLICY_VERSION, policyDocument } from '#backends/gcs/bucket-policy';
import { type GcsApi, isMissing } from '#backends/gcs/gcs-api';
import { isOfGke } from '#backends/gcs/pool-names';
import type { ServiceAccount } from '#backends/object-backend';
import { httpStatus } from '#backends/s3/errors';
import { StorageError } from '#platform/errors';
import type { LeaseSignal } from '#platform/lease-signal';

const ROLE = 'roles/iam.workloadIdentityUser';
/** Google maps no longer one (https://cloud.google.com/iam/docs/workload-identity-federation#mapping). */
const MOST_OF_SUBJECT = 127;

/** Written without one, a policy would be replaced whatever it has become since. */
const accountPolicy = policyDocument.extend({ etag: z.string().min(1) });

export function memberOf(pool: string, { namespace, name }: ServiceAccount): string {
  if (isOfGke(pool)) return `serviceAccount:${pool}[${namespace}/${name}]`;
  const subject = `system:serviceaccount:${namespace}:${name}`;
  if (subject.length > MOST_OF_SUBJECT)
    throw new StorageError(
      'invalid_argument',
      `Google lets in no service account whose subject is longer than ${MOST_OF_SUBJECT} characters, as ${subject} is: take shorter names`,
    );
  return `principal://iam.googleapis.com/${pool}/subject/${subject}`;
}

/** @param path of the account of Google's */
export async function letsIn(api: GcsApi, path: string, member: string, signal: AbortSignal): Promise<boolean> {
  return isAlone((await readPolicy(api, path, signal)).bindings, member);
}

/** Lets this one in and nobody else. What others may do with the account by other roles stays. */
export async function letIn(api: GcsApi, path: string, member: string, signal: LeaseSignal): Promise<void> {
  try {
    const found = await readPolicy(api, path, signal);
    if (isAlone(found.bindings, member)) return;
    const bindings = [...found.bindings.filter(({ role }) => role !== ROLE), { role: ROLE, members: [member] }];
    const policy = { ...found, version: POLICY_VERSION, bindings };
    const asked = { place: 'iam', path: `${path}:setIamPolicy`, body: { policy } } as const;
    await api.change('POST', 'serviceAccounts.setIamPolicy', asked, signal);
  } catch (error) {
    // Its etag is another one by now, or the account is not known everywhere yet: the whole of it is repeated.
    if (![404, 409, 412].includes(httpStatus(error) ?? 0)) throw error;
    const why = isMissing(error) ? 'is not known everywhere yet' : 'is being changed by somebody else';
    throw new StorageError('aborted', `the policy of ${path} ${why}`, { resource: path, cause: error });
  }
}

async function readPolicy(api: GcsApi, path: string, signal: AbortSignal) {
  const query = { 'options.requestedPolicyVersion': String(POLICY_VERSION) };
  return accountPolicy.parse(
    JSON.parse(await api.text('POST', { place: 'iam', path: `${path}:getIamPolicy`, query }, signal)),
  );
}

function isAlone(bindings: z.output<typeof policyDocument>['bindings'], member: string): boolean {
  const ours = bindings.filter(({ role }) => role === ROLE);
  return ours.length === 1 && ours[0]!.condition === undefined && ours[0]!.members.join() === member;
}
