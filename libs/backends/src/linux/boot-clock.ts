import { readFileSync } from 'node:fs';

/**
 * Milliseconds since the boot, those of a suspended machine included: the same for all processes of a host, and nobody sets it. In
 * steps of 10 ms.
 */
export const bootClock = (): number => Math.round(Number(readFileSync('/proc/uptime', 'utf8').split(' ')[0]) * 1_000);

let boot: string | undefined;

/** Another one after each start of the machine. */
export function bootId(): string {
  boot ??= readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  return boot;
}
