import { afterEach, describe, expect, it } from 'vitest';
import { loadConfig } from '#platform/config/config';
import type { OpenSpan, SpanOptions } from '#platform/tracing/tracer';
import {
  inSpan,
  isTraced,
  isTracing,
  readTraceparent,
  setTracer,
  startSpan,
  startTracing,
  tracingSettings,
} from '#platform/tracing/tracing';

const TRACE = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
afterEach(() => setTracer(undefined));

describe('settings of traces', () => {
  it('are those of OpenTelemetry', () => {
    expect(tracingSettings({})).toBeUndefined();
    const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' };
    expect(tracingSettings(endpoint)).toEqual({
      sampler: 'parentbased_always_on',
      samplerArgument: undefined,
      delayMs: undefined,
    });
    expect(
      tracingSettings({
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://127.0.0.1:4318/v1/traces',
        OTEL_TRACES_SAMPLER: 'traceidratio',
        OTEL_TRACES_SAMPLER_ARG: '0.1',
        OTEL_BSP_SCHEDULE_DELAY: '50',
      }),
    ).toEqual({ sampler: 'traceidratio', samplerArgument: '0.1', delayMs: 50 });
    expect(tracingSettings({ ...endpoint, OTEL_SDK_DISABLED: 'true' })).toBeUndefined();
    expect(tracingSettings({ ...endpoint, OTEL_TRACES_EXPORTER: 'none' })).toBeUndefined();
  });

  it('are no settings of ours, so none of them is an error', () => {
    expect(() => loadConfig([], { OTEL_EXPORTER_OTLP_ENDPOINT: 'x', OTEL_WHATEVER: 'y' })).not.toThrow();
  });
});

describe('spans', () => {
  it('are none without a tracer', async () => {
    expect(await startTracing('test', '0')).toBeUndefined();
    expect(isTracing()).toBe(false);
    expect(startSpan('a', { kind: 'server' })).toBeUndefined();
    const seen = await inSpan(
      'a',
      () => expect.unreachable(),
      String,
      async span => ({ span, traced: isTraced() }),
    );
    expect(seen).toEqual({ span: undefined, traced: false });
  });

  it('hang on the one around them, and end with what failed', async () => {
    const log: string[] = [];
    const made = (name: string): OpenSpan => ({
      traceparent: TRACE,
      attribute: (key, value) => void log.push(`${name}: ${key}=${value}`),
      end: failed => void log.push(`${name} ends ${failed ?? 'well'}`),
    });
    setTracer({
      start: (name: string, { parent, links }: SpanOptions, active) => {
        log.push(`${name} below ${parent ?? active?.traceparent ?? 'nothing'}, links ${links?.length ?? 0}`);
        return made(name);
      },
      stop: async () => {},
    });
    const outer = () => ({ kind: 'consumer', parent: 'nonsense', links: [TRACE, 'nonsense'] }) as const;
    const inner = () => ({ kind: 'client' }) as const;
    await expect(
      inSpan(
        'outer',
        outer,
        () => 'inner_failed',
        async span => {
          expect(isTraced()).toBe(true);
          span?.attribute('n', 1);
          await inSpan(
            'inner',
            inner,
            error => (error as Error).message,
            async () => {
              throw new Error('timeout');
            },
          );
        },
      ),
    ).rejects.toThrow('timeout');
    expect(isTraced()).toBe(false);
    expect(log).toEqual([
      'outer below nothing, links 1',
      'outer: n=1',
      `inner below ${TRACE}, links 0`,
      'inner ends timeout',
      'outer ends inner_failed',
    ]);
  });

  it('take a traceparent of version 00 and nothing else', () => {
    expect(readTraceparent(TRACE)).toBe(TRACE);
    const [, trace, span] = TRACE.split('-') as [string, string, string];
    const ofZeros = [TRACE.replace(trace, '0'.repeat(32)), TRACE.replace(span, '0'.repeat(16))];
    for (const wrong of [undefined, '', [TRACE], `${TRACE}-x`, TRACE.toUpperCase(), `01${TRACE.slice(2)}`, ...ofZeros])
      expect(readTraceparent(wrong)).toBeUndefined();
  });
});
