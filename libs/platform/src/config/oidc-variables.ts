import { z } from 'zod';

/** Where codes and secrets travel: over TLS, or within this host. */
const secureUrl = (text: string): URL | undefined => {
  const url = URL.parse(text);
  if (url?.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') return undefined;
  const loopback = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/.test(url.hostname);
  return url.protocol === 'https:' || (url.protocol === 'http:' && loopback) ? url : undefined;
};

/** In the one form of its address: users are kept with it. */
export const oidcIssuer = z
  .string()
  .refine(text => secureUrl(text) !== undefined, 'expected https://host/path; http:// for a loopback address alone')
  .transform(text => new URL(text).href);

export const publicUrl = z
  .string()
  .refine(text => secureUrl(text)?.pathname === '/', 'expected https://host:port; http:// for a loopback address alone')
  .transform(text => new URL(text).origin);

export const oidcScopes = z
  .string()
  .regex(/^[\x21\x23-\x5b\x5d-\x7e]+( [\x21\x23-\x5b\x5d-\x7e]+)*$/, 'expected words with one blank between them')
  .refine(text => text.split(' ').includes('openid'), 'expected openid among them');

/** Whoever may choose an e-mail address there could choose that of another. */
export const oidcLoginClaim = z
  .string()
  .regex(/^[\w.:/-]{1,255}$/, 'expected the name of a claim')
  .refine(name => name !== 'email', 'expected a claim with login names; an e-mail address is none');
