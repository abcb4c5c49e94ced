import { join } from 'node:path';
import type { ServiceDefinition } from '@grpc/grpc-js';
import { loadSync, type PackageDefinition } from '@grpc/proto-loader';
import { compileWireCheck } from '#cosi/wire-check';
import { PACKAGE_ROOT } from '#platform/package-root';

export const V1ALPHA1 = 'cosi.v1alpha1';
export const V1ALPHA2 = 'sigs.k8s.io.cosi.v1alpha2';

/** Stands in for a request whose bytes are no message of its type. */
export class MalformedRequest {
  constructor(readonly reason: string) {}
}

/** Loaded one by one: their option extensions have the same numbers and cannot share a root. Enums stay numbers. */
const load = (file: string): PackageDefinition =>
  loadSync(join(PACKAGE_ROOT, 'proto', 'cosi', file), { defaults: true, oneofs: true });

/**
 * The services of both packages by full name. A request that does not parse reaches its method as MalformedRequest:
 * left to grpc-js it would be answered INTERNAL, which sidecars repeat for ever.
 */
function loadServices(): ReadonlyMap<string, ServiceDefinition> {
  const services = new Map<string, ServiceDefinition>();
  for (const [pkg, file] of [
    [V1ALPHA1, 'v1alpha1/cosi.proto'],
    [V1ALPHA2, 'v1alpha2/cosi.proto'],
  ] as const) {
    const definitions = load(file);
    for (const service of ['Identity', 'Provisioner']) {
      const name = `${pkg}.${service}`;
      services.set(name, strict(definitions, pkg, definitions[name] as ServiceDefinition));
    }
  }
  return services;
}

function strict(definitions: PackageDefinition, pkg: string, service: ServiceDefinition): ServiceDefinition {
  const methods = Object.entries(service).map(([name, method]) => {
    const check = compileWireCheck(definitions, pkg, `${name}Request`);
    const { requestDeserialize } = method;
    const deserialize = (bytes: Buffer): object => {
      const fault = check(bytes);
      if (fault !== undefined) return new MalformedRequest(fault);
      try {
        return requestDeserialize(bytes) as object;
      } catch (error) {
        return new MalformedRequest((error as Error).message);
      }
    };
    return [name, { ...method, requestDeserialize: deserialize }];
  });
  return Object.fromEntries(methods) as ServiceDefinition;
}

export const COSI_SERVICES = loadServices();
