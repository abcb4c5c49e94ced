import type { Problem } from '#admin/contract/common';
import { EXIT_FULL } from '#platform/config/config';
import { LauncherError } from '../home.js';
import { ADVICE } from './advice.js';

/** As in sysexits.h: what a script can do about it follows from the number. */
export const EXIT = {
  /** The API refused it, or the operation failed: read the message. */
  refused: 1,
  /** Wrong use of the command line. */
  usage: 2,
  /** What was sent is wrong. */
  data: 65,
  /** Nothing answers. */
  unavailable: 69,
  /** A defect. */
  software: 70,
  /** The disk has no room, or the user's quota of it. */
  full: EXIT_FULL,
  /** The same command may succeed later. */
  later: 75,
  /** No login, or not with these rights. */
  rights: 77,
} as const;

/** What the API refused: what happened, what it means, what to do, and what to quote. */
export class ApiError extends LauncherError {
  private constructor(
    message: string,
    exitCode: number,
    readonly status: number,
    readonly problem?: Problem,
    /** The connection broke: nobody knows whether anything has happened. */
    readonly broken = false,
  ) {
    super(message, exitCode);
  }

  static of(answer: Response, problem: Problem | undefined, text: string): ApiError {
    if (!problem) {
      const said = text.replaceAll(/\s+/g, ' ').slice(0, 200);
      const message = `${answer.url} answered ${answer.status}: ${said || answer.statusText}\n  do      is that the address of Trivet's HTTP door (TRIVET_HTTP_LISTEN, TRIVET_HTTPS_LISTEN)?`;
      return new ApiError(message, EXIT.unavailable, answer.status);
    }
    return new ApiError(describe(problem), exitCodeOf(problem), answer.status, problem);
  }

  /** The same request may be answered a little later. */
  get passes(): boolean {
    return this.broken || this.problem?.retryable === true || this.status >= 500;
  }

  static broken(message: string): ApiError {
    return new ApiError(message, EXIT.unavailable, 0, undefined, true);
  }
}

export function describe({ title, detail, code, errors, instance, operation, retryable }: Problem): string {
  const lines = [
    detail,
    `  means   ${title} (${code})`,
    `  do      ${ADVICE[code] ?? (retryable ? 'try again later' : 'read the message')}`,
  ];
  if (operation !== null)
    lines.push(`  about   trivet operation show ${operation.slice(operation.lastIndexOf('/') + 1)}`);
  // The message has them already when there is but one.
  if (errors && errors.length > 1)
    for (const { pointer, message } of errors) lines.push(`  field   ${pointer}: ${message}`);
  lines.push(`  quote   ${instance}`);
  return lines.join('\n');
}

function exitCodeOf({ status, retryable }: Problem): number {
  if (retryable) return EXIT.later;
  if (status === 400 || status === 413 || status === 415) return EXIT.data;
  if (status === 401 || status === 403) return EXIT.rights;
  return status >= 500 && status !== 507 ? EXIT.software : EXIT.refused;
}

export function unreachable(url: string, error: unknown): ApiError {
  const { code, message } = ((error as Error).cause ?? error) as { code?: unknown; message?: string };
  // A timeout's code is a number, which says nothing.
  const why = typeof code === 'string' ? code : (message ?? String(error));
  const todo = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY/.test(why)
    ? 'trust its certificate: NODE_EXTRA_CA_CERTS=FILE trivet ...'
    : 'does the gateway run (`trivet status`, /readyz), and is that its address?';
  return ApiError.broken(
    `${url} does not answer: ${why}\n  means   nothing is known about what was asked\n  do      ${todo}`,
  );
}
