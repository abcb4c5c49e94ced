/** Whether hosts can come to the portals of a pool at this host, as far as its interfaces tell. */
import { networkInterfaces } from 'node:os';
import { isHostAddress, type MovingAddress } from '#backends/linux/moving-address';
import { splitPortal } from '#backends/tgt/portals';

/** For people; undefined: they can. Node lists the interfaces that are up and have a carrier. */
export function lackingLink(portals: readonly string[], moving: readonly MovingAddress[]): string | undefined {
  const there = networkInterfaces();
  const down = moving.find(({ device }) => there[device] === undefined);
  if (down) return `its interface ${down.device} is missing, down or without a carrier, or has no address of this host`;
  if (moving.length > 0 || portals.some(portal => isHostAddress(splitPortal(portal).address))) return undefined;
  return `none of the portals (${portals.join(', ')}) is at an interface of it that is up and has a carrier`;
}
