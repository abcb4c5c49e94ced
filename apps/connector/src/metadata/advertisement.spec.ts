import 'reflect-metadata';
import { randomUUID, webcrypto, X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import * as x509 from '@peculiar/x509';
import { afterAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { listenTls, type TlsListener } from '#protocol/tls-listener';
import { DRIVER, log, OWN_NAMESPACE, SessionCluster } from '#test/support/kube/session-cluster';
import { certificatesIn, isTrusted } from '../kube/ca-bundle.js';
import { DoorKeys } from '../kube/door-keys.js';
import type { KeyFile } from '../kube/key-files.js';
import type { KubeClient } from '../kube/kube-client.js';
import { ShownPair } from '../kube/shown-pair.js';
import { CONFIGURATIONS } from '../sessions/resources.js';
import { Advertisement, KEEPER_LABEL, METADATA_SERVICES, RETIRING_ANNOTATION } from './advertisement.js';

/** What the cluster is told of the door, kept so, while its authority changes. */
vi.setConfig({ testTimeout: 60_000, hookTimeout: 90_000 });
const CURVE = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const OVERLAP_MS = 600_000;
const MINUTE = 60_000;
const ADDRESS = 'localhost:8745';
const AUDIENCE = 'trivet-snapshot-metadata';

interface Told {
  metadata: { labels?: Record<string, string>; annotations?: Record<string, string>; resourceVersion: string };
  spec: { address: string; audience?: string; caCert: string };
}

let cluster: SessionCluster | undefined;
let kube: KubeClient;
let clock: number;
beforeEach(async () => {
  await cluster?.close();
  cluster = await SessionCluster.start({ hasCommunity: true });
  kube = Object.assign(await cluster.client('sidecar'), { namespace: OWN_NAMESPACE });
  clock = Date.now();
  vi.spyOn(kube, 'now').mockImplementation(() => clock);
});
afterAll(() => cluster?.close());

/** Of an authority of its own, as a cluster's issuer makes them. */
async function pairOf(): Promise<KeyFile> {
  const keysOf = () => webcrypto.subtle.generateKey(CURVE, true, ['sign', 'verify']);
  const [authority, own] = [await keysOf(), await keysOf()];
  const validity = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 30 * 24 * 3_600_000) };
  const issuer = `CN=authority ${randomUUID()}`;
  const ca = await x509.X509CertificateGenerator.createSelfSigned({
    ...validity,
    name: issuer,
    keys: authority,
    signingAlgorithm: CURVE,
    extensions: [new x509.BasicConstraintsExtension(true, 0, true)],
  });
  const cert = await x509.X509CertificateGenerator.create({
    ...validity,
    subject: 'CN=door',
    issuer,
    publicKey: own.publicKey,
    signingKey: authority.privateKey,
    signingAlgorithm: CURVE,
    extensions: [new x509.SubjectAlternativeNameExtension([{ type: 'dns', value: 'localhost' }])],
  });
  const key = x509.PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', own.privateKey), 'PRIVATE KEY');
  return { cert: `${cert.toString('pem')}\n`, key, ca: `${ca.toString('pem')}\n` };
}

const advertise = (keys: DoorKeys, audience: { audience?: string } = { audience: AUDIENCE }) =>
  new Advertisement({ kube, keys, driver: DRIVER, address: ADDRESS, ...audience, overlapMs: OVERLAP_MS, log });
const service = () => cluster!.admin.get<Told>(METADATA_SERVICES, { name: DRIVER });
const configuration = () => cluster!.admin.get<Told>(CONFIGURATIONS, { name: DRIVER });
const caOf = ({ spec }: Told): string => Buffer.from(spec.caCert, 'base64').toString();

