/** The gateway of production, with what tests need. */
import '#platform/process/require-node';
import '#test/entry/equip';
import '../../apps/gateway/src/main.js';
