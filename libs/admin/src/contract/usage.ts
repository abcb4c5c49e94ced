import { z } from 'zod';
import { allTenantsRoutes } from '#admin/contract/all-tenants';
import { backendName, bytes, count, id, listOf, ofTenant, tenantName, time } from '#admin/contract/common';
import { route } from '#admin/contract/route';

const tag = 'usage';
const read = { scope: 'tenant', role: 'viewer' } as const;
const readAll = { scope: 'appliance', role: 'viewer' } as const;
const ofOne = { tenant: allTenantsRoutes.volumes.query.shape.tenant };

/** Sums of hours do not fit into the digits of bytes. */
const hourly = (what: string) =>
  z
    .string()
    .regex(/^\d{1,40}$/)
    .meta({ description: `${what}, as decimal text`, examples: ['7730941132800'] });

const usagePart = z
  .object({
    tenant: tenantName,
    month: z.string().meta({ description: 'Of UTC', examples: ['2026-11'] }),
    kind: z.enum(['volumes', 'buckets']).meta({ description: 'What was used' }),
    backend: backendName.meta({ description: 'Name of the backend, as it was then' }),
    pool: z.string().nullable().meta({ description: 'Of volumes; null of buckets' }),
    monthHours: count.meta({ description: 'Of the month, as far as it is over, since the tenant was made' }),
    measuredHours: count.meta({ description: 'Of these, in which usage was measured; the others count nothing' }),
    hours: count.meta({ description: 'Of these, in which there was something' }),
    thingHours: hourly('Sum over these hours of how many volumes or buckets there were'),
    provisionedByteHours: hourly(
      'Sum over these hours of the sizes of volumes, those in the recycle bin included; 0 of buckets',
    ),
    storedByteHours: hourly(
      'Sum over these hours of what volumes had of their pool, as the audit of images last saw it, or of what buckets held',
    ),
  })
  .meta({ id: 'UsagePart' });
export type UsagePartReply = z.output<typeof usagePart>;

const month = z
  .string()
  .regex(/^20\d\d-(0[1-9]|1[0-2])$/, 'expected a month, e.g. 2026-11')
  .optional()
  .meta({ description: 'Month of UTC; the one that it is when absent', examples: ['2026-11'] });
const ofMonth = {
  tag,
  status: 200,
  reply: listOf(usagePart),
} as const;
const summed =
  'By backend and pool. Each hour counts what there was at its begin. A deleted tenant is in no report: read its last one before.';

const signed = z.number().meta({ description: 'Bytes, or things of a quota of things' });
const days = z.number().nullable();
const forecast = z
  .object({
    tenant: tenantName,
    kind: z.enum(['pool', 'quota']).meta({ description: 'What gets full' }),
    backend: backendName.nullable().meta({ description: 'Of the pool; null of a quota' }),
    name: z.string().meta({ description: 'Of the pool; of a quota its key, e.g. volume_bytes' }),
    total: bytes.meta({ description: 'Bytes, or things of a quota of things, as decimal text' }),
    used: bytes.meta({ description: 'Bytes, or things of a quota of things, as decimal text' }),
    promised: bytes.nullable().meta({ description: 'To volumes of all who share the pool; null of a quota' }),
    overcommit: z
      .number()
      .nullable()
      .meta({ description: 'promised by total: above 1 the pool promises more than it has; null of a quota' }),
    samples: count.meta({ description: 'Days of the last 28 that the trend is drawn from' }),
    trend: z
      .object({
        perDay: signed.meta({ description: 'Growth a day, by a straight line through the last sample of each day' }),
        perDayLow: signed.meta({ description: 'Lower end of the interval that has the growth with 90 %' }),
        perDayHigh: signed.meta({ description: 'Upper end of that interval' }),
        daysToFull: days.meta({
          description:
            'Until all of total is used, if it goes on so; 0: it is; null: never, or not in ten years. Of a pool nothing new is made above 85 % already',
        }),
        daysAtLeast: days.meta({ description: 'At the upper end of the interval; null: never, or not in ten years' }),
        daysAtMost: days.meta({ description: 'At its lower end; null: perhaps never, or not in ten years' }),
      })
      .nullable()
      .meta({
        description:
          'null: fewer than five days were measured, and nothing is said. The interval takes days for independent of each other and growth for a straight line.',
      }),
  })
  .meta({ id: 'Forecast' });
export type ForecastReply = z.output<typeof forecast>;

const day = z.string().meta({ description: 'Of UTC', examples: ['2026-11-27'] });
const allocated = bytes.meta({ description: 'That its image had of the pool at the begin of the day' });
const grown = z
  .object({
    id,
    name: z.string().meta({ description: 'Of the volume' }),
    pool: z.string().meta({ description: 'In which it lies' }),
    size: bytes.meta({ description: 'Of the volume, in bytes as decimal text' }),
    allocated,
    growth: bytes.meta({
      description: 'More than a week before; of a volume that was made meanwhile, since nothing. Bytes as decimal text',
    }),
    day,
  })
  .meta({ id: 'VolumeGrowth' });

const volumeDay = z
  .object({ day, size: bytes.meta({ description: 'Of the volume, in bytes as decimal text' }), allocated })
  .meta({ id: 'VolumeDay' });
export type VolumeDay = z.output<typeof volumeDay>;

const rate = (what: string) =>
  z
    .number()
    .nonnegative()
    .meta({ description: `${what} a second, as a mean` });
