import { type ForecastReply, usageRoutes } from '#admin/contract/usage';
import { noun, text } from '../command-line/command.js';
import { humanBytes } from '../human-bytes.js';
import { listing } from './api-commands.js';

/** A sum of bytes over hours as the bytes that it is in the middle of a month. */
const average = (byteHours: string, hours: number): string =>
  humanBytes(hours === 0 ? '0' : String(BigInt(byteHours) / BigInt(hours)));

export const USAGE = noun('usage', 'what tenants used, for charging', [
  listing('sums of a month by backend and pool; csv and json have byte-hours', '--month 2026-10 --output csv', {
    route: usageRoutes.report,
    ofAll: usageRoutes.reportOfAll,
    none: 'nothing was used in that month, or nothing was measured',
    filters: { month: text('month', 'of UTC, e.g. 2026-10; else the one that it is') },
    columns: {
      MONTH: row => row.month,
      KIND: row => row.kind,
      BACKEND: row => row.backend,
      POOL: row => row.pool ?? '-',
      HOURS: row => `${row.hours} of ${row.measuredHours}`,
      MEASURED: row => (row.measuredHours >= row.monthHours ? 'all' : `${row.measuredHours} of ${row.monthHours}`),
      'MEAN COUNT': row => (row.measuredHours === 0 ? '-' : (Number(row.thingHours) / row.measuredHours).toFixed(1)),
      'MEAN PROVISIONED': row => (row.kind === 'buckets' ? '-' : average(row.provisionedByteHours, row.measuredHours)),
      'MEAN STORED': row => average(row.storedByteHours, row.measuredHours),
    },
  }),
]);

export const FORECAST = noun('forecast', 'when pools and quotas will be used up', [
  listing('by the trend of the last four weeks, with how sure that is', '--tenant acme', {
    route: usageRoutes.forecasts,
    ofAll: usageRoutes.forecastsOfAll,
    none: 'no pools and no quotas',
    columns: {
      KIND: row => row.kind,
      NAME: row => (row.backend === null ? row.name : `${row.backend}/${row.name}`),
      USED: row => amount(row, row.used),
      OF: row => amount(row, row.total),
      OVERCOMMIT: row => (row.overcommit === null ? '-' : `${row.overcommit}x`),
      'A DAY': row => (row.trend ? signed(row, row.trend.perDay) : '-'),
      'FULL IN': row => (row.trend ? inDays(row.trend.daysToFull) : `- (${row.samples} of 5 days measured)`),
      'WITH 90 %': ({ trend }) => (trend ? `${inDays(trend.daysAtLeast)} to ${inDays(trend.daysAtMost)}` : '-'),
    },
  }),
]);

const inDays = (days: number | null): string => (days === null ? 'never' : `${days} days`);

const isBytes = ({ kind, name }: ForecastReply): boolean => kind === 'pool' || name.endsWith('_bytes');
const amount = (row: ForecastReply, digits: string): string => (isBytes(row) ? humanBytes(digits) : digits);
const signed = (row: ForecastReply, value: number): string =>
  `${value < 0 ? '-' : ''}${amount(row, String(Math.abs(value)))}`;
