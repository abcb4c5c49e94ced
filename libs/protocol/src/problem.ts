import type { FastifyReply } from 'fastify';
import { bounded } from '#protocol/refusal';

/** What each problem document (RFC 9457) of ours has; the libraries add members of their own. */
export interface ProblemDocument {
  type: string;
  title: string;
  status: number;
  detail: string;
}

/** What passes is worth another try after so long. */
export const RETRY_SECONDS = 2;
const MAX_DETAIL = 2_048;

export const detailOf = (text: string): string => bounded(text, MAX_DETAIL);

export function sendProblem(
  reply: FastifyReply,
  problem: ProblemDocument,
  { challenge, retryAfterSeconds }: { challenge: string; retryAfterSeconds?: number },
): void {
  if (problem.status === 401) reply.header('www-authenticate', challenge);
  if (retryAfterSeconds !== undefined) reply.header('retry-after', String(retryAfterSeconds));
  reply.status(problem.status).type('application/problem+json; charset=utf-8').send(problem);
}
