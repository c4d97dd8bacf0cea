"""LosingEngine: an engine to which something happens in the midst of the work."""

from ray_jobs import die_first, die_with_state


class LosingEngine:
    """Counts calls, and at one of them loses what does it.

    Args:
        engine: Whose workers do the work.
        at: At which call.
        marker: If given, the worker of that call is killed, which leaves this file.
        lose: If given, called in this process, after the call was sent.
    """

    def __init__(self, engine, at, marker=None, lose=None):
        self._engine, self._at, self._marker, self._lose = engine, at, marker, lose
        self.name, self.workers = engine.name, engine.workers
        self.put, self.get = engine.put, engine.get
        self.calls = 0

    def _sent(self, send, deadly, function, *given):
        self.calls += 1
        if self.calls != self._at:
            return send(function, *given)
        promise = (
            send(function, *given)
            if self._marker is None
            else send(deadly, self._marker, function, *given)
        )
        if self._lose is not None:
            self._lose()
        return promise

    def call(self, function, *given):
        return self._sent(self._engine.call, die_first, function, *given)

    def keep(self, build, *given):
        return _LosingResident(self, self._engine.keep(build, *given))


class _LosingResident:
    def __init__(self, engine, resident):
        self._engine, self._resident = engine, resident

    def call(self, function, *given):
        return self._engine._sent(self._resident.call, die_with_state, function, *given)
