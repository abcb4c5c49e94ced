import { existsSync, readFileSync } from 'node:fs';
import type { Config } from '#platform/config/config';
import { loadKeyring } from '#platform/crypto/kek';
import { SecretBox } from '#platform/crypto/secrets';
import { findApi, knowsApi } from '../api/api-address.js';
import { ApiClient } from '../api/api-client.js';
import { settings } from '../environment.js';
import { Home } from '../home.js';
import { isDatabaseAddress } from '../operator.js';
import { livingState, type State } from '../state.js';
import { readEnvironmentFile } from '../supervisor/apps.js';
import { tgtFolders } from '../tgt-processes.js';
import { each, type Finding, fail, findings, warn } from './check.js';
import { checkDisk, checkHome, checkHost, checkKeyFile } from './host.js';
import { configOf } from './settings.js';

/** Everything that can be looked at from here: the home that runs, or what the environment of a container names. */
export async function examine(): Promise<Finding[]> {
  const home = Home.find();
  const state = home && livingState(home);
  const given = settings();
  const onlySettings = state === undefined && Object.keys(given).some(isDatabaseAddress);
  const disk = checkDisk(home?.path ?? Home.locate(), !onlySettings);
  const { clockFinding, clockState } = await import('./clock.js');
  const found = [...checkHost(), disk, clockFinding(clockState())];
  if (home === undefined || state === undefined) {
    if (onlySettings) return [...found, ...(await checkSettings(given))];
    // `up` would end with just that.
    if (home === undefined && disk.name === 'home') return found;
    const say = home === undefined ? `there is no home at ${Home.locate()}` : `${home.path} is down`;
    found.push(warn('appliance', say, './trivet up --detach'));
    if (home === undefined) return found;
    const { checkStopped } = await import('./stopped.js');
    return [...found, ...(await each([checkStopped(home, given), leftovers(home, undefined)]))];
  }
  // It is written once the parts run.
  const kept = existsSync(home.environmentFile) ? readEnvironmentFile(readFileSync(home.environmentFile, 'utf8')) : {};
  return [...found, ...(await each([checkAppliance(home, state, { ...kept, ...given }), leftovers(home, state)]))];
}

async function leftovers(home: Home, state: State | undefined): Promise<Finding[]> {
  const { checkLeftovers } = await import('./leftovers.js');
  return checkLeftovers(home, state);
}

/** A container, or a unit of systemd: no supervisor of ours, only settings. */
async function checkSettings(given: Readonly<Record<string, string>>): Promise<Finding[]> {
  const config = configOf(given, ['TRIVET_DATABASE_URL']);
  return Array.isArray(config) ? config : checkParts(config);
}

async function checkAppliance(home: Home, state: State, env: Readonly<Record<string, string>>): Promise<Finding[]> {
  const found = checkHome(home);
  for (const { part, reason, remedy } of state.skipped) found.push(warn(part, reason, remedy));
  for (const { name, state: how, restarts, reason } of state.processes) {
    const detail = `${how}, ${restarts} restarts${reason === undefined ? '' : `; ${reason.split('\n')[0]}`}`;
    if (how !== 'running') found.push(fail(name, detail, `see ${home.log(name)}`));
    else if (restarts > 3) found.push(warn(name, detail, `see ${home.log(name)}`));
  }
  const config = configOf(env);
  if (Array.isArray(config)) return [...found, ...config];
  found.push(...(await checkParts(config, !state.partsOnly)));
  if (state.partsOnly) return found;
  const { checkReady } = await import('./parts.js');
  const checks = [
    checkReady('gateway', env.TRIVET_HTTP_LISTEN ?? ''),
    checkReady('worker', env.TRIVET_WORKER_METRICS_LISTEN ?? ''),
  ];
  const tls = env.TRIVET_HTTPS_LISTEN;
  if (tls && tls !== 'none') {
    const { checkCertificate } = await import('./certificate.js');
    checks.push(checkCertificate(tls, config.TRIVET_TLS_CERT_FILE !== undefined));
  }
  if (config.TRIVET_POOLS) {
    const [{ checkBlockTools, hasImage }, { checkTgt }] = await Promise.all([import('./block.js'), import('./tgt.js')]);
    const portals = (config.TRIVET_ISCSI_PORTALS ?? []).map(({ portal }) => portal);
    found.push(...checkBlockTools({ image: hasImage(home.path), exported: portals.length > 0 }));
    checks.push(checkTgt(tgtFolders(home, env), portals));
  }
  return [...found, ...(await each(checks))];
}

/** What settings lead to. @param doors gateway and worker are to run here */
async function checkParts(config: Config, doors = true): Promise<Finding[]> {
  const [{ checkObjectStore, checkPostgres, checkRedis }, database, { checkSocket }] = await Promise.all([
    import('./parts.js'),
    import('./database.js'),
    import('./sockets.js'),
  ]);
  const checks: Promise<Finding[]>[] = [];
  const { TRIVET_DATABASE_URL: url, TRIVET_DATABASE_ENGINE_URL: engine, TRIVET_KEK_FILE: kek } = config;
  if (kek !== undefined) checks.push(checkKeyFile(kek));
  if (url !== undefined) {
    checks.push(checkPostgres(url), database.checkSchema(url));
    const secrets = kek === undefined ? undefined : boxOf(kek);
    if (secrets) checks.push(database.checkStoredSecrets(url, secrets));
    if (config.TRIVET_POOLS && doors) checks.push(import('./block.js').then(({ checkBlock }) => checkBlock(url)));
  }
  if (url !== undefined && config.TRIVET_DATABASE_STANDBYS > 0)
    checks.push(database.checkCommits(url, config.TRIVET_DATABASE_STANDBYS));
  if (engine !== undefined) checks.push(database.checkEngineRole(engine));
  if (engine !== undefined && doors) checks.push(database.checkKinds(engine));
  if (config.TRIVET_REDIS_URL) checks.push(checkRedis(config.TRIVET_REDIS_URL));
  for (const name of ['TRIVET_RGW_ENDPOINT', 'TRIVET_AZURE_ENDPOINT'] as const)
    if (config[name]) checks.push(checkObjectStore(config[name], name));
  if (doors) {
    if (config.COSI_ENDPOINT) checks.push(checkSocket('COSI socket', config.COSI_ENDPOINT, 'cosi'));
    if (config.TRIVET_CSI_ENDPOINT) checks.push(checkSocket('CSI socket', config.TRIVET_CSI_ENDPOINT, 'csi'));
    if (knowsApi({})) checks.push(askApi());
  }
  return each(checks);
}

/** Undefined: the check of the key file says why. */
function boxOf(kekFile: string): SecretBox | undefined {
  try {
    return new SecretBox(loadKeyring(kekFile));
  } catch {
    return undefined;
  }
}

const askApi = (): Promise<Finding[]> =>
  findings(
    'admin API',
    'TRIVET_ADMIN_URL and TRIVET_ADMIN_TOKEN_FILE say where it is, and with which token',
    async () => {
      const { checkThroughApi } = await import('./through-api.js');
      return checkThroughApi(new ApiClient(findApi({})));
    },
  );
