import type { DriverNode, DriverPublication } from '#test/csp/driver-client';
import { discovered, ISCSID_SETTINGS, MULTIPATH_CONF } from '#test/guest/node-plan';

import { type Guest, GuestError } from '#test/support/guest';
import { until } from '#test/support/parts';

/** The driver gives a device 31 seconds; an emulated host on a busy machine is slower than any node. */
const DEVICE_MS = 120_000;
const LOGIN_SECONDS = 90;

const append = (path: string, text: string): string =>
  `base64 -d >> ${path} <<< ${Buffer.from(`${text}\n`).toString('base64')}`;

export interface NodeDevice {
  serial: string;
  target: string;
  /** As the driver's `dmsetup` and `multipathd` name it, e.g. mpatha. */
  map: string;
  /** Below /dev. */
  dm: string;
  paths: NodePath[];
}

export interface DiskIdentity {
  vendor: string;
  product: string;
  /** The kernel's choice from page 0x83. */
  wwid: string;
  scsiId: string;
  udev: string;
  /** Page 0x80. */
  unit: string;
}

export interface NodePath {
  disk: string;
  hctl: string;
  /** As multipathd's checker sees it. */
  state: string;
  portal: string;
}

/** A guest in which the node part of HPE's driver works, as far as storage and kernel can see it (see node-plan.ts). */
export class HpeNode {
  private constructor(readonly guest: Guest) {}

  /** What the driver's start does to a fresh node, and the services of its distribution. `multipath`: its owner's part. */
  static async start(guest: Guest, multipath = ''): Promise<HpeNode> {
    const settings = Object.entries(ISCSID_SETTINGS).map(([name, value]) => `${name} = ${value}`);
    const names = Object.keys(ISCSID_SETTINGS).map(name => name.replace(/[.[\]]/g, '\\$&'));
    await guest.must(`set -e
      sed -i -E '/^(${names.join('|')}) =/d' /etc/iscsi/iscsid.conf
      ${append('/etc/iscsi/iscsid.conf', settings.join('\n'))}
      ${append('/etc/multipath.conf', MULTIPATH_CONF)}
      mkdir -p /etc/multipath/conf.d
      ${append('/etc/multipath/conf.d/own.conf', multipath)}`);
    const node = new HpeNode(guest);
    await node.startServices();
    return node;
  }

  async startServices(): Promise<void> {
    await this.guest.must('iscsid && multipathd');
    await until('multipathd answers', async () => {
      return (await this.guest.run('multipathd show daemon')).stdout.startsWith('pid');
    });
  }

  /** As it registers itself at the provider. */
  identity(uuid: string, chap: { user: string; password: string }): DriverNode {
    return {
      name: 'node',
      uuid,
      iqns: [this.guest.iqn],
      networks: ['10.0.2.15/24'],
      chap_user: chap.user,
      chap_password: chap.password,
    };
  }

  /** NodeStage up to the device: discovery, logins, and the multipath device with the volume's serial number. */
  async attach(publication: DriverPublication): Promise<NodeDevice> {
    await this.login(publication);
    return this.found(publication, paths => paths.length > 0);
  }

  /** The driver takes a device with its first path; the others follow. */
  allPaths(publication: DriverPublication): Promise<NodeDevice> {
    return this.found(publication, paths =>
      publication.discovery_ips.every(address => paths.some(({ portal }) => portal === address)),
    );
  }

  /**
   * linux/iscsi.go, loginToVolume: of one target name it asks the first portal that it reaches, of several all of them, and
   * logs into what they answer. What does not answer is passed over, unless it is the last one that was asked (PerformDiscovery).
   */
  async login({ discovery_ips, target_names, chap_user = '', chap_password = '' }: DriverPublication): Promise<void> {
    const reachable = await this.reachable(discovery_ips, target_names.length > 1);
    const asked = reachable.map(portal => `iscsiadm -m discovery -t st -p ${portal} -o new`);
    const answer = await this.guest.must(asked.join('; '));
    const targets = answer
      .split('\n')
      .flatMap(line => discovered(line) ?? [])
      .filter(({ target }) => target_names.includes(target));
    if (targets.length === 0) throw new GuestError(`no target that the driver takes among:\n${answer}`);
    const steps = targets.flatMap(({ target, address }) => {
      const node = `iscsiadm --mode node --targetname ${target} --portal ${address}`;
      const update = `${node} --op update -n node.session.auth`;
      return [`${update}.username -v '${chap_user}'`, `${update}.password -v '${chap_password}'`, `${node} --login`];
    });
    await this.guest.must(steps.join(' && '), LOGIN_SECONDS);
  }

