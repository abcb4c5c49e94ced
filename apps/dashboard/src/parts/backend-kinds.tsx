import { Fieldset, Stack, Text } from '@mantine/core';
import type { BackendKindReply } from '#admin/contract/backends';
import { useRead } from '../api/read';
import { SchemaFields } from './schema-fields';
import { membersOf } from './schema-form';

/** Where the body of a registration has them. */
export const CONFIG = '/config';
export const CREDENTIALS = '/credentials';

/** Those that the gateway knows, with the forms that it checks them by. */
export function useBackendKinds({ enabled = true } = {}): readonly BackendKindReply[] {
  return useRead('/backend-kinds', {}, { enabled }).data?.data.items ?? [];
}

/** `kept`: there are some, and they stay when nothing is filled in. */
export function CredentialFields({ kind: { credentials }, kept }: { kind: BackendKindReply; kept?: boolean }) {
  if (membersOf(credentials).length === 0) return null;
  return (
    <Fieldset legend={kept ? 'Other credentials' : 'Credentials'}>
      <Stack gap="xs">
        <Text size="sm" className="dimmed">
          {[credentials.description, `Sealed, and never shown again${kept ? '; empty: they stay' : ''}`]
            .filter(Boolean)
            .join('. ')}
          .
        </Text>
        <SchemaFields form={credentials} at={CREDENTIALS} optional={kept} />
      </Stack>
    </Fieldset>
  );
}
