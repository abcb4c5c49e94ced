import { afterEach, describe, expect, it } from 'vitest';
import { buildRootLogger } from '#platform/logging/log';
import { Shutdown } from '#platform/process/shutdown';

const open: Shutdown[] = [];
afterEach(() => {
  for (const shutdown of open.splice(0)) shutdown.unlisten();
});

function setup(deadlineMs = 5_000) {
  const events: string[] = [];
  const lines: Record<string, unknown>[] = [];
  let exited: (code: number) => void = () => {};
  const exit = new Promise<number>(resolve => {
    exited = resolve;
  });
  const shutdown = new Shutdown({
    deadlineMs,
    onBegin: () => events.push('begin'),
    log: buildRootLogger({ write: line => void lines.push(JSON.parse(line)) }),
    exit: code => {
      events.push(`exit ${code}`);
      exited(code);
    },
  });
  open.push(shutdown);
  return { shutdown, events, lines, exit };
}

describe('Shutdown', () => {
  it('runs the steps in reverse, each after the other, once, and exits with 0', async () => {
    const { shutdown, events, exit } = setup();
    shutdown.add('database', () => events.push('database'));
    shutdown.add('server', async () => {
      events.push('server begins');
      await new Promise(resolve => setImmediate(resolve));
      events.push('server ends');
    });
    expect(shutdown.stopping).toBe(false);
    const both = [shutdown.stop('test'), shutdown.stop('again')];
    expect(shutdown.stopping).toBe(true);
    await Promise.all(both);
    expect(await exit).toBe(0);
    expect(events).toEqual(['begin', 'server begins', 'server ends', 'database', 'exit 0']);
  });

  it('goes on when a step fails or overruns', async () => {
    const { shutdown, events, lines } = setup();
    shutdown.add('last', () => events.push('last'));
    shutdown.add('hangs', () => new Promise(() => {}), 10);
    shutdown.add('throws', () => {
      throw new Error('no');
    });
    await shutdown.stop('test', 1);
    expect(events).toEqual(['begin', 'last', 'exit 1']);
    expect(lines.filter(line => line.level === 'warn').map(line => line.step)).toEqual(['throws', 'hangs']);
  });

  it('tells a step what is left of the deadline for it', async () => {
    const { shutdown } = setup(2_000);
    const told: number[] = [];
    shutdown.add('later', leftMs => told.push(leftMs));
    shutdown.add('slow', () => new Promise(resolve => setTimeout(resolve, 100)));
    shutdown.add('bounded', leftMs => told.push(leftMs), 300);
    await shutdown.stop('test');
    expect(told[0]).toBe(300);
    expect(told[1]).toBeGreaterThan(1_000);
    expect(told[1]).toBeLessThan(1_910);
  });

  it('leaves a step no more than what is left of the deadline, and forces the exit', async () => {
    const { shutdown, events, exit } = setup(30);
    shutdown.add('never reached in time', () => new Promise(() => {}));
    shutdown.add('hangs', () => new Promise(() => {}), 60_000);
    void shutdown.stop('test');
    expect(await exit).toBe(1);
    expect(events.slice(0, 2)).toEqual(['begin', 'exit 1']);
  });

  it('takes the first signal as a request and the second as an order', async () => {
    const { shutdown, events, exit } = setup();
    shutdown.listen();
    shutdown.add('hangs', () => new Promise(() => {}));
    process.emit('SIGTERM', 'SIGTERM');
    expect(shutdown.stopping).toBe(true);
    expect(events).toEqual(['begin']);
    process.emit('SIGINT', 'SIGINT');
    expect(await exit).toBe(130);
  });

  it.each(['uncaughtException', 'unhandledRejection'] as const)('logs an %s as fatal and exits with 1', event => {
    const { shutdown, events, lines } = setup();
    shutdown.listen();
    shutdown.add('must not run', () => events.push('ran'));
    const handler = process.listeners(event as 'uncaughtException').at(-1) as (error: Error) => void;
    handler(new Error('redis://u:cAnArY@h'));
    expect(events).toEqual(['exit 1']);
    expect(lines).toMatchObject([{ level: 'fatal', err: { type: 'Error' } }]);
    expect(JSON.stringify(lines)).not.toContain('cAnArY');
  });
});
