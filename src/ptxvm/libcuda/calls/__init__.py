"""The functions of the driver API, by the chapters of its manual; each module enters its own in `FUNCTIONS`."""
