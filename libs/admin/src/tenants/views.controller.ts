import { Controller } from '@nestjs/common';
import { type ViewReply, viewRoutes } from '#admin/contract/views';
import { type AdminCall, Call } from '#admin/requests/admin-call';
import { notFound } from '#admin/requests/change';
import { Serves } from '#admin/requests/serves';
import { SavedViews } from '#tenancy/users/saved-views';

/** Views of lists, of whoever calls. */
@Controller()
export class ViewsController {
  constructor(private readonly views: SavedViews) {}

  @Serves(viewRoutes.list)
  async list(@Call() call: AdminCall<typeof viewRoutes.list>): Promise<{ items: ViewReply[] }> {
    return { items: await this.views.list(call.principal, call.query.list) };
  }

  @Serves(viewRoutes.create)
  async create(@Call() call: AdminCall<typeof viewRoutes.create>): Promise<ViewReply> {
    const made = await this.views.create(call.actor, call.principal, call.body);
    call.giveLocation(`/session/views/${made.id}`);
    return made;
  }

  @Serves(viewRoutes.change)
  async change(@Call() call: AdminCall<typeof viewRoutes.change>): Promise<ViewReply> {
    const { actor, principal, params, body } = call;
    const { name, query, columns } = body;
    const changed = await this.views.change(actor, principal, params.view, {
      ...(name === undefined ? {} : { name }),
      ...(query === undefined ? {} : { query }),
      ...(columns === undefined ? {} : { columns }),
    });
    if (!changed) throw notFound(call);
    return changed;
  }

  @Serves(viewRoutes.delete)
  async delete(@Call() call: AdminCall<typeof viewRoutes.delete>): Promise<void> {
    if (!(await this.views.delete(call.actor, call.principal, call.params.view))) throw notFound(call);
  }
}
