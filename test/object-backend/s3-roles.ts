/** Looks at roles of IAM, as which service accounts come in, by other means than the port. */
import {
  GetRoleCommand,
  GetRolePolicyCommand,
  type IAMClient,
  ListRolePoliciesCommand,
  ListRolesCommand,
  UpdateAssumeRolePolicyCommand,
} from '@aws-sdk/client-iam';
import type { ServiceAccount } from '#backends/object-backend';
import { errorCode } from '#backends/s3/errors';

const SUBJECT = /system:serviceaccount:([^:"]*):([^:"]*)/;

export class S3Roles {
  constructor(private readonly iam: IAMClient) {}

  /** Of all below the path. */
  async names(): Promise<string[]> {
    const { Roles = [] } = await this.iam.send(new ListRolesCommand({ PathPrefix: '/trivet/' }));
    return Roles.map(({ RoleName }) => RoleName!);
  }

  async policiesOf(RoleName: string): Promise<string[]> {
    const { PolicyNames = [] } = await this.iam.send(new ListRolePoliciesCommand({ RoleName }));
    const read = async (PolicyName: string) =>
      textOf((await this.iam.send(new GetRolePolicyCommand({ RoleName, PolicyName }))).PolicyDocument);
    return Promise.all(PolicyNames.map(read));
  }

  /** Undefined: there is no such role. */
  async trustOf(RoleName: string): Promise<ServiceAccount | undefined> {
    try {
      const [, namespace, name] = SUBJECT.exec(await this.#trust(RoleName)) ?? [];
      return { namespace: namespace!, name: name! };
    } catch (error) {
      if (/^NoSuchEntity/.test(errorCode(error))) return undefined;
      throw error;
    }
  }

  async seedTrust(RoleName: string, { namespace, name }: ServiceAccount): Promise<void> {
    const subject = `system:serviceaccount:${namespace}:${name}`;
    const PolicyDocument = (await this.#trust(RoleName)).replace(SUBJECT, subject);
    await this.iam.send(new UpdateAssumeRolePolicyCommand({ RoleName, PolicyDocument }));
  }

  async #trust(RoleName: string): Promise<string> {
    return textOf((await this.iam.send(new GetRoleCommand({ RoleName }))).Role?.AssumeRolePolicyDocument);
  }
}

/** IAM gives documents percent-encoded. */
export const textOf = (document = ''): string => (document.startsWith('%') ? decodeURIComponent(document) : document);
