import { type PerformanceReply, usageRoutes } from '#admin/contract/usage';
import { volumeRoutes } from '#admin/contract/volumes';
import { idOf } from '../api/by-name.js';
import { showPage } from '../api/output.js';
import { type Command, choice, one, parsed } from '../command-line/command.js';
import { humanBytes } from '../human-bytes.js';
import { listing, ofTenant } from './api-commands.js';
import { limit, OUTPUT, wholeNumber } from './options.js';

const OF_TIME = {
  step: choice('step', ['minute', 'hour'], 'minutes are kept for a day; hours as long as usage is'),
  hours: parsed('number', 'so far back, 6 when absent, 744 at most', wholeNumber(1, 744)),
  output: OUTPUT,
};
const COLUMNS = {
  AT: (row: PerformanceReply) => row.at,
  'READS/S': (row: PerformanceReply) => row.readsPerSecond.toFixed(1),
  'WRITES/S': (row: PerformanceReply) => row.writesPerSecond.toFixed(1),
  'READ/S': (row: PerformanceReply) => humanBytes(row.readBytesPerSecond),
  'WRITTEN/S': (row: PerformanceReply) => humanBytes(row.writtenBytesPerSecond),
};
const none = 'nothing was measured in that time';

const asked = ({ step, hours }: { step?: 'minute' | 'hour'; hours?: number }) => ({
  ...(step === undefined ? {} : { step }),
  ...(hours === undefined ? {} : { hours: String(hours) }),
});

export const VOLUME_PERFORMANCE: readonly Command[] = [
  ofTenant('performance', 'what hosts did with one, as means by time', 'db-1 --hours 2 --tenant acme', {
    args: { volume: one('its name or id') },
    options: OF_TIME,
    run: async ({ volume: given, ...shape }, api, tenant) => {
      const volume = await idOf(api, tenant, volumeRoutes.list, given, { noun: 'volume' });
      const { reply } = await api.call(usageRoutes.ofVolume, { params: { tenant, volume }, query: asked(shape) });
      showPage(reply, { ...shape, none, columns: COLUMNS });
    },
  }),
  listing('those with which hosts did most in the last minute', '--by throughput --tenant acme', {
    verb: 'busiest',
    route: usageRoutes.busiest,
    filters: { by: choice('what', ['iops', 'throughput'], 'commands when absent'), limit: limit(20) },
    none: 'no host does anything with any, or nothing was measured',
    columns: { NAME: row => row.name, ...COLUMNS, POOL: row => row.pool },
  }),
];

export const TENANT_PERFORMANCE: Command = ofTenant(
  'performance',
  'what hosts did with all volumes of one, as means by five minutes or hours',
  '--step hour --hours 168 --tenant acme',
  {
    options: OF_TIME,
    run: async (shape, api, tenant) => {
      const { reply } = await api.call(usageRoutes.ofTenant, { params: { tenant }, query: asked(shape) });
      showPage(reply, { ...shape, none, columns: COLUMNS });
    },
  },
);
