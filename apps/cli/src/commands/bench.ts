import { spawn } from 'node:child_process';
import { join } from 'node:path';
import type { Command } from 'commander';
import { PACKAGE_ROOT } from '#platform/package-root';
import { surroundings } from '../environment.js';
import { HOME_MARK } from '../supervisor/process.js';
import { testParts, writeTestParts } from '../testing/parts-file.js';
import { WARDEN, withThrowAwayParts } from '../testing/throw-away.js';

export function register(program: Command): void {
  program
    .command('bench')
    .description('measure against the limits of docs/performance.md, on parts of its own')
    .argument('[leg...]', 'cosi, csp, cbt, admin or memory; all but memory, which takes an hour, when none is named')
    .option('--quick', 'short rounds: proves that it works, not how fast it is')
    .option('--minutes <n>', 'how long the load of memory lasts, instead of an hour')
    .option('--json <file>', 'write the figures there too')
    .option('--no-install', 'install no system packages')
    .action(async (legs: string[], { quick, minutes, json, install }, command: Command) => {
      const interrupt = new AbortController();
      const version = command.parent?.version() ?? '';
      const say = (line: string): void => void process.stderr.write(`parts: ${line}\n`);
      process.exitCode = await withThrowAwayParts({ install, version, say, interrupt }, async (home, parts) => {
        await parts.start();
        const main = join(PACKAGE_ROOT, 'dist', 'test', 'bench', 'main.js');
        const args = [
          ...legs,
          ...(quick ? ['--quick'] : []),
          ...(minutes ? ['--minutes', minutes] : []),
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
      });
    });
}
