/** `./trivet bench`: prints the figures of some interfaces, or of all but memory and scale, against their limits, and writes them as JSON. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { parseArgs } from 'node:util';
import { benchAdmin } from '#test/bench/admin';
import { benchCbt } from '#test/bench/cbt';
import { benchConnector } from '#test/bench/connector';
import { benchCosi } from '#test/bench/cosi';
import { benchCreation } from '#test/bench/creation';
import { benchCsp } from '#test/bench/csp';
import { benchFairness } from '#test/bench/fairness';
import { benchIdle } from '#test/bench/idle';
import type { BenchOptions, Figure } from '#test/bench/measure';
import { benchMemory } from '#test/bench/memory';
import { benchRbd } from '#test/bench/rbd';
import { benchScale } from '#test/bench/scale';
import { benchStart } from '#test/bench/start';
import { STORE_KINDS } from '#test/bench/stores';

const LEGS: Record<string, (options: BenchOptions) => Promise<Figure[]>> = {
  cosi: benchCosi,
  creation: benchCreation,
  csp: benchCsp,
  cbt: benchCbt,
  connector: benchConnector,
  admin: benchAdmin,
  fairness: benchFairness,
  idle: benchIdle,
  rbd: benchRbd,
  start: benchStart,
  memory: benchMemory,
  scale: benchScale,
};

const { values, positionals } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    json: { type: 'string' },
    minutes: { type: 'string' },
    volumes: { type: 'string' },
    backend: { type: 'string' },
  },
  allowPositionals: true,
});
const unknown = positionals.find(leg => !(leg in LEGS));
if (unknown !== undefined) {
  process.stderr.write(`bench: no leg ${unknown}; there are ${Object.keys(LEGS).join(', ')}\n`);
  process.exit(65);
}

const { quick } = values;
const minutes = values.minutes === undefined ? undefined : Number(values.minutes);
if (minutes !== undefined && (quick || !positionals.includes('memory') || !(minutes > 0))) {
  process.stderr.write('bench: --minutes takes a number above 0, and goes with memory and without --quick\n');
  process.exit(65);
}
const volumes = values.volumes === undefined ? undefined : Number(values.volumes);
if (volumes !== undefined && (!positionals.includes('scale') || !(volumes > 1_000) || volumes % 1_000 !== 0)) {
  process.stderr.write('bench: --volumes takes a multiple of 1000 above it, and goes with scale\n');
  process.exit(65);
}

const { backend } = values;
if (backend !== undefined && !(positionals.includes('cosi') && STORE_KINDS.includes(backend))) {
  process.stderr.write(`bench: --backend goes with cosi, and takes ${STORE_KINDS.join(', ')}\n`);
  process.exit(65);
}

const verdict = ({ ok }: Figure): string => (ok === undefined ? '' : ok ? 'PASS' : 'MISS');
const NOISY = 0.15;

// Each of those takes long.
const BY_NAME = ['memory', 'scale'];
const legs = positionals.length > 0 ? positionals : Object.keys(LEGS).filter(leg => !BY_NAME.includes(leg));
const report: Record<string, Figure[]> = {};
for (const leg of legs) {
  const figures = await LEGS[leg]!({
    quick,
    ...(minutes && { minutes }),
    ...(volumes && { volumes }),
    ...(backend && { backend }),
  });
  report[leg] = figures;
  process.stdout.write(`\n${leg}${quick ? ' (quick: proves that it works, not how fast it is)' : ''}\n`);
  for (const figure of figures) {
    const noise = figure.spread && figure.spread > NOISY ? `, spread ${Math.round(figure.spread * 100)} %` : '';
    process.stdout.write(`  ${verdict(figure).padEnd(4)}  ${figure.name}: ${figure.value}${noise}\n`);
    const against = [figure.limit && `limit ${figure.limit}`, figure.baseline && `baseline ${figure.baseline}`];
    process.stdout.write(`        ${against.filter(Boolean).join(', ')}\n`);
  }
}
if (values.json) {
  mkdirSync(dirname(values.json), { recursive: true });
  writeFileSync(values.json, `${JSON.stringify({ quick, legs: report }, null, 2)}\n`);
  process.stdout.write(`\nwritten to ${values.json}\n`);
}
process.exit(0);
