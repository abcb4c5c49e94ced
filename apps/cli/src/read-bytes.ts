const LETTERS = ' kmgtpe';

/**
 * `10GiB` and `10G` count by 1024, `10GB` by 1000, as units are written: exact bytes as decimal text, or undefined for what is
 * no size or no whole number of bytes.
 */
export function readBytes(text: string): string | undefined {
  const match = /^\s*(\d{1,19})(?:\.(\d{1,6}))?\s*(?:([kmgtpe])(ib|b)?|b)?\s*$/i.exec(text);
  if (!match) return undefined;
  const [, whole = '0', fraction = '', letter = '', unit] = match;
  const base = unit?.toLowerCase() === 'b' ? 1000n : 1024n;
  const factor = base ** BigInt(LETTERS.indexOf(letter.toLowerCase() || ' '));
  const scaled = BigInt(whole + fraction) * factor;
  const parts = 10n ** BigInt(fraction.length);
  const digits = (scaled / parts).toString();
  return scaled % parts === 0n && digits.length <= 19 ? digits : undefined;
}
