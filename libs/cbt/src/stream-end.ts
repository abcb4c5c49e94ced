/**
 * Why a stream ended before its source did, when it was not the source:
 *   left      the caller cancelled, or its connection is gone
 *   deadline  the caller's own time is over
 *   stalled   the caller has taken nothing for too long, or was not heard of
 *   stopping  this process ends; another one will answer the same call
 *   closed    the tenant was suspended
 */
export type EndReason = 'left' | 'deadline' | 'stalled' | 'stopping' | 'closed';

export class StreamEnd extends Error {
  constructor(
    readonly reason: EndReason,
    message: string,
  ) {
    super(message);
    this.name = 'StreamEnd';
  }

  /** As its reader shall hear it who has got all ranges up to this offset, if any. */
  reachedBy(offset: number | undefined): StreamEnd {
    const { reason, message } = this;
    if (offset === undefined || (reason !== 'stalled' && reason !== 'stopping')) return this;
    return new StreamEnd(reason, `${message}; go on with starting_offset ${offset}`);
  }
}
