import { type Command, Option } from 'commander';
import { TestRun } from '../testing/run.js';

export function register(program: Command): void {
  program
    .command('test')
    .description('run lint, type check and all tests against real parts of their own')
    .argument('[filter...]', 'only test files whose path contains one of these')
    .addOption(new Option('--project <name>', 'only one of the two').choices(['unit', 'parts']))
    .option('--long', 'more rounds of the random tests')
    .option('--no-install', 'install no system packages')
    .action(async (filters: string[], options, command: Command) => {
      const version = command.parent?.version() ?? '';
      process.exitCode = await new TestRun({ ...options, long: options.long ?? false, filters, version }).run();
    });
}
