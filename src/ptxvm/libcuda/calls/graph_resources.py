"""User objects: objects of a client that graphs use, and that end with their last user."""

from __future__ import annotations

from functools import partial

from ptxvm.driver.graph import UserObject
from ptxvm.driver.results import DriverError, Result
from ptxvm.libcuda.c_values import function_at, put_u64
from ptxvm.libcuda.calls.graph import graph_of
from ptxvm.libcuda.calls.stream import HOST_FUNCTION
from ptxvm.libcuda.session import function, session

NO_DESTRUCTOR_SYNC = MOVE = 1  # CU_USER_OBJECT_NO_DESTRUCTOR_SYNC, CU_GRAPH_USER_OBJECT_MOVE
MOST = 2**31 - 1  # references in one call


@function("cuUserObjectCreate")
def create_resource(out: int, pointer: int, destroy: int, count: int, flags: int) -> None:
    """A user object: an object of the client, and its destructor, which no call waits for: the flag must say so."""
    if flags != NO_DESTRUCTOR_SYNC:
        raise DriverError(Result.INVALID_VALUE, f"flags of a user object: {flags} is not CU_USER_OBJECT_NO_DESTRUCTOR_SYNC")
    check_count(count)
    ended = function_at(HOST_FUNCTION, destroy)
    put_u64(out, session().handles.handle(UserObject(partial(ended, pointer), count)))


@function("cuUserObjectRetain")
def retain_resource(handle: int, count: int) -> None:
    """Add users."""
    check_count(count)
    session().handles.object(handle, UserObject).retain(count)


@function("cuUserObjectRelease", any_state=True)
def release_resource(handle: int, count: int) -> None:
    """Remove users."""
    check_count(count)
    session().handles.object(handle, UserObject).release(count)


@function("cuGraphRetainUserObject")
def use_resource(handle: int, resource: int, count: int, flags: int) -> None:
    """Let a graph use a resource: by a new use, or by one of the client's."""
    if flags & ~MOVE:
        raise DriverError(Result.INVALID_VALUE, f"flags of a graph's use of an object: {flags} has unknown ones")
    check_count(count)
    found = session().handles.object(resource, UserObject)
    if not flags & MOVE:
        found.retain(count)
    graph_of(handle).retain(found, count)


@function("cuGraphReleaseUserObject", any_state=True)
def release_resource_of_graph(handle: int, resource: int, count: int) -> None:
    """Remove uses of a resource by a graph."""
    check_count(count)
    graph_of(handle).release(session().handles.object(resource, UserObject), count)


def check_count(count: int) -> None:
    """Raise DriverError for a number of references that one call cannot add or remove."""
    if not 0 < count <= MOST:
        raise DriverError(Result.INVALID_VALUE, f"{count} references: a call adds or removes 1 to {MOST}")
