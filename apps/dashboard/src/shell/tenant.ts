import { useParams } from 'react-router';
import { useMe } from '../api/me';

const KEY = 'trivet-tenant';

/** Of a page below /tenants/{tenant}. */
export function useTenant(): string {
  const { tenant } = useParams();
  if (tenant === undefined) throw new Error('this page belongs to a tenant');
  return tenant;
}

/** Whose resources the navigation leads to: that of the URL, else the last one, else one's own. */
export function useNavigationTenant(): string {
  const me = useMe();
  const { tenant } = useParams();
  if (!me.appliance) return me.tenant;
  if (tenant !== undefined) {
    remember(tenant);
    return tenant;
  }
  return remembered() ?? 'default';
}

function remember(tenant: string): void {
  try {
    localStorage.setItem(KEY, tenant);
  } catch {
    // A browser that keeps nothing: the URL says it anyway.
  }
}

function remembered(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}
