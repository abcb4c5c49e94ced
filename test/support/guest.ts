/**
 * A Linux host of a test: Debian's kernel with open-iscsi and multipath-tools in QEMU, without KVM.
 *
 * It reaches this machine's portals over cables that can be pulled. Each is a network of QEMU's user mode, which carries
 * what the guest sends to 127.x.y.z to that address of this machine's loopback: so nothing has to be set up here, and
 * nothing goes further. Or one is a tap on the bridge of a Network: then the guest is a host beside those there.
 */
import { randomBytes } from 'node:crypto';
import { mkdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { bootedOnce, diskArgs, kernelArgs, MEMORY_MIB, overlay } from '#test/support/booted-guest';
import { type CommandResult, Machine } from '#test/support/machine';
import { parts } from '#test/support/parts';

export { type CommandResult, GuestError } from '#test/support/machine';

const DISK = 'disk.qcow2';
const ISCSI_PORT = 3260;

/** What a network card leads to: a portal of the loopback, or a tap device, with the guest's own address there. */
export type Cable = { portal: string } | { tap: string; address: string };

/** Of the loopback, with nobody at iSCSI's port, the only one that HPE's nodes know. */
export async function freeAddresses(count: number): Promise<string[]> {
  for (;;) {
    const net = `127.${64 + Math.floor(Math.random() * 128)}.${Math.floor(Math.random() * 256)}`;
    const addresses = Array.from({ length: count }, (_, n) => `${net}.${n + 1}`);
    if ((await Promise.all(addresses.map(isFree))).every(Boolean)) return addresses;
  }
}

export class Guest {
  private constructor(
    private readonly folder: string,
    readonly iqn: string,
    private readonly cables: readonly Cable[],
    private machine: Machine,
  ) {}

  /** As the guest that was booted once goes on; one network card for each cable. `folder` is removed at its end. */
  static async boot(folder: string, cables: readonly Cable[]): Promise<Guest> {
    const image = imageFolder();
    const booted = await bootedOnce(image);
    mkdirSync(folder, { recursive: true });
    const iqn = `iqn.1993-08.org.debian:01:${randomBytes(6).toString('hex')}`;
    let machine: Machine | undefined;
    try {
      const disk = join(folder, DISK);
      await overlay({ path: booted.disk, format: 'qcow2' }, disk);
      const args = [...kernelArgs(image), ...diskArgs(disk), '-incoming', `exec:cat '${booted.state}'`];
      machine = await Machine.start({ folder, memoryMiB: MEMORY_MIB, args });
      for (const [n, cable] of cables.entries()) {
        await machine.manage('netdev_add', network(cable, n));
        await machine.manage('device_add', card(n));
      }
      const guest = new Guest(folder, iqn, cables, machine);
      await guest.#setUp();
      return guest;
    } catch (error) {
      await machine?.stop();
      rmSync(folder, { recursive: true, force: true });
      throw error;
    }
  }

  /** By bash. Its exit code is 124 when the time was up. */
  run(command: string, seconds?: number): Promise<CommandResult> {
    return this.machine.run(command, seconds);
  }

  /** Resolves to what it printed, without the last line's end. */
  must(command: string, seconds?: number): Promise<string> {
    return this.machine.must(command, seconds);
  }

  /** Pulls the nth cable. */
  async unplug(cable: number): Promise<void> {
    await this.machine.manage('set_link', { name: `card${cable}`, up: false });
  }

  async plug(cable: number): Promise<void> {
    await this.machine.manage('set_link', { name: `card${cable}`, up: true });
  }

  /**
   * The plug is pulled and put back: what it had in memory is lost. Resolves when it is up again, with no service started. By a
   * new QEMU, since one guest in four did not boot after QEMU's own reset.
   */
  async losePower(): Promise<void> {
    await this.machine.quit();
    const cards = this.cables.flatMap((cable, n) => [
      ...['-netdev', JSON.stringify(network(cable, n)), '-device', JSON.stringify(card(n))],
    ]);
    const args = [...kernelArgs(imageFolder()), ...diskArgs(join(this.folder, DISK)), ...cards];
    this.machine = await Machine.start({ folder: this.folder, memoryMiB: MEMORY_MIB, args });
    await this.#setUp();
  }

  /** The end of what the kernel said, for a failure's message. */
  get console(): string {
    return this.machine.console;
  }

  async stop(): Promise<void> {
    await this.machine.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Networks first: what is below 127 and no portal stays at home. */
  async #setUp(): Promise<void> {
    const cards = this.cables.map((cable, n) =>
      'tap' in cable
        ? `
        ip link set eth${n} up
        ip address add ${cable.address}/24 dev eth${n}`
        : `
        ip link set eth${n} up
        ip address add 10.0.${n + 2}.15/24 dev eth${n}
        echo 1 > /proc/sys/net/ipv4/conf/eth${n}/route_localnet
        ip route add ${cable.portal}/32 via 10.0.${n + 2}.2 dev eth${n} src 10.0.${n + 2}.15`,
    );
    // A card comes when its driver has it; a saved clock stands where it was saved.
    await this.machine.must(`set -e
      for ((n = 0; n < ${this.cables.length}; n++)); do until [ -e /sys/class/net/eth$n ]; do sleep 0.1; done; done
      date --set=@${Math.floor(Date.now() / 1_000)} > /dev/null
      ip link set lo up
      ip address replace 127.0.0.1/32 dev lo
      ip address delete 127.0.0.1/8 dev lo
      ${cards.join('\n')}
      echo InitiatorName=${this.iqn} > /etc/iscsi/initiatorname.iscsi`);
  }
}

/** In the words of QEMU's protocol, which its command line takes too. */
function network(cable: Cable, n: number): object {
  const id = `net${n}`;
  return 'tap' in cable
    ? { type: 'tap', id, ifname: cable.tap, script: 'no', downscript: 'no' }
    : { type: 'user', id, net: `10.0.${n + 2}.0/24`, host: `10.0.${n + 2}.2` };
}

const card = (n: number): object => ({ driver: 'virtio-net-pci', netdev: `net${n}`, id: `card${n}`, romfile: '' });

function imageFolder(): string {
  const { guest } = parts();
  if (!guest) throw new Error('this test needs the guest of the run');
  return guest.folder;
}

const isFree = (address: string): Promise<boolean> =>
  new Promise(resolve => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(ISCSI_PORT, address, () => server.close(() => resolve(true)));
  });
