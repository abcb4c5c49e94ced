import { describe } from 'vitest';
import { describeExporter } from '#backends/conformance/exporter.conformance';
import { describeExporterLife } from '#backends/conformance/exporter-life.conformance';
import { hasTgt, openTgtHarness } from '#test/exporter/tgt-harness';

describe.skipIf(!hasTgt())('tgt', () => {
  describeExporter('tgt', () => openTgtHarness());
  describeExporterLife('tgt', () => openTgtHarness());
});
