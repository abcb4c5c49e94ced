import { Body, Delete, Get, HttpCode, Inject, Param, Post, UseGuards } from '@nestjs/common';
import type { z } from 'zod';
import { Call, type CspCall } from '#csp/csp-call';
import { CspRefusal, unlessGone } from '#csp/csp-errors';
import { CSP_OPTIONS, type CspOptions } from '#csp/csp-options';
import { toVolumeGroup, toVolumeGroupRequest, volumeGroupBody } from '#csp/group-messages';
import { bodyOf, isName } from '#csp/request-body';
import { Query, type RequestQuery } from '#csp/request-query';
import { ourId } from '#csp/resource-id';
import { TokenGuard } from '#csp/token.guard';
import { isUuid } from '#platform/uuid';
import type { BlockStorage } from '#storage/block/block-storage';

/** `/volume_groups`. A volume joins and leaves by an edit of the volume. */
@UseGuards(TokenGuard)
export class VolumeGroupsController {
  private readonly storage: BlockStorage;

  constructor(@Inject(CSP_OPTIONS) options: CspOptions) {
    this.storage = options.storage;
  }

  @Get()
  async list(@Call() call: CspCall, @Query() query: RequestQuery): Promise<unknown> {
    const name = query.get('name');
    const known = name === undefined || isName(name);
    const groups = known ? await this.storage.volumeGroups.list(call.caller, { name }) : [];
    if (name !== undefined && groups.length === 0)
      throw new CspRefusal(404, `Volume group with name ${name} not found.`);
    return call.reply(groups.map(toVolumeGroup));
  }

  @Get(':id')
  async get(@Call() call: CspCall, @Param('id') id: string): Promise<unknown> {
    return call.reply(toVolumeGroup(await this.storage.volumeGroups.get(call.caller, ourId('Volume group', id))));
  }

  @Post()
  @HttpCode(200)
  async create(
    @Call() call: CspCall,
    @Body(bodyOf(volumeGroupBody)) body: z.output<typeof volumeGroupBody>,
  ): Promise<unknown> {
    return call.reply(toVolumeGroup(await this.storage.volumeGroups.create(call.caller, toVolumeGroupRequest(body))));
  }

  @Delete(':id')
  @HttpCode(204)
  async delete(@Call() call: CspCall, @Param('id') id: string): Promise<void> {
    if (isUuid(id)) await this.storage.volumeGroups.delete(call.caller, id).catch(unlessGone);
  }
}