  /** linux/device.go, GetLinuxDmDevices, by the map's uuid without its kind; undefined while no path of it is ready. */
  async device(serial: string, target: string): Promise<NodeDevice | undefined> {
    // Builtins of the shell: each process costs an emulated host a tenth of a second that it needs to find the device.
    // udev names a map after the kernel has it: seen missing for a mount right after a start.
    const { stdout } = await this.guest.run(`
      multipathd show paths format 'path %w %d %i %t %o %T'
      for map in /sys/block/dm-*/dm; do
        read -r name < $map/name && read -r uuid < $map/uuid && [ -e /dev/mapper/$name ] && echo "map $name \${map//[^0-9]/} $uuid"
      done
      for session in /sys/class/iscsi_session/session*; do
        read -r address < $(echo $session/device/connection*/iscsi_connection/*/persistent_address)
        for disk in $session/device/target*/*/block/*; do echo "disk \${disk##*/} $address"; done
      done 2> /dev/null`);
    const rows = stdout.split('\n').map(line => line.trim().split(/\s+/));
    const portals = new Map(
      rows.filter(([kind]) => kind === 'disk').map(([, disk = '', portal = '']) => [disk, portal]),
    );
    for (const [kind, map = '', minor = '', uuid = ''] of rows) {
      // `mpath-` and one digit for the kind of identifier stand before the serial number.
      const wwid = uuid.replace(/^mpath-/, '');
      if (kind !== 'map' || wwid.slice(1).toLowerCase() !== serial.toLowerCase()) continue;
      const paths = rows
        .filter(([path, of]) => path === 'path' && of === wwid)
        .map(([, , disk = '', hctl = '', , , state = '']) => ({ disk, hctl, state, portal: portals.get(disk) ?? '' }));
      if (paths.some(({ state }) => state === 'ready')) return { serial, target, map, dm: `dm-${minor}`, paths };
    }
    return undefined;
  }

  /** What each path says of itself, as kernel, udev, multipath and driver ask it. */
  async identities({ paths }: NodeDevice): Promise<DiskIdentity[]> {
    return Promise.all(
      paths.map(async ({ disk }) => {
        // sgio/sgio_linux.go, GetDeviceSerial: 32 characters behind the page's head.
        const text = await this.guest.must(`cd /sys/block/${disk}/device
          cat vendor model wwid
          /lib/udev/scsi_id --whitelisted --device=/dev/${disk}
          udevadm info --query=property --property=ID_SERIAL --value /dev/${disk}
          sg_inq --page=0x80 --raw /dev/${disk} | tail -c +5 | head -c 32`);
        const [vendor = '', product = '', wwid = '', scsiId = '', udev = '', unit = ''] = text
          .split('\n')
          .map(line => line.trimEnd());
        return { vendor, product, wwid, scsiId, udev, unit };
      }),
    );
  }

  async mount({ map }: NodeDevice, type: 'xfs' | 'ext4', at: string): Promise<void> {
    await this.guest.must(`mkdir -p ${at} && mount -t ${type} /dev/mapper/${map} ${at}`);
  }

  async format({ map }: NodeDevice, type: 'xfs' | 'ext4'): Promise<void> {
    await this.guest.must(`mkfs.${type} -q /dev/mapper/${map}`);
  }

  /** linux/device.go, ExpandDevice, after the volume has grown. */
  async expand({ map }: NodeDevice, type: 'xfs' | 'ext4', at: string): Promise<void> {
    await this.guest.must('rescan-scsi-bus.sh -s -m', 240);
    const answer = await this.guest.must(`multipathd resize map ${map}`);
    if (!answer.includes('ok')) throw new GuestError(`multipathd resize map ${map}: ${answer}`);
    await this.guest.must(type === 'xfs' ? `xfs_growfs ${at}` : `resize2fs /dev/mapper/${map}`);
  }

