import { Stack } from '@mantine/core';
import type { ForecastReply, UsagePartReply } from '#admin/contract/usage';
import { useRead } from '../api/read';
import { shareOf, showBytes, showCount, showDaysToFull } from '../parts/amounts';
import { Meter } from '../parts/charts';
import { type Column, DataTable } from '../parts/data-table';
import { ExportRows } from '../parts/export-csv';
import { FilterBar, useFilters } from '../parts/filters';
import { To } from '../parts/links';
import { withTenant } from '../parts/list-page';
import { Empty, Loaded, Page, Section } from '../parts/page';
import { TenantPerformance } from '../parts/performance';
import { useTenant } from '../shell/tenant';

const MONTHS = 13;

/** The one that it is (of UTC) and those before, as the API names them. */
const months = (): string[] => {
  const now = new Date();
  return Array.from({ length: MONTHS }, (_, ago) =>
    new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - ago)).toISOString().slice(0, 7),
  );
};

const useMonth = () => {
  const filters = useFilters(['month']);
  const options = months()
    .slice(1)
    .map(month => [month, month] as const);
  const bar = (
    <FilterBar filters={filters} fields={[{ name: 'month', label: 'Month', options, unset: 'this month' }]} />
  );
  const month = filters.get('month');
  return { bar, query: month === '' ? {} : { month } };
};

export function UsagePage() {
  const tenant = useTenant();
  const { bar, query } = useMonth();
  const report = useRead('/tenants/{tenant}/usage', { params: { tenant }, query });
  const forecasts = useRead('/tenants/{tenant}/forecasts', { params: { tenant } });
  return (
    <Page title="Use and forecast">
      <Stack gap="md">
        <Section title="Used in a month">
          {bar}
          <Loaded read={{ ...report, data: report.data?.data }}>
            {({ items }) => <Report items={items} columns={used} />}
          </Loaded>
        </Section>
        <Section title="Forecast">
          <Loaded read={{ ...forecasts, data: forecasts.data?.data }}>
            {({ items }) => <Forecasts items={items} columns={foreseen} />}
          </Loaded>
        </Section>
        <TenantPerformance tenant={tenant} />
        <Busiest tenant={tenant} />
        <Grown tenant={tenant} />
      </Stack>
    </Page>
  );
}

export function AllUsagePage() {
  const { bar, query } = useMonth();
  const report = useRead('/usage', { query });
  const forecasts = useRead('/forecasts', {});
  return (
    <Page title="Use of all tenants">
      <Stack gap="md">
        <Section title="Used in a month">
          {bar}
          <Loaded read={{ ...report, data: report.data?.data }}>
            {({ items }) => <Report items={items} columns={withTenant(used)} />}
          </Loaded>
        </Section>
        <Section title="Forecast">
          <Loaded read={{ ...forecasts, data: forecasts.data?.data }}>
            {({ items }) => <Forecasts items={items} columns={withTenant(foreseen)} />}
          </Loaded>
        </Section>
      </Stack>
    </Page>
  );
}

const mean = (sum: string, hours: number): number => (hours === 0 ? 0 : Number(sum) / hours);

const used: readonly Column<UsagePartReply>[] = [
  { head: 'What', cell: ({ kind }) => kind },
  { head: 'Backend', cell: ({ backend, pool }) => (pool === null ? backend : `${backend} / ${pool}`) },
  {
    head: 'Count, mean',
    cell: ({ thingHours, measuredHours }) => mean(thingHours, measuredHours).toFixed(1),
    number: true,
  },
  {
    head: 'Provisioned, mean',
    cell: ({ kind, provisionedByteHours, measuredHours }) =>
      kind === 'buckets' ? '–' : showBytes(mean(provisionedByteHours, measuredHours)),
    number: true,
  },
  {
    head: 'Stored, mean',
    cell: ({ storedByteHours, measuredHours }) => showBytes(mean(storedByteHours, measuredHours)),
    number: true,
  },
  {
    head: 'Hours measured',
    cell: ({ measuredHours, monthHours }) => `${showCount(measuredHours)} of ${showCount(monthHours)}`,
    number: true,
  },
];

function Report({ items, columns }: { items: readonly UsagePartReply[]; columns: readonly Column<UsagePartReply>[] }) {
  return (
    <>
      <p className="dimmed">
        Means over the hours that were measured; the file has byte-hours, for charging. Sizes of volumes count those in
        the recycle bin.
      </p>
      <DataTable
        label="Used in a month"
        rows={items}
        keyOf={({ tenant, kind, backend, pool }) => `${tenant} ${kind} ${backend} ${pool}`}
        empty={<Empty what="Nothing was used in this month, or nothing was measured." />}
        columns={columns}
      />
      {items.length > 0 && <ExportRows name={`usage-${items[0]!.month}`} rows={items} />}
    </>
  );
}

const amountOf = ({ kind, name }: ForecastReply) =>
  kind === 'pool' || name.endsWith('_bytes') ? (value: string | number) => showBytes(value) : showCount;

