import { status } from '@grpc/grpc-js';
import type { CbtStatus } from '#cbt/cbt-errors';
import { cbtBytesTotal, cbtRangesTotal, cbtStreamDuration, cbtStreamsOpen, type FaceName } from '#cbt/cbt-metrics';
import type { MetadataQuery } from '#cbt/metadata-query';
import type { Pumped } from '#cbt/pump';

/** As much of a pino logger as is used here. */
export interface CallLogger {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** Measures one stream, and leaves one line of it: what was asked for by ids and names, never a token or a secret. */
export class StreamLog {
  readonly sent: Pumped = { ranges: 0, bytes: 0 };
  query: MetadataQuery | undefined;
  /** How it is answered, once that is known. */
  source: string | undefined;
  private readonly started = performance.now();

  constructor(
    private readonly face: FaceName,
    private readonly method: string,
    private readonly logger: CallLogger,
  ) {
    cbtStreamsOpen.inc({ face });
  }

  /** Without a problem: it ended with OK. */
  end(problem?: CbtStatus, cause?: unknown): void {
    const { face, method, query, sent } = this;
    const duration = performance.now() - this.started;
    const code = status[problem?.code ?? status.OK] as string;
    cbtStreamsOpen.dec({ face });
    cbtStreamDuration.observe({ face, method, code }, duration / 1_000);
    cbtRangesTotal.inc({ face }, sent.ranges);
    cbtBytesTotal.inc({ face }, sent.bytes);
    const fields = {
      face,
      method,
      tenantId: query?.tenantId,
      target: query?.target[0],
      base: query?.base?.[0],
      from: query && Number(query.from),
      source: this.source,
      ...sent,
      code,
      durationMs: Math.round(duration),
    };
    if (!problem) this.logger.info(fields, 'cbt stream');
    else if (problem.errorId) this.logger.error({ ...fields, errorId: problem.errorId, err: cause }, 'cbt stream');
    else {
      const level = problem.code === status.UNAVAILABLE ? 'warn' : 'info';
      this.logger[level]({ ...fields, reason: problem.details }, 'cbt stream');
    }
  }
}
