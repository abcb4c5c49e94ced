import { existsSync } from 'node:fs';
import { join } from 'node:path';
import axe, { type AxeResults } from 'axe-core';
import { type Browser, type BrowserContext, chromium, type Locator, type Page } from 'playwright-core';
import { PACKAGE_ROOT } from '#platform/package-root';
import type { Person } from '#test/admin/admin-house';
import { CUT_OFF } from '#test/dashboard/cut-off';
import { parts } from '#test/support/parts';

export const chromiumPath = (): string | undefined => parts().chromium?.path;

export interface Look {
  width: number;
  height: number;
  scheme: 'light' | 'dark';
}

export const DESK: Look = { width: 1280, height: 860, scheme: 'light' };
export const DESK_DARK: Look = { ...DESK, scheme: 'dark' };
export const PHONE: Look = { width: 375, height: 780, scheme: 'light' };
export const PHONE_DARK: Look = { ...PHONE, scheme: 'dark' };

/** Waits in the browser end before the test does, so that it says what was missing. */
const PATIENCE_MS = 20_000;

const MOST_TABS = 120;

/** One Chromium of a test file. */
export class TestBrowser {
  private constructor(private readonly browser: Browser) {}

  static async launch(): Promise<TestBrowser> {
    if (!existsSync(join(PACKAGE_ROOT, 'dist', 'apps', 'dashboard', 'public', 'index.html')))
      throw new Error('the dashboard is not built: run ./trivet test, or npx vite build apps/dashboard');
    return new TestBrowser(await chromium.launch({ executablePath: chromiumPath()!, args: ['--no-sandbox'] }));
  }

  /** A browser profile of its own, nobody logged in. */
  async visit(baseURL: string, look: Look = DESK): Promise<Visitor> {
    const { width, height, scheme } = look;
    const context = await this.browser.newContext({
      baseURL,
      viewport: { width, height },
      colorScheme: scheme,
      reducedMotion: 'reduce',
      deviceScaleFactor: 1,
      timezoneId: 'UTC',
    });
    context.setDefaultTimeout(PATIENCE_MS);
    return new Visitor(context, await context.newPage());
  }

  async close(): Promise<void> {
    await this.browser.close();
  }
}

/** A person before the page. What the page complains of in the console is a failure of whatever test it was in. */
export class Visitor {
  readonly complaints: string[] = [];

  constructor(
    readonly context: BrowserContext,
    readonly page: Page,
  ) {
    page.on('pageerror', error => this.complaints.push(`${page.url()}: ${error.stack ?? error.message}`));
    page.on('console', message => {
      // Refused calls are noted by the browser; what the page makes of them is tested.
      if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
        this.complaints.push(`${page.url()}: ${message.text()}`);
    });
  }

  async logIn({ username, password }: Pick<Person, 'username' | 'password'>, path = '/'): Promise<void> {
    await this.page.goto(path);
    await this.page.getByRole('textbox', { name: 'User' }).fill(username);
    await this.page.getByRole('textbox', { name: 'Password' }).fill(password);
    await this.page.getByRole('button', { name: 'Log in', exact: true }).click();
    await this.page.getByRole('button', { name: `Account ${username}` }).waitFor();
  }

  /** Goes there, and waits until it shows what it read. */
  async go(path: string): Promise<void> {
    await this.page.goto(path);
    await this.settled();
  }

  async settled(): Promise<void> {
    await this.page.getByRole('heading', { level: 1 }).waitFor();
    const loading = this.page.getByRole('status', { name: 'Loading' });
    while ((await loading.count()) > 0) await loading.first().waitFor({ state: 'detached' });
  }

  /** The page as it is, in the other colours; changes of colour are over. */
  async wear(scheme: Look['scheme']): Promise<void> {
    await this.page.emulateMedia({ colorScheme: scheme });
    await this.page.locator(`html[data-mantine-color-scheme="${scheme}"]`).waitFor();
    await this.page.evaluate('Promise.all(document.getAnimations().map(one => one.finished.catch(() => {})))');
  }

  /** What axe finds and calls serious or critical, each with where it is. */
  async barriers(rule?: 'color-contrast' | 'link-in-text-block'): Promise<string[]> {
    if (!(await this.page.evaluate<boolean>('"axe" in window'))) await this.page.evaluate(axe.source);
    const rules = { 'link-in-text-block': { enabled: true } };
    const quick = { resultTypes: ['violations'], preload: false, rules };
    const options = rule === undefined ? quick : { ...quick, runOnly: [rule] };
    const { violations } = await this.page.evaluate<AxeResults>(`axe.run(document, ${JSON.stringify(options)})`);
    return violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .map(({ id, impact, nodes }) => {
        const at = nodes.map(({ html, failureSummary }) => `${html.slice(0, 200)} ${failureSummary}`);
        return `${impact} ${id} on ${this.page.url()}: ${at.join(' | ')}`;
      });
  }

  /** Links that stand among words, as axe has it. */
  async linksAmongWords(): Promise<string[]> {
    const options = { runOnly: ['link-in-text-block'], preload: false };
    const { passes, violations } = await this.page.evaluate<AxeResults>(
      `axe.run(document, ${JSON.stringify(options)})`,
    );
    return [...passes, ...violations].flatMap(({ nodes }) => nodes.map(({ html }) => html));
  }

  /** By how many pixels the page is wider than the window. */
  async overflow(): Promise<number> {
    return this.page.evaluate<number>('document.documentElement.scrollWidth - window.innerWidth');
  }

  /** Texts that are not seen whole. */
  async cutOff(): Promise<string[]> {
    return this.page.evaluate<string[]>(CUT_OFF);
  }

  /** As somebody without a mouse: by Tab from where the focus is, round the page once at most. */
  async reach(target: Locator): Promise<void> {
    await target.waitFor();
    for (let presses = 0; presses < MOST_TABS; presses++) {
      if (await target.evaluate(element => element === element.ownerDocument.activeElement)) return;
      await this.page.keyboard.press('Tab');
    }
    throw new Error(`Tab does not lead to ${target}`);
  }

  /** There, and does it. */
  async enter(target: Locator): Promise<void> {
    await this.reach(target);
    await this.page.keyboard.press('Enter');
  }

  async close(): Promise<void> {
    await this.context.close();
    if (this.complaints.length > 0) throw new Error(`the page complained:\n${this.complaints.join('\n')}`);
  }
}
