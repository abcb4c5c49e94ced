import { ConfigError, EXIT_CONFIG, exitOnConfigError } from '#platform/config/config';
import { isStorageError } from '#platform/errors';
import { ApiError, EXIT } from './api/api-error.js';
import { UsageError } from './command-line/command.js';
import { find } from './command-line/find.js';
import { helpOf, helpOfAll, helpOfNoun } from './command-line/help.js';
import { parse } from './command-line/parse.js';
import { TABLE } from './commands/table.js';
import { LauncherError } from './home.js';
import { StartError } from './processes/supervised-process.js';
import { versionLine } from './version.js';

// A reader such as `head` may leave early; a supervisor in the foreground goes on.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});

/** What can be said of them is in the message of the system. */
const FOLDER_ERRORS: Readonly<Record<string, number>> = {
  ENOSPC: EXIT.full,
  EDQUOT: EXIT.full,
  EROFS: EXIT_CONFIG,
  EACCES: EXIT_CONFIG,
  EPERM: EXIT_CONFIG,
};

const isHelp = (word: string | undefined): boolean => word === '--help' || word === '-h';

async function run(words: readonly string[]): Promise<void> {
  const [first, second] = words;
  if (first === '--version' || first === '-V') return void process.stdout.write(`${versionLine()}\n`);
  if (first === undefined) throw new UsageError('say what to do; `trivet help` lists what there is');
  if (isHelp(first) || (first === 'help' && second === undefined)) return void process.stdout.write(helpOfAll(TABLE));
  const about = first === 'help' ? words.slice(1) : words;
  const wantsHelp = first === 'help' || about.slice(0, argumentsEnd(about)).some(isHelp);
  const asked = about.filter(word => !isHelp(word));
  if (wantsHelp && asked.length === 1 && Object.hasOwn(TABLE.nouns, asked[0]!))
    return void process.stdout.write(helpOfNoun(TABLE, asked[0]!));
  const { command, rest } = find(TABLE, wantsHelp ? asked : about);
  if (wantsHelp) return void process.stdout.write(helpOf(command));
  const given = parse(command, rest);
  try {
    await command.run(given as never, TABLE);
  } catch (error) {
    throw command.offline && !given.offline && isUnanswered(error) ? withOffline(error, command.name) : error;
  }
}

/** Behind `--` all are arguments. */
const argumentsEnd = (words: readonly string[]): number => (words.includes('--') ? words.indexOf('--') : words.length);

/** No gateway answers, or none is known. */
const isUnanswered = (error: unknown): error is LauncherError =>
  error instanceof LauncherError && (error.exitCode === EXIT_CONFIG || (error instanceof ApiError && error.broken));

const withOffline = ({ message, exitCode }: LauncherError, name: string): LauncherError =>
  new LauncherError(
    `${message}\n  or      trivet ${name} --offline: straight to the database, without a gateway`,
    exitCode,
  );

try {
  await run(process.argv.slice(2));
} catch (error) {
  if (error instanceof ConfigError) exitOnConfigError(error);
  else if (error instanceof LauncherError || error instanceof StartError) {
    process.stderr.write(`trivet: ${error.message}\n`.replace(/^trivet: trivet /, 'trivet '));
    process.exitCode = error.exitCode;
  } else if (isStorageError(error)) {
    process.stderr.write(`trivet: ${error.message}\n`);
    process.exitCode = error.kind === 'invalid_argument' ? EXIT.data : EXIT.refused;
  } else if (Object.hasOwn(FOLDER_ERRORS, (error as NodeJS.ErrnoException).code ?? '')) {
    process.stderr.write(`trivet: ${(error as Error).message}\n`);
    process.exitCode = FOLDER_ERRORS[(error as NodeJS.ErrnoException).code!];
  } else throw error;
}
