import type { ServerResponse } from 'node:http';
import { status } from '@grpc/grpc-js';
import { Controller, Get, Inject, Param, Query, Req, Res, UseFilters } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { toCbtStatus } from '#cbt/cbt-errors';
import { readerOf, type TokenDirectories, toRestQuery } from '#cbt/changes-requests';
import { ask } from '#cbt/metadata-query';
import { complete, LineEncoder, line } from '#cbt/ndjson';
import { Outflow } from '#cbt/outflow';
import { ProblemFilter } from '#cbt/problem';
import { pump, unlessAborted } from '#cbt/pump';
import { StreamEnd } from '#cbt/stream-end';
import { StreamLog } from '#cbt/stream-log';
import type { StreamParts } from '#cbt/streaming-call';
import { StorageError } from '#platform/errors';
import type { GrpcStatus } from '#protocol/grpc-status';

/** Under this token: ChangesApi. */
export const CHANGES_API = Symbol('ChangesApi');

export type ChangesApi = StreamParts & TokenDirectories;

type Params = Record<string, unknown>;

/** The two queries over REST, for scripts: JSON a line (ndjson.ts), pulled like the gRPC streams. */
@Controller('cbt/v1/snapshots')
@UseFilters(ProblemFilter)
export class ChangesController {
  constructor(@Inject(CHANGES_API) private readonly api: ChangesApi) {}

  @Get(':id/allocated')
  allocated(
    @Param('id') id: string,
    @Query() query: Params,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ) {
    return this.stream('allocated', id, query, request, reply);
  }

  @Get(':id/changes')
  changes(@Param('id') id: string, @Query() query: Params, @Req() request: FastifyRequest, @Res() reply: FastifyReply) {
    return this.stream('delta', id, query, request, reply);
  }

  /** What fails before the first line is a problem with its status; what fails later cannot have one. */
  private async stream(
    method: 'allocated' | 'delta',
    id: string,
    params: Params,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<void> {
    const { api } = this;
    const { raw } = reply;
    const log = new StreamLog('rest', method, api.logger);
    const stream = this.opened(log);
    const { signal } = stream;
    const left = (): void => stream.end('left', 'the caller left');
    raw.once('close', left);
    try {
      const reader = await readerOf(api, request);
      await unlessAborted(api.streams.admit(stream, reader.tenantId), signal);
      log.query = toRestQuery(method, reader, id, params);
      const ranges = await unlessAborted(ask(api.changes, log.query, signal), signal);
      log.source = ranges.source;
      reply.hijack();
      raw.writeHead(200, { 'content-type': 'application/x-ndjson; charset=utf-8', 'cache-control': 'no-store' });
      const out = new Outflow((bytes, taken) => raw.write(bytes, taken), api.stallMs, signal);
      const encoder = new LineEncoder(ranges.capacityBytes);
      await out.send(encoder.head());
      await pump(ranges, encoder, log.query.perMessage, out, signal, log.sent);
      raw.off('close', left);
      raw.end(complete());
      log.end();
    } catch (error) {
      const problem = toCbtStatus(error);
      log.end(problem, error);
      if (!reply.sent) throw refusal(error, problem);
      breakOff(raw, problem.details);
    } finally {
      api.streams.close(stream);
    }
  }

  private opened(log: StreamLog) {
    try {
      return this.api.streams.open();
    } catch (error) {
      const problem = toCbtStatus(error);
      log.end(problem, error);
      throw refusal(error, problem);
    }
  }
}

/** Nothing is sent yet: what is UNAVAILABLE on the other services is so here, a backend that refuses us among it. */
const refusal = (error: unknown, { code, details }: GrpcStatus): unknown =>
  error instanceof StreamEnd || code === status.UNAVAILABLE ? new StorageError('unavailable', details) : error;

const LAST_WORD_MS = 1_000;

/** The reason, and then no proper end: a client that knows nothing of `complete` sees a broken transfer, too. */
function breakOff(raw: ServerResponse, error: string): void {
  if (raw.destroyed) return;
  const late = setTimeout(() => raw.destroy(), LAST_WORD_MS);
  raw.once('close', () => clearTimeout(late));
  raw.write(line({ error }), () => raw.destroy());
}
