"""Trials in a process of their own: a signal, a hang or too much memory is a failure, not the end."""

import os
import resource
import signal
from random import Random

from tests.forked import CONTEXT

SECONDS, WAIT, MEMORY = 10, 120, 6 << 30
"""Limits of one trial: seconds of computing, seconds in all (others may be busy), address space."""


def run_isolated(trial, count, *, seed=0):
    """Run ``trial(Random)`` many times; return a line for each failure.

    A trial returns None, or a string that says what was wrong. Its attribute ``prepare``, if any, is
    called first, without limits.
    """
    failures, start = [], 0
    while start < count:
        reader, writer = CONTEXT.Pipe(duplex=False)
        process = CONTEXT.Process(target=_work, args=(trial, start, count, seed, writer))
        process.start()
        writer.close()
        try:
            while True:
                start, problem = reader.recv()
                if problem:
                    failures.append(f"trial {start}: {problem}")
                start += 1
        except EOFError:
            process.join()
        if process.exitcode:
            failures.append(f"trial {start}: the process ended with {process.exitcode}")
            start += 1
    return failures


def _work(trial, start, count, seed, results):
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    getattr(trial, "prepare", lambda: None)()
    for number in range(start, count):
        signal.setitimer(signal.ITIMER_PROF, SECONDS)  # the default action ends the process
        signal.alarm(WAIT)
        try:
            problem = trial(Random(seed * 1_000_003 + number))
        except BaseException as error:  # a Rust panic is no Exception
            problem = f"{type(error).__name__}: {error}"[:300]
        results.send((number, problem))
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.alarm(0)
