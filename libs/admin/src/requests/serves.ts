import {
  applyDecorators,
  Delete,
  Get,
  HttpCode,
  Patch,
  Post,
  Put,
  SetMetadata,
  UseFilters,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import type { RouteContract } from '#admin/contract/route';
import { ProblemFilter } from '#admin/problems/problem.filter';
import { AdminGuard } from '#admin/requests/admin.guard';
import { CONTRACT } from '#admin/requests/contract-of';
import { IdempotencyInterceptor } from '#admin/requests/idempotency.interceptor';
import { ReplyInterceptor } from '#admin/requests/reply.interceptor';

const METHODS = { GET: Get, POST: Post, PUT: Put, PATCH: Patch, DELETE: Delete } as const;
export const ROOT = 'api/v1';

/**
 * Makes a method the handler of a route: its path, the guard, and the form of its answer. The controller itself is a bare
 * `@Controller()`; a route that is not served by this decorator is served to nobody, which test/admin/default-deny sees.
 */
export const Serves = (contract: RouteContract): MethodDecorator =>
  applyDecorators(
    METHODS[contract.method](`${ROOT}${contract.path.replace(/\{(\w+)\}/g, ':$1')}`),
    SetMetadata(CONTRACT, contract),
    HttpCode(contract.status),
    UseGuards(AdminGuard),
    UseInterceptors(IdempotencyInterceptor, ReplyInterceptor),
    UseFilters(ProblemFilter),
  );
