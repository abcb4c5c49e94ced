import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MIGRATIONS } from '#platform/migrations/all';
import { commandsOf } from '#test/support/deploy-readme';
import { Network } from '#test/support/network';
import { parts, until } from '#test/support/parts';
import { commitBefore } from '#test/upgrade/release-before';
import { rolesOf, statedScores } from './documented.js';
import { KeptVolume } from './kept-volume.js';
import { ReleaseTree } from './release-tree.js';
import { BEYOND_MS, controlGroups, type Service, SystemdHost } from './systemd-host.js';

const SERVICES: readonly Service[] = ['trivet-gateway', 'trivet-worker'];
const UNITS = [...SERVICES, 'trivet-migrate'] as const;
const PASSWORD = 'long enough for both';
const SECRETS: Readonly<Record<string, string>> = {
  'database-owner-url': 'postgresql://trivet_owner:owner-password@127.0.0.1:5432/trivet',
  'database-app-url': 'postgresql://trivet_app:app-password@127.0.0.1:5432/trivet',
  'database-engine-url': 'postgresql://trivet_engine:engine-password@127.0.0.1:5432/trivet',
  // No object store is there: nothing of what follows asks it.
  'rgw-access-key': 'an access key',
  'rgw-secret-key': 'a secret key',
  'csp-password': PASSWORD,
  'admin-password': PASSWORD,
};

/** What brings a release into /opt/trivet, and needs registries: it is run outside of the host. */
const brings = (command: string): boolean => /^(git|\.\/trivet)\b/.test(command);

const before = commitBefore();
const isAsked = Boolean(process.env.TRIVET_TEST_LONG && parts().debian && controlGroups());
if (isAsked && 'reason' in before) process.stderr.write(`systemd's units are not tested: ${before.reason}\n`);

