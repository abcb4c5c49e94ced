import { call } from '../api/client';
import { useMay } from '../api/me';
import { useRead } from '../api/read';
import { Act } from '../parts/act';
import { Ago } from '../parts/ago';
import { ofPublications } from '../parts/bulk-actions';
import { useChoosing } from '../parts/choosing';
import { ChosenBar } from '../parts/chosen-bar';
import { DataTable, Pager } from '../parts/data-table';
import { ExportCsv } from '../parts/export-csv';
import { FilterBar, type FilterField, useFilters } from '../parts/filters';
import { To } from '../parts/links';
import { Empty, Loaded, Page } from '../parts/page';
import { usePageSize } from '../parts/page-size';
import { StateBadge } from '../parts/state-badge';
import { useTenant } from '../shell/tenant';
import { Publish } from './publish';

const fields: readonly FilterField[] = [
  { name: 'volume', label: 'Volume', pick: 'volumes' },
  { name: 'host', label: 'Host', pick: 'hosts' },
];

export function PublicationsPage() {
  const tenant = useTenant();
  const may = useMay();
  const filters = useFilters(['volume', 'host']);
  return (
    <Page title="Publications" actions={may('admin') && <Publish tenant={tenant} />}>
      <p className="dimmed">Which host may reach which volume.</p>
      <FilterBar filters={filters} fields={fields} />
      <PublicationList tenant={tenant} query={filters.query} paged />
    </Page>
  );
}

interface ListProps {
  tenant: string;
  query: Record<string, string>;
  paged?: boolean;
}

export function PublicationList({ tenant, query, paged }: ListProps) {
  const may = useMay();
  const size = usePageSize();
  const list = useRead('/tenants/{tenant}/publications', { params: { tenant }, query: { ...query, limit: size } });
  const { cursor: _, ...wanted } = query;
  const choosing = useChoosing(paged ? ofPublications(tenant) : undefined, list.data?.data.items, wanted);
  return (
    <Loaded read={{ ...list, data: list.data?.data }}>
      {({ items, next }) => (
        <>
          <ChosenBar choosing={choosing} />
          <DataTable
            choosing={choosing}
            label="Publications"
            rows={items}
            keyOf={({ id }) => id}
            empty={
              <Empty
                what="Nothing is published: drivers do it when a pod needs its volume."
                command="trivet publication create"
              />
            }
            columns={[
              {
                head: 'Volume',
                cell: ({ volume }) => <To to={`/tenants/${tenant}/volumes/${volume.id}`}>{volume.name}</To>,
              },
              { head: 'Host', cell: ({ host }) => <To to={`/tenants/${tenant}/hosts/${host.id}`}>{host.name}</To> },
              { head: 'State', cell: ({ state }) => <StateBadge state={state} /> },
              { head: 'Protocol', cell: ({ accessProtocol }) => accessProtocol },
              { head: 'Target', cell: ({ target }) => target ?? '–' },
              { head: 'Portals', cell: ({ portals }) => portals.join(', ') || '–' },
              { head: 'LUN', cell: ({ lun }) => lun ?? '–', number: true },
              { head: 'Since', cell: ({ createdAt }) => <Ago at={createdAt} /> },
              {
                head: 'Actions',
                cell: ({ id, volume, host }) =>
                  may('admin') && (
                    <Act
                      small
                      danger
                      label="Unpublish"
                      title={`Take ${volume.name} from ${host.name}`}
                      explain="The host's sessions with it end at once; what it has not written yet is lost."
                      confirmName={volume.name}
                      done="It is being unpublished"
                      run={async () => {
                        const params = { tenant, publication: id };
                        await call('DELETE', '/tenants/{tenant}/publications/{publication}', { params });
                        return undefined;
                      }}
                    />
                  ),
              },
            ]}
          />
          {paged && <Pager next={next} shown={items.length} />}
          {paged && items.length > 0 && (
            <ExportCsv name="Publications" path="/tenants/{tenant}/publications" params={{ tenant }} query={wanted} />
          )}
        </>
      )}
    </Loaded>
  );
}
