/** What an initiator addresses. */
const BLOCK_BYTES = 512n;

/**
 * Of the image for a volume of so many bytes. A size is kept, answered and compared as it was asked for (reference/csp.md
 * 5); a disk has whole blocks.
 */
export const imageBytes = (sizeBytes: bigint): bigint => ((sizeBytes + BLOCK_BYTES - 1n) / BLOCK_BYTES) * BLOCK_BYTES;
