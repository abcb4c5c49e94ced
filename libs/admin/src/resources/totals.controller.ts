import { Controller } from '@nestjs/common';
import { totalsRoutes } from '#admin/contract/totals';
import { type AdminCall, Call } from '#admin/requests/admin-call';
import { Matching, publicationsAsked, snapshotsAsked, withCondition } from '#admin/requests/matching';
import { Serves } from '#admin/requests/serves';
import { Database } from '#platform/database/database';
import { digestOf, MOST_COUNTED } from '#platform/database/keyset';
import { totalPublications } from '#storage/block/publications/publication-list';
import { totalSnapshots } from '#storage/block/snapshots/snapshot-list';
import { totalVolumes } from '#storage/block/volumes/volume-list';
import { totalBuckets } from '#storage/object/buckets/bucket-list';

/** What is below a list: how many there are, and what they hold. */
@Controller()
export class TotalsController {
  constructor(
    private readonly database: Database,
    private readonly matching: Matching,
  ) {}

  @Serves(totalsRoutes.volumes)
  volumes(@Call() call: AdminCall<typeof totalsRoutes.volumes>) {
    return totalVolumes(this.database, call.tenant.id, withCondition(call.query));
  }

  @Serves(totalsRoutes.snapshots)
  snapshots(@Call() call: AdminCall<typeof totalsRoutes.snapshots>) {
    return totalSnapshots(this.database, call.tenant.id, snapshotsAsked(call.query));
  }

  @Serves(totalsRoutes.buckets)
  buckets(@Call() call: AdminCall<typeof totalsRoutes.buckets>) {
    return totalBuckets(this.database, call.tenant.id, withCondition(call.query));
  }

  @Serves(totalsRoutes.publications)
  publications(@Call() call: AdminCall<typeof totalsRoutes.publications>) {
    return totalPublications(this.database, call.tenant.id, publicationsAsked(call.query));
  }

  @Serves(totalsRoutes.operations)
  async operations(@Call() call: AdminCall<typeof totalsRoutes.operations>) {
    const { exact, ...asked } = call.query;
    const list = this.matching.operations(call.tenant.id);
    const { ids, more } =
      exact === 'true' ? await this.matching.gather(call, asked, list) : await this.matching.glance(call, asked, list);
    const count = Math.min(ids.size, MOST_COUNTED);
    return { count, more, bytes: null, digest: more ? null : digestOf(ids) };
  }
}
