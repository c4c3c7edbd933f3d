"""Break it: the live driver with one thing broken at a time, and whether the fault histories see it.

python -m tests.faults.break_it [--only TEXT] [--jobs N]
"""

from __future__ import annotations

import sys

from tests.rig.mutants import Mutant, MutantSuite

REFLECTOR, POSTING = "kube/reflector.py", "kube/post_pipeline.py"
BINDINGS, SENDER = "kube/kube_cluster.py", "kube/sender.py"
CLUSTER, STATUSES = "kube/kube_cluster.py", "kube/pod_statuses.py"
CONNECTION, BACKOFF = "kube/connection.py", "kube/retry_backoff.py"
BINDING, HANDLERS = "scheduler/binding.py", "scheduler/event_handlers.py"

MUTANTS = [
    # Lists and watches
    Mutant(
        "an expired version is watched again",
        REFLECTOR,
        '                    self._version = self._first_version = ""\n',
        '                    self._first_version = ""\n',
    ),
    Mutant(
        "objects that a new list lacks stay",
        REFLECTOR,
        "gone = [key for key in self._known if key not in seen]",
        "gone: list[Key] = []",
    ),
    Mutant(
        "a list forgets what it has seen",
        REFLECTOR,
        "        gone = [key for key in self._known if key not in seen]\n",
        "        gone = [key for key in self._known if key not in seen]\n        gone += list(seen)[:1]\n",
    ),
    Mutant(
        "only the first page of a list is read",
        REFLECTOR,
        "while page.metadata.continue_:",
        "while False:",
    ),
    Mutant(
        "a watch begins at the newest version",
        REFLECTOR,
        "            self._version = version or self._version\n",
        '            self._version = str(int(version or "0") + 1)\n',
    ),
    Mutant(
        "an incomplete line is a whole one",
        REFLECTOR,
        "rest = lines.pop()  # an incomplete line",
        'rest, _ = b"", lines.pop()',
    ),
    Mutant(
        "deletions are not delivered",
        REFLECTOR,
        "                batch.append(ObjectEvent(DELETED, obj))\n            return\n",
        "            return\n",
    ),
    Mutant(
        "the driver waits long between tries",
        BACKOFF,
        "limit_s: float = 1.6",
        "limit_s: float = 30",
    ),
    Mutant(
        "an unreadable response ends the driver",
        CONNECTION,
        "        except (OSError, TimeoutError) as error:\n            raise self._unreachable(error) from None\n\n"
        "    @asynccontextmanager",
        "        except TimeoutError as error:\n            raise self._unreachable(error) from None\n\n"
        "    @asynccontextmanager",
    ),
    # Bindings
    Mutant(
        "the room of a failed binding is not released",
        BINDING,
        "            self._tools.parts.cache.forget_pod(self.assumed)\n",
        "            pass\n",
    ),
    Mutant(
        "a binding without a response has failed",
        SENDER,
        "        elif confirm is not None and is_unclear(answer):",
        "        elif confirm is not None and answer.code == 409:",
    ),
    Mutant(
        "a binding without a response counts as written",
        BINDINGS,
        "        raise error\n",
        "        return\n",
    ),
    Mutant(
        "a binding whose look-up fails has failed",
        BINDINGS,
        "            if not _is_passing(problem):",
        "            if True:",
    ),
    Mutant(
        "the refusal of a repeated binding is a failure",
        POSTING,
        "if post.was_resent and answer.code >= 400:",
        "if False:",
    ),
    Mutant(
        "requests of a broken connection are dropped",
        POSTING,
        "                self._waiting.append(post._replace(was_resent=True))\n",
        "                pass\n",
    ),
    Mutant(
        "requests wait for ever when the server is away",
        POSTING,
        "            self._waiting.popleft().done(failure)\n",
        "            self._waiting.popleft()\n",
    ),
    Mutant(
        "responses are given to the wrong requests",
        POSTING,
        "self._pool.answered(self.pending.popleft(), answer)",
        "self._pool.answered(self.pending.pop(), answer)",
    ),
    Mutant(
        "only the first response of a read is taken",
        POSTING,
        "            self._add(head, data[begin:at], answers)\n",
        "            self._add(head, data[begin:at], answers)\n            break\n",
    ),
    # Different writes
    Mutant(
        "a pod with a running patch is bound without it",
        STATUSES,
        "        wanted = self._next[pod.uid] = StatusChange()\n        wanted.bind = bind\n",
        "        self._next[pod.uid] = StatusChange()\n",
    ),
    # Arrivals
    Mutant(
        "a pod that goes while it is assumed keeps its room",
        HANDLERS,
        "        if self.cache.is_assumed(pod) and self._forgets_deleted:\n"
        "            self._assumed_pod_goes(pod)\n        elif self",
        "        if self",
    ),
    Mutant(
        "a pod that leaves a node wakes no other",
        HANDLERS,
        "        self.queue.move_all_to_active_or_backoff(ASSIGNED_POD_DELETE, pod, None)\n\n    @staticmethod",
        "\n    @staticmethod",
    ),
]
REDUNDANT: dict[str, str] = {}
"""Mutants that no history distinguishes from the original, with the reason."""

SUITE = MutantSuite(
    MUTANTS,
    REDUNDANT,
    tests=["tests/faults/test_fault_histories.py", "tests/kube/test_post_pipeline.py"],
    copied=["tests/faults", "tests/kube"],
    environment={"BAYPLAN_FAULT_HISTORIES": "200"},
)

if __name__ == "__main__":
    sys.exit(SUITE.main())
