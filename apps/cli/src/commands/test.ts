import { UsageError } from '../command-line/command.js';
import { TestRun } from '../testing/run.js';
import { VERSION } from '../version.js';

interface TestOptions {
  filters: readonly string[];
  project?: 'unit' | 'parts';
  long?: boolean;
  quick?: boolean;
  noInstall?: boolean;
}

export async function test({ long = false, quick = false, noInstall = false, ...rest }: TestOptions): Promise<void> {
  if (quick && (rest.filters.length > 0 || rest.project))
    throw new UsageError('trivet test: --quick chooses the tests: give it no path and no project');
  process.exitCode = await new TestRun({ ...rest, long, quick, install: !noInstall, version: VERSION }).run();
}
