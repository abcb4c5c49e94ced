import { Controller } from '@nestjs/common';
import { bulkRoutes } from '#admin/contract/bulk';
import type { RouteContract } from '#admin/contract/route';
import { Refusal } from '#admin/problems/problems';
import { type AdminCall, Call } from '#admin/requests/admin-call';
import { Change } from '#admin/requests/change';
import { type Listed, Matching, publicationsAsked, snapshotsAsked, withCondition } from '#admin/requests/matching';
import { answerPage } from '#admin/requests/paging';
import { scopeOf } from '#admin/requests/scope';
import { Serves } from '#admin/requests/serves';
import { Operations } from '#operations/accepting/operations';
import { OperationAdmin } from '#operations/administration/operation-admin';
import { Database } from '#platform/database/database';
import { digestOf, MOST_COUNTED, type PageRequest } from '#platform/database/keyset';
import { StorageError } from '#platform/errors';
import { listPublications } from '#storage/block/publications/publication-list';
import { listSnapshots } from '#storage/block/snapshots/snapshot-list';
import { listVolumes } from '#storage/block/volumes/volume-list';
import type { BulkAction } from '#storage/bulk/bulk-actions';
import { listItems } from '#storage/bulk/bulk-items';
import { startBulk } from '#storage/bulk/start-bulk';
import { listBuckets } from '#storage/object/buckets/bucket-list';
import { Tenants } from '#tenancy/tenants/tenants';

interface Expected<Filter> {
  filter: Filter;
  count: number;
  digest?: string | undefined;
}
type Chosen<Filter> = { reason?: string | undefined } & ({ ids: string[] } | Expected<Filter>);
type BulkRoute = RouteContract & { params: (typeof bulkRoutes.deleteVolumes)['params'] };

/** Ids that the audit log keeps of a bulk; each that is begun has an entry of its own. */
const NOTED = 100;

/** What is done to many: accepted here as one operation, which begins the others. */
@Controller()
export class BulkController {
  constructor(
    private readonly database: Database,
    private readonly operations: Operations,
    private readonly operationAdmin: OperationAdmin,
    private readonly matches: Matching,
    private readonly tenants: Tenants,
  ) {}

  @Serves(bulkRoutes.deleteVolumes)
  deleteVolumes(@Call() call: AdminCall<typeof bulkRoutes.deleteVolumes>) {
    return this.start(call, 'delete-volumes', call.body, (filter, page) =>
      listVolumes(this.database, call.tenant.id, { ...withCondition(filter), sort: 'createdAt' }, page),
    );
  }

  @Serves(bulkRoutes.purgeVolumes)
  purgeVolumes(@Call() call: AdminCall<typeof bulkRoutes.purgeVolumes>) {
    return this.start(call, 'purge-volumes', call.body, (filter, page) => {
      const wanted = { ...withCondition(filter), state: 'binned', sort: 'createdAt' } as const;
      return listVolumes(this.database, call.tenant.id, wanted, page);
    });
  }

  @Serves(bulkRoutes.deleteSnapshots)
  deleteSnapshots(@Call() call: AdminCall<typeof bulkRoutes.deleteSnapshots>) {
    return this.start(call, 'delete-snapshots', call.body, (filter, page) =>
      listSnapshots(this.database, call.tenant.id, { ...snapshotsAsked(filter), sort: 'createdAt' }, page),
    );
  }

  @Serves(bulkRoutes.deleteBuckets)
  deleteBuckets(@Call() call: AdminCall<typeof bulkRoutes.deleteBuckets>) {
    return this.start(call, 'delete-buckets', call.body, (filter, page) =>
      listBuckets(this.database, call.tenant.id, { ...withCondition(filter), sort: 'createdAt' }, page),
    );
  }

  @Serves(bulkRoutes.unpublish)
  unpublish(@Call() call: AdminCall<typeof bulkRoutes.unpublish>) {
    return this.start(call, 'unpublish', call.body, (filter, page) =>
      listPublications(this.database, call.tenant.id, publicationsAsked(filter), page),
    );
  }

  @Serves(bulkRoutes.retryOperations)
  retryOperations(@Call() call: AdminCall<typeof bulkRoutes.retryOperations>) {
    return this.start(call, 'retry-operations', call.body, this.matches.operations(call.tenant.id));
  }

  @Serves(bulkRoutes.cancelOperations)
  cancelOperations(@Call() call: AdminCall<typeof bulkRoutes.cancelOperations>) {
    return this.start(call, 'cancel-operations', call.body, this.matches.operations(call.tenant.id));
  }

  @Serves(bulkRoutes.items)
  async items(@Call() call: AdminCall<typeof bulkRoutes.items>) {
    const { operation: bulkId } = call.params;
    const found = await this.operationAdmin.find(await scopeOf(call, this.tenants), bulkId);
    if (!found) throw new Refusal('not_found', `there is no operation ${bulkId}`);
    const { tenantId } = found;
    const read = (page: PageRequest) =>
      this.database.withTenant(tenantId, tx => listItems(tx, { tenantId, bulkId }, call.query.state, page));
    return answerPage(call, read, ({ subjectId, name, state, operationId, error }) => ({
      id: subjectId,
      name,
      state,
      operation: operationId,
      error: error && { kind: error.kind, message: error.message, retry: error.retry },
    }));
  }

  private async start<Filter extends object>(
    call: AdminCall<BulkRoute>,
    action: BulkAction,
    body: Chosen<Filter>,
    list: (filter: Filter, page: PageRequest) => Promise<Listed>,
  ): Promise<{ operation: string; count: number }> {
    // As the database writes them: in capitals it is the same one.
    const ids =
      'ids' in body ? [...new Set(body.ids.map(id => id.toLowerCase()))] : await this.matching(call, body, list);
    const { reason } = body;
    const what = 'filter' in body ? { filter: body.filter } : {};
    const change = new Change(call, {
      action: 'bulk.start',
      after: { action, ...what, count: ids.length, ids: ids.slice(0, NOTED) },
      ...(reason === undefined ? {} : { reason }),
    });
    const { id, kind, tenantId, userId } = call.principal;
    const login = { tenantId, userId, ...(kind === 'token' ? { tokenId: id } : {}) };
    const by = { ...call.actor, shown: call.actorName, login };
    const asked = { action, by, ...(reason === undefined ? {} : { reason }) };
    const request = { ...asked, ...what };
    const operation = await startBulk(this.operations, change.caller({ backendId: '' }), request, ids);
    call.giveAccepted(operation);
    return { operation, count: ids.length };
  }

  /** Exactly those that were expected: whoever says "all of them" has seen how many, and which, that are. */
  private async matching<Filter extends object>(
    call: AdminCall<BulkRoute>,
    { filter, count, digest }: Expected<Filter>,
    list: (filter: Filter, page: PageRequest) => Promise<Listed>,
  ): Promise<string[]> {
    const { ids, more } = await this.matches.gather(call, filter, list);
    const refused = (what: string, field: string) =>
      new StorageError('failed_precondition', `${what}: look at the list again, and decide anew`, { field });
    const found = more ? `more than ${MOST_COUNTED}` : String(ids.size);
    if (more || ids.size !== count) throw refused(`${found} match, and you expected ${count}`, 'count');
    if (digest !== undefined && digest !== digestOf(ids)) throw refused(`${count} match, but others`, 'digest');
    return [...ids];
  }
}
