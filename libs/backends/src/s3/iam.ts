/**
 * IAM and STS: the SDK writes, signs and reads the messages; each that changes something asks its lease right before it is sent.
 * All are POST, so the action in the body tells which those are.
 */
import type { IAMClient, IAMClientResolvedConfig, ServiceInputTypes, ServiceOutputTypes } from '@aws-sdk/client-iam';
import type { $Command } from '@aws-sdk/client-s3';
import { iamLibrary, stsLibrary } from '#backends/s3/aws-sdk';
import type { HttpTransport, SigningIdentity, StoreRequest } from '#backends/s3/http-transport';
import { placesOf, type S3Config, type S3Credentials } from '#backends/s3/s3-config';
import { type LeaseSignal, mayChange } from '#platform/lease-signal';
import { failpoint } from '#platform/process/failpoint';

type Command<In extends ServiceInputTypes, Out extends ServiceOutputTypes> = $Command<
  In,
  Out,
  IAMClientResolvedConfig,
  ServiceInputTypes,
  ServiceOutputTypes
>;

const READING = /^(Get|List)/;
/** Before its end a role is assumed anew. */
const RENEWED_MS = 5 * 60_000;
const ROLE_SECONDS = 3_600;

export class Iam {
  readonly #client: IAMClient;
  /** Of whoever Trivet is at the store: for S3, too. */
  readonly identity: SigningIdentity;

  constructor(transport: HttpTransport, config: S3Config, { accessKeyId, secretAccessKey }: S3Credentials) {
    const { IAMClient } = iamLibrary();
    const places = placesOf(config);
    const keys = accessKeyId && secretAccessKey ? { accessKeyId, secretAccessKey } : undefined;
    this.identity = config.roleArn ? assumedRole(transport, config, keys) : (keys ?? ownIdentity());
    this.#client = new IAMClient({
      endpoint: places.iam,
      region: places.iamRegion,
      credentials: this.identity,
      // The engine retries, and must know of each attempt.
      maxAttempts: 1,
      requestHandler: {
        handle: async (request: StoreRequest, options: { lease?: LeaseSignal } = {}) => {
          const action = new URLSearchParams(String(request.body)).get('Action') ?? '';
          if (!READING.test(action)) {
            if (!options.lease) throw new Error(`${action} is no reading request`);
            await failpoint(`s3.${action}:signed`);
            mayChange(options.lease);
          }
          return transport.handler.handle(request as never, options as never);
        },
      } as never,
    });
  }

  read<In extends ServiceInputTypes, Out extends ServiceOutputTypes>(
    command: Command<In, Out>,
    abortSignal: AbortSignal,
  ): Promise<Out> {
    return this.#client.send(command as never, { abortSignal }) as Promise<Out>;
  }

  change<In extends ServiceInputTypes, Out extends ServiceOutputTypes>(
    command: Command<In, Out>,
    lease: LeaseSignal,
  ): Promise<Out> {
    return this.#client.send(command as never, { abortSignal: lease, lease } as never) as Promise<Out>;
  }
}

/** As the SDK looks for them: environment, files, container, machine. */
function ownIdentity(): SigningIdentity {
  const { IAMClient } = iamLibrary();
  return new IAMClient({ region: 'us-east-1' }).config.credentials as SigningIdentity;
}

function assumedRole(
  transport: HttpTransport,
  config: S3Config,
  keys: { accessKeyId: string; secretAccessKey: string } | undefined,
): SigningIdentity {
  const { STSClient, AssumeRoleCommand } = stsLibrary();
  const client = new STSClient({
    endpoint: placesOf(config).sts,
    region: config.region,
    maxAttempts: 1,
    requestHandler: transport.handler as never,
    ...(keys ? { credentials: keys } : {}),
  });
  const assume = async () => {
    const { Credentials } = await client.send(
      new AssumeRoleCommand({
        RoleArn: config.roleArn,
        RoleSessionName: 'trivet',
        DurationSeconds: ROLE_SECONDS,
        ExternalId: config.externalId,
      }),
    );
    const { AccessKeyId, SecretAccessKey, SessionToken, Expiration } = Credentials ?? {};
    if (!AccessKeyId || !SecretAccessKey) throw new Error('an answer of AssumeRole without credentials');
    const identity = { accessKeyId: AccessKeyId, secretAccessKey: SecretAccessKey, sessionToken: SessionToken };
    return { identity, until: (Expiration?.getTime() ?? Date.now()) - RENEWED_MS };
  };
  let held: ReturnType<typeof assume> | undefined;
  return async () => {
    const known = await held?.catch(() => undefined);
    if (known && Date.now() < known.until) return known.identity;
    held = assume();
    return (await held).identity;
  };
}
