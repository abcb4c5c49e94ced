import { X509Certificate } from 'node:crypto';
import { fingerprintOf } from '#platform/crypto/join-token';
import { decodeSealed, encodeSealed, type SecretBox } from '#platform/crypto/secrets';
import type { Database } from '#platform/database/database';
import { sql } from '#platform/database/sql';
import type { OpenAuthority, ServerPair, SignedCertificate } from '#tenancy/clusters/certificates';

const TENANT = sql('authority_tenant', 'SELECT tenant_id AS "tenantId" FROM trivet.appliance_tenant()');
const READ = sql(
  'authority_read',
  `SELECT sealed FROM trivet.secret
    WHERE tenant_id = $1 AND owner_table = 'authority' AND owner_id = $1 AND name = 'clusters'`,
);
/** Of two gateways that start at once one makes it. */
const WRITE = sql(
  'authority_write',
  `INSERT INTO trivet.secret (tenant_id, owner_table, owner_id, name, sealed) VALUES ($1, 'authority', $1, 'clusters', $2)
   ON CONFLICT DO NOTHING`,
);

/** Who a certificate of a cluster speaks for. */
export interface ClusterId {
  tenantId: string;
  clusterId: string;
}

const x509 = () => import('#tenancy/clusters/certificates');

/**
 * The appliance's own certificate authority, for its gateways and for clusters alone. It is made when it is first needed, and its
 * key is sealed as other secrets are.
 */
export class Authority {
  private loading: Promise<OpenAuthority> | undefined;

  constructor(
    private readonly database: Database,
    private readonly secrets: SecretBox,
  ) {}

  /** PEM. */
  async certificate(): Promise<string> {
    return (await this.load()).certificate.toString('pem');
  }

  /** SHA-256 of the certificate, base64url. */
  async fingerprint(): Promise<string> {
    return fingerprintOf(new X509Certificate(await this.certificate()));
  }

  /**
   * @param request PKCS #10, PEM; `invalid_argument` when it is none
   * @param at by the database's clock, by which certificates are also called outdated
   */
  async signCluster(request: string, { tenantId, clusterId }: ClusterId, at: Date): Promise<SignedCertificate> {
    const { signClient } = await x509();
    return signClient(await this.load(), request, { organization: tenantId, commonName: clusterId }, at.getTime());
  }

  /** For a gateway, by the name that connectors expect. */
  async makeServerPair(name: string): Promise<ServerPair> {
    const { makeServerPair } = await x509();
    return makeServerPair(await this.load(), name);
  }

  private load(): Promise<OpenAuthority> {
    this.loading ??= this.readOrMake().catch(error => {
      this.loading = undefined;
      throw error;
    });
    return this.loading;
  }

  private async readOrMake(): Promise<OpenAuthority> {
    const { makeAuthority, openAuthority } = await x509();
    const [row] = await this.database.call<{ tenantId: string }>(TENANT, []);
    const tenantId = row!.tenantId;
    const place = { tenantId, table: 'authority', rowId: tenantId, column: 'clusters' };
    const read = async (): Promise<OpenAuthority | undefined> => {
      const [found] = await this.database.withTenant(tenantId, tx => tx.query<{ sealed: Buffer }>(READ, [tenantId]));
      return found && openAuthority(this.secrets.openText(decodeSealed(found.sealed), place));
    };
    const known = await read();
    if (known) return known;
    const sealed = encodeSealed(this.secrets.seal(await makeAuthority(), place));
    await this.database.withTenant(tenantId, tx => tx.query(WRITE, [tenantId, sealed]));
    return (await read())!;
  }
}
