import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Metadata } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PACKAGE_ROOT } from '#platform/package-root';
import { DaemonProcess, TestAppliance } from '#test/support/appliance';
import { CSP_PASSWORD } from '#test/support/block-folders';
import { freePort } from '#test/support/free-port';
import { until } from '#test/support/parts';
import { type CollectedSpan, OtlpCollector } from '#test/tracing/otlp-collector';

const SERVER = 2;
const CLIENT = 3;
const PRODUCER = 4;
const CONSUMER = 5;

/** The caller's own span. */
const caller = () => {
  const traceId = randomBytes(16).toString('hex');
  const spanId = randomBytes(8).toString('hex');
  return { traceId, spanId, header: `00-${traceId}-${spanId}-01` };
};

let collector: OtlpCollector;
let appliance: TestAppliance;
let otel: Record<string, string>;

beforeAll(async () => {
  collector = await OtlpCollector.start();
  otel = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: '20' };
  appliance = await TestAppliance.create({ backend: 'fake', block: 'fake', env: otel });
  await appliance.gateway();
});
afterAll(async () => {
  await appliance?.close();
  await collector?.close();
});

const named = (spans: readonly CollectedSpan[], name: string) => spans.filter(span => span.name === name);
const children = (spans: readonly CollectedSpan[], of: CollectedSpan) =>
  spans.filter(span => span.parentSpanId === of.spanId);

/** Every span of the trace hangs on another one of it, up to the caller's. */
function expectConnected(spans: readonly CollectedSpan[], root: string): void {
  const known = new Set([root, ...spans.map(({ spanId }) => spanId)]);
  expect(spans.filter(({ parentSpanId }) => !known.has(parentSpanId ?? '')).map(({ name }) => name)).toEqual([]);
}

async function createBucket(name: string, header?: string) {
  const metadata = new Metadata();
  if (header) metadata.set('traceparent', header);
  const { code, message } = await appliance.client().call('v1alpha1', 'DriverCreateBucket', { name }, 40_000, metadata);
  expect({ code, message }).toMatchObject({ code: 'OK' });
}

