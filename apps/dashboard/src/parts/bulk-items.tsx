import { NativeSelect, Progress } from '@mantine/core';
import { useState } from 'react';
import type { OperationDetailReply } from '#admin/contract/operations';
import { useRead } from '../api/read';
import { DataTable } from './data-table';
import { To } from './links';
import { Empty, Loaded, Section } from './page';
import { StateBadge } from './state-badge';

type Counts = NonNullable<OperationDetailReply['items']>;
const STATES = ['failed', 'waiting', 'running', 'done', 'skipped'] as const;
const WORDS: Readonly<Record<(typeof STATES)[number], string>> = {
  failed: 'failed',
  waiting: 'not begun',
  running: 'under way',
  done: 'done',
  skipped: 'never begun',
};

export interface BulkItemsProps {
  operation: string;
  counts: Counts;
}

/** How far a bulk is, and what has become of each of its items. */
export function BulkItems({ operation, counts }: BulkItemsProps) {
  const [state, setState] = useState<string>('');
  const read = useRead('/operations/{operation}/items', {
    params: { operation },
    query: { ...(state === '' ? {} : { state: state as 'failed' }), limit: 50 },
  });
  const { total } = counts;
  const ended = counts.done + counts.failed + counts.skipped;
  const share = (n: number): number => (total === 0 ? 0 : (100 * n) / total);
  return (
    <Section title="Items">
      <p role="status">
        {ended} of {total} ended
        {STATES.filter(name => counts[name] > 0)
          .map(name => `, ${counts[name]} ${WORDS[name]}`)
          .join('')}
      </p>
      <Progress.Root size="lg" mb="sm">
        <Progress.Section value={share(counts.done)} color="teal" aria-label={`${counts.done} done`} />
        <Progress.Section value={share(counts.failed)} color="red" aria-label={`${counts.failed} failed`} />
        <Progress.Section value={share(counts.skipped)} color="gray" aria-label={`${counts.skipped} never begun`} />
      </Progress.Root>
      <NativeSelect
        size="xs"
        mb="sm"
        maw="14rem"
        label="Show"
        value={state}
        onChange={event => setState(event.currentTarget.value)}
        data={[{ value: '', label: 'all' }, ...STATES.map(value => ({ value, label: WORDS[value] }))]}
      />
      <Loaded read={{ ...read, data: read.data?.data }}>
        {({ items, next }) => (
          <>
            <DataTable
              label="Items of the bulk"
              rows={items}
              keyOf={({ id }) => id}
              empty={<Empty what="None is so." command={`trivet bulk items ${operation}`} />}
              columns={[
                { head: 'Item', cell: ({ id, name }) => name || id },
                { head: 'State', cell: row => <StateBadge state={row.state} /> },
                { head: 'Why', cell: ({ error }) => error?.message ?? '–', wide: true },
                {
                  head: 'Operation',
                  cell: row => (row.operation ? <To to={`/operations/${row.operation}`}>its operation</To> : '–'),
                },
              ]}
            />
            {next && <p className="dimmed">The first 50 are shown; trivet bulk items {operation} lists all.</p>}
          </>
        )}
      </Loaded>
    </Section>
  );
}
