import { findProgram } from './command.js';
import { forTests } from './part.js';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome'];

export const chromiumPath = (): string | undefined =>
  NAMES.map(name => findProgram(name)).find(path => path !== undefined);

/** The browser in which tests use the dashboard. */
export const chromiumPart = forTests('chromium', () =>
  chromiumPath() === undefined
    ? {
        reason: 'no Chromium is installed; the dashboard is not tested in a browser',
        packages: ['chromium'],
        remedy: 'apt-get install chromium',
      }
    : undefined,
);
