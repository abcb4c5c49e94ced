import { Controller, Inject, UseFilters } from '@nestjs/common';
import { Ctx, GrpcMethod, Payload } from '@nestjs/microservices';
import { CosiErrorFilter } from '#cosi/cosi-error.filter';
import { V1ALPHA2 } from '#cosi/cosi-protos';
import { OBJECT_STORAGE } from '#cosi/object-storage.token';
import {
  toBucketReply,
  toBucketRequest,
  toDeletedBucketId,
  toExistingBucketRequest,
  toGetInfoReply,
  toGrantReply,
  toGrantRequest,
  toRevocation,
} from '#cosi/v1alpha2-mapper';
import type * as messages from '#cosi/v1alpha2-messages';
import type { Caller } from '#storage/caller';
import type { ObjectStorage } from '#storage/object-storage';

const IDENTITY = `${V1ALPHA2}.Identity`;
const PROVISIONER = `${V1ALPHA2}.Provisioner`;
type Empty = Record<string, never>;

/** sigs.k8s.io.cosi.v1alpha2, the methods of all its wire revisions. */
@Controller()
@UseFilters(CosiErrorFilter)
export class V1alpha2Controller {
  constructor(@Inject(OBJECT_STORAGE) private readonly storage: ObjectStorage) {}

  @GrpcMethod(IDENTITY, 'DriverGetInfo')
  async getInfo(@Payload() _: Empty, @Ctx() { endpoint }: Caller): Promise<messages.GetInfoReply> {
    return toGetInfoReply(endpoint);
  }

  @GrpcMethod(PROVISIONER, 'DriverCreateBucket')
  async createBucket(
    @Payload() request: messages.CreateBucketRequest,
    @Ctx() caller: Caller,
  ): Promise<messages.BucketReply> {
    return toBucketReply(await this.storage.createBucket(caller, toBucketRequest(request, caller.endpoint)));
  }

  @GrpcMethod(PROVISIONER, 'DriverGetExistingBucket')
  async getExistingBucket(
    @Payload() request: messages.GetExistingBucketRequest,
    @Ctx() caller: Caller,
  ): Promise<messages.BucketReply> {
    const { existingBucketId } = request;
    const wanted = toExistingBucketRequest('existing_bucket_id', existingBucketId, request, caller.endpoint);
    return toBucketReply(await this.storage.getBucket(caller, wanted));
  }

  @GrpcMethod(PROVISIONER, 'DriverGetBucket')
  async getBucket(@Payload() request: messages.GetBucketRequest, @Ctx() caller: Caller): Promise<messages.BucketReply> {
    const wanted = toExistingBucketRequest('bucket_id', request.bucketId, request, caller.endpoint);
    return toBucketReply(await this.storage.getBucket(caller, wanted));
  }

  @GrpcMethod(PROVISIONER, 'DriverGenerateBucketId')
  async generateBucketId(
    @Payload() request: messages.GenerateBucketIdRequest,
    @Ctx() caller: Caller,
  ): Promise<{ bucketId: string }> {
    return { bucketId: this.storage.bucketIdFor(caller, toBucketRequest(request, caller.endpoint)) };
  }

  @GrpcMethod(PROVISIONER, 'DriverDeleteBucket')
  async deleteBucket(@Payload() request: messages.DeleteBucketRequest, @Ctx() caller: Caller): Promise<Empty> {
    await this.storage.deleteBucket(caller, toDeletedBucketId(request));
    return {};
  }

  @GrpcMethod(PROVISIONER, 'DriverGrantBucketAccess')
  async grantBucketAccess(
    @Payload() request: messages.GrantBucketAccessRequest,
    @Ctx() caller: Caller,
  ): Promise<messages.GrantBucketAccessReply> {
    const grant = toGrantRequest(request, caller.endpoint);
    return toGrantReply(await this.storage.grantAccess(caller, grant), grant.protocol);
  }

  @GrpcMethod(PROVISIONER, 'DriverRevokeBucketAccess')
  async revokeBucketAccess(
    @Payload() request: messages.RevokeBucketAccessRequest,
    @Ctx() caller: Caller,
  ): Promise<Empty> {
    const { accountId, bucketIds } = toRevocation(request);
    await this.storage.revokeAccess(caller, accountId, bucketIds);
    return {};
  }
}
