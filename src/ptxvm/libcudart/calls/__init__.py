"""The functions of the runtime API, by the chapters of its manual; each module enters its own in `FUNCTIONS`."""
