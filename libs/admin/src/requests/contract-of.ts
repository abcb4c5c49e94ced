import type { ExecutionContext } from '@nestjs/common';
import type { RouteContract } from '#admin/contract/route';

export const CONTRACT = Symbol('RouteContract');

export const contractOf = (context: ExecutionContext): RouteContract =>
  Reflect.getMetadata(CONTRACT, context.getHandler());
