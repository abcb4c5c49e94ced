import { describe } from 'vitest';
import { describeKills } from '#test/block-backend/describe-kills';
import { xfsFolder } from '#test/block-backend/file-harness';

describeKills('in the temporary folder', () => undefined);
describe.skipIf(!xfsFolder())('XFS', () => describeKills('on XFS', xfsFolder));