describe('a SnapshotMetadataService', () => {
  it('has address, audience and authority, and is made again when it is gone or was changed', async () => {
    const pair = await pairOf();
    const advertisement = advertise(new DoorKeys(pair, OVERLAP_MS));
    expect(await advertisement.round()).toBe(true);
    const told = await service();
    expect(told.spec).toMatchObject({ address: ADDRESS, audience: AUDIENCE });
    expect(caOf(told)).toBe(pair.ca);
    await cluster!.admin.delete(METADATA_SERVICES, { name: DRIVER });
    await advertisement.round();
    expect((await service()).spec).toEqual(told.spec);
    const changed = await service();
    await cluster!.admin.replace(
      METADATA_SERVICES,
      { name: DRIVER },
      {
        ...changed,
        spec: { ...changed.spec, address: 'elsewhere:1', audience: 'another' },
      },
    );
    await advertisement.round();
    expect((await service()).spec).toEqual(told.spec);
    const { resourceVersion } = (await service()).metadata;
    await advertisement.round();
    expect((await service()).metadata.resourceVersion).toBe(resourceVersion);
  });

  it('is not there without an audience', async () => {
    expect(await advertise(new DoorKeys(await pairOf(), OVERLAP_MS), {}).round()).toBe(true);
    await expect(service()).rejects.toMatchObject({ code: 404 });
  });

  it('of somebody else is left alone, until it is handed over by its label', async () => {
    const spec = { address: 'sidecar.hpe-storage.svc:6443', audience: 'theirs', caCert: 'eA==' };
    const body = {
      apiVersion: METADATA_SERVICES.api,
      kind: 'SnapshotMetadataService',
      metadata: { name: DRIVER },
      spec,
    };
    await cluster!.admin.create(METADATA_SERVICES, {}, body);
    const warned = vi.spyOn(log, 'warn');
    const advertisement = advertise(new DoorKeys(await pairOf(), OVERLAP_MS));
    expect(await advertisement.round()).toBe(true);
    await advertisement.round();
    const theirs = await service();
    expect(theirs.spec).toMatchObject(spec);
    const said = warned.mock.calls.filter(([what]) => String((what as { why?: string }).why).includes('somebody else'));
    warned.mockRestore();
    expect(said).toHaveLength(1);
    const labels = { [KEEPER_LABEL]: 'trivet-connector' };
    await cluster!.admin.replace(
      METADATA_SERVICES,
      { name: DRIVER },
      {
        ...theirs,
        metadata: { ...theirs.metadata, labels },
      },
    );
    await advertisement.round();
    expect((await service()).spec).toMatchObject({ address: ADDRESS, audience: AUDIENCE });
  });

  it('whose kind the cluster does not know is done without', async () => {
    // Whom no role keeps from asking: the rights to it are given by the real name.
    kube = Object.assign(await cluster!.client('admin'), { namespace: OWN_NAMESPACE });
    const create = kube.create.bind(kube);
    const get = kube.get.bind(kube);
    vi.spyOn(kube, 'get').mockImplementation((resource, ...more) => get(unknown(resource), ...more) as never);
    vi.spyOn(kube, 'create').mockImplementation((resource, ...more) => create(unknown(resource), ...more) as never);
    expect(await advertise(new DoorKeys(await pairOf(), OVERLAP_MS)).round()).toBe(true);
    expect((await configuration()).spec.address).toBe(ADDRESS);
  });
});

const unknown = (resource: { api: string; plural: string }) =>
  resource.plural === METADATA_SERVICES.plural ? { ...resource, plural: 'unknowns' } : resource;

