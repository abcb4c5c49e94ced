import type { Reply } from '#test/cosi/client';
import { describeStoreKills } from '#test/crash/describe-store-kills';
import { type GcsHarness, openGcsHarness, POOL } from '#test/object-backend/gcs-harness';

/** As a workload does with the token that Google gives it for the service account. */
async function writeAs({ project }: GcsHarness, { gcs }: Reply, name: string): Promise<void> {
  const { policy, email } = project.account(gcs.service_account);
  const isIn = policy.bindings.some(({ members }) => members.join().endsWith('system:serviceaccount:shop:uploader'));
  if (!isIn || !project.may(email, project.bucket(name), 'storage.objects.create')) throw new Error('refused');
}

describeStoreKills('Google Cloud Storage, for service accounts', {
  open: () => openGcsHarness({ workloadIdentityPool: POOL }),
  appliance: ({ parts }) => ({ backend: 'gcs', store: parts }),
  protocol: 'GCS',
  isStandIn: true,
  authentication: {
    authentication_type: { type: 'SERVICE_ACCOUNT' },
    service_account_name: 'uploader',
    parameters: { serviceAccountNamespace: 'shop' },
  },
  changes: {
    'access.grant': ['putPrincipal', 'putGrants'],
    'access.revoke': ['putGrants', 'removePrincipal'],
  },
  writeAs,
});
