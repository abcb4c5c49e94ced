import { Catch, type RpcExceptionFilter } from '@nestjs/common';
import { type Observable, throwError } from 'rxjs';

/** Keeps errors as they are up to the dispatcher, which maps and logs them; Nest's own filter would erase them. */
@Catch()
export class CosiErrorFilter implements RpcExceptionFilter<unknown> {
  catch(error: unknown): Observable<never> {
    return throwError(() => error);
  }
}
