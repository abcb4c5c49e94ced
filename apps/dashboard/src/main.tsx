import '@mantine/core/styles.css';
import './styles/colours.css';
import './styles/shell.css';
import './styles/parts.css';
import './styles/tables.css';
import './styles/pictures.css';
import './styles/narrow.css';
import { localStorageColorSchemeManager, MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { LoginProvider } from './api/me';
import { ApiProblem } from './api/problem';
import { Root } from './root';
import { cssVariables, theme } from './theme';

declare global {
  /** Where libraries that add style elements look for the nonce of the policy. */
  var __webpack_nonce__: string | undefined;
}
const nonce = document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce;
globalThis.__webpack_nonce__ = nonce;

const client = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 10_000,
      refetchOnWindowFocus: false,
      retry: (count, error) =>
        error instanceof ApiProblem && (error.code === 'unreachable' || error.problem.retryable) && count < 2,
    },
    mutations: { retry: false },
  },
});

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <MantineProvider
      theme={theme}
      cssVariablesResolver={cssVariables}
      defaultColorScheme="auto"
      colorSchemeManager={localStorageColorSchemeManager({ key: 'trivet-color-scheme' })}
      getStyleNonce={() => nonce ?? ''}
    >
      <QueryClientProvider client={client}>
        <LoginProvider>
          <Root />
        </LoginProvider>
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);
