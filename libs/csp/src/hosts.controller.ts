import { Body, Delete, Get, HttpCode, Inject, Param, Post, UseGuards } from '@nestjs/common';
import { Call, type CspCall } from '#csp/csp-call';
import { CSP_OPTIONS, type CspOptions } from '#csp/csp-options';
import { type HostBody, hostBody, isHostUuid, toHost, toHostRequest } from '#csp/host-requests';
import { bodyOf } from '#csp/request-body';
import { Query, type RequestQuery } from '#csp/request-query';
import { ourId, unknownId } from '#csp/resource-id';
import { TokenGuard } from '#csp/token.guard';
import { invalid } from '#platform/errors';
import type { BlockStorage, HostView } from '#storage/block/block-storage';

/** `/hosts`. The driver registers its host before every publication, several at once. */
@UseGuards(TokenGuard)
export class HostsController {
  private readonly storage: BlockStorage;

  constructor(@Inject(CSP_OPTIONS) options: CspOptions) {
    this.storage = options.storage;
  }

  @Post()
  @HttpCode(200)
  async put(@Call() call: CspCall, @Body(bodyOf(hostBody)) body: HostBody): Promise<unknown> {
    return call.reply(toHost(await this.storage.hosts.put(call.caller, toHostRequest(body))));
  }

  @Get()
  async list(@Call() call: CspCall, @Query() query: RequestQuery): Promise<unknown> {
    const uuid = query.get('uuid');
    const known = uuid === undefined || isHostUuid(uuid);
    const hosts = known ? await this.storage.hosts.list(call.caller, { uuid }) : [];
    return call.reply(hosts.map(toHost));
  }

  @Get(':id')
  async get(@Call() call: CspCall, @Param('id') id: string): Promise<unknown> {
    return call.reply(toHost(await this.find(call, id)));
  }

  @Delete()
  @HttpCode(204)
  async deleteByUuid(@Call() call: CspCall, @Query() query: RequestQuery): Promise<void> {
    const uuid = query.get('uuid');
    if (!uuid) throw invalid('uuid', 'required');
    await this.delete(call, uuid);
  }

  @Delete(':id')
  @HttpCode(204)
  async delete(@Call() call: CspCall, @Param('id') id: string): Promise<void> {
    await this.storage.hosts.delete(call.caller, (await this.find(call, id)).id);
  }

  /** By its uuid, which is the id that callers get, or by the domain's id. */
  private async find(call: CspCall, id: string): Promise<HostView> {
    if (!isHostUuid(id)) throw unknownId('Host', id);
    const [host] = await this.storage.hosts.list(call.caller, { uuid: id });
    return host ?? this.storage.hosts.get(call.caller, ourId('Host', id));
  }
}
