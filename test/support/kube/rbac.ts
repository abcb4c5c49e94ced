import type { KubeObject } from '#test/support/kube/stored-objects';

export interface UserInfo {
  username: string;
  uid?: string;
  groups?: string[];
  extra?: Record<string, string[]>;
}

/** What somebody wants to do. */
export interface Attributes {
  verb: string;
  group: string;
  resource: string;
  subresource?: string;
  namespace?: string;
  name?: string;
}

interface Rule {
  apiGroups?: string[];
  resources?: string[];
  verbs: string[];
  resourceNames?: string[];
}
interface Subject {
  kind: string;
  name: string;
  namespace?: string;
}

/** The RBAC authorizer, over roles and bindings as manifests have them. */
export class Rbac {
  private readonly roles = new Map<string, Rule[]>();
  private readonly bindings: { namespace?: string; subjects: Subject[]; role: string }[] = [];

  /** Documents of other kinds count for nothing. `namespace`: of those that name none. */
  add(documents: readonly unknown[], namespace?: string): void {
    for (const each of documents as KubeObject[]) {
      const { kind, metadata } = each;
      const where = metadata?.namespace ?? namespace;
      if (kind === 'ClusterRole') this.roles.set(`ClusterRole ${metadata.name}`, each.rules as Rule[]);
      if (kind === 'Role') this.roles.set(`Role ${where}/${metadata.name}`, each.rules as Rule[]);
      if (kind !== 'ClusterRoleBinding' && kind !== 'RoleBinding') continue;
      const { kind: roleKind, name } = each.roleRef as { kind: string; name: string };
      const role = roleKind === 'Role' ? `Role ${where}/${name}` : `ClusterRole ${name}`;
      const subjects = each.subjects as Subject[];
      this.bindings.push(kind === 'RoleBinding' ? { namespace: where, subjects, role } : { subjects, role });
    }
  }

  remove(user: string): void {
    for (const binding of this.bindings)
      binding.subjects = binding.subjects.filter(subject => nameOf(subject) !== user);
  }

  allows(user: UserInfo, asked: Attributes): boolean {
    if (user.groups?.includes('system:masters')) return true;
    return this.bindings.some(
      ({ namespace, subjects, role }) =>
        (namespace === undefined || namespace === asked.namespace) &&
        subjects.some(subject => isSubject(subject, user)) &&
        (this.roles.get(role) ?? []).some(rule => covers(rule, asked)),
    );
  }
}

const nameOf = ({ kind, name, namespace }: Subject): string =>
  kind === 'ServiceAccount' ? `system:serviceaccount:${namespace}:${name}` : name;

const isSubject = (subject: Subject, { username, groups }: UserInfo): boolean =>
  subject.kind === 'Group' ? (groups?.includes(subject.name) ?? false) : nameOf(subject) === username;

function covers({ apiGroups, resources, verbs, resourceNames }: Rule, asked: Attributes): boolean {
  const has = (list: string[] | undefined, value: string) => list?.includes('*') || list?.includes(value);
  const resource = asked.subresource ? `${asked.resource}/${asked.subresource}` : asked.resource;
  if (!has(verbs, asked.verb) || !has(apiGroups, asked.group) || !has(resources, resource)) return false;
  return !resourceNames?.length || (asked.name !== undefined && resourceNames.includes(asked.name));
}
