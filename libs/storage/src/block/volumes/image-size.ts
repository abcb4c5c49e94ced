/** What an initiator addresses. */
export const BLOCK_BYTES = 512n;

/** Of the image for a volume of so many bytes. New volumes have whole blocks; older ones may end within one. */
export const imageBytes = (sizeBytes: bigint): bigint => ((sizeBytes + BLOCK_BYTES - 1n) / BLOCK_BYTES) * BLOCK_BYTES;
