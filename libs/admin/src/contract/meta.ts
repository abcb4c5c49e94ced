import { z } from 'zod';
import { route } from '#admin/contract/route';

export const metaRoutes = {
  openApi: route({
    id: 'getOpenApi',
    method: 'GET',
    path: '/openapi.json',
    tag: 'meta',
    summary: 'This document',
    access: { scope: 'public' },
    status: 200,
    reply: z.record(z.string(), z.unknown()),
    examples: [{ name: 'all of it' }],
  }),
};
