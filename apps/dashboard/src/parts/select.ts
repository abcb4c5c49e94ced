/** A script of its own. */
export { Select } from '@mantine/core';
