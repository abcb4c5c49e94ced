import { describe } from 'vitest';
import { describeCuts } from '#test/block-backend/describe-cuts';
import { xfsFolder } from '#test/block-backend/file-harness';

describeCuts('in the temporary folder', () => undefined);
describe.skipIf(!xfsFolder())('XFS', () => describeCuts('on XFS', xfsFolder));
