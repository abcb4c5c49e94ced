import { Body, Delete, Get, HttpCode, Inject, Param, Post, Res, UseGuards } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import type { z } from 'zod';
import { Call, type CspCall, Rules } from '#csp/csp-call';
import { CspRefusal } from '#csp/csp-errors';
import { CSP_OPTIONS, type CspOptions } from '#csp/csp-options';
import { sendList } from '#csp/json-list';
import { bodyOf, isName } from '#csp/request-body';
import { Query, type RequestQuery } from '#csp/request-query';
import { ourId } from '#csp/resource-id';
import { snapshotBody, toSnapshot, toSnapshotRequest } from '#csp/snapshot-messages';
import { TokenGuard } from '#csp/token.guard';
import { isUuid } from '#platform/uuid';
import type { BlockStorage, SnapshotView } from '#storage/block/block-storage';

/** `/snapshots`. */
@UseGuards(TokenGuard)
export class SnapshotsController {
  private readonly storage: BlockStorage;

  constructor(@Inject(CSP_OPTIONS) options: CspOptions) {
    this.storage = options.storage;
  }

  /**
   * Of a volume: a list, empty when the volume is unknown, for the driver asks so before it deletes one. By name: 404
   * when there is none. `mode=exists` wants to know only whether one holds the volume.
   */
  @Get()
  async list(@Call() call: CspCall, @Query() query: RequestQuery, @Res() reply: FastifyReply): Promise<void> {
    const name = query.get('name');
    const volume = query.get('volume_id');
    const volumeId = volume !== undefined && isUuid(volume) ? volume : undefined;
    if (name !== undefined) {
      const found = isName(name) ? await this.named(call, name, volumeId) : [];
      if (found.length === 0) throw new CspRefusal(404, `Snapshot with name ${name} not found.`);
      reply.send(call.reply(found.map(toSnapshot)));
    } else if (volume !== undefined && volumeId === undefined) reply.send(call.reply([]));
    else {
      const holding = query.get('mode') === 'exists';
      await sendList(call, reply, this.storage.snapshots.list(call.caller, { volumeId, holding }), toSnapshot);
    }
  }

  @Get(':id')
  async get(@Call() call: CspCall, @Param('id') id: string): Promise<unknown> {
    return call.reply(toSnapshot(await this.storage.snapshots.get(call.caller, ourId('Snapshot', id))));
  }

  @Post()
  @HttpCode(200)
  @Rules({ wait: 'createSnapshot', busy: 503 })
  async create(
    @Call() call: CspCall,
    @Body(bodyOf(snapshotBody)) body: z.output<typeof snapshotBody>,
  ): Promise<unknown> {
    return call.reply(
      toSnapshot(call.answerOf(await this.storage.snapshots.create(call.caller, toSnapshotRequest(body)))),
    );
  }

  @Delete(':id')
  @HttpCode(204)
  async delete(@Call() call: CspCall, @Param('id') id: string): Promise<void> {
    call.answerOf(await this.storage.snapshots.delete(call.caller, ourId('Snapshot', id)));
  }

  private async named({ caller }: CspCall, name: string, volumeId: string | undefined): Promise<SnapshotView[]> {
    const found: SnapshotView[] = [];
    for await (const page of this.storage.snapshots.list(caller, { name, volumeId })) found.push(...page);
    return found;
  }
}
