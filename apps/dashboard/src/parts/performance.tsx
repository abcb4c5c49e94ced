import { Group, NativeSelect } from '@mantine/core';
import { useState } from 'react';
import type { PerformanceReply } from '#admin/contract/usage';
import { useRead } from '../api/read';
import { showBytes, showTime } from './amounts';
import { TrendBars } from './charts';
import { Empty, Loaded, Section } from './page';

const EVERY_MS = 60_000;
const HOUR_MS = 3_600_000;

const RANGES = {
  'last 6 hours': { step: 'minute', hours: '6' },
  'last day': { step: 'minute', hours: '24' },
  'last week': { step: 'hour', hours: '168' },
  'last month': { step: 'hour', hours: '744' },
} as const;
type Range = keyof typeof RANGES;

function useRange() {
  const [range, setRange] = useState<Range>('last 6 hours');
  const pick = (
    <Group>
      <NativeSelect
        label="Time"
        data={Object.keys(RANGES)}
        value={range}
        onChange={event => setRange(event.currentTarget.value as Range)}
      />
    </Group>
  );
  return { pick, query: RANGES[range] };
}

/** What hosts did with a volume. */
export function VolumePerformance({ tenant, volume }: { tenant: string; volume: string }) {
  const { pick, query } = useRange();
  const read = useRead(
    '/tenants/{tenant}/volumes/{volume}/performance',
    { params: { tenant, volume }, query },
    { every: EVERY_MS },
  );
  return (
    <Section title="Performance">
      {pick}
      <Loaded read={{ ...read, data: read.data?.data }}>
        {({ items }) => <Charts rows={items} hours={Number(query.hours)} />}
      </Loaded>
    </Section>
  );
}

/** What hosts did with all volumes of a tenant. */
export function TenantPerformance({ tenant }: { tenant: string }) {
  const { pick, query } = useRange();
  const read = useRead('/tenants/{tenant}/performance', { params: { tenant }, query }, { every: EVERY_MS });
  return (
    <Section title="Performance of all volumes">
      {pick}
      <Loaded read={{ ...read, data: read.data?.data }}>
        {({ items }) => <Charts rows={items} hours={Number(query.hours)} />}
      </Loaded>
    </Section>
  );
}

const BARS = 120;

interface Slot {
  at: string;
  rows: PerformanceReply[];
}

/** Equal parts of the time, so that what was not measured is a gap where it was. */
function slotsOf(rows: readonly PerformanceReply[], hours: number): Slot[] {
  const until = Date.now();
  const width = (hours * HOUR_MS) / BARS;
  const slots = Array.from({ length: BARS }, (_, nth) => ({
    at: new Date(until - (BARS - nth) * width).toISOString(),
    rows: [] as PerformanceReply[],
  }));
  for (const row of rows) {
    const nth = BARS - Math.ceil((until - Date.parse(row.at)) / width);
    slots[Math.max(0, Math.min(BARS - 1, nth))]!.rows.push(row);
  }
  return slots;
}

const iops = (row: PerformanceReply): number => row.readsPerSecond + row.writesPerSecond;
const throughput = (row: PerformanceReply): number => row.readBytesPerSecond + row.writtenBytesPerSecond;

function Charts({ rows, hours }: { rows: readonly PerformanceReply[]; hours: number }) {
  if (rows.length === 0)
    return <Empty what="Nothing was measured in that time. It is, once a minute, while a daemon serves volumes." />;
  const slots = slotsOf(rows, hours);
  return (
    <>
      <Chart slots={slots} name="Commands a second" of={iops} show={value => value.toFixed(1)} />
      <Chart slots={slots} name="Bytes a second" of={throughput} show={value => showBytes(Math.round(value))} />
      <p className="dimmed">
        Reads and writes as the daemon counted them that serves the volume. It tells no latencies.
      </p>
    </>
  );
}

interface ChartProps {
  slots: readonly Slot[];
  name: string;
  of: (row: PerformanceReply) => number;
  show: (value: number) => string;
}

function Chart({ slots, name, of, show }: ChartProps) {
  const bars = slots.map(({ at, rows }) => {
    const value = rows.length === 0 ? 0 : rows.reduce((sum, row) => sum + of(row), 0) / rows.length;
    return { key: at, value, title: `${showTime(at)}: ${rows.length === 0 ? 'not measured' : show(value)}` };
  });
  const measured = slots.flatMap(({ rows }) => rows).map(of);
  const mean = measured.reduce((sum, value) => sum + value, 0) / measured.length;
  const words = `${show(mean)} as a mean, ${show(Math.max(...measured))} at most`;
  return (
    <>
      <p>
        {name}: {words}
      </p>
      <TrendBars label={`${name}: ${words}`} bars={bars} />
    </>
  );
}
