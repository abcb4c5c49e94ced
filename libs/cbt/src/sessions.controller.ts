import {
  Body,
  Controller,
  Delete,
  Get,
  HttpCode,
  Inject,
  Param,
  Post,
  Req,
  Res,
  UseFilters,
  UseGuards,
} from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Login, LoginGuard } from '#cbt/login.guard';
import { ProblemFilter } from '#cbt/problem';
import { toConfiguration, toSession, toSessionRequest } from '#cbt/session-messages';
import { SESSIONS_API, type SessionsApi } from '#cbt/sessions-api';
import type { ChangeObserver } from '#operations/accepting/change-observer';
import { driverObserver } from '#storage/shared/driver-observer';
import type { Session } from '#tenancy/logins/session-directory';

const ROOT = 'cbt/v1';

/**
 * The KEP's session manager over REST: what there are custom resources for in a cluster. A token is the answer's only
 * secret, so no answer may be kept by a cache on its way.
 */
@Controller(`${ROOT}/sessions`)
@UseFilters(ProblemFilter)
@UseGuards(LoginGuard)
export class SessionsController {
  constructor(@Inject(SESSIONS_API) private readonly api: SessionsApi) {}

  @Post()
  @HttpCode(201)
  async create(
    @Login() login: Session,
    @Body() body: unknown,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const view = await this.api.sessions.create(login, toSessionRequest(body), observerOf(login, request));
    reply.header('location', `/${ROOT}/sessions/${view.name}`).header('cache-control', 'no-store');
    return toSession(view, this.api.service);
  }

  @Get()
  async list(@Login() login: Session, @Res({ passthrough: true }) reply: FastifyReply) {
    const views = await this.api.sessions.list(login);
    reply.header('cache-control', 'no-store');
    return views.map(view => toSession(view, this.api.service));
  }

  @Get(':key')
  async get(@Login() login: Session, @Param('key') key: string, @Res({ passthrough: true }) reply: FastifyReply) {
    const view = await this.api.sessions.get(login, key);
    reply.header('cache-control', 'no-store');
    return toSession(view, this.api.service);
  }

  @Delete(':key')
  @HttpCode(204)
  delete(@Login() login: Session, @Param('key') key: string, @Req() request: FastifyRequest): Promise<void> {
    const { sessions } = this.api;
    const observer = observerOf(login, request);
    // What others opened is theirs to use, for who may not change anything else either.
    return login.role === 'viewer' ? sessions.deleteOwn(login, key, observer) : sessions.delete(login, key, observer);
  }
}

const observerOf = ({ tenantId, username, id }: Session, { ip }: FastifyRequest): ChangeObserver =>
  driverObserver(tenantId, { kind: 'user', name: username, tokenName: id, door: 'cbt', address: ip });

@Controller(`${ROOT}/configuration`)
@UseFilters(ProblemFilter)
@UseGuards(LoginGuard)
export class ServiceConfigurationController {
  constructor(@Inject(SESSIONS_API) private readonly api: SessionsApi) {}

  @Get()
  get() {
    return toConfiguration(this.api.service());
  }
}
