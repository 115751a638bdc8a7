"""numpy, imported at its first use, so that startup does not wait for it, and the types of its arrays."""

from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ids = NDArray[np.int64]
    Floats = NDArray[np.float64]
    Matrix = NDArray[np.float32]
    Bools = NDArray[np.bool_]
    Array = NDArray[Any]
else:
    Ids = Floats = Matrix = Bools = Array = Any

    class _Numpy(ModuleType):
        def __getattr__(self, name: str) -> Any:
            import numpy

            self.__dict__.update(numpy.__dict__)
            self.__class__ = ModuleType  # from now on a name costs what it costs of any module
            return getattr(numpy, name)

    np = _Numpy("numpy")