const rates = {
  at: time.meta({ description: 'When it was measured; of steps of five minutes and hours, when they began' }),
  readsPerSecond: rate('Reads'),
  writesPerSecond: rate('Writes'),
  readBytesPerSecond: rate('Bytes read'),
  writtenBytesPerSecond: rate('Bytes written'),
};
const performance = listOf(z.object(rates).meta({ id: 'Performance' }));
export type PerformanceReply = z.output<typeof performance>['items'][number];
const busy = z
  .object({
    id,
    name: z.string().meta({ description: 'Of the volume' }),
    pool: z.string().meta({ description: 'In which it lies' }),
    ...rates,
  })
  .meta({ id: 'BusyVolume' });
const ofTime = z.strictObject({
  step: z
    .enum(['minute', 'hour'])
    .default('minute')
    .meta({ description: 'Minutes are kept for a day; of hours the last 31 days are told' }),
  hours: z.coerce.number().int().min(1).max(744).default(6).meta({ description: 'So far back, 31 days at most' }),
});
const gaps =
  'As the daemon counted it that serves the volume to hosts, which tells no latencies. What was not measured is not there: a gap is none of zeros. Of the time around a start of the daemon or the end of a session too little may be said, never too much.';

const most = z.coerce.number().int().min(1).max(400);

export const usageRoutes = {
  report: route({
    id: 'listUsage',
    method: 'GET',
    path: '/tenants/{tenant}/usage',
    ...ofMonth,
    summary: 'What a tenant used in a month, for charging',
    description: summed,
    access: read,
    params: ofTenant,
    query: z.strictObject({ month }),
    examples: [
      { name: 'this month', params: { tenant: '{tenant}' } },
      { name: 'a month', params: { tenant: '{tenant}' }, query: { month: '2026-10' } },
    ],
  }),
  reportOfAll: route({
    id: 'listUsageOfAll',
    method: 'GET',
    path: '/usage',
    ...ofMonth,
    summary: 'What all tenants used in a month, for charging',
    description: summed,
    access: readAll,
    query: z.strictObject({ month, ...ofOne }),
    examples: [{ name: 'this month' }, { name: 'a month', query: { month: '2026-10' } }],
  }),
  forecasts: route({
    id: 'listForecasts',
    method: 'GET',
    path: '/tenants/{tenant}/forecasts',
    tag,
    summary: 'When the pools and quotas of a tenant will be used up, and how sure that is',
    access: read,
    params: ofTenant,
    status: 200,
    reply: listOf(forecast),
    examples: [{ name: 'all', params: { tenant: '{tenant}' } }],
  }),
  forecastsOfAll: route({
    id: 'listForecastsOfAll',
    method: 'GET',
    path: '/forecasts',
    tag,
    summary: 'When the pools and quotas of all tenants will be used up, the appliance’s pools included',
    access: readAll,
    query: z.strictObject(ofOne),
    status: 200,
    reply: listOf(forecast),
    examples: [{ name: 'all' }],
  }),
  growth: route({
    id: 'listVolumeGrowth',
    method: 'GET',
    path: '/tenants/{tenant}/volume-growth',
    tag,
    summary: 'Volumes that took most of their pools in a week, most first',
    access: read,
    params: ofTenant,
    query: z.strictObject({ limit: most.default(20).meta({ description: 'So many at most' }) }),
    status: 200,
    reply: listOf(grown),
    examples: [
      { name: 'twenty', params: { tenant: '{tenant}' } },
      { name: 'five', params: { tenant: '{tenant}' }, query: { limit: '5' } },
    ],
  }),
  busiest: route({
    id: 'listBusiestVolumes',
    method: 'GET',
    path: '/tenants/{tenant}/busiest-volumes',
    tag,
    summary: 'Volumes by what hosts did with them in the last minute, most first',
    description: gaps,
    access: read,
    params: ofTenant,
    query: z.strictObject({
      by: z.enum(['iops', 'throughput']).default('iops').meta({ description: 'Commands, or bytes' }),
      limit: most.default(20).meta({ description: 'So many at most' }),
    }),
    status: 200,
    reply: listOf(busy),
    examples: [
      { name: 'by commands', params: { tenant: '{tenant}' } },
      { name: 'by bytes', params: { tenant: '{tenant}' }, query: { by: 'throughput' } },
    ],
  }),
  ofTenant: route({
    id: 'getTenantPerformance',
    method: 'GET',
    path: '/tenants/{tenant}/performance',
    tag,
    summary: 'What hosts did with all volumes of a tenant, by five minutes or by hour',
    description: `${gaps} In the sum a daemon that was not measured counts nothing, where others were.`,
    access: read,
    params: ofTenant,
    query: ofTime,
    status: 200,
    reply: performance,
    examples: [{ name: 'six hours', params: { tenant: '{tenant}' } }],
  }),
  ofVolume: route({
    id: 'getVolumePerformance',
    method: 'GET',
    path: '/tenants/{tenant}/volumes/{volume}/performance',
    tag,
    summary: 'What hosts did with a volume, by minute or by hour',
    description: gaps,
    access: read,
    params: ofTenant.extend({ volume: id }),
    query: ofTime,
    status: 200,
    reply: performance,
    examples: [
      { name: 'six hours', params: { tenant: '{tenant}', volume: '{volume}' } },
      { name: 'a week', params: { tenant: '{tenant}', volume: '{volume}' }, query: { step: 'hour', hours: '168' } },
    ],
  }),
  history: route({
    id: 'getVolumeHistory',
    method: 'GET',
    path: '/tenants/{tenant}/volumes/{volume}/history',
    tag,
    summary: 'Size of a volume, and what it had of its pool, by day, the newest first',
    access: read,
    params: ofTenant.extend({ volume: id }),
    query: z.strictObject({ days: most.default(90).meta({ description: 'So many at most' }) }),
    status: 200,
    reply: listOf(volumeDay),
    examples: [{ name: 'a quarter', params: { tenant: '{tenant}', volume: '{volume}' } }],
  }),
};
