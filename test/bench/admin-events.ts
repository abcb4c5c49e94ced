import type { AdminHouse } from '#test/admin/admin-house';
import { type BenchOptions, type Figure, median } from '#test/bench/measure';
import { cpuMs } from '#test/bench/resident';

const LISTENERS = 200;

/** How long an event takes from its commit to the last of 200 listeners, and what it costs the gateway. */
export async function eventFigures(house: AdminHouse, { quick }: BenchOptions): Promise<Figure[]> {
  const { pid } = house.appliance.process('gateway');
  const listeners = quick ? 20 : LISTENERS;
  const rounds = quick ? 5 : 50;
  const stop = new AbortController();
  const heard = new Heard();
  await Promise.all(Array.from({ length: listeners }, () => listen(house, heard, stop.signal)));
  const [operation] = await house.query<{ tenant_id: string; id: string }>(
    'SELECT tenant_id, id FROM trivet.operation ORDER BY id DESC LIMIT 1',
  );
  if (!operation) throw new Error('there is no operation whose events could be told');
  const write = async (mark: string) => {
    await house.query(
      `INSERT INTO trivet.operation_event (tenant_id, operation_id, type, detail) VALUES ($1, $2, $3, '{}')`,
      [operation.tenant_id, operation.id, mark],
    );
  };
  try {
    // One that is only for the poller to begin.
    const first = heard.by('warm-up', listeners);
    await write('warm-up');
    await first;
    const latencies: number[] = [];
    const begin = { cpu: cpuMs(pid), at: performance.now() };
    for (let n = 0; n < rounds; n++) {
      const mark = `bench-${n}`;
      const all = heard.by(mark, listeners);
      await write(mark);
      const committed = performance.now();
      latencies.push((await all) - committed);
    }
    const cpu = cpuMs(pid) - begin.cpu;
    const idle = await idleCpu(pid, quick ? 500 : 5_000);
    const worst = Math.max(...latencies);
    return [
      {
        name: `an event to the last of ${listeners} listeners, median`,
        value: `${median(latencies).toFixed(0)} ms (slowest ${worst.toFixed(0)} ms)`,
        limit: '< 1,000 ms',
        baseline: '',
        ok: median(latencies) < 1_000,
      },
      {
        name: `CPU of the gateway for an event to ${listeners} listeners`,
        value: `${(cpu / rounds).toFixed(1)} ms`,
        limit: '',
        baseline: `${idle.toFixed(1)} % of a core while nothing happens`,
      },
    ];
  } finally {
    stop.abort();
  }
}

/** Who heard what. */
class Heard {
  private readonly waiting = new Map<string, { left: number; done: (at: number) => void }>();

  /** When so many have heard it. */
  by(mark: string, listeners: number): Promise<number> {
    return new Promise(done => this.waiting.set(mark, { left: listeners, done }));
  }

  note(mark: string): void {
    const wait = this.waiting.get(mark);
    if (!wait || --wait.left > 0) return;
    this.waiting.delete(mark);
    wait.done(performance.now());
  }
}

/** Resolves when the stream is open. */
async function listen(house: AdminHouse, heard: Heard, signal: AbortSignal): Promise<void> {
  const reply = await fetch(`${house.appliance.cspUrl}/api/v1/events`, {
    headers: { authorization: `Bearer ${house.root.viewer.token}`, accept: 'text/event-stream' },
    signal,
  });
  if (reply.status !== 200) throw new Error(`events: ${reply.status}`);
  void (async () => {
    let rest = '';
    for await (const chunk of reply.body!.pipeThrough(new TextDecoderStream())) {
      rest += chunk;
      const lines = rest.split('\n');
      rest = lines.pop()!;
      for (const line of lines) {
        const mark = line.startsWith('data:') && /"event":"((?:bench-\d+)|warm-up)"/.exec(line)?.[1];
        if (mark) heard.note(mark);
      }
    }
  })().catch(() => {});
}

async function idleCpu(pid: number, ms: number): Promise<number> {
  const begin = cpuMs(pid);
  await new Promise(resolve => setTimeout(resolve, ms));
  return ((cpuMs(pid) - begin) / ms) * 100;
}