  /** NodeUnstage: the map first, then a logout at each portal, since the target is the volume's own. */
  async detach({ map, target, paths }: NodeDevice, at?: string): Promise<void> {
    if (at !== undefined) await this.guest.must(`umount ${at}`);
    await this.guest.must(`dmsetup message ${map} 0 fail_if_no_path && dmsetup remove --force ${map}`);
    for (const portal of new Set(paths.map(path => path.portal))) {
      const node = `iscsiadm --mode node -p ${portal} -T ${target}`;
      await this.guest.must(`${node} -u && ${node} -o delete`);
    }
  }

  /** How often the kernel lost a connection of one of its paths. */
  async brokenConnections({ paths }: NodeDevice): Promise<number> {
    const hosts = paths.map(({ hctl }) => hctl.split(':')[0]).join(' ');
    const count = await this.guest.must(`
      for host in ${hosts}; do
        for session in /sys/class/iscsi_host/host$host/device/session*; do
          dmesg | grep "connection\${session##*/session}:0: detected conn error"
        done
      done | wc -l`);
    return Number(count);
  }

  /** Somebody who writes a block and waits for it, over and over, past every cache. */
  async startWriter(at: string): Promise<NodeWriter> {
    const log = `/run/writer-${at.replaceAll('/', '-')}`;
    const dd = `dd if=/dev/urandom of=${at}/written bs=4k count=1 seek=$((n % 64)) oflag=direct conv=notrunc`;
    const script = `for ((n = 1; ; n++)); do
        [ ! -e ${log}.stop ] || { echo stopped; exit; }
        ${dd} 2>> ${log}.errors || { echo failed; exit; }
        echo $n
      done`;
    await this.guest.must(`rm -f ${log}*
      ${append(`${log}.sh`, script)}
      : > ${log}
      setsid bash ${log}.sh > ${log} 2>&1 < /dev/null &`);
    return new NodeWriter(this.guest, log);
  }

  /** Polls until the paths that are ready suffice. */
  private async found(
    { serial_number, target_names }: DriverPublication,
    suffice: (ready: NodePath[]) => boolean,
  ): Promise<NodeDevice> {
    const looks = until(
      `the paths to ${serial_number}`,
      async () => {
        const device = await this.device(serial_number, target_names[0]!);
        return device && suffice(device.paths.filter(({ state }) => state === 'ready')) ? device : undefined;
      },
      DEVICE_MS,
    );
    return looks.catch(async error => {
      const state = await this.guest.run('iscsiadm -m session -P 1; dmsetup ls; multipathd show paths; dmesg | tail');
      throw new GuestError(`${(error as Error).message}\n${state.stdout}${state.stderr}`);
    });
  }

  /** linux/iscsi.go, isReachable, at the port that it always takes. Its ping is answered by whatever host refuses a connection. */
  private async reachable(addresses: readonly string[], wantsAll: boolean): Promise<string[]> {
    const found: string[] = [];
    for (const address of addresses) {
      if (found.length > 0 && !wantsAll) break;
      const { code, stderr } = await this.guest.run(`timeout 5 bash -c '< /dev/tcp/${address}/3260'`);
      if (code === 0 || stderr.includes('Connection refused')) found.push(address);
    }
    if (found.length === 0) throw new GuestError(`no reachable discovery ip among ${addresses.join(', ')}`);
    return found;
  }
}

export class NodeWriter {
  constructor(
    private readonly guest: Guest,
    private readonly log: string,
  ) {}

  /** How many writes have come back, and how it ended. */
  async progress(): Promise<{ count: number; end: 'failed' | 'stopped' | undefined }> {
    const lines = (await this.guest.must(`cat ${this.log}`)).split('\n').filter(line => line !== '');
    const last = lines.at(-1);
    const end = last === 'failed' || last === 'stopped' ? last : undefined;
    return { count: lines.length - (end ? 1 : 0), end };
  }

  /** Resolves when `more` writes have come back after this moment. Rejects when one failed. */
  async goesOn(more = 3, timeoutMs = 180_000): Promise<void> {
    const { count } = await this.progress();
    await until(
      `${more} writes more than ${count}`,
      async () => {
        const now = await this.progress();
        if (now.end === 'failed')
          throw new GuestError(`a write failed: ${await this.guest.must(`cat ${this.log}.errors`)}`);
        return now.count >= count + more;
      },
      timeoutMs,
    );
  }

  async stop(): Promise<void> {
    await this.guest.must(`touch ${this.log}.stop`);
    await until('the writer ended', async () => (await this.progress()).end);
  }
}
