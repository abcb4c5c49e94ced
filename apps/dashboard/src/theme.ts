import { type CSSVariablesResolver, createTheme } from '@mantine/core';

/** Ten shades of a blue-green; the sixth on white and the third on black pass WCAG AA as text. */
const teal = [
  '#e4f6f8',
  '#c9eaee',
  '#9fd8df',
  '#6fc4ce',
  '#45b0bd',
  '#2494a2',
  '#1c7a86',
  '#14626c',
  '#0e4b53',
  '#08343a',
] as const;

export const theme = createTheme({
  colors: { teal: [...teal] },
  primaryColor: 'teal',
  primaryShade: { light: 7, dark: 7 },
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif',
  fontFamilyMonospace: 'ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace',
  defaultRadius: 'sm',
  cursorType: 'pointer',
  respectReducedMotion: true,
  headings: { fontWeight: '600' },
});

/** The library's own greys miss the contrast of WCAG AA in places. */
export const cssVariables: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    '--mantine-color-dimmed': '#4f5862',
    '--mantine-color-placeholder': '#646c75',
    '--mantine-color-error': '#b3191f',
    '--mantine-color-anchor': '#14626c',
  },
  dark: {
    '--mantine-color-dimmed': '#b4bac1',
    '--mantine-color-placeholder': '#9aa1a9',
    '--mantine-color-error': '#ff9c98',
    '--mantine-color-anchor': '#6fc4ce',
  },
});
