import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { HOME_MARK } from '#platform/config/config';
import { PACKAGE_ROOT } from '#platform/package-root';
import { environment, surroundings } from '../environment.js';
import type { Home } from '../home.js';
import { type Appliance, PARTS } from '../supervisor/appliance.js';
import { type TestParts, testParts, writeTestParts } from './parts-file.js';
import {
  add,
  closingLine,
  FAILED,
  type FileTime,
  missingParts,
  NOTHING,
  PASSED,
  type ProjectResult,
  readProject,
  shortage,
  slowest,
  type Tally,
  type VitestReport,
} from './report.js';
import { WARDEN, withThrowAwayParts } from './throw-away.js';
import { hangs, readUnderWay, underWayLine } from './under-way.js';

export interface TestOptions {
  filters: readonly string[];
  /** One of vitest's projects; undefined: all. */
  project?: 'unit' | 'parts';
  install: boolean;
  long: boolean;
  /** Lint, types, unit tests, and of those with parts the files of test/quick-tests.json. */
  quick: boolean;
  version: string;
}

const QUICK_TESTS = join(PACKAGE_ROOT, 'test', 'quick-tests.json');
const UNDER_WAY_REPORTER = join(PACKAGE_ROOT, 'dist', 'apps', 'cli', 'src', 'testing', 'under-way-reporter.js');
const LOOKS_FOR_HANGING_EVERY_MS = 5_000;

/** What V8 compiled of gateway and worker, which test files start hundreds of times; the first that is ready leaves it. */
const compileCacheOf = (home: Home): string => home.file('compile-cache');

const say = (line: string): void => void process.stdout.write(`${line}\n`);

/** One run of everything in a home of its own, which is gone afterwards. Resolves to the exit code. */
export class TestRun {
  readonly #interrupt = new AbortController();
  #tally: Tally = NOTHING;
  readonly #files: FileTime[] = [];
  readonly #totals: Record<string, number> = {};

  constructor(private readonly options: TestOptions) {}

  async run(): Promise<number> {
    await withThrowAwayParts(
      {
        ...this.options,
        ...(this.options.quick ? { only: PARTS } : {}),
        say: line => say(`parts: ${line}`),
        interrupt: this.#interrupt,
      },
      (home, appliance) => this.#runAll(home, appliance),
    );
    if (this.#interrupt.signal.aborted) this.#fail('interrupted');
    this.#report();
    return this.#interrupt.signal.aborted ? 130 : this.#tally.failed === 0 ? 0 : 1;
  }

  get #isWhole(): boolean {
    return this.options.filters.length === 0 && this.options.project === undefined;
  }

