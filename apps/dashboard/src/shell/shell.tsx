import { AppShell, Burger, Button, Menu, useMantineColorScheme } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useEffect, useRef } from 'react';
import { Link, Outlet, useLocation } from 'react-router';
import { useLogin, useMe } from '../api/me';
import { LiveControl } from './live-control';
import { Navigation } from './navigation';
import { Search } from './search';

export function Shell() {
  const [opened, { toggle, close }] = useDisclosure(false);
  const { pathname } = useLocation();
  const first = useRef(true);
  useEffect(() => {
    void pathname;
    // Whoever walks by keyboard or listens begins at the top of the new page.
    if (!first.current) document.querySelector<HTMLElement>('main')?.focus({ preventScroll: true });
    first.current = false;
    window.scrollTo(0, 0);
  }, [pathname]);
  const burger = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (!opened) return;
    const leave = ({ key }: KeyboardEvent): void => {
      if (key !== 'Escape') return;
      close();
      burger.current?.focus();
    };
    document.addEventListener('keydown', leave);
    return () => document.removeEventListener('keydown', leave);
  }, [opened, close]);
  return (
    <AppShell
      header={{ height: 52 }}
      navbar={{ width: 232, breakpoint: 'sm', collapsed: { mobile: !opened } }}
      padding="md"
    >
      <a className="skip-link" href="#main">
        Skip to the content
      </a>
      <AppShell.Header className="app-header">
        <div className="header-line">
          <Burger
            ref={burger}
            opened={opened}
            onClick={toggle}
            hiddenFrom="sm"
            size="sm"
            aria-label={opened ? 'Close the navigation' : 'Open the navigation'}
            aria-expanded={opened}
          />
          <Link to="/" className="brand">
            <img src="/favicon.svg" alt="Trivet" width={22} height={22} />
            <span className="hide-narrow" aria-hidden="true">
              Trivet
            </span>
          </Link>
          <span className="header-space" />
          <Search />
          <LiveControl />
          <AccountMenu />
        </div>
      </AppShell.Header>
      <AppShell.Navbar className="app-navigation">
        <AppShell.Section grow className="navigation-scroll">
          <Navigation onGo={close} />
        </AppShell.Section>
      </AppShell.Navbar>
      <AppShell.Main id="main" tabIndex={-1}>
        {/* Another path is another page: no dialog of the old one, with what was typed there, lives on in it. */}
        <Outlet key={pathname} />
      </AppShell.Main>
    </AppShell>
  );
}

const SCHEMES = [
  ['auto', 'Colours of the system'],
  ['light', 'Light'],
  ['dark', 'Dark'],
] as const;

function AccountMenu() {
  const me = useMe();
  const { logout } = useLogin();
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  return (
    <Menu position="bottom-end" withinPortal>
      <Menu.Target>
        <Button variant="default" size="compact-sm" aria-label={`Account ${me.username}`}>
          <span className="hide-narrow">{me.username}</span>
          <span aria-hidden="true">&nbsp;☰</span>
        </Button>
      </Menu.Target>
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
