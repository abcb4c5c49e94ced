import { maxHeaderSize, type ServerOptions, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { newInstance, type ProblemCode, problemOf } from '#admin/problems/problems';

/** How long a connection may be kept by somebody who does not go on; looked at every second or so. */
export interface ConnectionLimits {
  handshakeMs: number;
  headersMs: number;
  requestMs: number;
  lookEveryMs: number;
}

export const CONNECTION_LIMITS: ConnectionLimits = {
  handshakeMs: 10_000,
  headersMs: 15_000,
  requestMs: 30_000,
  lookEveryMs: 1_000,
};

/** Peers that are gone without a word are found by the system, also while an answer streams. */
const PEER_SILENT_MS = 30_000;

export const serverOptions = ({ headersMs, requestMs, lookEveryMs }: ConnectionLimits): ServerOptions => ({
  headersTimeout: headersMs,
  requestTimeout: requestMs,
  connectionsCheckingInterval: lookEveryMs,
  keepAlive: true,
  keepAliveInitialDelay: PEER_SILENT_MS,
});

const NO_REQUEST: Readonly<Record<string, readonly [ProblemCode, why: string]>> = {
  ERR_HTTP_REQUEST_TIMEOUT: ['request_timeout', 'the request did not come to its end in time'],
  HPE_HEADER_OVERFLOW: [
    'headers_too_large',
    `the address and the headers of the request have more than ${maxHeaderSize} bytes`,
  ],
};

/**
 * Not HTTP at all, or no end of it: no route sees such a request. Its address may not have come whole, so nobody knows whose
 * client it is: the answer is a problem, as the API has it, with the list of errors that CSP's clients read.
 */
export function refuseConnection(error: Error & { code?: string }, socket: Duplex): void {
  if (error.code === 'ECONNRESET' || socket.destroyed) return;
  const [kind, why] = NO_REQUEST[error.code ?? ''] ?? ['invalid_argument', 'the request is not valid HTTP'];
  const problem = problemOf(kind, why, newInstance());
  const code = STATUS_CODES[problem.status] as string;
  const body = JSON.stringify({ ...problem, errors: [{ pointer: '/header', code, message: why }] });
  const head = `HTTP/1.1 ${problem.status} ${code}\r\nConnection: close\r\nContent-Type: application/problem+json; charset=utf-8\r\n`;
  if (socket.writable) socket.write(`${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  socket.destroy(error);
}