/** In the order of a host's life. */
describe.runIf(isAsked && !('reason' in before)).each(['bookworm'])(
  'the units on a host of Debian %s',
  { timeout: 3_600_000 },
  debian => {
    const [installed, upgraded] = [commandsOf('systemd', 'git clone'), commandsOf('systemd', 'git pull')];
    let tree: ReleaseTree;
    let network: Network;
    let host: SystemdHost;
    let volume: KeptVolume;
    let address: string;
    let daemons: string[];

    beforeAll(async () => {
      tree = await ReleaseTree.open((before as { commit: string }).commit);
      await tree.install(installed.filter(brings));
      network = await Network.make();
      const at = await network.host('s', 50);
      address = at.address;
      host = await SystemdHost.boot({ release: debian, tree: tree.path, at });
      volume = new KeptVolume(`http://${address}:8740`, PASSWORD);
    }, 3_600_000);
    afterAll(async () => {
      await host?.stop();
      await network?.remove();
      tree?.remove();
    }, 300_000);

    const inRelease = (commands: readonly string[]) => host.must(['set -e', 'cd /opt/trivet', ...commands].join('\n'));
    const setting = (name: string, value: string) =>
      host.must(
        `sed -i 's|^#\\?${name}=.*|${name}=${value}|' /etc/trivet/trivet.env && grep -q '^${name}=${value}$' /etc/trivet/trivet.env`,
      );
    const daemonsOf = async () => (await host.processesOf('trivet-worker')).filter(line => line.endsWith(' tgtd'));
    const allReady = async () => {
      for (const service of SERVICES) await host.isReady(service);
    };
    const isTried = async (unit: string) => Number(await host.property(unit, 'NRestarts')) > 1;
    const migrations = async () =>
      Number(await host.must(`runuser -u postgres -- psql -At trivet -c 'SELECT count(*) FROM trivet.migration'`));

    it('are installed by the commands of deploy/README.md, and come up', async () => {
      process.stdout.write(`${await host.must('systemctl --version | head -n 1')}\n`);
      await until(
        'PostgreSQL answers',
        async () => {
          return (await host.run('runuser -u postgres -- psql -c "SELECT"')).code === 0;
        },
        BEYOND_MS,
      );
      await host.must(`runuser -u postgres -- psql --quiet --set ON_ERROR_STOP=1 <<'SQL'\n${rolesOf()}\nSQL`);
      await inRelease(installed.filter(command => !brings(command)));
      for (const [name, value] of Object.entries(SECRETS))
        await host.must(`umask 077 && echo '${value}' > /etc/trivet/${name}`);
      await setting('TRIVET_HTTP_LISTEN', '0.0.0.0:8740');
      await inRelease(commandsOf('systemd', 'systemctl enable --now'));
      await allReady();
      expect(await migrations()).toBeLessThan(MIGRATIONS.length);
    });

    it('serve block volumes', async () => {
      const commands = commandsOf('systemd', 'block-volumes.conf');
      await inRelease(commands);
      await setting('TRIVET_POOLS', 'default=/srv/trivet');
      await setting('TRIVET_ISCSI_PORTALS', `${address}:3260`);
      await inRelease(commandsOf('systemd', 'restart trivet-migrate trivet-worker'));
      await allReady();
      daemons = await until(
        'tgtd runs',
        async () => {
          const found = await daemonsOf();
          return found.length > 0 ? found : undefined;
        },
        BEYOND_MS,
      );
      await volume.leave();
    });

    it('are replaced by those of the next release, and its migrations run', async () => {
      const [stop, ...rest] = upgraded.filter(command => !brings(command));
      await inRelease([stop!]);
      await tree.upgrade(upgraded.filter(brings));
      await inRelease(rest);
      await allReady();
      expect(await migrations()).toBe(MIGRATIONS.length);
      expect(await host.must('ls /var/lib/trivet/upgrade-backups')).not.toBe('');
      // Sessions did not notice.
      expect(await daemonsOf()).toEqual(daemons);
      await volume.find();
    });

    it('go on while Trivet is backed up by the documented command', async () => {
      await host.must('mkdir /backup');
      // As the launcher starts it, which wants a Node of the host.
      const program = '/opt/trivet/node_modules/.trivet/node /opt/trivet/dist/programs/trivet.js';
      const backUp = commandsOf('systemd', 'appliance backup').join('\n');
      expect(await host.must(backUp.replace('/opt/trivet/trivet', program))).toMatch(/trivet-monday\.dump: \d+ rows/);
    });

    it('are as closed as deploy/README.md says', async () => {
      const { services, withVolumes } = statedScores();
      const said = await host.must(`systemd-analyze security --no-pager ${UNITS.join(' ')}`);
      const scores = [...said.matchAll(/Overall exposure level for (\S+)\.service: ([\d.]+)/g)];
      process.stdout.write(`${scores.map(([, unit, score]) => `${unit} ${score}`).join(', ')}\n`);
      expect(scores.map(([, unit]) => unit)).toEqual(UNITS);
      for (const [, unit, score] of scores)
        expect(Number(score), unit).toBeLessThanOrEqual(Number(unit === 'trivet-worker' ? withVolumes : services));
    });

    it.each(SERVICES)('start %s again when it is killed', async service => {
      const killed = await host.property(service, 'MainPID');
      const restarts = Number(await host.property(service, 'NRestarts'));
      await host.must(`kill -9 ${killed}`);
      await until(
        'another one runs',
        async () => !['0', killed].includes(await host.property(service, 'MainPID')),
        BEYOND_MS,
      );
      await host.isReady(service);
      expect(Number(await host.property(service, 'NRestarts'))).toBe(restarts + 1);
      expect(await daemonsOf()).toEqual(daemons);
      await volume.find();
    });

    it('wait at boot for a database that is late, and have lost nothing', async () => {
      await host.must('systemctl disable postgresql');
      const seconds = await host.reboot();
      process.stdout.write(`the shutdown took ${Math.round(seconds)} s\n`);
      // What ignores SIGTERM is killed after that many.
      expect(seconds).toBeLessThan(90);
      await until('migrations were tried', () => isTried('trivet-migrate'), BEYOND_MS);
      for (const service of SERVICES) {
        await until(
          `${service} waits`,
          () => host.says(service, 'the database is not ready, waiting for it'),
          BEYOND_MS,
        );
        expect(await host.readiness(service)).not.toBe(200);
      }
      await host.must('systemctl enable --now postgresql');
      await allReady();
      // Ready sooner: nothing was to be migrated.
      await until(
        'migrations ran',
        async () => (await host.property('trivet-migrate', 'ActiveState')) === 'active',
        BEYOND_MS,
      );
      await volume.find();
    });

    it('leave nothing that runs when they are stopped', async () => {
      for (const command of commandsOf('systemd', 'systemctl kill')) await host.must(command);
      await until('nothing runs', async () => {
        const left = await Promise.all(UNITS.map(unit => host.processesOf(unit)));
        return left.flat().length === 0;
      });
      const user = await host.must('id -u trivet');
      expect(await host.must(`grep -l '^Uid:.*\\b${user}\\b' /proc/[0-9]*/status 2> /dev/null || true`)).toBe('');
      expect(
        await host.must("ss -Hltn '( sport = 8740 or sport = 8743 or sport = 8745 or sport = 8746 or sport = 3260 )'"),
      ).toBe('');
      expect(await host.must('ls -d /run/trivet-cosi /run/trivet-endpoints 2> /dev/null || true')).toBe('');
    });
  },
);
