"""The generated tests share modules of their own (`random_kernels`), which lie beside them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
