import { describeBlockBackend } from '#backends/conformance/block-backend.conformance';
import { describeBlockCopies } from '#backends/conformance/block-copies.conformance';
import { fileHarness } from '#test/block-backend/file-harness';

const setup = () => fileHarness(undefined);
describeBlockBackend('reflink in the temporary folder', setup);
describeBlockCopies('reflink in the temporary folder', setup);
