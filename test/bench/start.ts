import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { PACKAGE_ROOT, programFile } from '#platform/package-root';
import { NODE_FLAGS } from '#platform/process/node-flags';
import { alternate, type BenchOptions, type Figure, median, spread } from '#test/bench/measure';
import { cpuMs } from '#test/bench/resident';
import { DaemonProcess, type Role, TestAppliance } from '#test/support/appliance';
import { compileCache } from '#test/support/compile-cache';
import { freePort } from '#test/support/free-port';

const ROUNDS = 5;
const LIMIT_MS = 1_000;
/** Of the same process from the files that tsc leaves, which other work on the machine slows down alike. */
const RATIO = 0.6;

/** Processor time of gateway and worker from spawn to ready, from one file (ADR 41) and from many by turns. */
export async function benchStart({ quick }: BenchOptions): Promise<Figure[]> {
  const appliance = await TestAppliance.create({ backend: 'fake', block: 'fake' });
  try {
    const figures: Figure[] = [];
    for (const role of ['gateway', 'worker'] as const) {
      const bundled = () => startOf(appliance, role, programFile(`test-${role}`));
      const files = () => startOf(appliance, role, join(PACKAGE_ROOT, 'dist', 'test', 'entry', `${role}.js`));
      // The first start leaves what V8 compiled.
      await bundled();
      await files();
      const [ours, theirs] = await alternate(quick ? 1 : ROUNDS, bundled, files);
      const [ms, ofFiles] = [median(ours), median(theirs)];
      figures.push({
        name: `${role}: processor time from spawn to ready`,
        value: `${ms.toFixed(0)} ms (${(ms / ofFiles).toFixed(2)} of that from many files)`,
        limit: `< ${LIMIT_MS} ms, <= ${RATIO.toFixed(2)} of that from many files`,
        baseline: `${ofFiles.toFixed(0)} ms`,
        ok: ms < LIMIT_MS && ms <= RATIO * ofFiles,
        spread: spread(ours),
      });
    }
    return figures;
  } finally {
    await appliance.close();
  }
}

async function startOf(appliance: TestAppliance, role: Role, entry: string): Promise<number> {
  const port = await freePort();
  const listen = role === 'gateway' ? 'TRIVET_HTTP_LISTEN' : 'TRIVET_WORKER_METRICS_LISTEN';
  const child = spawn(process.execPath, [...NODE_FLAGS, entry], {
    env: {
      PATH: '/usr/bin:/bin',
      NODE_NO_WARNINGS: '1',
      ...compileCache(),
      ...appliance.env,
      [listen]: `127.0.0.1:${port}`,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const started = new DaemonProcess(role, child, `http://127.0.0.1:${port}`);
  try {
    await started.ready();
    return cpuMs(started.pid);
  } finally {
    await started.stop();
  }
}
