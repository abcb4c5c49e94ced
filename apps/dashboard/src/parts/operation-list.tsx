import { Anchor } from '@mantine/core';
import { Link } from 'react-router';
import type { OperationReply } from '#admin/contract/operations';
import { useMe } from '../api/me';
import { useRead } from '../api/read';
import { Ago } from './ago';
import type { Choosing } from './choosing';
import { useShownColumns } from './columns';
import { type Column, DataTable } from './data-table';
import { Empty, Loaded, Section } from './page';
import { StateBadge } from './state-badge';

/** Where the page of a resource is; undefined for a kind that has none. */
export function resourcePath(tenant: string, { kind, id }: OperationReply['resource']): string | undefined {
  const list = PAGES[kind];
  return list && `/tenants/${tenant}/${list}/${id}`;
}

const PAGES: Readonly<Record<string, string>> = {
  volume: 'volumes',
  snapshot: 'snapshots',
  host: 'hosts',
  bucket: 'buckets',
  access: 'accesses',
};

export function ResourceLink({ operation: { tenant, resource } }: { operation: OperationReply }) {
  const path = resourcePath(tenant, resource);
  const text = `${resource.kind.replaceAll('_', ' ')} ${resource.name}`;
  return path ? (
    <Anchor component={Link} to={path}>
      {text}
    </Anchor>
  ) : (
    text
  );
}

export const OPERATION_COLUMNS: readonly Column<OperationReply>[] = [
  {
    head: 'Operation',
    cell: ({ id, kind }) => (
      <Anchor component={Link} to={`/operations/${id}`}>
        {kind}
      </Anchor>
    ),
  },
  { head: 'State', cell: ({ state }) => <StateBadge state={state} /> },
  { head: 'Resource', cell: operation => <Resource operation={operation} />, wide: true },
  { head: 'Step', cell: ({ step, attempt }) => `${step ?? '–'}${attempt > 1 ? `, attempt ${attempt}` : ''}` },
  {
    head: 'Last error',
    cell: ({ error }) => (error ? `${error.kind}: ${shortened(error.message)}` : '–'),
    wide: true,
  },
  { head: 'When', sort: 'createdAt', descends: true, cell: operation => <When operation={operation} /> },
];

function Resource({ operation }: { operation: OperationReply }) {
  const me = useMe();
  return (
    <span>
      <ResourceLink operation={operation} />
      {me.appliance && <span className="dimmed"> in {operation.tenant}</span>}
    </span>
  );
}

const When = ({ operation: { createdAt, nextRunAt, finishedAt } }: { operation: OperationReply }) => (
  <span>
    <Ago at={createdAt} />
    {(finishedAt ?? nextRunAt) && (
      <div className="dimmed nowrap">
        {finishedAt ? 'ended' : 'next'} <Ago at={finishedAt ?? nextRunAt} />
      </div>
    )}
  </span>
);

interface TableProps {
  rows: readonly OperationReply[];
  label: string;
  /** Said when there is none. */
  none?: string;
  /** As of DataTable. */
  usualSort?: string;
  choosing?: Choosing;
}

export function OperationTable({ rows, label, none = 'No operation matches.', usualSort, choosing }: TableProps) {
  const shown = useShownColumns(OPERATION_COLUMNS);
  return (
    <DataTable
      label={label}
      rows={rows}
      keyOf={({ id }) => id}
      columns={shown}
      usualSort={usualSort}
      choosing={choosing}
      empty={<Empty what={none} command="trivet operation watch" />}
    />
  );
}

interface LinkedProps {
  tenant: string;
  resource: string;
  /** Other things hang on it, and what was done to those is shown, too. */
  related?: boolean;
}

/** What was done to one resource. */
export function LinkedOperations({ tenant, resource, related }: LinkedProps) {
  const filter = related ? 'related' : 'resource';
  const read = useRead('/operations', { query: { tenant, [filter]: resource, limit: 20 } });
  return (
    <Section title="Operations">
      <Loaded read={{ ...read, data: read.data?.data }}>
        {({ items, next }) => (
          <>
            <OperationTable
              rows={items}
              label="Operations of this resource"
              none="No operation of it is known: nothing was done to it, or that was long ago."
            />
            {next && (
              <Anchor component={Link} to={`/operations?tenant=${tenant}&${filter}=${resource}`}>
                All of them
              </Anchor>
            )}
          </>
        )}
      </Loaded>
    </Section>
  );
}

const shortened = (text: string): string => (text.length > 90 ? `${text.slice(0, 89)}…` : text);
