"""A world before and after two of its upstream models are replaced."""

from harmonrank.data import read_log
from harmonrank.worlds import as_frame, world, world_schema

OLD = world("conflict")
NEW = OLD.with_upstream(("comment", "like"), a=1.5, b=-1.0)


def log_of(place, rows, seed):
    return read_log(as_frame(place, place.sample(rows, seed=seed)), world_schema(OLD))
