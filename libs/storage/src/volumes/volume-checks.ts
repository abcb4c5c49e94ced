import type { BlockCapabilities } from '#backends/block-backend';
import { invalid } from '#platform/errors';
import type { VolumeChanges, VolumeRequest } from '#storage/block-storage';
import { BLOCK_BYTES, imageBytes } from '#storage/volumes/image-size';
import type { VolumeSource } from '#storage/volumes/volume-source';

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
    throw invalid('config.pool', `a clone stays in the pool of its source, ${source.image.pool}`);
}

/** `line`: of a StorageClass, by which the driver asks for it. */
const refuse = (field: string, what: string, line: string) =>
  invalid(`config.${field}`, `this backend ${what}; remove the line ${line} from the StorageClass`);

/** What a backend cannot enforce is refused, not accepted and ignored. */
export function checkCapabilities(request: VolumeRequest, capabilities: BlockCapabilities): void {
  if (request.thick && !capabilities.thick) throw refuse('thick', 'cannot reserve space', 'thick: "true"');
  if (request.encrypted && !capabilities.encryption)
    throw refuse('encrypted', 'does not encrypt volumes', 'encrypted: "true"');
  if (request.deduplication && !capabilities.deduplication)
    throw refuse('dedupe_enabled', 'does not deduplicate', 'dedupeEnabled: "true"');
  checkLimits(request, capabilities);
}

export function checkLimits(
  { limitIops = -1, limitMbps = -1 }: Pick<VolumeChanges, 'limitIops' | 'limitMbps'>,
  capabilities: BlockCapabilities,
): void {
  if (limitIops !== -1 && !capabilities.limitIops)
    throw refuse('limit_iops', 'cannot limit operations a second', 'limitIops');
  if (limitMbps !== -1 && !capabilities.limitMbps) throw refuse('limit_mbps', 'cannot limit throughput', 'limitMbps');
}
