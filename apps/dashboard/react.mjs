// What the libraries of the page import as `react` (ADR 69): Preact, and the names that it does not have.
export * from 'preact/compat';
export { default } from 'preact/compat';

/** React's keeps what is hidden alive. Here it begins anew when it is shown: the component library hides by it what is closed. */
export const Activity = ({ mode, children }) => (mode === 'hidden' ? null : children);

/** Imported by the half of the router that keeps data, which is not in the page. */
export function useOptimistic() {
  throw new Error('useOptimistic is not there without React');
}
