import { Body, Delete, Get, HttpCode, Inject, Param, Post, Put, Res, UseGuards } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import type { z } from 'zod';
import { Call, type CspCall, Rules } from '#csp/csp-call';
import { CspRefusal, unexpectedArgument } from '#csp/csp-errors';
import { CSP_OPTIONS, type CspOptions } from '#csp/csp-options';
import { hostOf, publishBody, unpublishBody } from '#csp/host-reference';
import { sendList } from '#csp/json-list';
import { isImport, namedVolumeOf, refuseNamed } from '#csp/named-volumes';
import { bodyOf, isName } from '#csp/request-body';
import { Query, type RequestQuery } from '#csp/request-query';
import { ourId } from '#csp/resource-id';
import { TokenGuard } from '#csp/token.guard';
import { toVolumeChanges, type UpdateVolumeBody, updateVolumeBody } from '#csp/volume-changes';
import { accessProtocolOf, toPublication, toVolume } from '#csp/volume-mapper';
import { type CreateVolumeBody, createVolumeBody, toVolumeRequest } from '#csp/volume-requests';
import { invalid, isStorageError, StorageError } from '#platform/errors';
import type { BlockStorage } from '#storage/block/block-storage';

/** `/volumes`: lookups, creation, edits, and the actions publish and unpublish. */
@UseGuards(TokenGuard)
export class VolumesController {
  private readonly storage: BlockStorage;

  constructor(@Inject(CSP_OPTIONS) options: CspOptions) {
    this.storage = options.storage;
  }

  /** All, as a stream; with `name` the one, or 404: the driver takes an empty list for a failure. */
  @Get()
  async list(@Call() call: CspCall, @Query() query: RequestQuery, @Res() reply: FastifyReply): Promise<void> {
    const name = query.get('name');
    if (name === undefined) return sendList(call, reply, this.storage.volumes.list(call.caller), toVolume);
    const volume = isName(name) ? await this.storage.volumes.find(call.caller, name) : undefined;
    if (!volume) throw new CspRefusal(404, `Volume with name ${name} not found.`);
    reply.send(call.reply([toVolume(volume)]));
  }

  @Get(':id')
  async get(@Call() call: CspCall, @Param('id') id: string): Promise<unknown> {
    return call.reply(toVolume(await this.storage.volumes.get(call.caller, ourId('Volume', id))));
  }

  @Post()
  @HttpCode(200)
  @Rules({ wait: 'createVolume' })
  async create(@Call() call: CspCall, @Body(bodyOf(createVolumeBody)) body: CreateVolumeBody): Promise<unknown> {
    const request = toVolumeRequest(body);
    const named = namedVolumeOf(body);
    if (named && !isImport(named)) request.source = { volumeName: named.name };
    if (request.source || named) call.waitAs('cloneVolume');
    const { volumes } = this.storage;
    const made =
      named && isImport(named)
        ? await volumes.import(call.caller, named.name, request)
        : await volumes.create(call.caller, request).catch(refuseNamed(named));
    return call.reply(toVolume(call.answerOf(made)));
  }

  @Put(':id')
  async update(
    @Call() call: CspCall,
    @Param('id') id: string,
    @Body(bodyOf(updateVolumeBody)) body: UpdateVolumeBody,
  ): Promise<unknown> {
    const volumeId = ourId('Volume', id);
    const changes = toVolumeChanges(volumeId, body);
    const volume = changes
      ? call.answerOf(await this.storage.volumes.update(call.caller, volumeId, changes))
      : await this.storage.volumes.get(call.caller, volumeId);
    return call.reply(toVolume(volume));
  }

  @Delete(':id')
  @HttpCode(204)
  async delete(@Call() call: CspCall, @Param('id') id: string, @Query() query: RequestQuery): Promise<void> {
    const options = { force: forceOf(query) };
    call.answerOf(await this.storage.volumes.delete(call.caller, ourId('Volume', id), options).catch(refuseDelete));
  }

  @Put(':id/actions/publish')
  @Rules({ wait: 'publish' })
  async publish(
    @Call() call: CspCall,
    @Param('id') id: string,
    @Body(bodyOf(publishBody)) body: z.output<typeof publishBody>,
  ): Promise<unknown> {
    const volumeId = ourId('Volume', id);
    const accessProtocol = accessProtocolOf(body.access_protocol);
    if (body.access_control_list !== undefined) throw unexpectedArgument('access_control_list');
    const host = hostOf(body);
    if (host === '') throw new StorageError('not_found', 'host_uuid names no host');
    return call.reply(
      toPublication(
        call.answerOf(await this.storage.publications.publish(call.caller, volumeId, { host, accessProtocol })),
      ),
    );
  }

  /** Of a host that nobody knows: done, or the driver would repeat it for ever. */
  @Put(':id/actions/unpublish')
  @HttpCode(204)
  @Rules({ wait: 'unpublish', busy: 500 })
  async unpublish(
    @Call() call: CspCall,
    @Param('id') id: string,
    @Body(bodyOf(unpublishBody)) body: z.output<typeof unpublishBody>,
  ): Promise<void> {
    const volumeId = ourId('Volume', id);
    const host = hostOf(body);
    if (host === '') await this.storage.volumes.get(call.caller, volumeId);
    else call.answerOf(await this.storage.publications.unpublish(call.caller, volumeId, host));
  }
}

function forceOf(query: RequestQuery): boolean {
  const given = query.get('force');
  if (given === 'true') return true;
  if (given === undefined || given === '' || given === 'false') return false;
  throw invalid('force', 'must be true or false');
}

/** In the specification's words. */
function refuseDelete(error: unknown): never {
  if (isStorageError(error) && error.kind === 'failed_precondition' && error.field === 'published')
    throw new CspRefusal(400, 'Cannot delete a published volume');
  throw error;
}
