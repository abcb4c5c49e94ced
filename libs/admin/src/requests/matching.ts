import { Injectable } from '@nestjs/common';
import type { AdminCall } from '#admin/requests/admin-call';
import { type AskedOperations, operationFilter } from '#admin/requests/operation-filter';
import { OperationAdmin } from '#operations/administration/operation-admin';
import { MOST_COUNTED, type PageOf, type PageRequest } from '#platform/database/keyset';
import { Names } from '#tenancy/names';

export type Listed = PageOf<{ id: string }>;
type List<Filter> = (filter: Filter, page: PageRequest) => Promise<Listed>;

export interface Gathered {
  ids: ReadonlySet<string>;
  more: boolean;
}

/** Rows of one look, and how long all looks may take: of who wants all, and of who looks how many there are. */
const LOOK = 1_000;
const GATHER_MS = 20_000;
const GLANCE_MS = 1_000;

/** What the filters of a list match, as ids: one more than are counted says that there are more. */
@Injectable()
export class Matching {
  constructor(
    private readonly operationAdmin: OperationAdmin,
    private readonly names: Names,
  ) {}

  /** All of them: `timeout` when that takes too long. `more`: beyond what is counted. */
  gather<Filter>(call: AdminCall, filter: Filter, list: List<Filter>): Promise<Gathered> {
    return this.look(call, filter, list, Number.POSITIVE_INFINITY);
  }

  /** What a second finds. `more`: it did not come to the end. */
  glance<Filter>(call: AdminCall, filter: Filter, list: List<Filter>): Promise<Gathered> {
    return this.look(call, filter, list, performance.now() + GLANCE_MS);
  }

  private async look<Filter>(call: AdminCall, filter: Filter, list: List<Filter>, until: number): Promise<Gathered> {
    const patience = call.patience(GATHER_MS);
    const ids = new Set<string>();
    for (let after: PageRequest['after']; ids.size <= MOST_COUNTED; ) {
      patience.throwIfAborted();
      if (after && performance.now() >= until) return { ids, more: true };
      const { rows, next } = await list(filter, after ? { limit: LOOK, after } : { limit: LOOK });
      for (const { id } of rows) ids.add(id);
      if (!next) break;
      after = next;
    }
    return { ids, more: ids.size > MOST_COUNTED };
  }

  /** Of one tenant. */
  operations(tenantId: string) {
    return async (asked: AskedOperations, page: PageRequest): Promise<Listed> =>
      this.operationAdmin.list({ tenantId }, await operationFilter(asked, this.names, tenantId), page, {
        descending: false,
      });
  }
}

/** The filters of lists in the terms of their readers. */
export const withCondition = <Filter extends { condition?: 'true' | 'false' | undefined }>({
  condition,
  ...filter
}: Filter) => ({ ...filter, ...(condition === undefined ? {} : { condition: condition === 'true' }) });

export const snapshotsAsked = ({ volume, search }: { volume?: string | undefined; search?: string | undefined }) => ({
  ...(volume === undefined ? {} : { volumeId: volume }),
  ...(search === undefined ? {} : { search }),
});

export const publicationsAsked = ({ volume, host }: { volume?: string | undefined; host?: string | undefined }) => ({
  ...(volume === undefined ? {} : { volumeId: volume }),
  ...(host === undefined ? {} : { hostId: host }),
});
