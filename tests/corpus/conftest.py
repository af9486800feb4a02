"""What runs real modules shares a module of its own (`modules`), which lies beside them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
