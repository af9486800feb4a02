"""The litmus tests share a module of their own (`verdicts`), which lies beside them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
