/** The worker of production, with what tests need. */
import '#platform/process/require-node';
import '#test/entry/equip';
import '../../apps/worker/src/main.js';
