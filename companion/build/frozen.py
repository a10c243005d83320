"""The last import of a fork server (see `warm`): what is there now is nobody's garbage.

A collector that went through it in every fork would copy all of its memory, and double the time a
kernel needs to end.
"""

import gc

gc.collect()
gc.freeze()
