import type { ObjectProtocol } from '#backends/object-backend';
import { checkCount, MAX_PROTOCOLS } from '#cosi/request-checks';
import { PROTOCOL_NUMBERS, type ObjectProtocol as ProtocolMessage } from '#cosi/v1alpha2-messages';
import { invalid } from '#platform/errors';
import type { Endpoint } from '#storage/object/endpoint';

/** The enum wrapper ObjectProtocol of v1alpha2: an absent message and UNKNOWN are the same. */
const BY_NUMBER = new Map<number, ObjectProtocol>(
  Object.entries(PROTOCOL_NUMBERS).map(([name, number]) => [number, name as ObjectProtocol]),
);

const spell = (protocols: readonly ObjectProtocol[]): string => protocols.map(name => name.toUpperCase()).join(', ');

/** A protocol that the endpoint's backend offers; anything else is `invalid_argument` naming those that are. */
export function decodeProtocol(field: string, message: ProtocolMessage | null, endpoint: Endpoint): ObjectProtocol {
  const number = message?.type ?? 0;
  if (number === 0) throw invalid(field, 'required, must not be UNKNOWN');
  const protocol = BY_NUMBER.get(number);
  if (!protocol) throw invalid(field, `unknown protocol number ${number}`);
  if (!endpoint.protocols.includes(protocol)) {
    throw invalid(field, `${protocol.toUpperCase()} is not supported, supported: ${spell(endpoint.protocols)}`);
  }
  return protocol;
}

/** Repeats are tolerated. Empty stays empty: the backend's own choice. */
export function decodeProtocols(
  field: string,
  messages: readonly ProtocolMessage[],
  endpoint: Endpoint,
): ObjectProtocol[] {
  checkCount(field, messages, MAX_PROTOCOLS);
  const protocols = messages.map((message, index) => decodeProtocol(`${field}[${index}]`, message, endpoint));
  return [...new Set(protocols)];
}

/** For calls where a protocol is repeated and decides nothing: only a number that means nothing is refused. */
export function checkProtocolNumber(field: string, message: ProtocolMessage | null): void {
  const number = message?.type ?? 0;
  if (number !== 0 && !BY_NUMBER.has(number)) throw invalid(field, `unknown protocol number ${number}`);
}

export const encodeProtocols = (protocols: readonly ObjectProtocol[]): ProtocolMessage[] =>
  protocols.map(protocol => ({ type: PROTOCOL_NUMBERS[protocol] }));
