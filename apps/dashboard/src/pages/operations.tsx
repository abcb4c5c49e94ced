import { useMe } from '../api/me';
import { useRead } from '../api/read';
import { ofOperations } from '../parts/bulk-actions';
import { useChoosing } from '../parts/choosing';
import { ChosenBar } from '../parts/chosen-bar';
import { Pager } from '../parts/data-table';
import { ExportCsv } from '../parts/export-csv';
import { FilterBar, type FilterField, UnknownFilters, useFilters } from '../parts/filters';
import { OPERATION_COLUMNS, OperationTable } from '../parts/operation-list';
import { Loaded, Page } from '../parts/page';
import { usePageSize } from '../parts/page-size';
import { ViewsButton } from '../parts/views-button';

const STATES = [
  ['pending,running', 'under way'],
  ['pending', 'pending'],
  ['running', 'running'],
  ['succeeded', 'succeeded'],
  ['failed', 'failed'],
  ['cancelled', 'cancelled'],
  ['needs_attention', 'needs attention'],
] as const;

const fields: readonly FilterField[] = [
  { name: 'state', label: 'State', options: STATES },
  { name: 'stuck', label: 'Stuck', options: [['true', 'only stuck ones']] },
  { name: 'kind', label: 'Kind', placeholder: 'volume or volume.create' },
  { name: 'resource', label: 'Resource', placeholder: 'name or id' },
  { name: 'backend', label: 'Backend' },
  { name: 'error', label: 'Error', placeholder: 'unavailable' },
  { name: 'since', label: 'Since', type: 'datetime-local' },
  { name: 'until', label: 'Until', type: 'datetime-local' },
  { name: 'sort', label: 'Order', unset: 'newest first', options: [['createdAt', 'oldest first']] },
];
const ofAppliance: FilterField = { name: 'tenant', label: 'Tenant' };

export function OperationsPage() {
  const me = useMe();
  const shown = me.appliance ? [...fields.slice(0, 4), ofAppliance, ...fields.slice(4)] : fields;
  // Pages of volumes and hosts lead here with it; nobody types it.
  const filters = useFilters([...shown.map(({ name }) => name), 'related']);
  const size = usePageSize();
  const list = useRead('/operations', { query: { ...(filters.query as object), limit: size } });
  const { cursor: _, ...wanted } = filters.query;
  // An operation is of one tenant, and so is a bulk; what hangs on one object is not counted by a filter.
  const tenant = me.appliance ? wanted.tenant : me.tenant;
  const { tenant: _tenant, ...filter } = wanted;
  const canChoose = tenant !== undefined && wanted.related === undefined;
  const choosing = useChoosing(canChoose ? ofOperations(tenant) : undefined, list.data?.data.items, filter);
  return (
    <Page title="Operations">
      {filters.get('related') && <p className="dimmed">Of one object, and of what hangs on it.</p>}
      <FilterBar filters={filters} fields={shown} />
      <UnknownFilters filters={filters} />
      <ViewsButton heads={OPERATION_COLUMNS.map(({ head }) => head)} />
      <Loaded read={{ ...list, data: list.data?.data }}>
        {({ items, next }) => (
          <>
            <ChosenBar choosing={choosing} />
            <OperationTable rows={items} label="Operations" usualSort="-createdAt" choosing={choosing} />
            <Pager next={next} shown={items.length} />
            {items.length > 0 && <ExportCsv name="Operations" path="/operations" query={wanted} />}
          </>
        )}
      </Loaded>
    </Page>
  );
}
