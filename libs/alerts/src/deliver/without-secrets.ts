import type { Target } from '#alerts/messages/target';

/** Shorter parts of an address say nothing, and are in any text. */
const LEAST = 4;

/** What somebody answers or says, without what of the target lets anybody post there: some repeat the path that was asked for. */
export function withoutSecrets(text: string, target: Target): string {
  const secrets = [...new Set(secretsOf(target).flatMap(formsOf))].sort((one, other) => other.length - one.length);
  if (secrets.length === 0) return text;
  const any = secrets.map(secret => secret.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|');
  return text.replace(new RegExp(any, 'gi'), '…');
}

function secretsOf(target: Target): string[] {
  if (target.kind === 'smtp') return target.password ? [target.password, base64(target.password)] : [];
  if (target.kind === 'pagerduty') return [target.routingKey];
  const { pathname, search, searchParams } = new URL(target.url);
  const parts = [
    ...pathname.split('/'),
    ...[...searchParams].map(([name, value]) => (value === '' ? name : value)),
    ...(target.kind === 'webhook' ? [target.secret, target.secret.replace(/^whsec_/, '')] : []),
  ];
  const whole = [`${pathname}${search}`, pathname, search].filter(one => one.length > 1);
  return [...whole, ...parts.filter(one => one.length >= LEAST)];
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');

/** As it is, and as a page or a log may write it. */
function formsOf(secret: string): string[] {
  let plain = secret;
  try {
    plain = decodeURIComponent(secret);
  } catch {
    // It has a per cent sign of its own.
  }
  return [secret, plain, encodeURIComponent(plain), encodeURI(plain), plain.replaceAll('&', '&amp;')];
}