const foreseen: readonly Column<ForecastReply>[] = [
  { head: 'What', cell: ({ kind }) => kind },
  {
    head: 'Name',
    cell: ({ backend, name }) => (backend === null ? name.replaceAll('_', ' ') : `${backend} / ${name}`),
  },
  {
    head: 'Used',
    cell: row => {
      const amount = amountOf(row);
      return (
        <Meter
          share={shareOf(row.used, row.total)}
          label={`Used of ${row.kind} ${row.tenant} ${row.backend ?? ''} ${row.name}`}
        >
          {amount(row.used)} of {amount(row.total)}
        </Meter>
      );
    },
  },
  {
    head: 'Promised',
    cell: ({ promised, overcommit }) =>
      promised === null ? '–' : `${showBytes(promised)}${overcommit === null ? '' : `, ${overcommit} × its size`}`,
  },
  {
    head: 'A day',
    cell: row => (row.trend ? `${row.trend.perDay < 0 ? '−' : ''}${amountOf(row)(Math.abs(row.trend.perDay))}` : '–'),
    number: true,
  },
  { head: 'Full in', cell: ({ trend }) => (trend ? fullIn(trend.daysToFull) : '–') },
  {
    head: 'With 90 % within',
    cell: ({ trend, samples }) =>
      trend
        ? `${fullIn(trend.daysAtLeast)} to ${fullIn(trend.daysAtMost)}`
        : `nothing is said before five days are measured (${samples} so far)`,
    wide: true,
  },
];

const fullIn = (days: number | null): string => (days === null ? 'never' : showDaysToFull(days));

const Forecasts = ({
  items,
  columns,
}: {
  items: readonly ForecastReply[];
  columns: readonly Column<ForecastReply>[];
}) => (
  <>
    <p className="dimmed">
      If it goes on growing as in the last four weeks: a straight line through one sample a day, with the interval that
      has it with 90 %.
    </p>
    <DataTable
      label="Forecast"
      rows={items}
      keyOf={({ tenant, kind, backend, name }) => `${tenant} ${kind} ${backend} ${name}`}
      empty={<Empty what="There is no pool and no quota that could get full." />}
      columns={columns}
    />
  </>
);

function Busiest({ tenant }: { tenant: string }) {
  const filters = useFilters(['by']);
  const by = filters.get('by') === 'throughput' ? ('throughput' as const) : ('iops' as const);
  const input = { params: { tenant }, query: { by, limit: '20' } };
  const read = useRead('/tenants/{tenant}/busiest-volumes', input, { every: 60_000 });
  return (
    <Section title="Busiest volumes">
      <FilterBar
        filters={filters}
        fields={[{ name: 'by', label: 'By', options: [['throughput', 'bytes']], unset: 'commands' }]}
      />
      <Loaded read={{ ...read, data: read.data?.data }}>
        {({ items }) => (
          <DataTable
            label="Busiest volumes"
            rows={items}
            keyOf={({ id }) => id}
            empty={<Empty what="No host does anything with any, or nothing was measured." />}
            columns={[
              { head: 'Volume', cell: ({ id, name }) => <To to={`/tenants/${tenant}/volumes/${id}`}>{name}</To> },
              { head: 'Reads a second', cell: ({ readsPerSecond }) => readsPerSecond.toFixed(1), number: true },
              { head: 'Writes a second', cell: ({ writesPerSecond }) => writesPerSecond.toFixed(1), number: true },
              { head: 'Read a second', cell: ({ readBytesPerSecond }) => showBytes(readBytesPerSecond), number: true },
              {
                head: 'Written a second',
                cell: ({ writtenBytesPerSecond }) => showBytes(writtenBytesPerSecond),
                number: true,
              },
              { head: 'Pool', cell: ({ pool }) => pool },
            ]}
          />
        )}
      </Loaded>
    </Section>
  );
}

function Grown({ tenant }: { tenant: string }) {
  const read = useRead('/tenants/{tenant}/volume-growth', { params: { tenant }, query: { limit: '20' } });
  return (
    <Section title="Volumes that grew most in a week">
      <Loaded read={{ ...read, data: read.data?.data }}>
        {({ items }) => (
          <DataTable
            label="Volumes that grew most in a week"
            rows={items}
            keyOf={({ id }) => id}
            empty={<Empty what="None has grown in a week, or nothing was measured yet." />}
            columns={[
              { head: 'Volume', cell: ({ id, name }) => <To to={`/tenants/${tenant}/volumes/${id}`}>{name}</To> },
              { head: 'Grew', cell: ({ growth }) => showBytes(growth), number: true },
              {
                head: 'Allocated',
                cell: ({ allocated, size }) => `${showBytes(allocated)} of ${showBytes(size)}`,
                number: true,
              },
              { head: 'Pool', cell: ({ pool }) => pool },
              { head: 'Until', cell: ({ day }) => day },
            ]}
          />
        )}
      </Loaded>
    </Section>
  );
}