  async #runAll(home: Home, appliance: Appliance): Promise<void> {
    const needsParts = this.options.project !== 'unit';
    // Ceph takes its time; what needs no parts runs meanwhile.
    const started = needsParts ? appliance.start() : Promise.resolve();
    started.catch(() => {});
    if (this.#isWhole) {
      await this.#check('lint', 'biome', ['check', '.']);
      await this.#check('lint of imports', 'depcruise', ['--output-type', 'err-long', 'apps', 'libs', 'test']);
      await this.#check('type check', 'tsc', ['-p', 'tsconfig.json']);
      await this.#check('type check of the dashboard', 'tsc', ['-p', 'apps/dashboard']);
    }
    if (this.options.project !== 'parts') await this.#project('unit', home);
    if (!needsParts) return this.#requireMatch();
    try {
      await started;
    } catch (error) {
      if (!this.#interrupt.signal.aborted) this.#fail(`parts: ${(error as Error).message}`);
      return;
    }
    const parts = await testParts(home, appliance.env);
    this.#requireParts(parts, appliance);
    await this.#project('parts', home, writeTestParts(home, parts));
    this.#requireMatch();
    if (this.#isWhole && !this.options.quick) this.#requireMinimum();
  }

  async #check(name: string, program: string, args: readonly string[]): Promise<void> {
    if (this.#interrupt.signal.aborted) return;
    const code = await this.#spawn(join(PACKAGE_ROOT, 'node_modules', '.bin', program), args, {});
    if (code === 0) this.#tally = add(this.#tally, PASSED);
    else if (!this.#interrupt.signal.aborted) this.#fail(`${name} failed`);
  }

  async #project(name: 'unit' | 'parts', home: Home, partsFile?: string): Promise<void> {
    if (this.#interrupt.signal.aborted) return;
    const output = home.file(`vitest-${name}.json`);
    const isPart = this.options.quick && name === 'parts';
    const filters = isPart ? (JSON.parse(readFileSync(QUICK_TESTS, 'utf8')) as string[]) : this.options.filters;
    const { TRIVET_TEST_APISERVER: apiServer, TRIVET_TEST_GARAGE: garage } = environment;
    const args = [
      ...[join(PACKAGE_ROOT, 'node_modules', 'vitest', 'vitest.mjs'), 'run', '--project', name, '--passWithNoTests'],
      // A real API server is one for all files.
      ...(apiServer === undefined ? [] : ['--no-file-parallelism']),
      ...['--reporter=default', '--reporter=json', `--outputFile.json=${output}`],
      ...[`--reporter=${UNDER_WAY_REPORTER}`, ...filters],
    ];
    const underWay = home.file(`under-way-${name}.json`);
    const watch = this.#endWhatHangs(underWay);
    const code = await this.#spawn(process.execPath, args, {
      TRIVET_TEST_UNDER_WAY: underWay,
      // Unit tests run while the parts start, and a start ends what bears the home's mark.
      ...(partsFile === undefined
        ? {}
        : { [HOME_MARK]: home.path, TRIVET_TEST_PARTS: partsFile, NODE_COMPILE_CACHE: compileCacheOf(home) }),
      ...(this.options.long ? { TRIVET_TEST_LONG: '1' } : {}),
      ...(apiServer === undefined ? {} : { TRIVET_TEST_APISERVER: apiServer }),
      ...(garage === undefined ? {} : { TRIVET_TEST_GARAGE: garage }),
    });
    clearInterval(watch);
    const report = existsSync(output) ? (JSON.parse(readFileSync(output, 'utf8')) as VitestReport) : undefined;
    if (report === undefined && this.#interrupt.signal.aborted) return;
    const result: ProjectResult = readProject(report, code);
    this.#tally = add(this.#tally, result);
    this.#files.push(...result.files);
    this.#totals[name] = result.total;
  }

  /** Whoever ends this run, for its time or because a file hangs, is told which files it was. */
  #endWhatHangs(underWay: string): NodeJS.Timeout {
    this.#interrupt.signal.addEventListener('abort', () => {
      for (const file of readUnderWay(underWay)) say(underWayLine(file, PACKAGE_ROOT, Date.now()));
    });
    return setInterval(() => {
      if (this.options.long || !readUnderWay(underWay).some(file => hangs(file, Date.now()))) return;
      this.#fail('a test file hangs');
      this.#interrupt.abort();
    }, LOOKS_FOR_HANGING_EVERY_MS);
  }

  /** Output goes straight to the terminal; an interrupt ends the child and all that came of it, and is over then. */
  #spawn(command: string, args: readonly string[], env: Record<string, string>): Promise<number | null> {
    return new Promise((resolve, reject) => {
      const child = spawn(process.execPath, [WARDEN, command, ...args], {
        cwd: PACKAGE_ROOT,
        env: { ...surroundings(), ...(process.stdout.isTTY ? {} : { NO_COLOR: '1' }), ...env },
        stdio: ['ignore', 'inherit', 'inherit'],
        signal: this.#interrupt.signal,
      });
      child.once('exit', code => resolve(code));
      child.once('error', error => {
        if (child.pid === undefined) reject(error);
      });
    });
  }

  #requireParts(parts: TestParts, appliance: Appliance): void {
    const required = (environment.TRIVET_REQUIRE ?? '').split(',').filter(name => name !== '');
    const known = [
      'postgres',
      'redis',
      'rgw',
      'rbd',
      'xfs',
      'btrfs',
      'tgt',
      'libiscsi',
      'chromium',
      'debian',
      'ubuntu',
      'guest',
      'azurite',
      'moto',
      'helm',
      'docker',
    ] as const;
    const present = known.filter(name => parts[name] !== null);
    for (const line of missingParts(required, present, appliance.skipped)) this.#fail(`required part ${line}`);
  }

  #requireMatch(): void {
    if (this.options.filters.length === 0 || this.#interrupt.signal.aborted) return;
    if (Object.values(this.#totals).every(total => total === 0) && this.#tally.failed === 0) {
      this.#fail(`no test matches ${this.options.filters.join(' ')}`);
    }
  }

  #requireMinimum(): void {
    if (this.#interrupt.signal.aborted) return;
    const file = join(PACKAGE_ROOT, 'test', 'minimum-tests.json');
    const missing = shortage(JSON.parse(readFileSync(file, 'utf8')), this.#totals);
    for (const line of missing) this.#fail(line);
    if (missing.length === 0) this.#tally = add(this.#tally, PASSED);
  }

  #fail(line: string): void {
    say(`FAILED ${line}`);
    this.#tally = add(this.#tally, FAILED);
  }

  #report(): void {
    const lines = slowest(this.#files, PACKAGE_ROOT);
    if (lines.length > 0) say(`\nSlowest files:\n${lines.join('\n')}\n`);
    say(closingLine(this.#tally));
  }
}
