import { findProgram } from './command.js';
import type { Lack, Part } from './part.js';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome'];

export const chromiumPath = (): string | undefined =>
  NAMES.map(name => findProgram(name)).find(path => path !== undefined);

/** The browser in which tests use the dashboard. */
export const chromiumPart: Part = {
  name: 'chromium',
  // There is nothing to point to.
  addressVariable: '',
  absent: {},

  async check(): Promise<Lack | undefined> {
    if (chromiumPath() !== undefined) return undefined;
    return {
      reason: 'no Chromium is installed; the dashboard is not tested in a browser',
      packages: ['chromium'],
      remedy: 'apt-get install chromium',
    };
  },

  async start(): Promise<Record<string, string>> {
    return {};
  },
};
