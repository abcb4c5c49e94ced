/** The more rights, the later. */
export const ROLES = ['viewer', 'operator', 'admin'] as const;
export type Role = (typeof ROLES)[number];

/** `a` has rights that `b` has not. */
export const exceeds = (a: Role, b: Role): boolean => ROLES.indexOf(a) > ROLES.indexOf(b);
