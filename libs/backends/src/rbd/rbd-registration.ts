import type { BlockCapabilities } from '#backends/block-backend';
import { hostsOf, type RbdConfig, rbdConfig, rbdCredentials } from '#backends/rbd/rbd-config';
import type { Registration } from '#backends/registration';
import { StorageError } from '#platform/errors';

/** Sizes go to librbd as numbers; 4 PiB. */
const MAX_SIZE_BYTES = 2n ** 52n;

export const RBD_CAPABILITIES: BlockCapabilities = {
  blockBytes: 512,
  maxSizeBytes: MAX_SIZE_BYTES,
  thick: true,
  encryption: false,
  deduplication: false,
  limitIops: false,
  limitMbps: false,
  accessProtocols: ['iscsi'],
};

export const rbdRegistration: Registration<RbdConfig> = {
  config: rbdConfig,
  credentials: rbdCredentials,
  fixed: [],
  addresses: ({ monitors }) =>
    Object.fromEntries(monitors.flatMap(hostsOf).map((address, at) => [`monitors/${at}`, `http://${address}`])),
  capabilities: ({ exporter }) => ({
    ...RBD_CAPABILITIES,
    maxSizeBytes: `${MAX_SIZE_BYTES}`,
    accessProtocols: exporter.kind === 'none' ? [] : RBD_CAPABILITIES.accessProtocols,
    snapshots: true,
    changedBlocks: true,
  }),
  // Inside a pool only a RADOS namespace keeps tenants apart by caps, and bs_rbd opens none.
  share: () => {
    throw new StorageError(
      'failed_precondition',
      'a pool of Ceph belongs to one tenant: register the backend with the tenant itself, with a pool and a user of its own',
      { field: 'share' },
    );
  },
};
