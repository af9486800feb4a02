"""User objects: objects of a client that graphs use, and that end with their last user."""

from __future__ import annotations

from functools import partial

from ptxvm.driver.graph import UserObject
from ptxvm.libcuda.c_values import not_null, put_u64
from ptxvm.libcuda.calls.graph import graph_of
from ptxvm.libcuda.calls.stream import HOST_FUNCTION
from ptxvm.libcuda.session import function, session


@function("cuUserObjectCreate")
def create_resource(out: int, pointer: int, destroy: int, count: int, flags: int) -> None:
    """A user object: an object of the client, and its destructor."""
    ended = HOST_FUNCTION(not_null(destroy))
    put_u64(out, session().handles.handle(UserObject(partial(ended, pointer), count)))


@function("cuUserObjectRetain")
def retain_resource(handle: int, count: int) -> None:
    """Add users."""
    session().handles.object(handle, UserObject).retain(count)


@function("cuUserObjectRelease", any_state=True)
def release_resource(handle: int, count: int) -> None:
    """Remove users."""
    session().handles.object(handle, UserObject).release(count)


@function("cuGraphRetainUserObject")
def use_resource(handle: int, resource: int, count: int, flags: int) -> None:
    """Let a graph use a resource: by a new use, or by one of the client's."""
    handed_over = 1  # CU_GRAPH_USER_OBJECT_MOVE
    found = session().handles.object(resource, UserObject)
    if not flags & handed_over:
        found.retain(count)
    graph_of(handle).retain(found, count)


@function("cuGraphReleaseUserObject", any_state=True)
def release_resource_of_graph(handle: int, resource: int, count: int) -> None:
    """Remove uses of a resource by a graph."""
    graph_of(handle).release(session().handles.object(resource, UserObject), count)
