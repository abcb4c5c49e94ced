import { Controller, Get, Header, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { Health } from '#platform/health/health';
import { healthRoutes } from '#platform/health/health-http';

type Path = '/livez' | '/readyz' | '/metrics';

@Controller()
export class HealthController {
  private readonly routes: ReturnType<typeof healthRoutes>;

  constructor(health: Health) {
    this.routes = healthRoutes(health);
  }

  @Get('livez')
  @Header('cache-control', 'no-store')
  live(@Res({ passthrough: true }) reply: FastifyReply): Promise<string> {
    return this.answer('/livez', reply);
  }

  @Get('readyz')
  @Header('cache-control', 'no-store')
  ready(@Res({ passthrough: true }) reply: FastifyReply): Promise<string> {
    return this.answer('/readyz', reply);
  }

  @Get('metrics')
  @Header('cache-control', 'no-store')
  metrics(@Res({ passthrough: true }) reply: FastifyReply): Promise<string> {
    return this.answer('/metrics', reply);
  }

  private async answer(path: Path, reply: FastifyReply): Promise<string> {
    const { status, contentType, body } = await this.routes[path]();
    reply.status(status).header('content-type', contentType);
    return body;
  }
}
