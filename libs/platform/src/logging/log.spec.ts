import { spawnSync } from 'node:child_process';
import { NestFactory } from '@nestjs/core';
import { describe, expect, it, vi } from 'vitest';
import { buildRootLogger, configureLogging, createLogger, logContext, withLogContext } from '#platform/logging/log';
import { NestLogger } from '#platform/logging/nest-logger';

const CANARY = 'cAnArY-secret-0123';
const stdout = vi.hoisted((): string[] => []);
vi.mock('#platform/logging/log-stdout', () => ({
  openStdout: () => ({ write: (line: string) => void stdout.push(line) }),
}));

function capture() {
  const lines: string[] = [];
  const logger = buildRootLogger({ write: line => void lines.push(line) });
  return { logger, text: () => lines.join(''), records: () => lines.map(line => JSON.parse(line)) };
}

describe('log lines', () => {
  it('are JSON with level, time and message', () => {
    const { logger, records } = capture();
    logger.child({ name: 'runner' }).info({ bucket: 'photos', count: 2 }, 'created %s', 'it');
    expect(records()).toMatchObject([{ level: 'info', name: 'runner', bucket: 'photos', count: 2, msg: 'created it' }]);
    expect(new Date(records()[0].time).getTime()).toBeGreaterThan(0);
  });

  it('hide secrets on every way in', () => {
    const { logger, text, records } = capture();
    const error = Object.assign(new Error(`redis://u:${CANARY}@h`), { parameters: [CANARY], password: CANARY });
    const url = `postgresql://u:${CANARY}@h/db`;
    logger.info({ password: CANARY, deep: [{ x: { secretAccessKey: CANARY } }] }, 'fields');
    logger.info(`text ${url}`);
    logger.info({}, 'format %s %o %j', url, { token: CANARY }, { token: CANARY });
    logger.info('format %s', url);
    logger.error(error);
    logger.error(error, `with ${url}`);
    logger.error({ err: error });
    logger.error({ err: error, cause: new Error('outer', { cause: error }) }, 'nested');
    logger.child({ token: CANARY, url }).info('child');
    const bound = logger.child({ a: 1 }, { level: 'info' });
    bound.setBindings({ secret: CANARY });
    bound.child({ credentials: { a: CANARY } }).info('bound');
    withLogContext({ accessToken: CANARY }, () => logger.info('context'));
    expect(text()).not.toContain(CANARY);
    expect(records()).toHaveLength(11);
  });

  it('carry the context of the work they belong to, across awaits', async () => {
    const { logger, records } = capture();
    await withLogContext({ operationId: 'op-1' }, async () => {
      await Promise.resolve();
      withLogContext({ tenantId: 't-1' }, () => logger.info('inner'));
      logger.info({ operationId: 'own' }, 'outer');
    });
    logger.info('outside');
    const [inner, outer, outside] = records();
    expect(inner).toMatchObject({ operationId: 'op-1', tenantId: 't-1' });
    expect(outer.operationId).toBe('own');
    expect(outer.tenantId).toBeUndefined();
    expect(outside.operationId).toBeUndefined();
    expect(logContext()).toBeUndefined();
  });
});

describe('createLogger', () => {
  it('gives one logger a name, and the level may be set later', () => {
    const logger = createLogger('level-test');
    expect(createLogger('level-test')).toBe(logger);
    configureLogging({ level: 'error' });
    expect(logger.isLevelEnabled('info')).toBe(false);
    expect(createLogger('level-test-2').isLevelEnabled('info')).toBe(false);
    configureLogging({ level: 'debug' });
    expect(logger.isLevelEnabled('debug')).toBe(true);
    configureLogging({ level: 'info' });
  });

  it('gives what the processes write with, and hides secrets', () => {
    createLogger('canary').info({ password: CANARY, err: new Error(`redis://u:${CANARY}@h`) }, `token=${CANARY}`);
    expect(stdout.map(line => JSON.parse(line))).toMatchObject([
      { name: 'canary', password: '[redacted]', err: { message: 'redis://[redacted]@h' }, msg: 'token=[redacted]' },
    ]);
    expect(stdout.join('')).not.toContain(CANARY);
  });
});

describe('NestLogger', () => {
  it('keeps context, stack and error apart', () => {
    const { logger, records } = capture();
    logger.level = 'debug';
    const nest = new NestLogger(logger);
    nest.log('Mapped {/livez, GET} route', 'RouterExplorer');
    nest.error('it failed', 'Error: it failed\n    at x', 'ExceptionsHandler');
    nest.error(new Error('bare'));
    nest.warn({ password: CANARY }, 'Ctx');
    const [log, error, bare, warn] = records();
    expect(log).toMatchObject({ level: 'debug', context: 'RouterExplorer', msg: 'Mapped {/livez, GET} route' });
    expect(error).toMatchObject({ level: 'error', context: 'ExceptionsHandler', msg: 'it failed' });
    expect(error.stack).toContain('at x');
    expect(bare).toMatchObject({ level: 'error', err: { message: 'bare' }, msg: 'bare' });
    expect(JSON.stringify(warn)).not.toContain(CANARY);
  });

  it('leaves a start that failed to whoever began it', async () => {
    const { logger, records } = capture();
    const providers = [{ provide: 'part', useFactory: () => Promise.reject(new Error('cannot')) }];
    const options = { logger: new NestLogger(logger), abortOnError: false };
    class Root {}
    const start = NestFactory.createApplicationContext({ module: Root, providers }, options);
    await expect(start).rejects.toThrow('cannot');
    expect(records()).toEqual([]);
  });
});

describe('a destination that is full', () => {
  it('loses lines, not the process', () => {
    const script = `
      import { pino } from 'pino';
      import { openStdout } from '${import.meta.dirname}/log-stdout.ts';
      const log = pino({}, openStdout());
      for (let i = 0; i < 2000; i++) log.info('x'.repeat(1000));
      process.stderr.write('alive');`;
    const run = spawnSync('sh', ['-c', 'exec "$0" --input-type=module -e "$1" > /dev/full', process.execPath, script], {
      cwd: import.meta.dirname,
      encoding: 'utf8',
    });
    expect(run.stderr).toContain('alive');
    expect(run.status).toBe(0);
  });
});
