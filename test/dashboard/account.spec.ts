import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { AdminHouse } from '#test/admin/admin-house';
import { chromiumPath, DESK, type Look, PHONE, TestBrowser, type Visitor } from '#test/dashboard/browser';
import { startHouse } from '#test/dashboard/dashboard-house';
import { freePort } from '#test/support/free-port';
import { codeNow } from '#test/support/totp';

let house: AdminHouse;
let browser: TestBrowser;
let visitors: Visitor[] = [];
/** As browsers reach the gateway: a name, since a passkey is of a name. */
let origin: string;

describe.skipIf(!chromiumPath())('the account page', () => {
  beforeAll(async () => {
    const port = await freePort();
    origin = `http://localhost:${port}`;
    [house, browser] = await Promise.all([
      startHouse({ port, env: { TRIVET_PUBLIC_URL: origin } }),
      TestBrowser.launch(),
    ]);
  });
  afterEach(async () => {
    const done = visitors;
    visitors = [];
    for (const visitor of done) {
      expect(visitor.complaints).toEqual([]);
      await visitor.close();
    }
  });
  afterAll(async () => {
    await browser?.close();
    await house?.close();
  });

  const visit = async (look: Look = DESK): Promise<Visitor> => {
    const visitor = await browser.visit(origin, look);
    visitors.push(visitor);
    return visitor;
  };

  it('shows where one is logged in, and ends the login of another browser', async () => {
    const { viewer } = house.acme;
    const [here, there] = [await visit(PHONE), await visit()];
    await there.logIn(viewer);
    await here.logIn(viewer, '/account');
    const { page } = here;
    const rows = page.getByRole('table', { name: 'Logins' }).getByRole('row');
    await rows.filter({ hasText: 'this one' }).waitFor();
    expect(await here.barriers()).toEqual([]);
    await rows.filter({ hasNotText: 'this one' }).getByRole('button', { name: 'End' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'End' }).click();
    await page.getByText('The login has ended').waitFor();
    await rows.getByRole('button', { name: 'End' }).waitFor({ state: 'detached' });
    // By its events it learns that it is over.
    await there.page.getByText('Your login has ended').waitFor();
    await page.getByText('this one').waitFor();
  });

  it('adds an authenticator app, asks for its code, and takes it away again', async () => {
    const { username, password } = house.acme.operator;
    const visitor = await visit(PHONE);
    const { page } = visitor;
    await visitor.logIn({ username, password }, '/account');
    await page.getByRole('button', { name: 'Add an authenticator app' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('textbox', { name: 'Your password' }).fill(password);
    await dialog.getByRole('button', { name: 'Go on' }).click();
    await dialog.getByRole('img', { name: 'QR code for an authenticator app' }).waitFor();
    expect(await visitor.barriers()).toEqual([]);
    expect(await visitor.overflow()).toBe(0);
    const secret = (await dialog.locator('.copy code').textContent())!;
    await dialog.getByLabel('Code that the app shows').fill(codeNow(secret));
    await dialog.getByRole('button', { name: 'Ask for a code from now on' }).click();
    const shown = page.getByRole('dialog', { name: 'From now on a code is asked for' });
    await shown.getByRole('listitem').first().waitFor();
    const codes = await shown.getByRole('listitem').allTextContents();
    expect(codes).toHaveLength(10);
    expect(await visitor.barriers()).toEqual([]);
    await shown.getByRole('button', { name: 'Done' }).click();
    await page.getByText('asks for a code of your app').waitFor();

    const other = await visit();
    await other.page.goto('/account');
    await other.page.getByRole('textbox', { name: 'User' }).fill(username);
    await other.page.getByRole('textbox', { name: 'Password' }).fill(password);
    await other.page.getByRole('button', { name: 'Log in', exact: true }).click();
    const code = other.page.getByRole('textbox', { name: 'Code' });
    await code.waitFor();
    expect(await other.page.getByRole('alert').count()).toBe(0);
    expect(await other.barriers()).toEqual([]);
    await code.fill('000000');
    await other.page.getByRole('button', { name: 'Log in', exact: true }).click();
    await other.page.getByRole('alert').getByText('the code is wrong').waitFor();
    await code.fill(codes[0]!);
    await other.page.keyboard.press('Enter');
    await other.page.getByText('Password and recovery code').waitFor();

    await page.getByRole('button', { name: 'Remove it' }).click();
    await dialog.getByRole('textbox', { name: 'Your password' }).fill(password);
    await dialog.getByRole('textbox', { name: 'Code' }).fill(codes[1]!);
    await dialog.getByRole('button', { name: 'Remove it' }).click();
    await page.getByText('asks for nothing else').first().waitFor();
  });

  it('adds a passkey, logs in by it without password and code, and removes it', async () => {
    const { username, password } = house.acme.admin;
    const visitor = await visit();
    const { page } = visitor;
    const devtools = await visitor.context.newCDPSession(page);
    await devtools.send('WebAuthn.enable');
    const { authenticatorId } = await devtools.send('WebAuthn.addVirtualAuthenticator', {
      options: {
        protocol: 'ctap2',
        transport: 'internal',
        hasResidentKey: true,
        hasUserVerification: true,
        isUserVerified: true,
        automaticPresenceSimulation: true,
      },
    });
    await visitor.logIn({ username, password }, '/account');
    await page.getByRole('button', { name: 'Add a passkey' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('textbox', { name: 'Name' }).fill('desk');
    await dialog.getByRole('textbox', { name: 'Your password' }).fill(password);
    expect(await visitor.barriers()).toEqual([]);
    await dialog.getByRole('button', { name: 'Go on' }).click();
    const row = page.getByRole('table', { name: 'Passkeys' }).getByRole('row').filter({ hasText: 'desk' });
    await row.waitFor();
    const { credentials } = await devtools.send('WebAuthn.getCredentials', { authenticatorId });
    expect(credentials).toMatchObject([{ rpId: 'localhost', isResidentCredential: true }]);

    await page.getByRole('button', { name: `Account ${username}` }).click();
    await page.getByRole('menuitem', { name: 'Log out' }).click();
    const byPasskey = page.getByRole('button', { name: 'Log in with a passkey' });
    await byPasskey.waitFor();
    expect(await visitor.barriers()).toEqual([]);
    await byPasskey.click();
    await page.getByRole('button', { name: `Account ${username}` }).waitFor();
    await visitor.go('/account');
    await page.getByRole('table', { name: 'Logins' }).getByText('Passkey', { exact: true }).first().waitFor();

    await row.getByRole('button', { name: 'Remove' }).click();
    await dialog.getByRole('textbox', { name: 'Your password' }).fill(password);
    await dialog.getByRole('button', { name: 'Remove' }).click();
    await page.getByText('You have no passkey').waitFor();
    await page.getByRole('button', { name: `Account ${username}` }).click();
    await page.getByRole('menuitem', { name: 'Log out' }).click();
    await byPasskey.click();
    await page.getByRole('alert').getByText('this passkey opens nothing here').waitFor();
  });
});
