import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command, CommanderError, InvalidArgumentError } from 'commander';
import { ConfigError, EXIT_CONFIG, exitOnConfigError } from '#platform/config';
import { isStorageError } from '#platform/errors';
import { PACKAGE_ROOT } from '#platform/package-root';
import { EXIT } from './api/api-error.js';
import { COMMANDS } from './commands/index.js';
import { LauncherError } from './home.js';
import { StartError } from './supervisor/supervised-process.js';

// A reader such as `head` may leave early; a supervisor in the foreground goes on.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});

const { version } = JSON.parse(readFileSync(join(PACKAGE_ROOT, 'package.json'), 'utf8')) as { version: string };

/** What can be said of them is in the message of the system. */
const FOLDER_ERRORS: Readonly<Record<string, number>> = {
  ENOSPC: EXIT.full,
  EDQUOT: EXIT.full,
  EROFS: EXIT_CONFIG,
  EACCES: EXIT_CONFIG,
  EPERM: EXIT_CONFIG,
};

const program = new Command('trivet')
  .description('Storage gateway: object buckets over COSI and block volumes over CSP, from real backends.')
  .version(version)
  .showHelpAfterError('(trivet --help lists the commands)')
  .exitOverride();

// `status` must not wait for what `bench` imports.
const asked = process.argv[2] ?? '';
const wanted = Object.hasOwn(COMMANDS, asked) ? [asked] : Object.keys(COMMANDS);
for (const name of wanted) (await COMMANDS[name]?.())?.register(program);

try {
  await program.parseAsync();
} catch (error) {
  // Commander has told of its own; one that an action throws nobody has told yet.
  if (error instanceof InvalidArgumentError) {
    process.stderr.write(`error: ${error.message}\n`);
    process.exitCode = EXIT.data;
  } else if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : EXIT.data;
  else if (error instanceof ConfigError) exitOnConfigError(error);
  else if (error instanceof LauncherError || error instanceof StartError) {
    process.stderr.write(`trivet: ${error.message}\n`);
    process.exitCode = error.exitCode;
  } else if (isStorageError(error)) {
    process.stderr.write(`trivet: ${error.message}\n`);
    process.exitCode = error.kind === 'invalid_argument' ? EXIT.data : EXIT.refused;
  } else if (Object.hasOwn(FOLDER_ERRORS, (error as NodeJS.ErrnoException).code ?? '')) {
    process.stderr.write(`trivet: ${(error as Error).message}\n`);
    process.exitCode = FOLDER_ERRORS[(error as NodeJS.ErrnoException).code!];
  } else throw error;
}
