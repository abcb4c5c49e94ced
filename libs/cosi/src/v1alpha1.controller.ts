import { Controller, Inject, UseFilters } from '@nestjs/common';
import { Ctx, GrpcMethod, Payload } from '@nestjs/microservices';
import type { CosiCall } from '#cosi/cosi-call';
import { CosiErrorFilter } from '#cosi/cosi-error.filter';
import { V1ALPHA1 } from '#cosi/cosi-protos';
import { OBJECT_STORAGE } from '#cosi/object-storage.token';
import {
  grantError,
  toBucketRequest,
  toCreateReply,
  toDeletedBucketId,
  toGrantReply,
  toGrantRequest,
  toRevocation,
} from '#cosi/v1alpha1-mapper';
import type * as messages from '#cosi/v1alpha1-messages';
import type { ObjectStorage } from '#storage/object/object-storage';

const IDENTITY = `${V1ALPHA1}.Identity`;
const PROVISIONER = `${V1ALPHA1}.Provisioner`;
type Empty = Record<string, never>;

/** cosi.v1alpha1. Methods are registered by full service name: v1alpha2 has services of the same short names. */
@Controller()
@UseFilters(CosiErrorFilter)
export class V1alpha1Controller {
  constructor(@Inject(OBJECT_STORAGE) private readonly storage: ObjectStorage) {}

  @GrpcMethod(IDENTITY, 'DriverGetInfo')
  async getInfo(@Payload() _: Empty, @Ctx() { caller: { endpoint } }: CosiCall): Promise<messages.GetInfoReply> {
    return { name: endpoint.driverName };
  }

  @GrpcMethod(PROVISIONER, 'DriverCreateBucket')
  async createBucket(
    @Payload() request: messages.CreateBucketRequest,
    @Ctx() call: CosiCall,
  ): Promise<messages.CreateBucketReply> {
    return toCreateReply(
      call.answerOf(await this.storage.buckets.create(call.caller, toBucketRequest(request, call.caller.endpoint))),
    );
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
    try {
      return toGrantReply(call.answerOf(await this.storage.accesses.grant(call.caller, grant)));
    } catch (error) {
      throw grantError(error, call.caller.endpoint);
    }
  }

  @GrpcMethod(PROVISIONER, 'DriverRevokeBucketAccess')
  async revokeBucketAccess(
    @Payload() request: messages.RevokeBucketAccessRequest,
    @Ctx() call: CosiCall,
  ): Promise<Empty> {
    const revocation = toRevocation(request);
    if (revocation)
      call.answerOf(await this.storage.accesses.revoke(call.caller, revocation.accountId, [revocation.bucketId]));
    return {};
  }
}
