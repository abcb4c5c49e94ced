const UNITS: Readonly<Record<string, bigint>> = {
  '': 1n,
  Ki: 1n << 10n,
  Mi: 1n << 20n,
  Gi: 1n << 30n,
  Ti: 1n << 40n,
  Pi: 1n << 50n,
  Ei: 1n << 60n,
};
const MAX = (1n << 63n) - 1n;

/**
 * Bytes, or a whole number with a binary unit (10Gi), as decimal bytes; undefined when it is neither, is zero, or does
 * not fit into 63 bits.
 */
export function parseByteSize(text: string): string | undefined {
  const match = /^(\d{1,19})(Ki|Mi|Gi|Ti|Pi|Ei)?$/.exec(text);
  const unit = UNITS[match?.[2] ?? ''];
  if (!match || unit === undefined) return undefined;
  const bytes = BigInt(match[1]!) * unit;
  return bytes > 0n && bytes <= MAX ? bytes.toString() : undefined;
}
