import { openOnRgw } from '#test/cosi/appliance-target';
import { describeCosi } from '#test/cosi/describe-cosi';

// What the store adds is the same in every dialect; the fake's run speaks all of them.
describeCosi('the appliance on a real RGW', openOnRgw, ['v1alpha1', 'r4']);
