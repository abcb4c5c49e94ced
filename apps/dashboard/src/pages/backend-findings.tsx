import { useRead } from '../api/read';
import { Ago } from '../parts/ago';
import { DataTable } from '../parts/data-table';
import { Empty, Loaded, Section } from '../parts/page';
import { HEALTH_EVERY_MS } from './backends';

/** The command line has all of them. */
const MOST_FINDINGS = 50;

export function Findings({ tenant, backend }: { tenant: string; backend: string }) {
  const read = useRead(
    '/tenants/{tenant}/findings',
    { params: { tenant }, query: { backend } },
    { every: HEALTH_EVERY_MS },
  );
  return (
    <Section title="Findings">
      <Loaded read={{ ...read, data: read.data?.data }}>
        {({ items }) => (
          <>
            <DataTable
              label="Findings"
              rows={items.slice(0, MOST_FINDINGS)}
              keyOf={({ kind, subject }) => `${kind} ${subject}`}
              empty={<Empty what="All fits together: each volume has its image, and each image its volume." />}
              columns={[
                { head: 'Finding', cell: ({ kind }) => kind.replaceAll('_', ' ') },
                { head: 'Pool', cell: ({ pool }) => pool || '–' },
                { head: 'What', cell: ({ subject }) => subject, wide: true },
                { head: 'Message', cell: ({ message }) => message, wide: true },
                { head: 'First seen', cell: ({ firstSeen }) => <Ago at={firstSeen} /> },
              ]}
            />
            {items.length > MOST_FINDINGS && (
              <p className="dimmed">
                All of them: <code>trivet pool findings --backend {backend}</code>
              </p>
            )}
          </>
        )}
      </Loaded>
    </Section>
  );
}
