import { Burger } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useEffect, useRef } from 'react';
import { Link, Outlet, useLocation } from 'react-router';
import { FailedPage } from '../pages/not-found';
import { Caught } from '../parts/caught';
import { AccountButton } from './account-button';
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
    <>
      <a className="skip-link" href="#main">
        Skip to the content
      </a>
      <header className="app-header">
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
          <AccountButton />
        </div>
      </header>
      <div className={`app-navigation navigation-scroll ${opened ? 'is-opened' : ''}`}>
        <Navigation onGo={close} />
      </div>
      <main id="main" className="app-main" tabIndex={-1}>
        {/* Another path is another page: no dialog of the old one, with what was typed there, lives on in it. */}
        <Caught key={pathname} instead={error => <FailedPage error={error} />}>
          <Outlet />
        </Caught>
      </main>
    </>
  );
}
