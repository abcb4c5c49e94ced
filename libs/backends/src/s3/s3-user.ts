import {
  type $Command,
  S3Client,
  type S3ClientResolvedConfig,
  type ServiceInputTypes,
  type ServiceOutputTypes,
} from '@aws-sdk/client-s3';
import type { HttpTransport, SigningIdentity, StoreRequest } from '#backends/s3/http-transport';
import { needing } from '#backends/s3/needed-rights';
import { actionOf } from '#backends/s3/s3-actions';
import type { LeaseSignal } from '#platform/lease-signal';

type Command<In extends ServiceInputTypes, Out extends ServiceOutputTypes> = $Command<
  In,
  Out,
  S3ClientResolvedConfig,
  ServiceInputTypes,
  ServiceOutputTypes
>;

interface Sent {
  abortSignal: AbortSignal;
  lease?: LeaseSignal;
}

/** S3 as one user. The SDK writes and reads messages; they are signed, and sent, by the transport alone. */
export class S3User {
  readonly #client: S3Client;

  constructor(
    transport: HttpTransport,
    readonly credentials: SigningIdentity,
  ) {
    const signed = transport.as(credentials);
    this.#client = new S3Client({
      endpoint: transport.url.href,
      region: transport.region,
      credentials,
      signer: { sign: async request => request },
      forcePathStyle: true,
      // The engine retries, and must know of each attempt.
      maxAttempts: 1,
      requestHandler: {
        handle: (request: StoreRequest, options = {}) => {
          const { abortSignal, lease } = options as Sent;
          return lease ? signed.change(request, lease) : signed.read(request, abortSignal);
        },
      },
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
    });
  }

  /** A command that changes something is refused here, before it is sent. */
  read<In extends ServiceInputTypes, Out extends ServiceOutputTypes>(
    command: Command<In, Out>,
    abortSignal: AbortSignal,
  ): Promise<Out> {
    return needing(actionOf(command), this.#client.send(command, { abortSignal }));
  }

  change<In extends ServiceInputTypes, Out extends ServiceOutputTypes>(
    command: Command<In, Out>,
    lease: LeaseSignal,
  ): Promise<Out> {
    const sent: Sent = { abortSignal: lease, lease };
    return needing(actionOf(command), this.#client.send(command, sent));
  }
}
