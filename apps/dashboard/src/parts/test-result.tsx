import { Stack } from '@mantine/core';
import { showDuration } from './amounts';
import { DataTable } from './data-table';
import { Empty } from './page';
import { StateBadge } from './state-badge';

/** Of a connection test. */
interface Test {
  ok: boolean;
  checks: { name: string; ok: boolean; detail: string }[];
  milliseconds: number;
}

export const TestResult = ({ ok, checks, milliseconds }: Test) => (
  <Stack gap="sm">
    <div className={`notice ${ok ? 'notice-good' : 'notice-bad'}`}>
      <strong>{ok ? 'It can be used.' : 'It cannot be used as it is.'}</strong> Asked for {showDuration(milliseconds)}.
    </div>
    <DataTable
      label="Checks"
      rows={checks}
      keyOf={({ name }) => name}
      empty={<Empty what="Nothing was checked." />}
      columns={[
        { head: 'Check', cell: ({ name }) => name },
        { head: 'Result', cell: check => <StateBadge state={check.ok ? 'ok' : 'failed'} /> },
        { head: 'Detail', cell: ({ detail }) => detail },
      ]}
    />
  </Stack>
);