/** A reader that has read what it is told at some time, and goes by it. */
function reads(port: number, ca: string): Promise<boolean> {
  return new Promise(resolve => {
    const options = { host: '127.0.0.1', port, servername: 'localhost', ca, ALPNProtocols: ['h2'] };
    const socket = connect(options, () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

describe('another authority', () => {
  let listener: TlsListener;

  async function opened() {
    const first = await pairOf();
    const keys = new DoorKeys(first, OVERLAP_MS);
    listener = await listenTls(first, { host: '127.0.0.1', port: 0 }, connection => connection.on('error', () => {}));
    keys.onChange(pair => listener.server.setSecureContext(pair));
    const advertisement = advertise(keys);
    await advertisement.round();
    return { first, keys, advertisement };
  }

  it('leaves no reader out, whenever it has read what it goes by', async () => {
    const { first, keys, advertisement } = await opened();
    try {
      const second = await pairOf();
      // What was read when; each is kept for as long as a session lives, and tried in each minute.
      const known: { at: number; ca: string }[] = [];
      const shown = new Set<string>();
      for (let minute = 0; minute < 40; minute++) {
        if (minute === 5) keys.use(second, clock);
        await advertisement.round();
        known.push({ at: clock, ca: caOf(await service()) }, { at: clock, ca: caOf(await configuration()) });
        for (const { at, ca } of known)
          if (clock - at < OVERLAP_MS) expect(await reads(listener.port, ca), `minute ${minute}`).toBe(true);
        shown.add(keys.current.cert);
        clock += MINUTE;
      }
      expect([...shown]).toEqual([first.cert, second.cert]);
      // In the end nothing is left of the first one.
      const told = await service();
      expect(certificatesIn(caOf(told))).toHaveLength(1);
      expect(isTrusted(first.cert, caOf(told))).toBe(false);
      expect(told.metadata.annotations?.[RETIRING_ANNOTATION]).toBeUndefined();
    } finally {
      listener.release();
    }
  });

  it('that nobody can be told of waits, until the certificate of before is over', async () => {
    const { first, keys } = await opened();
    listener.release();
    const second = await pairOf();
    keys.use(second, clock);
    clock += 10 * OVERLAP_MS;
    keys.look(clock);
    expect(keys.current).toBe(first);
    keys.look(Date.parse(new X509Certificate(first.cert).validTo) - 30_000);
    expect(keys.current).toBe(second);
  });

  it('that was published before is shown at once, and so is a renewal', async () => {
    const [first, second] = [await pairOf(), await pairOf()];
    const both = `${first.ca}\n${second.ca}`;
    const keys = new DoorKeys({ ...first, ca: both }, OVERLAP_MS);
    keys.use({ ...second, ca: both }, clock);
    expect(keys.current.cert).toBe(second.cert);
  });

  it('waits across a restart, too, which goes on with the one that readers know', async () => {
    const [first, second] = [await pairOf(), await pairOf()];
    const home = mkdtempSync(join(tmpdir(), 'door-'));
    const started = (given: KeyFile) => new ShownPair(home, log).open(given, OVERLAP_MS, clock);
    try {
      expect(started(first).current).toEqual(first);
      const keys = started(second);
      expect(keys.current).toEqual(first);
      const advertisement = advertise(keys);
      await advertisement.round();
      for (const { cert } of [first, second]) expect(isTrusted(cert, caOf(await service()))).toBe(true);
      clock += OVERLAP_MS + 1_000;
      await advertisement.round();
      expect(keys.current).toEqual(second);
      // Readers know it now.
      expect(started(second).current).toEqual(second);
      expect(statSync(join(home, 'connector', 'door.json')).mode & 0o777).toBe(0o600);
      // One that nobody can read, or is over, is nothing to go on with.
      writeFileSync(join(home, 'connector', 'door.json'), '{');
      expect(started(first).current).toEqual(first);
      clock = Date.parse(new X509Certificate(first.cert).validTo);
      expect(started(second).current).toEqual(second);
    } finally {
      rmSync(home, { recursive: true });
    }
  });

  it('goes on being told of after a restart, as long as was said, with what another process has published', async () => {
    const [first, second, third] = [await pairOf(), await pairOf(), await pairOf()];
    await advertise(new DoorKeys(first, OVERLAP_MS)).round();
    await advertise(new DoorKeys(second, OVERLAP_MS)).round();
    clock += OVERLAP_MS / 2;
    await advertise(new DoorKeys(third, OVERLAP_MS)).round();
    expect(certificatesIn(caOf(await service()))).toHaveLength(3);
    clock += OVERLAP_MS / 2 + 1_000;
    const advertisement = advertise(new DoorKeys(third, OVERLAP_MS));
    await advertisement.round();
    // Each has a time of its own.
    expect(isTrusted(first.cert, caOf(await service()))).toBe(false);
    expect(isTrusted(second.cert, caOf(await service()))).toBe(true);
    clock += OVERLAP_MS / 2;
    await advertisement.round();
    expect(caOf(await service())).toBe(third.ca);
  });
});
