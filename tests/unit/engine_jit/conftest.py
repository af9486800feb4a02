"""The tests of the JIT share a module of their own (`engines`), which lies beside them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
