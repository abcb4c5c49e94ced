/** The connection test of an RGW: reads with each of the caps that the adapter needs, and changes nothing. */
import type { BackendCheck } from '#backends/registration';
import type { AdminOps } from '#backends/rgw/admin-ops';
import { RGW_WORDS } from '#backends/rgw/rgw-words';
import { errorCode, httpStatus, translate } from '#backends/s3/errors';

const NOT_LET_IN = ['InvalidAccessKeyId', 'SignatureDoesNotMatch', 'RequestTimeTooSkewed'];

export async function diagnoseRgw(admin: AdminOps, ownerUid: string, signal: AbortSignal): Promise<BackendCheck[]> {
  const place = admin.address;
  const asked = { doing: 'ask the object store', resource: 'object store', readOnly: true, signal };
  const failureOf = async (question: () => Promise<unknown>): Promise<unknown> =>
    question().then(
      () => undefined,
      (error: unknown) => error ?? new Error('no reason'),
    );
  const first = await failureOf(() => admin.getUser(ownerUid, signal));
  const unanswered = first !== undefined && httpStatus(first) === undefined;
  if (unanswered)
    return [{ name: 'answers', ok: false, detail: `${translate(first, asked, RGW_WORDS).message}: ${place}` }];
  const checks: BackendCheck[] = [{ name: 'answers', ok: true, detail: `${place} answers` }];
  if (NOT_LET_IN.includes(errorCode(first))) {
    const detail =
      errorCode(first) === 'RequestTimeTooSkewed'
        ? 'its clock and ours differ by more than 15 minutes: set both by NTP'
        : errorCode(first) === 'InvalidAccessKeyId'
          ? 'it does not know the access key: check it, and the secret key'
          : 'it knows the access key, and the secret key is another one: check both';
    const evidence = `it answered ${httpStatus(first)} ${errorCode(first)}`;
    return [...checks, { name: 'credentials', ok: false, detail: `${detail} (${evidence})` }];
  }
  checks.push({ name: 'credentials', ok: true, detail: 'it accepts our access key' });
  const caps: [cap: string, failure: unknown][] = [
    ['users', first],
    ['buckets', await failureOf(() => admin.getBucket(ownerUid, signal))],
    ['metadata', await failureOf(() => admin.readUserMetadata(ownerUid, signal))],
  ];
  for (const [cap, failure] of caps) {
    const ok = failure === undefined;
    const detail = ok
      ? `its administration lets us read ${cap}`
      : httpStatus(failure) === 403
        ? `the user of our key lacks the cap ${cap}=*: radosgw-admin caps add --uid=USER --caps="users=*;buckets=*;metadata=*"`
        : translate(failure, asked, RGW_WORDS).message;
    checks.push({ name: `cap ${cap}`, ok, detail });
  }
  return checks;
}
