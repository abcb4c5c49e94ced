import { Button } from '@mantine/core';
import { type ComponentType, type ReactNode, useState } from 'react';
import { useMe } from '../api/me';
import { useSay } from '../parts/toasts';

/** Its menu comes with the script of menus, when somebody opens it. */
export function AccountButton() {
  const { username } = useMe();
  const say = useSay();
  const [Menu, setMenu] = useState<ComponentType<{ children: ReactNode }>>();
  const load = async (): Promise<void> => {
    try {
      const { AccountMenu } = await import('./account-menu');
      setMenu(() => AccountMenu);
    } catch {
      say('The menu did not load: the gateway was replaced by another release, or is away. Load the page anew.');
    }
  };
  const button = (
    <Button
      variant="default"
      size="compact-sm"
      aria-label={`Account ${username}`}
      aria-haspopup="menu"
      onClick={Menu ? undefined : () => void load()}
    >
      <span className="hide-narrow">{username}</span>
      <span aria-hidden="true">&nbsp;☰</span>
    </Button>
  );
  return Menu ? <Menu>{button}</Menu> : button;
}
