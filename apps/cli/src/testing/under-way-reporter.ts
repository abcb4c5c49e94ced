/**
 * A reporter of vitest (`--reporter=FILE`) that keeps the file that TRIVET_TEST_UNDER_WAY names saying which test files are
 * under way. Whoever ends the run early, or waits for one that hangs, reads there what it was.
 */
import { writeFileSync } from 'node:fs';
import { environment } from '../environment.js';
import type { FileUnderWay } from './under-way.js';

/** What is read of vitest's TestModule and TestCase (its documentation, "Reporters"). */
interface Module {
  moduleId: string;
}
interface Case {
  fullName: string;
  module: Module;
}

export default class UnderWayReporter {
  readonly #files = new Map<string, FileUnderWay>();

  onTestModuleStart({ moduleId }: Module): void {
    this.#files.set(moduleId, { name: moduleId, since: Date.now() });
    this.#write();
  }

  onTestCaseReady({ fullName, module }: Case): void {
    const file = this.#files.get(module.moduleId);
    if (file !== undefined) file.test = { name: fullName, since: Date.now() };
    this.#write();
  }

  onTestModuleEnd({ moduleId }: Module): void {
    this.#files.delete(moduleId);
    this.#write();
  }

  #write(): void {
    if (environment.TRIVET_TEST_UNDER_WAY === undefined) return;
    writeFileSync(environment.TRIVET_TEST_UNDER_WAY, JSON.stringify([...this.#files.values()]));
  }
}
