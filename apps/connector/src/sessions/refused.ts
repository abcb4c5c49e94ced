import type { status } from '@grpc/grpc-js';

/** What a caller is told instead of blocks. */
export class Refused extends Error {
  constructor(
    readonly code: status,
    message: string,
  ) {
    super(message);
  }
}
