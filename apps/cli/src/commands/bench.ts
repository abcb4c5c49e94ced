import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { HOME_MARK } from '#platform/config/config';
import { PACKAGE_ROOT } from '#platform/package-root';
import { surroundings } from '../environment.js';
import { testParts, writeTestParts } from '../testing/parts-file.js';
import { WARDEN, withThrowAwayParts } from '../testing/throw-away.js';
import { VERSION } from '../version.js';

interface BenchOptions {
  legs: readonly string[];
  quick?: boolean;
  minutes?: string;
  volumes?: string;
  backend?: string;
  json?: string;
  noInstall?: boolean;
}

export async function bench({ legs, quick, minutes, volumes, backend, json, noInstall }: BenchOptions): Promise<void> {
  const interrupt = new AbortController();
  const say = (line: string): void => void process.stderr.write(`parts: ${line}\n`);
  process.exitCode = await withThrowAwayParts(
    { install: !noInstall, version: VERSION, say, interrupt },
    async (home, parts) => {
      await parts.start();
      const main = join(PACKAGE_ROOT, 'dist', 'test', 'bench', 'main.js');
      const args = [
        ...legs,
        ...(quick ? ['--quick'] : []),
        ...(minutes ? ['--minutes', minutes] : []),
        ...(volumes ? ['--volumes', volumes] : []),
        ...(backend ? ['--backend', backend] : []),
        ...(json ? ['--json', json] : []),
      ];
      const child = spawn(process.execPath, [WARDEN, process.execPath, main, ...args], {
        env: {
          ...surroundings(),
          NODE_NO_WARNINGS: '1',
          [HOME_MARK]: home.path,
          TRIVET_TEST_PARTS: writeTestParts(home, await testParts(home, parts.env)),
        },
        stdio: ['ignore', 'inherit', 'inherit'],
        signal: interrupt.signal,
      });
      // An interrupt is an error of the child, too; its parts stay until it has ended.
      child.on('error', () => {});
      const code = await new Promise<number | null>(resolve => child.once('exit', resolve));
      return interrupt.signal.aborted ? 130 : (code ?? 1);
    },
  );
}
