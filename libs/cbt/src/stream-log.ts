import { status } from '@grpc/grpc-js';
import { cbtBytesTotal, cbtRangesTotal, cbtStreamDuration, cbtStreamsOpen, type ServiceName } from '#cbt/cbt-metrics';
import type { MetadataQuery } from '#cbt/metadata-query';
import type { Pumped } from '#cbt/pump';
import { type CallLogger, logCall } from '#protocol/call-log';
import type { GrpcStatus } from '#protocol/grpc-status';

/** Measures one stream, and leaves one line of it: what was asked for by ids and names, never a token or a secret. */
export class StreamLog {
  readonly sent: Pumped = { ranges: 0, bytes: 0 };
  query: MetadataQuery | undefined;
  /** How it is answered, once that is known. */
  source: string | undefined;
  private readonly started = performance.now();

  constructor(
    private readonly service: ServiceName,
    private readonly method: string,
    private readonly logger: CallLogger,
  ) {
    cbtStreamsOpen.inc({ face: service });
  }

  /** Without a problem: it ended with OK. */
  end(problem?: GrpcStatus, cause?: unknown): void {
    const { service, method, query, sent } = this;
    const duration = performance.now() - this.started;
    const code = status[problem?.code ?? status.OK] as string;
    cbtStreamsOpen.dec({ face: service });
    cbtStreamDuration.observe({ face: service, method, code }, duration / 1_000);
    cbtRangesTotal.inc({ face: service }, sent.ranges);
    cbtBytesTotal.inc({ face: service }, sent.bytes);
    const fields = {
      service,
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
    const refused = problem && {
      reason: problem.details,
      errorId: problem.errorId,
      cause,
      ours: problem.code === status.UNAVAILABLE,
    };
    logCall(this.logger, 'cbt stream', fields, { refused });
  }
}
