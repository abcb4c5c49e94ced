import { Get, Param, UseGuards } from '@nestjs/common';
import { Call, type CspCall } from '#csp/csp-call';
import { CspRefusal } from '#csp/csp-errors';
import { Query, type RequestQuery } from '#csp/request-query';
import { unknownId } from '#csp/resource-id';
import { TokenGuard } from '#csp/token.guard';

/** `/replication_partners`: no backend replicates, so there are none. */
@UseGuards(TokenGuard)
export class ReplicationPartnersController {
  @Get()
  list(@Call() call: CspCall, @Query() query: RequestQuery): unknown {
    const name = query.get('name');
    if (name !== undefined) throw new CspRefusal(404, `Replication partner with name ${name} not found.`);
    return call.reply([]);
  }

  @Get(':id')
  get(@Call() _: CspCall, @Param('id') id: string): never {
    throw unknownId('Replication partner', id);
  }
}
