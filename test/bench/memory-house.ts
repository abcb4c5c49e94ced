import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureLauncherToken } from '#tenancy/tokens/launcher-token';
import type { CosiClient } from '#test/cosi/client';
import { TestAppliance } from '#test/support/appliance';
import { freePort } from '#test/support/free-port';
import { parts, until } from '#test/support/parts';

export const ADMIN_PASSWORD = 'an admin of the bench';

// biome-ignore lint/suspicious/noExplicitAny: callers say what they expect
type Json = any;

/** An appliance as it is in production, with every door open, and a client for each. */
export class LoadHouse {
  private constructor(
    readonly appliance: TestAppliance,
    readonly cosi: CosiClient,
    /** The block backend has real targets. */
    readonly exports: boolean,
    readonly cbt: { port: number; ca: () => string },
    private readonly adminToken: string,
  ) {}

  static async open(): Promise<LoadHouse> {
    const folder = mkdtempSync(join(tmpdir(), 'trivet-bench-'));
    const adminFile = join(folder, 'admin-password');
    writeFileSync(adminFile, ADMIN_PASSWORD, { mode: 0o600 });
    const exports = parts().xfs !== null;
    const cbtPort = await freePort();
    const appliance = await TestAppliance.create({
      backend: 'fake',
      block: exports ? 'xfs' : 'fake',
      env: {
        TRIVET_ADMIN_PASSWORD_FILE: adminFile,
        TRIVET_LEASE_MS: '15000',
        TRIVET_RECONCILE_MS: '2000',
      },
    });
    rmSync(folder, { recursive: true });
    try {
      const token = await ensureLauncherToken(appliance.database.ownerUrl, undefined);
      await appliance.gateway({
        TRIVET_CBT_LISTEN: `127.0.0.1:${cbtPort}`,
        TRIVET_HTTPS_LISTEN: `127.0.0.1:${await freePort()}`,
      });
      await appliance.worker();
      await until('the pool was looked at', async () => {
        return (await appliance.database.query('SELECT FROM trivet.pool')).length === 1;
      });
      const certificate = join(appliance.folder, 'tls', 'certificate.pem');
      const cbt = { port: cbtPort, ca: () => readFileSync(certificate, 'utf8') };
      return new LoadHouse(appliance, appliance.client(), exports, cbt, token!);
    } catch (error) {
      await appliance.close();
      throw error;
    }
  }

  csp = (method: string, path: string, body?: object, headers: Record<string, string> = {}): Promise<Json> =>
    this.ask(method, path, body, headers);

  admin = (method: string, path: string, body?: object): Promise<Json> =>
    this.ask(method, `/api/v1${path}`, body, { authorization: `Bearer ${this.adminToken}` });

  /** Calls `heard` for each piece of the event stream until the signal comes. */
  async listen(signal: AbortSignal, heard: () => void): Promise<void> {
    try {
      const reply = await fetch(`${this.appliance.cspUrl}/api/v1/events`, {
        headers: { authorization: `Bearer ${this.adminToken}`, accept: 'text/event-stream' },
        signal,
      });
      if (reply.status !== 200) throw new Error(`events: ${reply.status}`);
      for await (const _ of reply.body!) heard();
      throw new Error('the event stream ended');
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  close(): Promise<void> {
    return this.appliance.close();
  }

  private async ask(method: string, path: string, body: object | undefined, headers: Record<string, string>) {
    const type: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' };
    const reply = await fetch(`${this.appliance.cspUrl}${path}`, {
      method,
      headers: { ...headers, ...type },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await reply.text();
    if (!reply.ok) throw new Error(`${method} ${path}: ${reply.status} ${text.slice(0, 500)}`);
    // Changed blocks come as lines of JSON.
    return reply.headers.get('content-type')?.startsWith('application/json') && text ? JSON.parse(text) : text;
  }
}
