import { describeExtentHistory } from '#backends/conformance/extent-history.conformance';
import { describeExtentSource } from '#backends/conformance/extent-source.conformance';
import { extentHarness, HISTORIES } from '#test/block-backend/extent-harness';

const setup = () => extentHarness(undefined, 'compare');
describeExtentSource('copies in the temporary folder', setup);
describeExtentHistory('copies in the temporary folder', setup, HISTORIES);
