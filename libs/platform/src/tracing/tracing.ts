import { AsyncLocalStorage } from 'node:async_hooks';
import { openTelemetryVariables } from '#platform/config/config';
import type { OpenSpan, SpanOptions, Tracer, TracingSettings } from '#platform/tracing/tracer';

/**
 * Traces by OpenTelemetry, for whoever sets its own variables (OTEL_EXPORTER_OTLP_ENDPOINT); else the library is not even
 * loaded, and every function here costs one comparison. The way of a trace:
 *
 *   door (server) ─▶ accept (producer) ─▶ operation row ─▶ attempt (consumer, one a claim) ─▶ backend call (client)
 *
 * The row has the accepting span's `traceparent`; so attempts of any worker, after any crash, belong to the call that
 * asked. Attributes hold ids and kinds: no name that a tenant chose, and no secret.
 */

/** version 00 of W3C trace context, where ids of zeros alone are none; anything else is not passed on. */
const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

let tracer: Tracer | undefined;
const active = new AsyncLocalStorage<OpenSpan>();

export const setTracer = (given: Tracer | undefined): void => {
  tracer = given;
};
export const isTracing = (): boolean => tracer !== undefined;

/** Loads the library if the standard variables ask for it. Gives what ends it. */
export async function startTracing(app: string, version: string): Promise<(() => Promise<void>) | undefined> {
  const settings = tracingSettings();
  if (!settings) return undefined;
  const { createTracer } = await import('#platform/tracing/otel');
  const made = createTracer({ ...settings, app, version });
  setTracer(made);
  return () => made.stop();
}

/** Undefined: nobody wants traces. What the exporter itself reads (endpoint, headers, certificates) is left to it. */
export function tracingSettings(
  env: Readonly<Record<string, string | undefined>> = openTelemetryVariables(),
): TracingSettings | undefined {
  const endpoint = env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT || env.OTEL_EXPORTER_OTLP_ENDPOINT;
  const off = env.OTEL_SDK_DISABLED?.toLowerCase() === 'true' || env.OTEL_TRACES_EXPORTER === 'none';
  if (!endpoint || off) return undefined;
  const delay = Number(env.OTEL_BSP_SCHEDULE_DELAY || Number.NaN);
  return {
    sampler: env.OTEL_TRACES_SAMPLER || 'parentbased_always_on',
    samplerArgument: env.OTEL_TRACES_SAMPLER_ARG,
    delayMs: Number.isFinite(delay) && delay >= 0 ? delay : undefined,
  };
}

/** For a span whose end is elsewhere than its begin. Undefined when nobody traces. */
export function startSpan(name: string, options: SpanOptions): OpenSpan | undefined {
  if (!tracer) return undefined;
  const parent = options.parent && TRACEPARENT.test(options.parent) ? options.parent : undefined;
  const links = options.links?.filter(link => TRACEPARENT.test(link));
  return tracer.start(name, { ...options, parent, links }, active.getStore());
}

/** Within a span that `inSpan` opened. */
export const isTraced = (): boolean => tracer !== undefined && active.getStore() !== undefined;

/** Calls `work` with a span as the active one. `failedOf` says in one word what an error means. */
export async function inSpan<T>(
  name: string,
  options: () => SpanOptions,
  failedOf: (error: unknown) => string,
  work: (span: OpenSpan | undefined) => Promise<T>,
): Promise<T> {
  if (!tracer) return work(undefined);
  const span = startSpan(name, options()) as OpenSpan;
  try {
    const result = await active.run(span, () => work(span));
    span.end();
    return result;
  } catch (error) {
    span.end(failedOf(error));
    throw error;
  }
}

/** A traceparent as it came, or undefined when it is none. */
export const readTraceparent = (value: unknown): string | undefined =>
  typeof value === 'string' && TRACEPARENT.test(value) ? value : undefined;
