import { Button } from '@mantine/core';
import { addressOf } from '../api/client';
import { useMay, useMe } from '../api/me';
import { useRead } from '../api/read';
import type { ItemOf } from '../api/routes';
import { Ago } from '../parts/ago';
import { DataTable, Pager } from '../parts/data-table';
import { ExportCsv } from '../parts/export-csv';
import { FilterBar, type FilterField, useFilters } from '../parts/filters';
import { To } from '../parts/links';
import { Empty, Loaded, Page } from '../parts/page';
import { usePageSize } from '../parts/page-size';

type Entry = ItemOf<'/audit'>;

const fields: readonly FilterField[] = [
  { name: 'actor', label: 'Who' },
  { name: 'action', label: 'Action', placeholder: 'tenant.suspend' },
  { name: 'subject', label: 'Subject', placeholder: 'name or id' },
  { name: 'since', label: 'Since', type: 'datetime-local' },
  { name: 'until', label: 'Until', type: 'datetime-local' },
];
const ofAppliance: FilterField = { name: 'tenant', label: 'Tenant' };

export function AuditPage() {
  const me = useMe();
  const may = useMay();
  const shown = me.appliance ? [ofAppliance, ...fields] : fields;
  const filters = useFilters(shown.map(({ name }) => name));
  const size = usePageSize();
  const list = useRead('/audit', { query: { ...filters.query, limit: size } });
  const { cursor: _, ...wanted } = filters.query;
  return (
    <Page
      title="Audit log"
      actions={
        may('admin') && (
          <Button
            component="a"
            size="xs"
            variant="default"
            href={addressOf('/audit/export', { query: wanted })}
            download="audit.ndjson"
          >
            Export as NDJSON
          </Button>
        )
      }
    >
      <FilterBar filters={filters} fields={shown} />
      <Loaded read={{ ...list, data: list.data?.data }}>
        {({ items, next }) => (
          <>
            <DataTable
              label="Audit log"
              rows={items}
              keyOf={({ id }) => id}
              empty={<Empty what="No entry matches." command="trivet audit list" />}
              columns={[
                { head: 'When', cell: ({ at }) => <Ago at={at} /> },
                { head: 'Who', cell: entry => <Who {...entry.actor} door={entry.door} /> },
                { head: 'Action', cell: ({ action }) => action },
                {
                  head: 'Subject',
                  cell: ({ subject, tenant }) => (
                    <span>
                      {subject.kind.replaceAll('_', ' ')} {subject.name}
                      {me.appliance && <span className="dimmed"> in {tenant}</span>}
                    </span>
                  ),
                },
                { head: 'Change', cell: entry => <Change entry={entry} /> },
              ]}
            />
            <Pager next={next} shown={items.length} />
            {items.length > 0 && <ExportCsv name="Audit log" path="/audit" query={wanted} />}
          </>
        )}
      </Loaded>
    </Page>
  );
}

const DOORS = { admin: '', csp: ', by CSP', cosi: ', by COSI', cbt: ', for changed blocks' } as const;

const Who = ({ kind, name, token, address, door }: Entry['actor'] & Pick<Entry, 'door'>) => (
  <span>
    {kind === 'socket' ? `socket ${name}` : name}
    {kind === 'token' ? `, token ${token}` : kind === 'command' ? ', command line' : ''}
    {door && DOORS[door]}
    {address && <span className="dimmed"> from {address}</span>}
  </span>
);

/** What differs; whole values on demand. */
function Change({ entry: { before, after, reason, operation } }: { entry: Entry }) {
  const differs = changes(before, after);
  return (
    <span>
      {reason && <div>“{reason}”</div>}
      {differs.length > 0 && (
        <details>
          <summary>{after === null ? 'what it was' : differs.map(({ name }) => name).join(', ')}</summary>
          <ul className="plain-list">
            {differs.map(({ name, from, to }) => (
              <li key={name}>
                {name}: <code>{from}</code> → <code>{to}</code>
              </li>
            ))}
          </ul>
        </details>
      )}
      {operation && <To to={`/operations/${operation}`}>Operation</To>}
      {!reason && differs.length === 0 && !operation && '–'}
    </span>
  );
}

function changes(before: unknown, after: unknown): { name: string; from: string; to: string }[] {
  const was = fieldsOf(before);
  const is = fieldsOf(after);
  const names = [...new Set([...Object.keys(was), ...Object.keys(is)])];
  return names
    .map(name => ({ name, from: shown(was[name]), to: shown(is[name]) }))
    .filter(({ from, to }) => from !== to);
}

const fieldsOf = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null
    ? (value as Record<string, unknown>)
    : value === undefined || value === null
      ? {}
      : { value };

const shown = (value: unknown): string =>
  value === undefined || value === null ? 'nothing' : typeof value === 'string' ? value : JSON.stringify(value);
