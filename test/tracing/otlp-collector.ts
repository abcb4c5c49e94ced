import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { text } from 'node:stream/consumers';

export interface CollectedSpan {
  service: string;
  traceId: string;
  spanId: string;
  parentSpanId: string | undefined;
  name: string;
  /** As in the protocol: 2 server, 3 client, 4 producer, 5 consumer. */
  kind: number;
  attributes: Record<string, string | number>;
  links: string[];
  failed: boolean;
}

interface Attribute {
  key: string;
  value: { stringValue?: string; intValue?: string | number };
}
interface SentSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  attributes?: Attribute[];
  links?: { traceId: string; spanId: string }[];
  status?: { code?: number };
}

/** What OTLP over HTTP sends as JSON, kept. */
export class OtlpCollector {
  readonly spans: CollectedSpan[] = [];
  /** As they came: what no span may hold is searched for here. */
  readonly bodies: string[] = [];

  private constructor(private readonly server: Server) {}

  static async start(): Promise<OtlpCollector> {
    const server = createServer();
    const collector = new OtlpCollector(server);
    server.on('request', async (request, reply) => {
      const body = await text(request);
      if (request.method === 'POST' && request.url === '/v1/traces') collector.take(body);
      reply.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return collector;
  }

  /** For OTEL_EXPORTER_OTLP_ENDPOINT. */
  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as { port: number }).port}`;
  }

  of(traceId: string): CollectedSpan[] {
    return this.spans.filter(span => span.traceId === traceId);
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, 'close');
  }

  private take(body: string): void {
    this.bodies.push(body);
    const { resourceSpans } = JSON.parse(body) as {
      resourceSpans: { resource: { attributes: Attribute[] }; scopeSpans: { spans: SentSpan[] }[] }[];
    };
    for (const { resource, scopeSpans } of resourceSpans) {
      const service = String(valuesOf(resource.attributes)['service.name']);
      for (const span of scopeSpans.flatMap(({ spans }) => spans))
        this.spans.push({
          service,
          traceId: span.traceId,
          spanId: span.spanId,
          parentSpanId: span.parentSpanId || undefined,
          name: span.name,
          kind: span.kind,
          attributes: valuesOf(span.attributes ?? []),
          links: (span.links ?? []).map(link => `${link.traceId}/${link.spanId}`),
          failed: span.status?.code === 2,
        });
    }
  }
}

const valuesOf = (attributes: readonly Attribute[]): Record<string, string | number> =>
  Object.fromEntries(
    attributes.map(({ key, value }) => [
      key,
      value.stringValue ?? (value.intValue === undefined ? '' : Number(value.intValue)),
    ]),
  );
