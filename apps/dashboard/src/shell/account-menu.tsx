import { Menu, useMantineColorScheme } from '@mantine/core';
import type { ReactNode } from 'react';
import { Link } from 'react-router';
import { useLogin, useMe } from '../api/me';

const SCHEMES = [
  ['auto', 'Colours of the system'],
  ['light', 'Light'],
  ['dark', 'Dark'],
] as const;

/** Opened from its first moment: nobody asks for it before. */
export function AccountMenu({ children }: { children: ReactNode }) {
  const me = useMe();
  const { logout } = useLogin();
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  return (
    <Menu position="bottom-end" withinPortal defaultOpened>
      <Menu.Target>{children}</Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          {me.username}, {me.role}
        </Menu.Label>
        <Menu.Item component={Link} to="/account">
          Password and account
        </Menu.Item>
        <Menu.Item component="a" href="/docs">
          Reference of the API
        </Menu.Item>
        <Menu.Divider />
        {SCHEMES.map(([scheme, label]) => (
          <Menu.Item key={scheme} onClick={() => setColorScheme(scheme)}>
            {colorScheme === scheme ? '✓ ' : ''}
            {label}
          </Menu.Item>
        ))}
        <Menu.Divider />
        <Menu.Item onClick={() => void logout()}>Log out</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
