import type { ReactNode } from 'react';
import { useRead } from '../api/read';
import type { Find, Input, ItemOf, PathOf, ReadOf } from '../api/routes';
import { Ago } from './ago';
import { type BulkActions, useChoosing } from './choosing';
import { ChosenBar } from './chosen-bar';
import { useShownColumns } from './columns';
import { type Column, DataTable, Pager } from './data-table';
import { ExportCsv } from './export-csv';
import { FilterBar, type FilterField, UnknownFilters, useFilters } from './filters';
import { ConditionCell, To, UnderWay } from './links';
import { ListTotals } from './list-totals';
import { Loaded, Page } from './page';
import { usePageSize } from './page-size';
import { StateBadge } from './state-badge';
import { ViewsButton } from './views-button';

/** Paths that answer page by page. */
type ListPath = {
  [P in PathOf<'GET'>]: ReadOf<P> extends { items: object[]; next: string | null } ? P : never;
}[PathOf<'GET'>];

interface ListPageProps<P extends ListPath> {
  title: string;
  /** Of the table; the title when absent. */
  label?: string;
  path: P;
  /** Besides what the filters say. */
  query?: Input<Find<'GET', P>>['query'];
  fields?: readonly FilterField[];
  /** Milliseconds; for what changes without an event. */
  every?: number;
  /** A line above the filters. */
  intro?: ReactNode;
  actions?: ReactNode;
  columns: readonly Column<ItemOf<P>>[];
  empty: ReactNode;
  /** What may be done to many of one tenant at once. */
  bulk?: BulkActions;
  /** Of a list whose columns say by which `sort` it can be ordered: the order when the address says none. */
  usualSort?: string;
}

/** A list of the API as a page: filters in the address, a table, pages. What differs from list to list is given. */
export function ListPage<P extends ListPath>(props: ListPageProps<P> & Pick<Input<Find<'GET', P>>, 'params'>) {
  const {
    title,
    label = title,
    path,
    params,
    query,
    fields = [],
    every,
    intro,
    actions,
    columns,
    empty,
    bulk,
    usualSort,
  } = props;
  const filters = useFilters(fields.map(({ name }) => name));
  const { cursor, ...filtered } = filters.query;
  const wanted = { ...filtered, ...query };
  const input = { params, query: { ...wanted, cursor, limit: usePageSize() } };
  const list = useRead(path, input as unknown as Input<Find<'GET', P>>, { every });
  const data = list.data?.data as { items: ItemOf<P>[]; next: string | null } | undefined;
  const shown = useShownColumns(columns);
  const choosing = useChoosing(bulk, data?.items as readonly object[] | undefined, wanted);
  return (
    <Page title={title} actions={actions}>
      {intro && <p className="dimmed">{intro}</p>}
      {fields.length > 0 && <FilterBar filters={filters} fields={fields} />}
      <UnknownFilters filters={filters} />
      <ViewsButton heads={columns.map(({ head }) => head)} />
      <Loaded read={{ ...list, data }}>
        {({ items, next }) => (
          <>
            <ChosenBar choosing={choosing} />
            <DataTable
              label={label}
              choosing={choosing}
              rows={items}
              keyOf={keyOf}
              empty={empty}
              columns={shown}
              stale={list.isPlaceholderData}
              usualSort={usualSort}
            />
            {bulk && items.length > 0 && <ListTotals bulk={bulk} wanted={wanted} />}
            <Pager next={next} shown={items.length} />
            {items.length > 0 && <ExportCsv name={label} path={path} params={params} query={wanted} />}
          </>
        )}
      </Loaded>
    </Page>
  );
}

/** Some are known by their name alone. */
function keyOf(row: unknown): string {
  const { id, name } = row as { id?: string; name?: string };
  return id ?? name ?? '';
}

/** A row of a list of one tenant, or of one of all, which says whose it is. */
export type OfTenant<T> = T & { tenant?: string };

/** Of lists over all tenants: whose each row is, before all else. */
export const withTenant = <T extends object>(
  columns: readonly Column<OfTenant<T>>[],
): readonly Column<OfTenant<T>>[] => [
  { head: 'Tenant', cell: ({ tenant }) => <To to={`/tenants/${tenant}`}>{tenant}</To> },
  ...columns,
];

/** Columns that several lists have. */
export const COMMON = {
  state: { head: 'State', cell: ({ state }: { state: string }) => <StateBadge state={state} /> },
  condition: {
    head: 'Condition',
    cell: ({ condition }: Parameters<typeof ConditionCell>[0]) => <ConditionCell condition={condition} />,
  },
  operation: {
    head: 'Operation',
    cell: ({ operation }: { operation: string | null }) => <UnderWay operation={operation} />,
  },
  made: {
    head: 'Made',
    sort: 'createdAt',
    descends: true,
    cell: ({ createdAt }: { createdAt: string }) => <Ago at={createdAt} />,
  },
} as const;
