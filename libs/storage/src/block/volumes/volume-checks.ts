import type { BlockCapabilities } from '#backends/block-backend';
import { invalid, StorageError } from '#platform/errors';
import type { VolumeChanges, VolumeRequest } from '#storage/block/block-storage';
import { BLOCK_BYTES, imageBytes } from '#storage/block/volumes/image-size';
import type { VolumeSource } from '#storage/block/volumes/volume-source';

export function checkSize(sizeBytes: bigint, { maxSizeBytes }: BlockCapabilities): void {
  if (sizeBytes <= 0n) throw invalid('size', 'expected a positive number of bytes');
  if (sizeBytes % BLOCK_BYTES !== 0n)
    throw invalid(
      'size',
      `${sizeBytes} is no multiple of ${BLOCK_BYTES}, the block size: the next one is ${imageBytes(sizeBytes)}`,
    );
  if (sizeBytes > maxSizeBytes) throw invalid('size', `at most ${maxSizeBytes} bytes here`);
}

export function checkCloneSize(source: VolumeSource, sizeBytes: bigint, pool: string): void {
  if (sizeBytes < source.sizeBytes)
    throw invalid('size', `${sizeBytes} is below the ${source.sizeBytes} bytes of what is cloned`);
  if (source.image.pool !== pool)
    throw invalid('pool', `a clone stays in the pool of its source, ${source.image.pool}`);
}

/** What a volume may ask for, and this backend cannot do. */
export class NotOffered extends StorageError {
  constructor(field: keyof VolumeRequest, what: string) {
    super('invalid_argument', `${field}: this backend ${what}`, { field });
  }
}

/** What a backend cannot enforce is refused, not accepted and ignored. */
export function checkCapabilities(request: VolumeRequest, capabilities: BlockCapabilities): void {
  if (request.thick && !capabilities.thick) throw new NotOffered('thick', 'cannot reserve space');
  if (request.encrypted && !capabilities.encryption) throw new NotOffered('encrypted', 'does not encrypt volumes');
  if (request.deduplication && !capabilities.deduplication)
    throw new NotOffered('deduplication', 'does not deduplicate');
  checkLimits(request, capabilities);
}

export function checkLimits(
  { limitIops = -1, limitMbps = -1 }: Pick<VolumeChanges, 'limitIops' | 'limitMbps'>,
  capabilities: BlockCapabilities,
): void {
  if (limitIops !== -1 && !capabilities.limitIops)
    throw new NotOffered('limitIops', 'cannot limit operations a second');
  if (limitMbps !== -1 && !capabilities.limitMbps) throw new NotOffered('limitMbps', 'cannot limit throughput');
}
