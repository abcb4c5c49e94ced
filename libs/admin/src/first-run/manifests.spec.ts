import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { driverManifests, type ManifestValues } from '#admin/first-run/manifests';
import { PACKAGE_ROOT } from '#platform/package-root';

const KNOWN: ManifestValues = {
  tenant: 'acme',
  doors: {
    address: 'gw.example',
    http: 8740,
    https: 8743,
    clusters: 8747,
    path: 'csp',
    cosiDriver: 'cosi.trivet.dev',
  },
  backend: 'local',
  login: 'csp@acme',
  endpoint: { name: 'buckets', driverName: 'acme.cosi.example' },
};
/** A tenant at its beginning, on a gateway that nobody can reach. */
const UNKNOWN: ManifestValues = {
  tenant: 'acme',
  doors: { ...KNOWN.doors, address: undefined, https: undefined, clusters: undefined },
  backend: undefined,
  login: undefined,
  endpoint: undefined,
};

// biome-ignore lint/suspicious/noExplicitAny: YAML
type Document = any;

const find = (values: ManifestValues, name: string) => driverManifests(values).find(each => each.name === name)!;
const documentsOf = (values: ManifestValues, name: string): Document[] =>
  parseAllDocuments(find(values, name).yaml, { strict: true }).map(document => {
    expect(document.errors).toEqual([]);
    return document.toJS();
  });
const example: Document[] = parseAllDocuments(
  readFileSync(join(PACKAGE_ROOT, 'deploy', 'kubernetes', 'hpe-csi.example.yaml'), 'utf8'),
).map(document => document.toJS());
const ofKind = (documents: Document[], kind: string): Document => documents.find(each => each.kind === kind);

describe('what the HPE CSI driver reads', () => {
  it('is the shipped example with the values of this appliance, inside of its cluster', () => {
    const made = documentsOf(KNOWN, 'hpe-csi-inside');
    const claim = made.pop();
    const [secret] = made;
    expect(secret.stringData).toEqual({
      serviceName: 'trivet-csp.trivet.svc',
      servicePort: '8740',
      backend: 'local',
      username: 'csp@acme',
      password: '<password of csp@acme>',
    });
    expect(Object.keys(secret.stringData)).toEqual(Object.keys(example[0].stringData));
    expect(made.slice(2)).toEqual(example.slice(2));
    expect(made.map(({ kind, metadata }) => [kind, metadata])).toEqual(
      example.map(({ kind, metadata }) => [kind, metadata]),
    );
    expect(claim.spec.storageClassName).toBe(ofKind(made, 'StorageClass').metadata.name);
  });

  it('has the address instead of a service outside of it: the driver speaks HTTPS to `backend` then', () => {
    const [secret] = documentsOf(KNOWN, 'hpe-csi');
    expect(secret.stringData).toEqual({
      backend: 'gw.example',
      servicePort: '8743',
      path: '/csp',
      username: 'csp@acme',
      password: '<password of csp@acme>',
    });
    expect(documentsOf(KNOWN, 'hpe-csi').slice(1)).toEqual(documentsOf(KNOWN, 'hpe-csi-inside').slice(1));
  });

  it('names Secrets that are there, in every place', () => {
    const made = documentsOf(KNOWN, 'hpe-csi');
    const secrets = made.filter(({ kind }) => kind === 'Secret').map(({ metadata }) => metadata);
    const { parameters } = ofKind(made, 'StorageClass');
    const named = Object.entries(parameters as Record<string, string>).filter(([key]) => /secret-?name$/i.test(key));
    expect(named).toHaveLength(6);
    for (const [key, name] of named)
      expect(secrets).toContainEqual({ name, namespace: parameters[key.replace(/(n)ame$/i, '$1amespace')] });
  });
});

