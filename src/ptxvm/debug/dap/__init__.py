"""The Debug Adapter Protocol over a session: requests come in as dictionaries, responses and events go out as such.

It reads and writes no streams: `framing` turns messages into bytes and back.
"""
