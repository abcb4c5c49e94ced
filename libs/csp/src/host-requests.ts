import { isIP } from 'node:net';
import { z } from 'zod';
import { name, text } from '#csp/request-body';
import { invalid } from '#platform/errors';
import type { HostRequest, HostView } from '#storage/block/block-storage';

/** RFC 3720 3.2.6.3: iqn with the month of a domain's registration, eui-64, or naa of 64 or 128 bits. */
const INITIATOR =
  /^(iqn\.\d{4}-(0[1-9]|1[0-2])\.[a-z0-9]([-a-z0-9.]*[a-z0-9])?(:[^\s/\\]+)?|eui\.[0-9a-f]{16}|naa\.([0-9a-f]{16}|[0-9a-f]{32}))$/i;
const MAX_INITIATOR = 223;
const NQN = /^nqn\.\d{4}-(0[1-9]|1[0-2])\.[a-z0-9]([-a-z0-9.]*[a-z0-9])?(:\S+)?$/i;
const WWPN = /^(0x)?[0-9a-f]{2}(:?[0-9a-f]{2}){7}$/i;
/** What the driver's orchestrator flavor takes for its nodes. */
const CHAP_USER = /^[a-zA-Z0-9][a-zA-Z0-9\-:.]{0,63}$/;
const CHAP_PASSWORD = /^[\x21-\x7e]{12,16}$/;
const UUID = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/;

/** Can a host have it? Domain ids look alike. */
export const isHostUuid = (text: string): boolean => UUID.test(text);

const MAX_ENTRIES = 64;

const list = (check: (entry: string) => boolean, expected: string) =>
  z
    .array(text(MAX_INITIATOR).refine(check, expected), { error: 'expected a list' })
    .max(MAX_ENTRIES, `must not have more than ${MAX_ENTRIES} entries`)
    .nullish()
    .transform(entries => [...new Set(entries ?? [])]);

/** An interface address: plain, or with the length of its prefix; v6 perhaps with a zone. */
function isNetwork(entry: string): boolean {
  const [address = '', prefix, ...rest] = entry.split('/');
  const family = isIP(address);
  if (family === 0 || rest.length > 0) return false;
  return prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= (family === 4 ? 32 : 128));
}

/** POST hosts. Other members are let pass, as newer drivers send more about their nodes. */
export const hostBody = z.object({
  uuid: text(128).refine(
    isHostUuid,
    "required: letters, digits, '.', '_', ':' and '-', beginning with a letter or digit",
  ),
  name,
  iqns: list(entry => INITIATOR.test(entry), 'must be an iSCSI name: iqn.yyyy-mm.domain:name, eui. or naa.'),
  wwpns: list(entry => WWPN.test(entry), 'must be a WWPN of 16 hexadecimal digits'),
  nqns: list(entry => NQN.test(entry), 'must be an NVMe name: nqn.yyyy-mm.domain:name'),
  networks: list(isNetwork, 'must be an IP address, with or without /prefix'),
  chap_user: text(64).optional(),
  chap_password: z.string({ error: 'expected text' }).optional(),
  access_protocol: text(32).optional(),
  virtual_domain: text(255).optional(),
});
export type HostBody = z.output<typeof hostBody>;

export function toHostRequest(body: HostBody): HostRequest {
  const { uuid, name, iqns, wwpns, nqns, networks } = body;
  if (iqns.length + wwpns.length + nqns.length === 0)
    throw invalid('iqns', 'required, or wwpns or nqns: a host needs an initiator');
  return {
    uuid,
    name,
    iqns,
    wwpns,
    nqns,
    networks,
    chap: chapOf(body),
    accessProtocol: body.access_protocol || undefined,
    virtualDomain: body.virtual_domain || undefined,
  };
}

/** The message of a wrong password says nothing of it. */
function chapOf({ chap_user: user, chap_password: password }: HostBody): HostRequest['chap'] {
  if (!user && !password) return undefined;
  if (!user) throw invalid('chap_user', 'required with chap_password');
  if (!password) throw invalid('chap_password', 'required with chap_user');
  if (!CHAP_USER.test(user))
    throw invalid(
      'chap_user',
      "must be letters, digits, '-', ':' and '.', at most 64, beginning with a letter or digit",
    );
  if (!CHAP_PASSWORD.test(password))
    throw invalid('chap_password', 'must be 12 to 16 printable ASCII characters without blanks');
  return { user, password };
}

/** The id of a host is its uuid: publish takes either, and callers mix them up. */
export const toHost = (view: HostView): Record<string, unknown> => ({
  id: view.uuid,
  name: view.name,
  uuid: view.uuid,
  iqns: view.iqns,
  networks: view.networks,
  wwpns: view.wwpns,
  nqns: view.nqns,
  ...(view.chapUser ? { chap_user: view.chapUser } : {}),
  ...(view.accessProtocol ? { access_protocol: view.accessProtocol } : {}),
  ...(view.virtualDomain ? { virtual_domain: view.virtualDomain } : {}),
});
