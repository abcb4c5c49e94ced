import type { OutgoingHttpHeaders } from 'node:http';
import { Controller, type OnModuleDestroy, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { eventRoutes } from '#admin/contract/overview';
import { EventHub, type ListenerRequest } from '#admin/events/event-hub';
import { SseSink } from '#admin/events/sse-sink';
import { type AdminCall, Call } from '#admin/requests/admin-call';
import { scopeOf } from '#admin/requests/scope';
import { Serves } from '#admin/requests/serves';
import { Tenants } from '#tenancy/tenants/tenants';

/** Server-sent events (WHATWG HTML, section 9.2). */
@Controller()
export class EventsController implements OnModuleDestroy {
  constructor(
    private readonly tenants: Tenants,
    private readonly events: EventHub,
  ) {}

  @Serves(eventRoutes.stream)
  async stream(
    @Call() call: AdminCall<typeof eventRoutes.stream>,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { events } = this;
    const { principal, query } = call;
    const { tenantId } = await scopeOf(call, this.tenants, query.tenant);
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
    this.events.close();
  }
}
