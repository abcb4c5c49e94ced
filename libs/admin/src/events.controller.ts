import type { OutgoingHttpHeaders } from 'node:http';
import { Controller, Inject, type OnModuleDestroy, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type AdminCall, Call } from '#admin/admin-call';
import { ADMIN_OPTIONS, type AdminOptions } from '#admin/admin-options';
import { eventRoutes } from '#admin/contract/overview';
import type { ListenerRequest } from '#admin/events/event-hub';
import { SseSink } from '#admin/events/sse-sink';
import { scopeOf } from '#admin/scope';
import { Serves } from '#admin/serves';

/** Server-sent events (WHATWG HTML, section 9.2). */
@Controller()
export class EventsController implements OnModuleDestroy {
  constructor(@Inject(ADMIN_OPTIONS) private readonly options: AdminOptions) {}

  @Serves(eventRoutes.stream)
  async stream(
    @Call() call: AdminCall<typeof eventRoutes.stream>,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { events } = this.options;
    const { principal, query } = call;
    const { tenantId } = await scopeOf(call, this.options, query.tenant);
    const last = request.headers['last-event-id'];
    const listener: ListenerRequest = {
      tokenId: principal.id,
      userId: principal.userId,
      ...(tenantId === undefined ? {} : { tenantId }),
      ...(query.operation === undefined ? {} : { operationId: query.operation }),
      ...(typeof last === 'string' && last !== '' ? { lastEventId: last } : {}),
    };
    events.admit(listener);
    const { raw } = reply;
    const headers = reply.getHeaders() as OutgoingHttpHeaders;
    reply.hijack();
    raw.writeHead(200, {
      ...headers,
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      // nginx would collect them.
      'x-accel-buffering': 'no',
    });
    const sink = new SseSink(raw);
    raw.once('close', () => events.gone(sink));
    await events.listen(listener, sink);
  }

  /** Before the server closes, which waits for what is under way. */
  onModuleDestroy(): void {
    this.options.events.close();
  }
}