describe('traces', () => {
  it('lead from the door over the operation to each backend call, in two processes', async () => {
    const worker = await appliance.worker();
    const { traceId, spanId, header } = caller();
    await createBucket('traced', header);
    const spans = await until('the spans have come', () => {
      const found = collector.of(traceId);
      return named(found, 'run bucket.create').length > 0 && named(found, 'cosi v1alpha1.DriverCreateBucket').length > 0
        ? found
        : undefined;
    });
    expectConnected(spans, spanId);
    const [door] = named(spans, 'cosi v1alpha1.DriverCreateBucket');
    expect(door).toMatchObject({ service: 'trivet-gateway', kind: SERVER, parentSpanId: spanId, failed: false });
    const [accepted] = children(spans, door!);
    expect(accepted).toMatchObject({ service: 'trivet-gateway', kind: PRODUCER, name: 'accept bucket.create' });
    const [attempt] = children(spans, accepted!);
    expect(attempt).toMatchObject({
      service: 'trivet-worker',
      kind: CONSUMER,
      name: 'run bucket.create',
      links: [`${traceId}/${accepted!.spanId}`],
      attributes: { 'trivet.operation.attempt': 1, 'trivet.outcome': 'succeeded' },
    });
    expect(attempt!.attributes['trivet.operation.id']).toBe(accepted!.attributes['trivet.operation.id']);
    const calls = children(spans, attempt!);
    expect(calls.map(({ name }) => name)).toEqual(expect.arrayContaining(['fake inspectBucket', 'fake createBucket']));
    for (const call of calls)
      expect(call).toMatchObject({
        kind: CLIENT,
        attributes: { 'trivet.backend.kind': 'fake', 'trivet.outcome': 'ok' },
      });
    const [row] = await appliance.operations(`id = '${attempt!.attributes['trivet.operation.id']}'`);
    expect(row).toMatchObject({ traceparent: `00-${traceId}-${accepted!.spanId}-01` });
    await worker.stop();
  });

  it('go on in another worker when the first one was killed with its spans', async () => {
    const at = { TRIVET_FAILPOINT: 'bucket.create:createBucket:answered=kill@1' };
    const killed = await appliance.worker(at);
    const { traceId, spanId, header } = caller();
    const created = createBucket('traced-crash', header);
    expect(await killed.ended()).toMatchObject({ signal: 'SIGKILL' });
    const worker = await appliance.worker();
    await created;
    const ended = (found: CollectedSpan[]) =>
      named(found, 'run bucket.create').find(span => span.attributes['trivet.outcome'] === 'succeeded');
    const spans = await until('the spans have come', () => {
      const found = collector.of(traceId);
      return ended(found) && named(found, 'cosi v1alpha1.DriverCreateBucket').length > 0 ? found : undefined;
    });
    const attempt = ended(spans)!;
    expect(attempt.attributes['trivet.operation.attempt']).toBe(2);
    const [accepted] = named(spans, 'accept bucket.create');
    expect(attempt.parentSpanId).toBe(accepted!.spanId);
    expect(children(spans, attempt).length).toBeGreaterThan(0);
    // What the killed one had sent hangs on an attempt that it could not send any more; all else is connected.
    const lost = spans.filter(span => span.kind === CLIENT && span.parentSpanId !== attempt.spanId);
    expectConnected(
      spans.filter(span => !lost.includes(span)),
      spanId,
    );
    await worker.stop();
  });

  it('say what failed, begin a trace for a caller without one, and follow a CSP call', async () => {
    const worker = await appliance.worker();
    await until('the pool was looked at', async () => {
      return (await appliance.database.query('SELECT FROM trivet.pool')).length === 1;
    });
    const { traceId, spanId, header } = caller();
    const json = { 'content-type': 'application/json' };
    const login = await fetch(`${appliance.cspUrl}/containers/v1/tokens`, {
      method: 'POST',
      headers: json,
      body: JSON.stringify({ username: 'csp', password: CSP_PASSWORD, array_ip: '' }),
    });
    const { session_token: token } = (await login.json()) as { session_token: string };
    const reply = await fetch(`${appliance.cspUrl}/containers/v1/volumes`, {
      method: 'POST',
      headers: { ...json, 'x-auth-token': token, traceparent: header },
      body: JSON.stringify({ name: 'traced-volume', size: 1_048_576 }),
    });
    expect(reply.status).toBe(200);
    const spans = await until('the spans of the volume have come', () => {
      const found = collector.of(traceId);
      return named(found, 'run volume.create').length > 0 && found.some(({ kind }) => kind === SERVER)
        ? found
        : undefined;
    });
    expectConnected(spans, spanId);
    expect(spans.find(({ kind }) => kind === SERVER)).toMatchObject({
      name: 'POST /containers/v1/volumes',
      attributes: { 'http.route': '/containers/v1/volumes', 'http.response.status_code': 200 },
    });

    await createBucket('traced-alone');
    const own = await until('a trace of its own has come', () =>
      collector.spans.find(
        span =>
          span.name === 'cosi v1alpha1.DriverCreateBucket' && span.parentSpanId === undefined && span.kind === SERVER,
      ),
    );
    expect(own.traceId).toMatch(/^(?!0{32})[0-9a-f]{32}$/);

    const wrong = caller();
    const metadata = new Metadata();
    metadata.set('traceparent', wrong.header);
    await appliance.client().call('v1alpha1', 'DriverCreateBucket', { name: '' }, 10_000, metadata);
    const refused = await until('the refused call has come', () => collector.of(wrong.traceId)[0]);
    expect(refused).toMatchObject({ failed: true, attributes: { 'error.type': 'INVALID_ARGUMENT' } });
    await worker.stop();
  });

  it('hold no name, no secret, and none of the looks that nobody asked for', () => {
    const sent = collector.bodies.join('\n');
    expect(sent.length).toBeGreaterThan(1_000);
    for (const word of ['traced-volume', 'traced-crash', CSP_PASSWORD, 'default']) expect(sent).not.toContain(word);
    const alone = collector.spans.filter(span => span.kind === CLIENT && span.parentSpanId === undefined);
    expect(alone).toEqual([]);
    expect(collector.spans.filter(({ name }) => name.includes('readyz'))).toEqual([]);
  });
});

describe('without a collector', () => {
  // prom-client itself loads the API's few types.
  it('the library is not even loaded', async () => {
    const plain = await TestAppliance.create({ backend: 'fake', redis: false });
    try {
      const hook = join(plain.folder, 'hook.mjs');
      const say = `if (/^@opentelemetry.(sdk|exporter)/.test(specifier)) process.stderr.write('loaded ' + specifier + '\\n');`;
      writeFileSync(
        hook,
        `import { registerHooks } from 'node:module';
         registerHooks({ resolve(specifier, context, next) { ${say} return next(specifier, context); } });`,
      );
      // In a program of one file what is loaded late is there already, and runs late.
      const entry = join(PACKAGE_ROOT, 'dist', 'test', 'entry', 'worker.js');
      const logOf = async (env: Record<string, string>): Promise<string> => {
        const port = await freePort();
        const child = spawn(process.execPath, [`--import=${hook}`, entry], {
          env: { PATH: '/usr/bin:/bin', ...plain.env, TRIVET_WORKER_METRICS_LISTEN: `127.0.0.1:${port}`, ...env },
          stdio: ['ignore', 'pipe', 'pipe'],
        });
        const worker = new DaemonProcess('worker', child, `http://127.0.0.1:${port}`);
        try {
          return (await worker.ready()).log();
        } finally {
          await worker.stop('SIGKILL');
        }
      };
      expect(await logOf({})).not.toContain('loaded');
      expect(await logOf(otel)).toContain('loaded @opentelemetry/sdk-trace');
      expect(await logOf({ ...otel, OTEL_SDK_DISABLED: 'true' })).not.toContain('loaded');
    } finally {
      await plain.close();
    }
  });
});
