import { createHmac } from 'node:crypto';

/** `whsec_` and base64 of 24 to 64 bytes. */
export const SIGNING_SECRET = /^whsec_(?:[A-Za-z0-9+/]{4}){8,21}(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/**
 * As Standard Webhooks has it (https://www.standardwebhooks.com), so that libraries of theirs check it: HMAC-SHA256 over id, time in
 * seconds and body. A repeat has the same id, and another time.
 */
export function signedHeaders(secret: string, id: string, atMs: number, body: string): Record<string, string> {
  const timestamp = String(Math.floor(atMs / 1_000));
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` };
}
