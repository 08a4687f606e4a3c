"""The allocator of the CPU."""

from .. import session
from . import plans

LIBRARY = "libxmem-planned-cpu.so"
# The library of PyTorch that allocates.
ALLOCATING = "libc10.so"


def install(torch):
    """Has PyTorch's allocator of the CPU call the library."""
    library = plans.open_library(torch, LIBRARY)
    if library.xmem_plan_install(ALLOCATING.encode()):
        session.note("this build of PyTorch allocates memory of the CPU in another way: no plan is followed")
        return
    plans.open_prepared()
