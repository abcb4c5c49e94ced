/**
 * IAM and STS: the SDK writes, signs and reads the messages; each that changes something asks its lease right before it is sent.
 * All are POST, so the action in the body tells which those are.
 */
import type { IAMClient, IAMClientResolvedConfig, ServiceInputTypes, ServiceOutputTypes } from '@aws-sdk/client-iam';
import type { $Command } from '@aws-sdk/client-s3';
import { iamLibrary, stsLibrary } from '#backends/s3/aws-sdk';
import type { HttpTransport, SigningIdentity, StoreRequest } from '#backends/s3/http-transport';
import { needing } from '#backends/s3/needed-rights';
import { actionOf } from '#backends/s3/s3-actions';
import { placesOf, type S3Config, type S3Credentials } from '#backends/s3/s3-config';
import { StorageError } from '#platform/errors';
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
/** Before its end a role is assumed anew, as the SDK's clients ask again. */
const RENEWED_MS = 5 * 60_000;
/** Less than any call has: it is one of several requests of its. */
const ASSUMING_MS = 5_000;
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
    return needing(actionOf(command, 'iam'), this.#client.send(command as never, { abortSignal }) as Promise<Out>);
  }

  change<In extends ServiceInputTypes, Out extends ServiceOutputTypes>(
    command: Command<In, Out>,
    lease: LeaseSignal,
  ): Promise<Out> {
    const sent = this.#client.send(command as never, { abortSignal: lease, lease } as never) as Promise<Out>;
    return needing(actionOf(command, 'iam'), sent);
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
    const request = new AssumeRoleCommand({
      RoleArn: config.roleArn,
      RoleSessionName: 'trivet',
      DurationSeconds: ROLE_SECONDS,
      ExternalId: config.externalId,
    });
    const abortSignal = AbortSignal.timeout(ASSUMING_MS);
    const { Credentials } = await client.send(request, { abortSignal }).catch((cause: unknown) => {
      if (!abortSignal.aborted) throw cause;
      // What the role is for was not begun.
      throw new StorageError('unavailable', `assume the role: no answer from STS within ${ASSUMING_MS} ms`, { cause });
    });
    const { AccessKeyId, SecretAccessKey, SessionToken, Expiration } = Credentials ?? {};
    if (!AccessKeyId || !SecretAccessKey) throw new Error('an answer of AssumeRole without credentials');
    // Without it the SDK's client takes them for ones that never end.
    const expiration = Expiration ?? new Date(Date.now() + ROLE_SECONDS * 1_000);
    return { accessKeyId: AccessKeyId, secretAccessKey: SecretAccessKey, sessionToken: SessionToken, expiration };
  };
  let held: Awaited<ReturnType<typeof assume>> | undefined;
  let assuming: ReturnType<typeof assume> | undefined;
  return async () => {
    if (held && Date.now() < held.expiration.getTime() - RENEWED_MS) return held;
    assuming ??= assume().finally(() => {
      assuming = undefined;
    });
    held = await assuming;
    return held;
  };
}
