import { Controller, Inject, UseFilters } from '@nestjs/common';
import { Ctx, GrpcMethod, Payload } from '@nestjs/microservices';
import type { CosiCall } from '#cosi/cosi-call';
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
import type { ObjectStorage } from '#storage/object/object-storage';

const IDENTITY = `${V1ALPHA2}.Identity`;
const PROVISIONER = `${V1ALPHA2}.Provisioner`;
type Empty = Record<string, never>;

/** sigs.k8s.io.cosi.v1alpha2, the methods of all its wire revisions. */
@Controller()
@UseFilters(CosiErrorFilter)
export class V1alpha2Controller {
  constructor(@Inject(OBJECT_STORAGE) private readonly storage: ObjectStorage) {}

  @GrpcMethod(IDENTITY, 'DriverGetInfo')
  async getInfo(@Payload() _: Empty, @Ctx() { caller: { endpoint } }: CosiCall): Promise<messages.GetInfoReply> {
    return toGetInfoReply(endpoint);
  }

  @GrpcMethod(PROVISIONER, 'DriverCreateBucket')
  async createBucket(
    @Payload() request: messages.CreateBucketRequest,
    @Ctx() call: CosiCall,
  ): Promise<messages.BucketReply> {
    return toBucketReply(
      call.answerOf(await this.storage.buckets.create(call.caller, toBucketRequest(request, call.caller.endpoint))),
    );
  }

  @GrpcMethod(PROVISIONER, 'DriverGetExistingBucket')
  async getExistingBucket(
    @Payload() request: messages.GetExistingBucketRequest,
    @Ctx() call: CosiCall,
  ): Promise<messages.BucketReply> {
    const { existingBucketId } = request;
    const wanted = toExistingBucketRequest('existing_bucket_id', existingBucketId, request, call.caller.endpoint);
    return toBucketReply(await this.storage.buckets.get(call.caller, wanted));
  }

  @GrpcMethod(PROVISIONER, 'DriverGetBucket')
  async getBucket(@Payload() request: messages.GetBucketRequest, @Ctx() call: CosiCall): Promise<messages.BucketReply> {
    const wanted = toExistingBucketRequest('bucket_id', request.bucketId, request, call.caller.endpoint);
    return toBucketReply(await this.storage.buckets.get(call.caller, wanted));
  }

  @GrpcMethod(PROVISIONER, 'DriverGenerateBucketId')
  async generateBucketId(
    @Payload() request: messages.GenerateBucketIdRequest,
    @Ctx() call: CosiCall,
  ): Promise<{ bucketId: string }> {
    return { bucketId: this.storage.buckets.idFor(call.caller, toBucketRequest(request, call.caller.endpoint)) };
  }

  @GrpcMethod(PROVISIONER, 'DriverDeleteBucket')
  async deleteBucket(@Payload() request: messages.DeleteBucketRequest, @Ctx() call: CosiCall): Promise<Empty> {
    call.answerOf(await this.storage.buckets.delete(call.caller, toDeletedBucketId(request)));
    return {};
  }

  @GrpcMethod(PROVISIONER, 'DriverGrantBucketAccess')
  async grantBucketAccess(
    @Payload() request: messages.GrantBucketAccessRequest,
    @Ctx() call: CosiCall,
  ): Promise<messages.GrantBucketAccessReply> {
    const grant = toGrantRequest(request, call.caller.endpoint);
    return toGrantReply(call.answerOf(await this.storage.accesses.grant(call.caller, grant)), grant.protocol);
  }

  @GrpcMethod(PROVISIONER, 'DriverRevokeBucketAccess')
  async revokeBucketAccess(
    @Payload() request: messages.RevokeBucketAccessRequest,
    @Ctx() call: CosiCall,
  ): Promise<Empty> {
    const { accountId, bucketIds } = toRevocation(request);
    call.answerOf(await this.storage.accesses.revoke(call.caller, accountId, bucketIds));
    return {};
  }
}
