/** One server of an address. */
export interface Host {
  host: string;
  port: number;
}

/** An address as its parts: node-postgres takes one host alone. */
export interface DatabaseAddress {
  /** With the first host alone, and without what is read here. */
  url: string;
  hosts: Host[];
  /** Only a server that takes writes will do. */
  readWrite: boolean;
}

const FORM = /^(postgres(?:ql)?:\/\/)([^/?]*@)?([^/?@]*)(\/[^?]*)?(?:\?(.*))?$/s;
const HOST = /^(\[[0-9a-fA-F:.%]+\]|[^:[\]]*)(?::(\d{1,5}))?$/;
const PORT = 5432;
const TAKE_WRITES = ['read-write', 'primary'];

export const ADDRESS_FORM = 'postgresql://user:password@host:port/database, or with host:port,host:port';

/**
 * `postgresql://user:password@a:5432,b:5432/trivet?target_session_attrs=read-write`, as libpq reads it. Of several servers
 * only one that takes writes is of use here, said or not. Undefined: it is no such address.
 */
export function parseAddress(text: string): DatabaseAddress | undefined {
  const [, scheme, login = '', list, path = '', query = ''] = FORM.exec(text) ?? [];
  if (scheme === undefined || list === undefined) return undefined;
  const parts = list.split(',').map(part => HOST.exec(part));
  if (parts.some(part => part === null || (part[1] === '' && parts.length > 1))) return undefined;
  const params = new URLSearchParams(query);
  const wanted = params.get('target_session_attrs');
  if (wanted !== null && wanted !== 'any' && !TAKE_WRITES.includes(wanted)) return undefined;
  params.delete('target_session_attrs');
  const rest = params.size > 0 ? `?${params}` : '';
  const hosts = parts.map(part => ({
    host: part![1]!.replace(/^\[|\]$/g, ''),
    port: part![2] === undefined ? PORT : Number(part![2]),
  }));
  if (hosts.some(({ port }) => port < 1 || port > 65_535)) return undefined;
  const first = list.split(',')[0];
  // What one host is asked for stays as it was written.
  const url = hosts.length === 1 && wanted === null ? text : `${scheme}${login}${first}${path}${rest}`;
  return { url, hosts, readWrite: hosts.length > 1 || TAKE_WRITES.includes(wanted ?? '') };
}

/** For people and addresses. */
export const nameOf = ({ host, port }: Host): string => `${host.includes(':') ? `[${host}]` : host}:${port}`;

/** The same address, of one of its hosts alone. */
export function atHost(text: string, host: Host): string {
  const [, scheme, login = '', , path = '', query = ''] = FORM.exec(text)!;
  const params = new URLSearchParams(query);
  params.delete('target_session_attrs');
  return `${scheme}${login}${nameOf(host)}${path}${params.size > 0 ? `?${params}` : ''}`;
}

/** For people: whom an address leads to, without its login. */
export const hostsIn = (text: string): string =>
  parseAddress(text)?.hosts.map(nameOf).join(', ') ?? 'an address that cannot be read';
