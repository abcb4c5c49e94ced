import { openOnFake } from '#test/cosi/appliance-target';
import { describeCosi } from '#test/cosi/describe-cosi';

describeCosi('the appliance on the fake store', openOnFake);
