"""The oracles share modules of their own (`exact`, `machine`), which lie beside them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