describe('what the chart and COSI read', () => {
  it('are values that the chart takes', () => {
    const schema = parse(readFileSync(join(PACKAGE_ROOT, 'deploy', 'helm', 'trivet', 'values.schema.json'), 'utf8'));
    const check = new Ajv({ strict: false }).compile(schema);
    check(parse(find(KNOWN, 'cosi-connector').yaml));
    expect(check.errors ?? []).toEqual([]);
    // A port that is still open is refused, and not installed.
    const ofDefault = { ...UNKNOWN, tenant: 'default' };
    check(parse(find(ofDefault, 'cosi-connector').yaml));
    expect(check.errors?.map(({ instancePath }) => instancePath)).toEqual(['/connector/gateways/0']);
    check(parse(find(UNKNOWN, 'cosi-connector').yaml));
    expect(check.errors?.map(({ instancePath }) => instancePath)).toEqual(['/cosi/driverName']);
    expect(parse(find(KNOWN, 'cosi-connector').yaml)).toMatchObject({
      gateway: { enabled: false },
      cosi: { driverName: 'acme.cosi.example' },
      connector: { enabled: true, gateways: ['gw.example:8747'], cosiEndpoint: 'buckets' },
    });
  });

  it('name the driver of the endpoint, and its kind of key as the sidecar knows it', () => {
    const [bucketClass, accessClass, claim] = documentsOf(KNOWN, 'cosi-classes');
    expect(bucketClass).toMatchObject({ driverName: 'acme.cosi.example', deletionPolicy: 'Delete' });
    expect(accessClass).toMatchObject({ driverName: 'acme.cosi.example', authenticationType: 'Key' });
    expect(claim.spec).toEqual({ bucketClassName: bucketClass.metadata.name, protocols: ['s3'] });
    const unnamed = { ...KNOWN, endpoint: { name: 'buckets', driverName: null } };
    expect(documentsOf(unnamed, 'cosi-classes')[0].driverName).toBe('cosi.trivet.dev');
  });

  it('name the driver of the appliance, which serves the tenant default, to no other tenant', () => {
    expect(documentsOf(UNKNOWN, 'cosi-classes')[0].driverName).toBe('<driver name>');
    expect(find(UNKNOWN, 'cosi-classes').open).toEqual([
      expect.stringMatching(/^driver name: .*trivet endpoint create/),
    ]);
    expect(parse(find(UNKNOWN, 'cosi-connector').yaml).cosi.driverName).toBe('<driver name>');
    const ofDefault = { ...UNKNOWN, tenant: 'default' };
    expect(documentsOf(ofDefault, 'cosi-classes')[0].driverName).toBe('cosi.trivet.dev');
    expect(find(ofDefault, 'cosi-classes').open).toEqual([]);
  });

  it('write an address of IPv6 in brackets where a port follows', () => {
    const doors = { ...KNOWN.doors, address: '2001:db8::1' };
    expect(parse(find({ ...KNOWN, doors }, 'cosi-connector').yaml).connector.gateways).toEqual(['[2001:db8::1]:8747']);
    expect(documentsOf({ ...KNOWN, doors }, 'hpe-csi')[0].stringData.backend).toBe('[2001:db8::1]');
  });
});

describe('what is not known', () => {
  it('is no empty `backend`, which the driver refuses with every call', () => {
    expect(documentsOf(UNKNOWN, 'hpe-csi-inside')[0].stringData.backend).toBe('<backend>');
    expect(find(UNKNOWN, 'hpe-csi-inside').open[0]).toMatch(/^backend: acme has none/);
  });

  it('is what the chart has called its Service', () => {
    expect(find(KNOWN, 'hpe-csi-inside').open).toContainEqual(
      expect.stringMatching(/^trivet-csp\.trivet\.svc, .*NAME-csp\.NAMESPACE\.svc, port 8740/),
    );
  });

  it('stands in angle brackets, and each is explained', () => {
    for (const values of [KNOWN, UNKNOWN])
      for (const { name, yaml, open } of driverManifests(values)) {
        const brackets = new Set([...yaml.matchAll(/<([^<>]+)>/g)].map(([, what]) => what!));
        for (const what of brackets)
          expect(
            open.some(line => line.includes(what.replace(/^user>?@.*/, 'user'))),
            `${name}: ${what} in ${open.join('; ')}`,
          ).toBe(true);
      }
    expect(find(UNKNOWN, 'hpe-csi').open).toHaveLength(5);
    expect(find(KNOWN, 'hpe-csi').open).toHaveLength(2);
    expect(find(KNOWN, 'cosi-classes').open).toEqual([]);
  });

  it('is no way to write YAML: what names hold stays a text', () => {
    const values = { ...KNOWN, login: 'a"b: {c}@acme', backend: 'yes' };
    expect(documentsOf(values, 'hpe-csi-inside')[0].stringData).toMatchObject({
      username: 'a"b: {c}@acme',
      backend: 'yes',
    });
  });
});
