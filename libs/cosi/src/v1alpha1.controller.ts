import { Controller, Inject, UseFilters } from '@nestjs/common';
import { Ctx, GrpcMethod, Payload } from '@nestjs/microservices';
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
import type { Caller } from '#storage/caller';
import type { ObjectStorage } from '#storage/object-storage';

const IDENTITY = `${V1ALPHA1}.Identity`;
const PROVISIONER = `${V1ALPHA1}.Provisioner`;
type Empty = Record<string, never>;

/** cosi.v1alpha1. Methods are registered by full service name: v1alpha2 has services of the same short names. */
@Controller()
@UseFilters(CosiErrorFilter)
export class V1alpha1Controller {
  constructor(@Inject(OBJECT_STORAGE) private readonly storage: ObjectStorage) {}

  @GrpcMethod(IDENTITY, 'DriverGetInfo')
  async getInfo(@Payload() _: Empty, @Ctx() { endpoint }: Caller): Promise<messages.GetInfoReply> {
    return { name: endpoint.driverName };
  }

  @GrpcMethod(PROVISIONER, 'DriverCreateBucket')
  async createBucket(
    @Payload() request: messages.CreateBucketRequest,
    @Ctx() caller: Caller,
  ): Promise<messages.CreateBucketReply> {
    return toCreateReply(await this.storage.createBucket(caller, toBucketRequest(request)));
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
    const grant = toGrantRequest(request);
    try {
      return toGrantReply(await this.storage.grantAccess(caller, grant));
    } catch (error) {
      throw grantError(error, caller.endpoint);
    }
  }

  @GrpcMethod(PROVISIONER, 'DriverRevokeBucketAccess')
  async revokeBucketAccess(
    @Payload() request: messages.RevokeBucketAccessRequest,
    @Ctx() caller: Caller,
  ): Promise<Empty> {
    const revocation = toRevocation(request);
    if (revocation) await this.storage.revokeAccess(caller, revocation.accountId, [revocation.bucketId]);
    return {};
  }
}
