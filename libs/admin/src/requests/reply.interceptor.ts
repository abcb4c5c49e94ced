import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { map, type Observable } from 'rxjs';
import { secure } from '#admin/problems/problem.filter';
import { callOf } from '#admin/requests/admin-call';
import { contractOf } from '#admin/requests/contract-of';
import { createLogger } from '#platform/logging/log';

const log = createLogger('admin');

/** An answer has the form of its contract and nothing beyond it: a field that nobody declared does not leave the house. */
@Injectable()
export class ReplyInterceptor implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const contract = contractOf(context);
    const http = context.switchToHttp();
    const call = callOf(http.getRequest<FastifyRequest>());
    const reply = http.getResponse<FastifyReply>();
    secure(reply);
    return next.handle().pipe(
      map(answer => {
        if (contract.method !== 'GET' && !call?.audited)
          log.error({ route: contract.id }, 'a change was not written to the audit log');
        if (!contract.reply || contract.streams) return answer;
        const shown = contract.reply.parse(answer);
        return call?.tagAnswer(shown) ? undefined : shown;
      }),
    );
  }
}
