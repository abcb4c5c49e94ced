import { type Attributes, ROOT_CONTEXT, type SpanContext, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { createLogger } from '#platform/logging/log';
import type { OpenSpan, SpanOptions, Tracer, TracingSettings } from '#platform/tracing/tracer';

/** The only file that knows the library; `tracing.ts` loads it when somebody wants traces. */
export function createTracer(settings: TracingSettings & { app: string; version: string }): Tracer {
  const { app, version, delayMs } = settings;
  const exporter = new OTLPTraceExporter();
  const processor = new BatchSpanProcessor({
    exporter,
    ...(delayMs === undefined ? {} : { scheduledDelayMillis: delayMs }),
  });
  // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win.
  const resource = resourceFromAttributes({ 'service.name': `trivet-${app}`, 'service.version': version }).merge(
    detectResources({ detectors: [envDetector] }),
  );
  const provider = new TracerProvider({ resource, sampler: samplerOf(settings), spanProcessors: [processor] });
  const tracer = provider.getTracer('trivet', version);
  return {
    start: (name, options, active) => {
      const parent = options.parent ? contextOf(options.parent, true) : active && contextOf(active.traceparent, false);
      const span = tracer.startSpan(
        name,
        {
          kind: KINDS[options.kind],
          attributes: defined(options.attributes),
          links: (options.links ?? []).map(link => ({ context: contextOf(link, true) })),
        },
        parent ? trace.setSpanContext(ROOT_CONTEXT, parent) : ROOT_CONTEXT,
      );
      const { traceId, spanId, traceFlags } = span.spanContext();
      return {
        traceparent: `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`,
        attribute: (key, value) => void span.setAttribute(key, value),
        end: failed => {
          if (options.kind === 'client') span.setAttribute('trivet.outcome', failed ?? 'ok');
          if (failed !== undefined) span.setStatus({ code: SpanStatusCode.ERROR }).setAttribute('error.type', failed);
          span.end();
        },
      } satisfies OpenSpan;
    },
    // A collector that is away must not hold the end of the process; what it did not get is lost.
    stop: () => provider.shutdown().catch(error => log.warn({ err: error }, 'the last spans were not sent')),
  };
}

const log = createLogger('tracing');

const KINDS = {
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
} as const satisfies Record<SpanOptions['kind'], SpanKind>;

const defined = (attributes: SpanOptions['attributes'] = {}): Attributes =>
  Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined));

function contextOf(traceparent: string, isRemote: boolean): SpanContext {
  const [, traceId, spanId, flags] = traceparent.split('-') as [string, string, string, string];
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote };
}

/** Names and argument as the specification of the SDK's variables has them; a name that it does not know samples all. */
function samplerOf({ sampler, samplerArgument }: TracingSettings): Sampler {
  const given = Number(samplerArgument ?? '1');
  const ratio = given >= 0 && given <= 1 ? given : 1;
  const roots: Record<string, () => Sampler> = {
    always_on: () => new AlwaysOnSampler(),
    always_off: () => new AlwaysOffSampler(),
    traceidratio: () => new TraceIdRatioBasedSampler(ratio),
  };
  const root = roots[sampler.replace(/^parentbased_/, '')];
  if (!root) log.warn({ sampler }, 'OTEL_TRACES_SAMPLER: unknown sampler, every trace is kept');
  const made = (root ?? roots.always_on!)();
  return sampler.startsWith('parentbased_') ? new ParentBasedSampler({ root: made }) : made;
}
