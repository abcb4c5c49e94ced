import { Body, Delete, Get, HttpCode, Inject, Param, Post, UseGuards } from '@nestjs/common';
import type { z } from 'zod';
import { Call, type CspCall, Rules } from '#csp/csp-call';
import { unlessGone } from '#csp/csp-errors';
import { CSP_OPTIONS, type CspOptions } from '#csp/csp-options';
import { snapshotGroupBody, toSnapshotGroup, toSnapshotGroupRequest } from '#csp/group-messages';
import { bodyOf } from '#csp/request-body';
import { Query, type RequestQuery } from '#csp/request-query';
import { ourId } from '#csp/resource-id';
import { TokenGuard } from '#csp/token.guard';
import { invalid } from '#platform/errors';
import { isUuid } from '#platform/uuid';
import type { BlockStorage } from '#storage/block/block-storage';

/** `/snapshot_groups`: all members of a volume group at one instant. */
@UseGuards(TokenGuard)
export class SnapshotGroupsController {
  private readonly storage: BlockStorage;

  constructor(@Inject(CSP_OPTIONS) options: CspOptions) {
    this.storage = options.storage;
  }

  @Get()
  async list(@Call() call: CspCall, @Query() query: RequestQuery): Promise<unknown> {
    const volumeGroupId = query.get('volume_group_id');
    if (!volumeGroupId) throw invalid('volume_group_id', 'required');
    const known = isUuid(volumeGroupId);
    const groups = known ? await this.storage.snapshotGroups.list(call.caller, { volumeGroupId }) : [];
    return call.reply(groups.map(toSnapshotGroup));
  }

  @Get(':id')
  async get(@Call() call: CspCall, @Param('id') id: string): Promise<unknown> {
    return call.reply(toSnapshotGroup(await this.storage.snapshotGroups.get(call.caller, ourId('Snapshot group', id))));
  }

  @Post()
  @HttpCode(200)
  @Rules({ wait: 'createSnapshot', busy: 503 })
  async create(
    @Call() call: CspCall,
    @Body(bodyOf(snapshotGroupBody)) body: z.output<typeof snapshotGroupBody>,
  ): Promise<unknown> {
    const request = toSnapshotGroupRequest(body);
    return call.reply(toSnapshotGroup(call.answerOf(await this.storage.snapshotGroups.create(call.caller, request))));
  }

  @Delete(':id')
  @HttpCode(204)
  async delete(@Call() call: CspCall, @Param('id') id: string): Promise<void> {
    const done = isUuid(id) && (await this.storage.snapshotGroups.delete(call.caller, id).catch(unlessGone));
    if (done) call.answerOf(done);
  }
}
